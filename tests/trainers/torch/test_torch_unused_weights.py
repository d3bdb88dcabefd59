"""Weights that a step leaves out: an error that names them and rtrain's key, or no error where the key allows it."""

import pytest
import torch
import torch.distributed as dist
from torch_runs import make_conf, make_worker, small_dataset, weights

from rtrain.config.targets.builder import Builder
from rtrain.errors import TrainingError
from rtrain.trainers.torch.loop import train
from rtrain.trainers.torch.optimization.unused import unused_named

HERE = __name__
WAYS = ("in all steps", "from the second step on", "on one rank")


class Net(torch.nn.Module):
    """A network with a part that some steps, or some ranks, leave out."""

    def __init__(self, unused):
        super().__init__()
        self.frozen = torch.nn.Linear(1, 1).requires_grad_(False)
        self.used, self.spare = torch.nn.Linear(64, 3), torch.nn.Linear(64, 3)
        self.unused, self.calls = unused, 0

    def forward(self, x):
        self.calls += self.training
        uses = {
            "on one rank": lambda: dist.get_rank() == 0,
            "from the second step on": lambda: self.calls < 2 or not self.training,
        }
        x = x.flatten(1)
        return self.used(x) + (self.spare(x) if uses.get(self.unused, lambda: False)() else 0)


def conf_of(unused, strategy, **keys):
    optimizer = {"_target_": "torch.optim.SGD", "lr": 0.1}
    return make_conf(
        model={"_target_": f"{HERE}.Net", "unused": unused}, strategy=strategy, optimizer=optimizer, max_steps=4, **keys
    )


def fit_rank(rank, folder, conf):
    worker = make_worker(folder, conf, dataset=small_dataset(), rank=rank, world_size=dist.get_world_size())
    worker.builder = Builder((f"{HERE}.*",))
    train(worker)


def error_of_rank(rank, folder, conf):
    try:
        fit_rank(rank, folder, conf)
    except TrainingError as error:
        return str(error)
    return "none"


@pytest.mark.parametrize("strategy", ["ddp", "accelerate"])
@pytest.mark.parametrize("unused", WAYS[:2])  # torch sees nothing of what ranks do apart
@pytest.mark.parametrize("parts", [1, 2])
def test_a_step_that_leaves_weights_out_is_an_error_that_names_them_and_the_key(
    world, tmp_path, strategy, unused, parts
):
    told = world.run(error_of_rank, str(tmp_path), conf_of(unused, strategy, accumulate_steps=parts, batch_size=16))
    for one in told:
        assert "a step did not use spare.weight, spare.bias of the model" in one
        assert "try: trainer.find_unused_parameters=true" in one


@pytest.mark.parametrize("strategy", ["ddp", "accelerate"])
@pytest.mark.parametrize("unused", WAYS)
def test_the_key_allows_it(world, tmp_path, strategy, unused):
    world.run(fit_rank, str(tmp_path), conf_of(unused, strategy, find_unused_parameters=True))
    assert "spare.weight" in weights(tmp_path)


def test_other_errors_are_what_they_were_and_numbers_that_nobody_knows_are_none():
    with pytest.raises(RuntimeError, match=r"^other$"), unused_named(Net(WAYS[0])):
        raise RuntimeError("other")
    with pytest.raises(TrainingError, match="did not use some weights of the model"), unused_named(Net(WAYS[0])):
        raise RuntimeError("Expected to have finished reduction in the prior iteration ... for rank 0: 17 \n")
