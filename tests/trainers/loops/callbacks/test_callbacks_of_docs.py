"""The examples of docs/callbacks.md do what the page says."""

import json
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import torch
import yaml
from safetensors.torch import load_file

import rtrain

PAGE = Path(__file__).parents[4] / "docs" / "callbacks.md"
PYTHON, YAML = (re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL) for kind in ("python", "yaml"))


@pytest.fixture(autouse=True)
def _own(project):
    for code in PYTHON:
        (project / re.match(r"# (\w+\.py), next to the config", code)[1]).write_text(code)


def config(place):
    """Write the example of the page into a config of digits; return its name."""
    own = yaml.safe_load(YAML[place])
    Path("digits.yaml").write_text(yaml.safe_dump({"defaults": ["mlp"], **own}))
    return "digits.yaml"


def test_the_end_of_a_run_is_posted(monkeypatch):
    posted = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Chat) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("CHAT_URL", f"http://127.0.0.1:{server.server_port}/")
        rtrain.fit(config(0), ["num_workers=0", "epochs=1"])
        server.shutdown()
    assert [one["text"].partition(":")[0] for one in posted] == ["succeeded"]


def test_a_layer_is_frozen_after_two_epochs_also_of_a_resumed_run():
    words = ["num_workers=0", "run.checkpoint.best.monitor=null"]
    weights = {}
    run = rtrain.fit(config(1), [*words, "epochs=2"])
    weights[2] = load_file(run.checkpoints[-1] / "model.safetensors")
    run = rtrain.resume(run.path, ["epochs=3"])
    weights[3] = load_file(run.checkpoints[-1] / "model.safetensors")
    same = {name for name, one in weights[2].items() if torch.equal(one, weights[3][name])}
    assert {name for name in weights[2] if name.startswith("layers.0.")} == same
    assert same < weights[2].keys()


def test_weights_are_drawn_after_each_evaluation():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    word = "trainer.callbacks=[{_target_: drawing.DrawWeights, name: layers.0.weight}]"
    run = rtrain.fit("mlp", ["num_workers=0", "epochs=2", "run.loggers=[tensorboard]", word])
    found = EventAccumulator(str(run.path / "tensorboard"), size_guidance={"images": 0}).Reload()
    evaluated = [event.step for event in run.events() if "val/loss" in event.metrics or "test/loss" in event.metrics]
    assert [image.step for image in found.Images("layers.0.weight")] == evaluated
    assert found.Scalars("train/loss")
