"""Each key that no trainer or dataset owns, or that acts on workers alone, has a test that fails if it is ignored."""

import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from typing import get_args

import pytest
from named_tests import ROOT, exists

from rtrain.config.needs import SEVERAL_WORKERS, WORKERS
from rtrain.config.run_conf import RunConf
from rtrain.config.schema import ClusterConf, ScalingConf
from rtrain.config.sweep_conf import SweepConf
from rtrain.config.value_types.fields import hints_of
from rtrain.schedulers.base import SchedulerConf
from rtrain.schemas import schemas

ACTS = "tests/acting/test_torch_keys.py::TestTorch::test_a_key_acts"
RUN = tuple(
    f"run.{key}"
    for key in (
        *("name", "root_dir", "storage", "private", "seed", "log_every_steps", "init_from"),
        *("stop.max_seconds", "stop.target", "stop.bounds"),
        *(f"checkpoint.{one}" for one in ("every_epochs", "every_steps", "every_seconds", "keep", "upload", "on_exit")),
        *(f"checkpoint.best.{one}" for one in ("monitor", "mode", "keep")),
    )
)
NOT_FINITE = "tests/trainers/torch/test_torch_not_finite.py::TestNotFinite"
FAILURES = "tests/engine/test_failures.py"
LATER = f"{FAILURES}::test_the_first_failure_after_progress_is_retried_at_once_and_the_next_ones_ever_later"
ATTEMPTS = "tests/engine/ray/test_ray_attempts.py"
WORKER = "tests/engine/ray/test_ray_worker.py"
ASKED = "tests/cluster/test_scaling.py::test_ray_is_asked_for_what_each_key_says"
STARTED = "tests/cluster/test_cluster.py::test_ray_is_started_with_what_each_key_says"
DATA = "tests/training/test_resumed_data.py"
SWEEP = "tests/sweeps/test_sweep.py"
SEARCH = "tests/searches/test_searches.py"
SCHEDULER = "tests/schedulers/test_schedulers.py"
TESTS = {
    **{key: f"{ACTS}[{key}]" for key in RUN},
    "run.resume": "tests/training/test_resuming.py::test_must_needs_a_run_of_this_config",
    "run.resume_data": f"{DATA}::test_content_that_is_meant_to_be_another_is_taken_and_noted",
    "run.storage_timeout_seconds": "tests/storage/test_runs.py::test_a_copy_that_is_not_complete_is_told_loudly",
    "run.loggers": "tests/tracking/test_trackers.py::test_a_run_is_in_each_tracker_that_it_names",
    "run.loggers_timeout_seconds": (
        "tests/tracking/test_trackers.py::test_a_tracker_that_hangs_is_given_up_and_the_run_says_so"
    ),
    "run.callbacks": (
        "tests/tracking/test_callbacks.py::test_a_callback_is_called_for_everything_that_the_run_directory_holds"
    ),
    "run.system_metrics_seconds": (
        "tests/tracking/test_system_metrics.py::test_a_tracker_gets_samples_while_the_run_goes_on"
    ),
    "run.tags": "tests/tracking/test_trackers.py::test_trackers_are_told_what_a_run_is_and_no_secret",
    "run.notes": "tests/tracking/test_trackers.py::test_trackers_are_told_what_a_run_is_and_no_secret",
    "run.show_output": (
        "tests/trainers/loops/custom/reports/test_shown_output.py"
        "::test_output_in_this_process_is_shown_once_or_not_at_all_and_is_in_the_log[none-0]"
    ),
    "run.failure.nan_loss": f"{NOT_FINITE}::test_a_step_is_left_out_for_its_loss_or_its_gradients",
    "run.failure.max_skipped_steps": f"{NOT_FINITE}::test_a_run_that_leaves_out_step_after_step_fails",
    "run.failure.max_failures": f"{FAILURES}::test_failures_and_machines_taken_away_have_limits_of_their_own",
    "run.failure.max_preemption_failures": (
        f"{FAILURES}::test_failures_and_machines_taken_away_have_limits_of_their_own"
    ),
    "run.failure.backoff_seconds": LATER,
    "run.failure.max_backoff_seconds": LATER,
    "run.failure.hang_seconds": f"{WORKER}::test_a_worker_is_watched_for_as_long_as_the_key_says",
    "run.failure.wait_seconds": f"{ATTEMPTS}::test_machines_that_do_not_come_back_are_waited_for_with_a_limit",
    "scaling.num_workers": f"{ASKED}[num_workers]",
    "scaling.resize_seconds": f"{ASKED}[resize_seconds]",
    "scaling.use_gpu": f"{ASKED}[use_gpu]",
    "scaling.cpus_per_worker": f"{ASKED}[cpus_per_worker]",
    "scaling.resources_per_worker": f"{ASKED}[resources_per_worker]",
    "scaling.placement_strategy": f"{ASKED}[placement_strategy]",
    "scaling.start_timeout_seconds": f"{ATTEMPTS}::test_workers_that_never_start_are_told_after_the_start_timeout",
    "cluster.address": f"{STARTED}[address]",
    "cluster.object_store_bytes": f"{STARTED}[object_store_bytes]",
    "cluster.runtime_env": f"{STARTED}[runtime_env]",
    "cluster.start_timeout_seconds": "tests/cluster/test_cluster.py::test_a_cluster_that_does_not_answer_is_given_up",
    "trainer.lightning.find_unused_parameters": (
        "tests/trainers/lightning/test_lightning_two_ranks.py"
        "::test_weights_that_a_step_leaves_out_are_told_with_the_key_that_allows_them"
    ),
    "trainer.sklearn.parallel": "tests/trainers/sklearn/test_sklearn_loop.py::test_joblib_runs_where_the_key_says",
    "trainer.tensorflow.num_threads": (
        "tests/trainers/tensorflow/test_keras_loop.py::test_a_worker_has_as_many_threads_as_the_key_says"
    ),
    "trainer.torch.find_unused_parameters": (
        "tests/trainers/torch/test_torch_plugin.py::test_torch_is_told_that_weights_may_stay_unused"
    ),
    "trainer.torch.sync_batchnorm": "tests/trainers/torch/test_torch_plugin.py::test_a_mistake_is_named",
    **{
        f"trainer.{name}.datasets_to_split": (
            "tests/trainers/loops/custom/shards/test_several_datasets.py::test_ray_splits_those_that_the_key_names"
        )
        for name in ("jax", "lightgbm", "lightning", "tensorflow", "torch", "transformers", "xgboost")
    },
    "sweep.name": f"{SWEEP}::test_a_sweep_may_have_a_name",
    "sweep.params": f"{SWEEP}::test_pairs_and_exclusions",
    "sweep.zip": f"{SWEEP}::test_pairs_and_exclusions",
    "sweep.exclude": f"{SWEEP}::test_pairs_and_exclusions",
    "sweep.metric": f"{SWEEP}::test_several_metrics_are_weighed",
    "sweep.mode": f"{SWEEP}::test_who_has_to_know_the_metric_asks_for_it",
    "sweep.scheduler": f"{SWEEP}::test_asha_stops_what_promises_little",
    "sweep.max_concurrent": f"{SWEEP}::test_no_more_trials_are_begun_at_once_than_the_key_says",
    "sweep.max_failed": f"{SWEEP}::test_no_more_trials_are_started_after_too_many_failures",
    "sweep.max_seconds": f"{SWEEP}::test_time_that_is_over_ends_the_trial_that_trains",
    "sweep.seed": f"{SEARCH}::test_what_is_drawn_belongs_to_the_axes_and_to_the_seed[random]",
    "sweep.random.num_trials": f"{SWEEP}::test_random_points_are_the_same_ones_when_more_are_asked_for",
    "sweep.optuna.num_trials": f"{SEARCH}::test_a_search_has_as_many_trials_as_the_key_says[optuna]",
    "sweep.optuna.sampler": f"{SEARCH}::test_optunas_samplers_propose_other_points",
    "sweep.optuna.num_startup_trials": f"{SEARCH}::test_points_are_drawn_until_a_search_begins_to_learn[optuna]",
    "sweep.hyperopt.num_trials": f"{SEARCH}::test_a_search_has_as_many_trials_as_the_key_says[hyperopt]",
    "sweep.hyperopt.num_startup_trials": f"{SEARCH}::test_points_are_drawn_until_a_search_begins_to_learn[hyperopt]",
    "sweep.scheduler.unit": "tests/sweeps/test_scheduling.py::test_lengths_are_counted_as_the_key_says",
    **{
        f"sweep.scheduler.{name}": f"{SCHEDULER}::test_each_key_changes_a_decision[{name}]"
        for name in (
            *("asha.grace", "asha.reduction_factor", "median.grace", "median.min_trials"),
            *("hyperband.grace", "hyperband.reduction_factor", "hyperband.max_length"),
            *(f"{name}.{key}" for name in ("pbt", "pb2") for key in ("interval", "quantile", "resample", "seed")),
        )
    },
}
"""The test of each key. A search's or scheduler's own key has its name before it; ``none`` decides nothing."""

READ_ELSEWHERE = ("run.name", "run.tags", "run.notes")
"""Keys that Hydra reads, as a part of a run's folder, or readers of manifests: in Python they can't be ignored."""


def keys_of(conf, where):
    """Yield the full keys of a dataclass, those of its sections one by one."""
    hints = hints_of(conf)
    for one in fields(conf):
        hint = hints[one.name]
        inner = next((arm for arm in (hint, *get_args(hint)) if is_dataclass(arm)), None)
        inner = None if str(hint).startswith("dict") else inner
        yield from [f"{where}.{one.name}"] if inner is None else keys_of(inner, f"{where}.{one.name}")


def owners():
    """Return the dataclass of each key."""
    found = {}
    for where, conf in {"run": RunConf, "scaling": ScalingConf, "cluster": ClusterConf, "sweep": SweepConf}.items():
        found |= dict.fromkeys(keys_of(conf, where), conf)
    for group, base in {"sweep": SweepConf, "sweep/scheduler": SchedulerConf}.items():
        where, usual = group.replace("/", "."), {one.name for one in fields(base)}
        found |= {f"{where}.{name}": base for name in usual if group != "sweep"}
        for name, conf in schemas().group(group).items():
            found |= {f"{where}.{name}.{one.name}": conf for one in fields(conf) if one.name not in usual}
    for name, conf in schemas().trainer.items():
        for rule in getattr(conf, "needs", ()):
            if rule.need in (WORKERS, SEVERAL_WORKERS):
                keys = rule.keys(conf, f"trainer.{name}")
                found |= {key: conf for key in keys if key.count(".") == 2}  # others are of the framework
    return found


def test_each_key_has_a_test():
    assert set(owners()) - set(TESTS) == set()
    assert set(TESTS) - set(owners()) == set()
    assert [test for test in TESTS.values() if not exists(test.partition("[")[0])] == []


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in TESTS if key not in READ_ELSEWHERE])
def test_a_key_that_is_ignored_is_missed(key, tmp_path):
    conf = owner(key)
    variables = {**os.environ, "IGNORED": f"{conf.__module__}:{conf.__qualname__}.{key.rpartition('.')[2]}"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "ignored_key",
        "-m",
        "slow or not slow",
        "--timeout=60",
        TESTS[key],
    ]
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "support"), variables.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, f"--basetemp={tmp_path}/inner"], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout[-2000:]


def owner(key):
    """Return the dataclass that declares a key itself."""
    conf = owners()[key]
    for section in key.split(".")[1:-1] if key.startswith("run.") else ():
        conf = hints_of(conf)[section]
    name = key.rpartition(".")[2]
    return next(one for one in conf.__mro__ if name in vars(one).get("__annotations__", {}))
