"""Where the hub can't be reached, only what was downloaded before is looked for, without retries."""

from __future__ import annotations

import socket

import pytest

from rtrain.trainers.transformers import hub


@pytest.fixture
def offline(monkeypatch):
    def unresolved(*_):
        raise socket.gaierror("no network")

    monkeypatch.setattr(hub.socket, "getaddrinfo", unresolved)
    monkeypatch.setattr(hub, "getproxies", dict)


def test_without_a_network_only_local_files_are_looked_for(offline):
    assert hub.local_only("bert-base-uncased") == {"local_files_only": True}


def test_a_folder_or_a_proxy_needs_no_hub(offline, tmp_path, monkeypatch):
    assert hub.local_only(str(tmp_path)) == {}
    assert hub.local_only(None) == {}
    monkeypatch.setattr(hub, "getproxies", lambda: {"https": "http://proxy"})
    assert hub.local_only("bert-base-uncased") == {}


def test_the_error_says_so_and_names_the_key(offline, monkeypatch):
    pytest.importorskip("transformers")
    from rtrain.errors import ConfigError
    from rtrain.trainers.transformers import tokens

    monkeypatch.setattr(tokens.AutoTokenizer, "from_pretrained", _not_found)
    with pytest.raises(ConfigError, match=r"trainer\.model\.pretrained.*can't be reached"):
        tokens.load_tokenizer("bert-base-uncased", "trainer.model.pretrained")


def _not_found(name, **options):
    assert options["local_files_only"]
    raise OSError("not in the cache")
