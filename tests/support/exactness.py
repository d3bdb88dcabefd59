"""Interrupts trainings and compares what they end with, bit by bit, with uninterrupted ones."""

import pickle
from pathlib import Path

import numpy as np

from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.testing.workers import RecordingChannel

UNLIKE = ("progress.json", "about.json", "checkpoint.json", "events.jsonl")
"""Files that tell times."""


def assert_exact(folder, fit, stops, only=("",), **tolerance):
    """Train once in one go and once with interruptions, and compare all weights and the optimizer's state.

    Args:
        folder: Where both go.
        fit: ``fit(run_dir, channel)`` trains, or goes on.
        stops: After how many steps each attempt is interrupted; the one after the last goes on to the end.
        only: What is compared, by the beginnings of names: ``training.pt/optimizer``, say.
        tolerance: Of ``np.testing.assert_allclose``; none: bit by bit.
    """
    whole = RecordingChannel()
    fit(folder / "whole", whole)
    for stop in stops:
        channel = RecordingChannel(stop_after=stop)
        fit(folder / "parts", channel)
    last = RecordingChannel()
    fit(folder / "parts", last)
    assert_same_contents(folder / "whole", folder / "parts", only, **tolerance)
    return whole, last


def assert_same_contents(first, second, only=("",), **tolerance):
    """Compare the newest checkpoints below two run directories."""
    expected, found = (contents(latest_checkpoint(one)) for one in (first, second))
    assert expected.keys() == found.keys()
    compared = {name: value for name, value in expected.items() if name.startswith(tuple(only))}
    assert compared
    different = [name for name, value in compared.items() if not _same(value, found[name], **tolerance)]
    assert not different, different


def contents(folder):
    """Return all numbers of a checkpoint by name, and what is no number as bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in UNLIKE:
            _flatten(_read(path), str(path.relative_to(folder)), found)
    return found


def _read(path: Path):
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return load_file(path)
    if path.suffix in (".pt", ".ckpt"):
        import torch

        return torch.load(path, weights_only=False)
    if path.suffix == ".pkl":
        return pickle.loads(path.read_bytes())
    if path.suffix == ".h5":
        import h5py

        held = {}
        with h5py.File(path) as file:
            file.visititems(lambda name, one: held.update({name: one[()]}) if isinstance(one, h5py.Dataset) else None)
        return held
    return path.read_bytes()


def _flatten(value, name, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, f"{name}/{key}", found)
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            _flatten(inner, f"{name}/{place}", found)
    elif isinstance(value, np.random.RandomState):
        _flatten(value.get_state(legacy=True), name, found)
    elif hasattr(value, "__dict__") and not callable(value) and not hasattr(value, "__array__"):
        _flatten(vars(value), name, found)
    else:
        found[name] = np.asarray(value) if hasattr(value, "__array__") else value


def _same(first, second, **tolerance):
    if not isinstance(first, np.ndarray):
        return first == second or pickle.dumps(first) == pickle.dumps(second)
    if tolerance and first.dtype.kind == "f":
        return first.shape == second.shape and np.allclose(first, second, **tolerance)
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()
