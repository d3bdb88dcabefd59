"""Sweeps with ``run.storage``: what is copied, and what is said of a copy that is not complete."""

from pathlib import Path

import pytest
from tiny_sweeps import TINY, swept

from rtrain.cli.app import run as rtrain
from rtrain.storage.mirror import Ending, Mirror
from rtrain.sweeps.record import read_sweep

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture
def words(tiny):
    (tiny / "store").mkdir()
    return [*TINY, "trainer.num_boost_round=3", "trainer.params.eta=0.1,0.5", f"run.storage=file://{tiny}/store"]


def lacking(name):
    """Return a way to end a mirror that leaves the copy of one trial incomplete, or of all."""
    finish = Mirror.finish

    def ended(self, *args):
        real = finish(self, *args)
        return Ending(complete=False, missing=[], error="no luck") if name in str(self._manifest) else real

    return ended


@pytest.mark.parametrize("launcher", [[], ["hydra/launcher=joblib", "hydra.launcher.n_jobs=1"]], ids=["own", "joblib"])
def test_a_copy_that_is_not_complete_is_told_and_counts_as_a_failure(words, launcher, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "finish", lacking("/001-"))
        data, folder = swept([*words, *launcher], code=1)
    assert data["status"] == "succeeded"
    assert [one["lacks_copy"] for one in data["trials"]] == [False, True]
    incomplete = folder / data["trials"][1]["name"]
    told = capsys.readouterr().out
    assert f"copy        of {incomplete.name} is NOT COMPLETE" in told
    assert f"rtrain runs upload {incomplete}" in told
    assert rtrain([*words, *launcher]) == 1, "it is still not complete"
    assert rtrain(["runs", "upload", str(incomplete)]) == 0
    assert (Path("store") / folder.name / incomplete.name / "manifest.json").exists()
    assert [path.name for path in Path("store").iterdir()] == [folder.name]
    assert rtrain([*words, *launcher]) == 0
    assert [one["lacks_copy"] for one in read_sweep(folder)["trials"]] == [False, False]
