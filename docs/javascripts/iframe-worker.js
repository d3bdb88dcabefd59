// Browsers start no worker from the file system: there the search runs in a hidden frame, so that it needs no server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<body></body>";
      frame.addEventListener("load", () => this.start(frame.contentWindow, url));
      const add = () => document.body.append(frame);
      document.body ? add() : addEventListener("DOMContentLoaded", add);
    }

    start(inside, url) {
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      inside.importScripts = () => {};
      const script = inside.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        this.inside = inside;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (!this.inside) {
        this.waiting.push(data);
        return;
      }
      const event = new this.inside.MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
      this.inside.onmessage?.(event);
    }

    terminate() {}
  };
}
