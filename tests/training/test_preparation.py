"""What is found out before anything starts."""

import numpy as np
import pytest

import rtrain
from rtrain.cluster.ray_cluster import Cluster
from rtrain.config.run_conf import RunConf
from rtrain.config.schema import RtrainConf, ScalingConf
from rtrain.errors import ConfigError, NotEnoughResourcesError
from rtrain.runs.facts import num_cores
from rtrain.testing.small_data import in_memory
from rtrain.testing.workers import make_job
from rtrain.trainers.registry import load_trainer
from rtrain.trainers.torch.config import Conf
from rtrain.training.preparation import check_room, check_shares


def test_more_workers_than_rows_to_train_on_are_refused():
    rows = {"x": np.zeros((3, 2), "float32"), "y": np.zeros(3, "int64")}
    dataset = in_memory({"train": rows}, "classification", num_classes=2)
    for fits in (0, 1, 3):
        check_shares(dataset, fits)
    check_shares(None, 8)
    tried = rf"4 workers can't share 3 rows of the split 'train'\.\ntry: num_workers={min(3, num_cores())}\b"
    with pytest.raises(ConfigError, match=tried):
        check_shares(dataset, 4)


@pytest.mark.parametrize("shared", [True, False])
def test_a_loop_leaves_a_core_to_read_the_data_only_if_it_has_data(shared):
    conf = RtrainConf(
        trainer=Conf(train_loop="a:b"), run=RunConf(name="test"), scaling=ScalingConf(num_workers=2), dataset=None
    )
    cluster = Cluster(own=True, nodes=({"CPU": 2.0},), shared=shared)
    plugin = load_trainer("torch", conf.trainer)
    check_room(make_job(conf, None), plugin, cluster, ["rtrain"])
    rows = {"x": np.zeros((3, 2), "float32"), "y": np.zeros(3, "int64")}
    with pytest.raises(NotEnoughResourcesError, match="1 CPU left to read the data"):
        check_room(make_job(conf, in_memory({"train": rows}, "classification", num_classes=2)), plugin, cluster, [])


@pytest.mark.parametrize("config", ["xgboost", "lightgbm", "mlp", "sklearn"])
def test_rows_that_all_weigh_nothing_are_an_error_of_every_trainer(config, tmp_path):
    rows = "\n".join(f"{number},{number % 5},{number % 2},0" for number in range(40))
    (tmp_path / "rows.csv").write_text(f"a,b,y,w\n{rows}\n")
    data = ["dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y", "dataset.weight=w"]
    with pytest.raises(ConfigError, match=r"dataset\.weight.*split 'train'"):
        rtrain.fit(config, ["num_workers=0", *data, f"run.root_dir={tmp_path}/runs"])
    assert not (tmp_path / "runs").exists()
