"""Weights that a step of a transformers model leaves out: an error that names them and the key, or none with it."""

from contextlib import closing

import pytest
import torch
import torch.distributed as dist
from transformers_runs import STILL, dataset, fit, make_conf

from rtrain.errors import TrainingError
from rtrain.testing.ranks import RankProcesses
from rtrain.trainers.transformers import learner

KEY = "ddp_find_unused_parameters"


def join(rank, addresses):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{addresses[0]}", rank=rank, world_size=len(addresses))


@pytest.fixture(scope="module")
def ranks():
    with closing(RankProcesses(join)) as processes:
        yield processes


def error_of_rank(rank, folder, conf):
    """Train a model with a layer that no step uses, and return what is told."""
    build = learner.build_model

    def with_spare(*args, **keys):
        model, lent = build(*args, **keys)
        model.spare = torch.nn.Linear(2, 2)
        return model, lent

    learner.build_model = with_spare
    try:
        fit(folder, conf, dataset(), rank=rank, world_size=2)
    except TrainingError as error:
        return str(error)
    finally:
        learner.build_model = build
    return "none"


def test_weights_that_a_step_leaves_out_are_told_with_the_key_that_allows_them(tmp_path, ranks):
    conf = make_conf(model=STILL, max_epochs=1)
    for told in ranks.run(error_of_rank, str(tmp_path / "a"), conf):
        assert "a step did not use spare.weight, spare.bias of the model" in told
        assert f"try: trainer.arguments.{KEY}=true" in told
    conf.arguments = {**conf.arguments, KEY: True}
    assert ranks.run(error_of_rank, str(tmp_path / "b"), conf) == ["none", "none"]
