import pytest

from rtrain.errors import CheckpointError
from rtrain.runs.checkpoints import checkpoints_dir
from rtrain.trainers.ray_worker import check_storage


def test_a_machine_that_does_not_reach_the_run_directory_says_so_before_training(tmp_path):
    with pytest.raises(CheckpointError, match="doesn't reach the run directory") as caught:
        check_storage(tmp_path / "elsewhere", ".reached")
    assert "Set run.root_dir" in str(caught.value)


def test_a_machine_that_reaches_it_goes_on(tmp_path):
    checkpoints_dir(tmp_path).mkdir()
    (checkpoints_dir(tmp_path) / ".reached").touch()
    check_storage(tmp_path, ".reached")
