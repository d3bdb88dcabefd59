"""What the ranks of Lightning decide, they decide together, also where the metrics of one are not those of another."""

import os

import lightning.pytorch as pl
import pytest
import torch
import torch.distributed as dist
from lightning_runs import dataset
from safetensors.torch import load_file

from rtrain.config.run_conf import StopConf
from rtrain.config.targets.builder import Builder
from rtrain.errors import TrainingError
from rtrain.models.lightning import Classifier
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.runs.events import Event
from rtrain.runs.records import CheckpointRecord, NoticeRecord
from rtrain.testing.ranks import RankProcesses
from rtrain.testing.workers import RecordingChannel, make_worker
from rtrain.trainers.lightning.config import Conf
from rtrain.trainers.lightning.loop import train
from rtrain.trainers.loops.early_stopping import EarlyStoppingConf

HERE = __name__


class Differing(Classifier):
    """Each rank logs values of its own: those of rank 0 get better in every epoch, those of rank 1 never do.

    Args:
        only_first: Log on rank 0 alone.
    """

    def __init__(self, in_features, num_classes, only_first=False):
        super().__init__(in_features, num_classes, hidden=())
        self.only_first = only_first

    def validation_step(self, batch, batch_idx):
        if not (self.only_first and self.global_rank):
            self.log("val_loss", 1.0 + self.global_rank - (self.global_rank == 0) * 0.01 * self.current_epoch)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss", "strict": False}}


class Stopping(pl.callbacks.Callback):
    """Ends training on one rank alone."""

    def on_validation_end(self, trainer, pl_module):
        trainer.should_stop = trainer.should_stop or trainer.global_rank == 1


class Unused(Classifier):
    """Weights that no step uses."""

    def __init__(self, in_features, num_classes):
        super().__init__(in_features, num_classes)
        self.spare = torch.nn.Linear(2, 2)


class Counting(Classifier):
    """The loss of each batch is its number, from 1, and 10 more on rank 1."""

    def training_step(self, batch, batch_idx):
        return super().training_step(batch, batch_idx) * 0 + 10 * self.global_rank + batch_idx + 1


def join(rank, addresses):
    size = str(len(addresses))
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size, "NODE_RANK": "0"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{addresses[0]}", rank=rank, world_size=len(addresses))
    _leave_out_ray()


def _leave_out_ray():
    """Have Lightning's parts of Ray find their place without Ray."""
    import ray.train.lightning
    from lightning.fabric.plugins.environments import LightningEnvironment
    from lightning.pytorch.strategies import DDPStrategy

    class Place(LightningEnvironment):
        creates_processes_externally = True

        def world_size(self):
            return dist.get_world_size()

        def global_rank(self):
            return dist.get_rank()

        def set_world_size(self, size):
            pass

        def set_global_rank(self, rank):
            pass

    class Plain(DDPStrategy):
        root_device = torch.device("cpu")
        distributed_sampler_kwargs = {"num_replicas": 2, "rank": 0}  # noqa: RUF012

    ray.train.lightning.RayLightningEnvironment, ray.train.lightning.RayDDPStrategy = Place, Plain


@pytest.fixture(scope="module")
def ranks():
    two = RankProcesses(join)
    yield two
    two.close()


def fit_rank(rank, folder, conf, **run):
    channel = RecordingChannel()
    worker = make_worker(folder, conf, dataset(), channel=channel, rank=rank, world_size=2, **run)
    worker.builder = Builder((f"{HERE}.*",))
    try:
        train(worker)
    except TrainingError as error:
        return str(error)
    return channel.records


def conf_of(name="Differing", **keys):
    more = {"only_first": keys.pop("only_first")} if "only_first" in keys else {}
    module = {"_target_": f"{HERE}.{name}", "in_features": 6, "num_classes": 3, **more}
    return Conf(**{"module": module, "max_epochs": 5, "global_batch_size": 25, **keys})


def of(records, kind):
    return [record for record in records if isinstance(record, kind)]


@pytest.mark.parametrize(
    "only_first",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["different values", "values of one rank"],
)
def test_early_stopping_and_the_rate_go_by_the_values_of_rank_0(tmp_path, ranks, only_first):
    early = EarlyStoppingConf(monitor="val/loss", patience=2, mode="min")
    first, second = ranks.run(fit_rank, tmp_path, conf_of(early_stopping=early, only_first=only_first))
    assert of(first, CheckpointRecord)[-1].entry["epoch"] == 5, "rank 0 gets better in every epoch"
    assert of(second, Event) == []
    assert ["val/loss" in notice.text for notice in of(first, NoticeRecord)] == ([] if only_first else [True])
    stored = torch.load(latest_checkpoint(tmp_path) / "lightning.ckpt", weights_only=True)
    assert stored["optimizer_states"][0]["param_groups"][0]["lr"] == 1.0


def test_the_loss_of_a_step_is_the_mean_over_the_rows_of_all_ranks_and_batches(tmp_path, ranks):
    conf = conf_of("Counting", max_epochs=1, trainer_args={"accumulate_grad_batches": 2})
    first, _ = ranks.run(fit_rank, tmp_path, conf, log_every_steps=1)
    losses = [event.metrics["train/loss"] for event in of(first, Event) if "train/loss" in event.metrics]
    assert losses == pytest.approx([1.5 + 10 * 13 / 25, 3 + 10 * 13 / 25])


def test_weights_stay_alike_when_the_schedules_of_ranks_see_other_metrics(tmp_path, ranks):
    found = ranks.run(_rates, tmp_path, conf_of())
    assert found[0] == found[1]


def _rates(rank, folder, conf):
    rates = []
    step = torch.optim.lr_scheduler.ReduceLROnPlateau.step

    def note(scheduler, *args, **kwargs):
        step(scheduler, *args, **kwargs)
        rates.append(scheduler.optimizer.param_groups[0]["lr"])

    torch.optim.lr_scheduler.ReduceLROnPlateau.step = note
    try:
        fit_rank(rank, folder, conf)
    finally:
        torch.optim.lr_scheduler.ReduceLROnPlateau.step = step
    return rates


@pytest.mark.parametrize(
    "keys",
    [
        {"stop": StopConf(target={"val/loss": 0.985})},
        {"conf": {"early_stopping": EarlyStoppingConf(monitor="val/loss", patience=1, min_delta=9.0, mode="min")}},
        {"conf": {"trainer_args": {"callbacks": [{"_target_": f"{HERE}.Stopping"}]}}},
    ],
    ids=["target", "patience", "a callback of one rank"],
)
def test_all_ranks_end_in_the_same_epoch(tmp_path, ranks, keys):
    keys = dict(keys)
    conf = conf_of(**keys.pop("conf", {}))
    first, second = ranks.run(fit_rank, tmp_path, conf, **keys)
    assert of(first, CheckpointRecord)[-1].entry["epoch"] < 5
    assert not isinstance(second, str)


class Thawing(Classifier):
    """Frozen in its first layer at first; trained in it from the second epoch on."""

    def __init__(self, in_features, num_classes):
        super().__init__(in_features, num_classes)
        self.layers[1].requires_grad_(False)

    def on_train_epoch_start(self):
        self.layers[1].requires_grad_(self.current_epoch >= 1)


def test_a_layer_that_ranks_would_train_apart_is_an_error(tmp_path, ranks):
    assert of(ranks.run(fit_rank, tmp_path / "a", conf_of("Thawing", max_epochs=1))[0], CheckpointRecord)
    told = ranks.run(fit_rank, tmp_path / "b", conf_of("Thawing", max_epochs=2))
    assert all("workers would not average its gradients" in one for one in told), told


def test_weights_that_a_step_leaves_out_are_told_with_the_key_that_allows_them(tmp_path, ranks):
    told = ranks.run(fit_rank, tmp_path / "a", conf_of("Unused"))
    assert all("did not use spare.weight, spare.bias of the model" in one for one in told)
    assert all("try: trainer.find_unused_parameters=true" in one for one in told)
    ranks.run(fit_rank, tmp_path / "b", conf_of("Unused", find_unused_parameters=True, max_epochs=1))
    assert load_file(latest_checkpoint(tmp_path / "b") / "model.safetensors")
