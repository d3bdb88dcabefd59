"""Workers of a run get processes that were ready: they have imported while the driver read the data."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from processes import named, until

import rtrain
from rtrain.cluster.prestart import Prestart
from rtrain.cluster.ray_cluster import connect
from rtrain.config.schema import ClusterConf, ScalingConf
from rtrain.config.session import Session
from rtrain.engine.ray import train
from rtrain.process import quick_imports
from rtrain.schemas import schemas
from rtrain.training import preparation


@pytest.mark.parametrize(("own", "expected"), [({}, "3"), ({"OMP_NUM_THREADS": "5"}, "5")])
def test_a_process_that_is_ready_has_imported_and_knows_a_workers_number_of_threads(monkeypatch, own, expected):
    import ray

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    scaling = ScalingConf(num_workers=1, resources_per_worker={"CPU": 3})
    conf = ClusterConf(object_store_bytes=80_000_000, runtime_env={"env_vars": own})
    with connect(conf, 8, Prestart.of_run(scaling, ["xml.dom.pulldom"], 8)) as starting:
        starting.wait()

        def look():
            return "xml.dom.pulldom" in sys.modules, os.environ.get("OMP_NUM_THREADS")

        assert ray.get(ray.remote(num_cpus=1)(look).remote()) == (True, expected)
        assert len(named(os.getpid(), "--num_prestart_python_workers=1 ")) == 1


@pytest.mark.parametrize("broken", [False, True])
def test_imports_look_for_garbage_less_often_and_tasks_as_usual(monkeypatch, tmp_path, broken):
    import ray

    (tmp_path / "own_import.py").write_text("import gc\nthresholds = gc.get_threshold()\n")
    (tmp_path / "own_broken.py").write_text("raise OSError('this library is broken')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    scaling, modules = ScalingConf(num_workers=1), ["own_import", *["own_broken"] * broken]
    with connect(ClusterConf(object_store_bytes=80_000_000), 2, Prestart.of_run(scaling, modules, 2)) as starting:
        starting.wait()

        def look():
            return sys.modules["own_import"].thresholds, gc.get_threshold()

        assert ray.get(ray.remote(num_cpus=1)(look).remote()) == (quick_imports.FEWER, quick_imports.USUAL)


def test_the_worker_of_a_run_is_a_process_that_was_ready(monkeypatch, tmp_path):
    ready, build = [], train._build_trainer

    def built(*arguments):
        assert until(lambda: named(os.getpid(), "ray::IDLE")), "no process was ready"
        ready.extend(named(os.getpid(), "ray::IDLE"))
        return build(*arguments)

    monkeypatch.setattr(train, "_build_trainer", built)
    run = rtrain.fit("mlp", ["num_workers=1", "trainer.max_epochs=1", f"run.root_dir={tmp_path}"])
    assert run.manifest.workers["0"]["pid"] in ready


@pytest.mark.parametrize(
    ("config", "words", "num_processes"),
    [
        ("mlp", ["num_workers=1"], 1),
        ("mlp", ["num_workers=3"], 3),
        ("lightning", ["num_workers=2"], 2),
        ("transformers", ["num_workers=2"], 2),
        ("xgboost", ["num_workers=2"], 2),
        ("lightgbm", ["num_workers=1"], 1),
        ("lightgbm", ["num_workers=2"], 2),
        ("jax", ["num_workers=2"], 2),
        ("sklearn", ["num_workers=1"], 1),
        ("own.yaml", ["num_workers=1"], 1),
        ("own.yaml", ["num_workers=2"], 2),
        ("own.yaml", ["num_workers=2", "+dataset=digits"], None),
    ],
)
def test_as_many_processes_are_ready_as_a_run_needs(monkeypatch, tmp_path, config, words, num_processes):
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text("trainer: {type: torch, train_loop: 'own:train'}")
    asked = []
    monkeypatch.setattr(preparation, "connect", lambda conf, num_cpus, prestart=None: asked.append(prestart))
    with Session(config, words, schemas()) as session:
        preparation._started(session.check())
    assert [prestart and prestart.num_processes for prestart in asked] == [num_processes]


def test_idle_processes_of_more_workers_than_cpus_are_not_ended_by_ray():
    crowded = ScalingConf(num_workers=8, resources_per_worker={"CPU": 0.25})
    assert Prestart.of_run(crowded, ["json"], 4).variables["RAY_num_workers_soft_limit"] == "8"
