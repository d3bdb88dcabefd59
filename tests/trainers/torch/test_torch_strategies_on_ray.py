"""Sharded strategies on two real Ray workers: what one process trains, in checkpoints that predict alone."""

import pytest

import rtrain
from rtrain.datasets.registry import load_source
from rtrain.datasets.sources.digits import DigitsConf
from rtrain.runs.checkpoints import latest_checkpoint
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.torch.config import Conf
from rtrain.trainers.trained import LoadedCheckpoint, read_about

SAME = ["trainer.global_batch_size=64", "trainer.batch_size=null", "trainer.max_epochs=2", "trainer.clip_norm=0.5"]
SAME += ["dataset.split.val=null"]
SHARING = {
    "fsdp": ["trainer.strategy_options.blocks=[layers.0]", "trainer.strategy_options.activation_checkpointing=1"],
    "tp": ["trainer.strategy_options.tp_plan={layers.0: colwise, layers.2: rowwise, layers.4: colwise_gather}"],
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One process with the whole model."""
    return rtrain.fit("mlp", [*SAME, "num_workers=0", f"run.root_dir={tmp_path_factory.mktemp('alone')}"])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["fsdp", "tp"])
def test_two_workers_train_what_one_process_trains(alone, tmp_path, strategy):
    words = [*SAME, f"trainer.strategy={strategy}", *SHARING[strategy], "num_workers=2", f"run.root_dir={tmp_path}"]
    run = rtrain.fit("mlp", words)
    for name in ("train/epoch_loss", "test/loss", "test/accuracy"):
        assert run.metrics[name] == pytest.approx(alone.metrics[name], rel=1e-3), name
    newest = latest_checkpoint(run.path)
    listed = {record["name"]: record for record in run.manifest.checkpoints}[newest.name]
    assert len([name for name in listed["files"] if name.startswith("shards/")]) == 2
    assert (
        sum(worker["num_rows"]["train"] for worker in run.manifest.workers.values())
        == run.manifest.dataset["num_rows"]["train"]
    )
    about = read_about(newest)
    conf = Conf(model=about.trainer["model"], optimizer=about.trainer["optimizer"], max_epochs=2, strategy=strategy)
    predictor = load_trainer("torch").load_predictor(LoadedCheckpoint(folder=newest, conf=conf, info=about.info), "cpu")
    rows = load_source("digits").load(DigitsConf()).splits["test"].columns
    found = predictor.predict(rows["x"]).argmax(1)
    assert (found == rows["y"]).mean() == pytest.approx(run.metrics["test/accuracy"])
