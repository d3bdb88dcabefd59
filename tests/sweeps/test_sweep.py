"""Whole sweeps in one process: what is trained, what is kept, and how they end."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from sweep_results import only_sweep
from tiny_sweeps import CONFIG, TINY, swept, write_loops

from rtrain.cli.app import run as rtrain
from rtrain.config.session import Session
from rtrain.runs.run import Run
from rtrain.schemas import schemas
from rtrain.searches.registry import SEARCHES
from rtrain.sweeps.executors.in_process import SequentialExecutor
from rtrain.sweeps.executors.ray import RayExecutor
from rtrain.sweeps.record.sweep_record import SweepRecord, read_sweep
from rtrain.sweeps.sweep import Sweep

pytestmark = pytest.mark.usefixtures("tiny")
ROUNDS = [*TINY, "trainer.num_boost_round=3"]


def sweep(*words):
    return swept([*ROUNDS, *words])


def test_each_combination_is_a_run_of_its_own(capsys):
    data, folder = sweep("trainer.params.eta=0.1,0.5", "trainer.params.max_depth=1,2")
    assert [one["overrides"] for one in data["trials"]] == [
        [f"++trainer.params.eta={eta}", f"++trainer.params.max_depth={depth}"] for eta in (0.1, 0.5) for depth in (1, 2)
    ]
    assert {one["status"] for one in data["trials"]} == {"succeeded"}
    for one in data["trials"]:
        run = Run.load(folder / one["name"])
        best = min(event.metrics["test/mlogloss"] for event in run.events() if "test/mlogloss" in event.metrics)
        assert one["values"] == [best]
        assert run.manifest.run_name == "tiny"
        assert (run.path / ".hydra" / "overrides.yaml").exists()
    best = min(data["trials"], key=lambda one: one["values"][0])
    assert data["best"] == best["number"]
    assert (folder / "best").resolve() == (folder / best["name"]).resolve()
    results = yaml.safe_load((folder / "optimization_results.yaml").read_text())
    assert results["best_value"] == best["values"][0]
    assert yaml.safe_load((folder / "multirun.yaml").read_text())["trainer"]["type"] == "xgboost"
    assert "4 succeeded" in capsys.readouterr().out
    assert rtrain(["evaluate", str(folder)]) == 0
    assert str(folder / best["name"]) in capsys.readouterr().out
    assert rtrain(["fit", str(folder)]) == 2
    assert f"try: rtrain resume {folder}" in capsys.readouterr().err


def test_values_that_are_added_later_run_only_the_new_combinations():
    before, folder = sweep("trainer.params.eta=0.1,0.5")
    stamp = (folder / before["trials"][0]["name"] / "manifest.json").stat().st_mtime_ns
    after, _ = sweep("trainer.params.eta=0.9,0.1,0.5")
    assert [one["overrides"][0].rpartition("=")[2] for one in after["trials"]] == ["0.1", "0.5", "0.9"]
    assert (folder / before["trials"][0]["name"] / "manifest.json").stat().st_mtime_ns == stamp
    assert [one["num_starts"] for one in after["trials"]] == [1, 1, 1]


def test_values_that_are_typed_later_are_those_of_the_config():
    estimator = "{_target_: sklearn.naive_bayes.GaussianNB, var_smoothing: 0.1}"
    Path("tiny.yaml").write_text(
        CONFIG.replace("xgboost", "sklearn")
        + f"trainer: {{estimator: {estimator}}}\nsweep: {{params: {{trainer.estimator.var_smoothing: [0.1, 0.2]}}}}\n"
    )
    before, folder = swept(["fit", "tiny.yaml", "--multirun", "num_workers=0"])
    after, _ = swept(["resume", str(folder), "trainer.estimator.var_smoothing=0.1,0.3"])
    assert [one["name"] for one in after["trials"]][:2] == [one["name"] for one in before["trials"]]
    assert [one["overrides"][0].rpartition("=")[2] for one in after["trials"]] == ["0.1", "0.2", "0.3"]


def test_a_typo_in_any_combination_is_found_before_the_first_starts(capsys):
    assert rtrain([*ROUNDS, "trainer.params.max_depth=1,2,3,deep"]) == 2
    assert "max_depth" in capsys.readouterr().err
    assert not Path("runs").exists() or not list(Path("runs").glob("*/*"))


def test_a_typo_in_what_the_config_varies_is_found_at_its_place(capsys):
    Path("tiny.yaml").write_text(CONFIG + "sweep:\n  params:\n    dataset.limt: [40, 50]\n")
    assert rtrain(ROUNDS) == 2
    told = capsys.readouterr().err
    assert "did you mean: limit" in told
    assert "--> tiny.yaml:6:5" in told
    Path("tiny.yaml").write_text(CONFIG)
    assert rtrain([*ROUNDS, "sweep.params={seed: [40, none]}"]) == 2
    told = capsys.readouterr().err
    assert "in trial 1: run.seed=none" in told
    assert "^^" in told
    assert rtrain([*ROUNDS, "trainer=xgboost,lightgmb"]) == 2
    told = capsys.readouterr().err
    assert "did you mean: lightgbm" in told
    assert "try: rtrain fit tiny.yaml --multirun" in told
    assert not Path("runs").exists() or not list(Path("runs").glob("*/*"))


def test_the_order_of_the_words_makes_no_difference_to_a_sweep_that_goes_on():
    before, _ = sweep("trainer.params.eta=0.1,0.5", "trainer.params.max_depth=1,2")
    after, _ = sweep("trainer.params.max_depth=1,2,3", "trainer.params.eta=0.1,0.5")
    assert [one["name"] for one in after["trials"]][:4] == [one["name"] for one in before["trials"]]
    assert [one["num_starts"] for one in after["trials"]] == [1] * 6
    assert [one["point"] for one in after["trials"]][1:3] == [["2", "0.1"], ["1", "0.5"]]


def test_a_sweep_does_not_go_on_with_other_axes(capsys):
    _, folder = sweep("trainer.params.eta=0.1,0.5", "trainer.params.max_depth=1,2")
    assert rtrain(["resume", str(folder), "trainer.params.eta=0.2"]) == 2
    assert "this one is of trainer.params.max_depth" in capsys.readouterr().err


def test_a_trial_that_fails_does_not_end_the_sweep(capsys):
    words = ["fit", "mlp", "--multirun", "num_workers=0", "dataset.limit=60", "trainer.max_epochs=2", "lr=0.01,1e30"]
    data, _ = swept(words, code=1)
    assert [one["status"] for one in data["trials"]] == ["succeeded", "failed"]
    assert data["status"] == "failed"
    assert "loss is not a number" in data["trials"][1]["error"]["message"]
    assert "TrainingError: val/loss is not a number" in capsys.readouterr().out


def test_no_more_trials_are_started_after_too_many_failures(capsys):
    words = ["fit", "mlp", "--multirun", "num_workers=0", "dataset.limit=60", "trainer.max_epochs=2"]
    words += ["lr=1e30,1e31,1e32,0.01", "sweep.max_failed=1"]
    data, _ = swept(words, code=1)
    assert [one["status"] for one in data["trials"]] == ["failed", "failed", "planned", "planned"]
    assert "2 trials have failed (sweep.max_failed=1): no more are started" in capsys.readouterr().err


def test_time_that_is_over_ends_the_trial_that_trains(capsys):
    words = (*TINY, "trainer.params.eta=0.1,0.5", "trainer.num_boost_round=200000", "sweep.max_seconds=5")
    data, folder = swept(words, code=130)
    assert data["status"] == "interrupted"  # nothing is known of any setting
    assert [one["status"] for one in data["trials"]] == ["interrupted", "planned"]
    assert "sweep.max_seconds=5 has passed: no more trials are started" in capsys.readouterr().err
    run = Run.load(folder / data["trials"][0]["name"])
    assert (run.manifest.status, run.manifest.exit_reason) == ("interrupted", "sweep.max_seconds has passed")
    assert run.manifest.checkpoints


def test_what_a_plugin_refuses_is_found_before_the_first_starts(capsys):
    words = [
        "trainer.params.objective=binary:logistic",
        "trainer.params.base_score=0.5,5.0",
        "sweep.metric=test/logloss",
    ]
    assert rtrain([*ROUNDS, "dataset.name=breast_cancer", *words]) == 2
    assert "trainer.params.base_score=5.0" in capsys.readouterr().err


def test_what_can_not_be_swept_is_told(capsys):
    assert rtrain(ROUNDS) == 2
    assert "must be varied" in capsys.readouterr().err
    assert rtrain([*ROUNDS, "trainer.params.eta=interval(0.1,1)"]) == 2
    assert "sweep=random" in capsys.readouterr().err
    for key in ("sweep.max_failed", "run.root_dir", "cluster.address"):
        assert rtrain([*ROUNDS, "num_workers=1", f"{key}=1,2"]) == 2
        assert f"{key} is the same for all trials" in capsys.readouterr().err
    assert rtrain([*ROUNDS, "+vars.token=one,two"]) == 2
    assert "is a secret" in capsys.readouterr().err
    assert rtrain([*ROUNDS, "sweep.zip={+vars.token: [one, two], seed: [1, 2]}"]) == 2
    assert "is a secret" in capsys.readouterr().err
    assert rtrain([*ROUNDS, "seed=1,2", "run.resume=auto"]) == 2
    assert "run.resume" in capsys.readouterr().err
    assert rtrain([*ROUNDS, "seed=1,2", "sweep.exclude=[{seed: [1, 2]}]"]) == 2
    assert "excludes every combination" in capsys.readouterr().err
    assert rtrain([*ROUNDS, "trainer=glob(zz*)"]) == 2
    assert "it matches no option of trainer.\navailable: jax, lightgbm" in capsys.readouterr().err
    assert not list(Path("runs").glob("*"))


@pytest.mark.parametrize("params", ["{trainer.params.eta: [0.1, 0.2]}", "{trainer: {params: {eta: [0.1, 0.2]}}}"])
def test_a_word_that_replaces_all_that_the_config_varies_is_told(capsys, params):
    Path("tiny.yaml").write_text(CONFIG + f"sweep: {{params: {params}}}\n")
    assert rtrain([*ROUNDS, "trainer.params.eta=0.5"]) == 2
    told = capsys.readouterr().err
    assert "sweep.params varies trainer.params.eta, but the command sets a single value" in told
    assert rtrain([*ROUNDS, "trainer.params.eta=0.5,0.6"]) == 0


def test_random_points_are_the_same_ones_when_more_are_asked_for():
    words = ["sweep=random", "trainer.params.eta=tag(log,interval(0.01,1))", "trainer.params.max_depth=1,2,3"]
    before, _ = sweep(*words, "sweep.num_trials=3")
    after, _ = sweep(*words, "sweep.num_trials=5")
    assert len(before["trials"]) == 3
    assert [one["overrides"] for one in after["trials"]][:3] == [one["overrides"] for one in before["trials"]]
    assert len({json.dumps(one["overrides"]) for one in after["trials"]}) == 5


@pytest.mark.parametrize(("asked", "there"), [(3, 3), (8, 8), (20, 9)])
def test_random_points_differ_as_long_as_there_are_any(asked, there):
    data, _ = sweep("sweep=random", f"sweep.num_trials={asked}", "trainer.params.max_depth=int(interval(1,9))")
    found = [one["overrides"][0] for one in data["trials"]]
    assert len(set(found)) == len(found) == there


@pytest.mark.parametrize(
    ("defaults", "section", "words", "search", "scheduler"),
    [
        ("", "", [], "grid", None),
        ("", "", ["sweep=random", "sweep/scheduler=median"], "random", "median"),
        ("", "type: random, scheduler: asha, num_trials: 7,", [], "random", "asha"),
        ("", "type: random, scheduler: {type: asha}, num_trials: 7,", ["sweep=optuna"], "optuna", "asha"),
        ("{sweep: random}, {sweep/scheduler: asha}", "num_trials: 7,", ["sweep=optuna"], "optuna", "asha"),
    ],
)
def test_the_section_of_a_config_stays_whatever_searches(defaults, section, words, search, scheduler):
    Path("tiny.yaml").write_text(
        CONFIG.replace("}]", "}, " + defaults + "]", 1)
        + f"sweep: {{{section} seed: 3, params: {{run.seed: [1, 2]}}}}\n"
    )
    for config in ("tiny.yaml", "above.yaml"):
        Path("above.yaml").write_text("defaults: [tiny, _self_]\nsweep: {max_failed: 1}\n")
        with Session(config, words, schemas()) as session:
            conf = session.trials().conf
        assert type(conf).__module__.endswith(search)
        assert (conf.seed, conf.params, conf.max_failed) == (3, {"run.seed": [1, 2]}, None if config[0] == "t" else 1)
        assert getattr(conf, "num_trials", 7) == (7 if "num_trials" in section or search == "grid" else 20)
        assert (conf.scheduler and type(conf.scheduler).__module__.rpartition(".")[2]) == scheduler


def test_no_sweep_takes_the_section_away():
    Path("tiny.yaml").write_text(CONFIG + "sweep: {type: random, scheduler: asha, params: {run.seed: [1, 2]}}\n")
    with Session("tiny.yaml", ["sweep=null"], schemas()) as session:
        assert session.check().conf.sweep is None


def test_pairs_and_exclusions(capsys):
    Path("tiny.yaml").write_text(
        CONFIG + "sweep:\n  zip: {trainer.params.eta: [0.1, 0.2], trainer.params.gamma: [1, 2]}\n"
        "  params: {trainer.params.max_depth: [1, 2]}\n"
        "  exclude: [{trainer.params.eta: 0.1, trainer.params.max_depth: 2}]\n"
    )
    data, _ = sweep()
    assert [sorted(word.removeprefix("++trainer.params.") for word in one["overrides"]) for one in data["trials"]] == [
        ["eta=0.1", "gamma=1", "max_depth=1"],
        ["eta=0.2", "gamma=2", "max_depth=1"],
        ["eta=0.2", "gamma=2", "max_depth=2"],
    ]
    told = capsys.readouterr()
    assert "3 of 4 trials" in told.err
    assert "sweeping 3 trials" in told.out


def test_a_scheduler_that_can_decide_nothing_is_told(capsys):
    sweep("sweep/scheduler=asha", "trainer.params.eta=0.9,0.5", "sweep.scheduler.grace=3")
    assert "sweep.scheduler.grace=3: it would decide only when trials end, at 3 epochs" in capsys.readouterr().err


def test_asha_stops_what_promises_little():
    data, folder = sweep(
        "sweep/scheduler=asha",
        "trainer.params.eta=0.9,0.5,0.0001,0.0002",
        "trainer.num_boost_round=20",
        "sweep.scheduler.reduction_factor=2",
    )
    assert [one["status"] for one in data["trials"]] == ["succeeded", "stopped", "stopped", "stopped"]
    run = Run.load(folder / data["trials"][2]["name"])
    assert run.status == "succeeded"
    assert run.manifest.exit_reason.startswith("asha: ")
    assert run.manifest.epoch < 20


def test_optuna_goes_on_with_a_sweep_that_is_made_longer():
    words = ["sweep=optuna", "sweep.num_startup_trials=2", "trainer.params.eta=tag(log,interval(0.001,1))"]
    before, _ = sweep(*words, "trainer.params.max_depth=1,2", "sweep.num_trials=3")
    after, folder = sweep(*words, "trainer.params.max_depth=1,2", "sweep.num_trials=5")
    assert [one["status"] for one in after["trials"]] == ["succeeded"] * 5
    assert after["trials"][:3] == before["trials"]
    assert len({json.dumps(one["overrides"]) for one in after["trials"]}) == 5
    assert yaml.safe_load((folder / "optimization_results.yaml").read_text())["name"] == "optuna"


def test_a_search_learns_from_each_trial_before_it_proposes_the_next_one(monkeypatch):
    search, calls = SEARCHES.load("optuna"), []

    def noted(name):
        function = getattr(search, name)

        def call(*args):
            calls.append(name)
            return function(*args)

        return call

    for name in ("propose", "learn"):
        monkeypatch.setattr(search, name, noted(name))
    sweep("sweep=optuna", "sweep.num_trials=3", "trainer.params.eta=interval(0.1,0.5)")
    assert calls == ["propose", "learn"] * 3


def test_a_search_that_has_tried_everything_ends(capsys):
    data, _ = sweep("sweep=optuna", "trainer.params.eta=0.1,0.5", "trainer.params.max_depth=1,2", "sweep.num_trials=9")
    assert len({json.dumps(one["overrides"]) for one in data["trials"]}) == len(data["trials"]) == 4
    assert "4 of 9 trials" in capsys.readouterr().err


def test_several_metrics_are_weighed():
    data, folder = sweep(
        *("sweep=optuna", "sweep.num_trials=4", "trainer.params.eta=interval(0.01,1)", "dataset.limit=null"),
        *("sweep.metric=[test/mlogloss,test/merror]", "trainer.params.eval_metric=[mlogloss,merror]"),
    )
    assert data["goals"] == [{"metric": f"test/{name}", "mode": "min"} for name in ("mlogloss", "merror")]
    for one in data["trials"]:
        metrics = Run.load(folder / one["name"]).metrics
        assert one["values"] == [metrics["test/mlogloss"], metrics["test/merror"]]
    solutions = yaml.safe_load((folder / "optimization_results.yaml").read_text())["solutions"]
    assert min(one["values"] for one in data["trials"]) in [one["values"] for one in solutions]
    assert 0 < solutions[0]["params"]["trainer.params.eta"] < 1


def test_what_a_search_may_not_propose_is_found_before_the_first_starts(capsys):
    words = ["sweep=optuna", "trainer.params.eta=interval(0.1,1)", "trainer.params.max_depth=1,2,deep"]
    assert rtrain([*ROUNDS, *words]) == 2
    assert "in a trial: trainer.params.eta=0.1 trainer.params.max_depth=deep" in capsys.readouterr().err
    assert not Path("runs").exists() or not list(Path("runs").glob("*/*"))


def test_who_has_to_know_the_metric_asks_for_it(capsys):
    words = ["fit", "tiny.yaml", "--multirun", "num_workers=0", "trainer.params.eta=0.1,0.2"]
    assert rtrain([*words, "sweep=hyperopt"]) == 2
    assert "sweep.metric=test/mlogloss" in capsys.readouterr().err, "which these trials report"
    assert rtrain([*words, "sweep.mode=min"]) == 2
    assert "sweep.metric=test/mlogloss," in capsys.readouterr().err
    assert rtrain([*words, "sweep/scheduler=asha"]) == 2
    assert "must know how to judge trials" in capsys.readouterr().err
    assert rtrain([*words, "sweep=hyperopt", "sweep.metric=[a,b]", "sweep.mode=min"]) == 2
    assert "sweep=optuna" in capsys.readouterr().err
    assert rtrain([*words, "sweep=optuna", "sweep.metric=[a,b,c]", "sweep.mode=[min,max]"]) == 2
    assert "2 modes for 3 metrics" in capsys.readouterr().err
    assert rtrain([*words, "sweep=optuna", "sweep.metric=[a,b]", "sweep.mode=[min]"]) == 2
    assert "1 modes for 2 metrics" in capsys.readouterr().err
    assert rtrain([*words, "sweep=optuna", "sweep.metric=[a,a]"]) == 2
    said = capsys.readouterr().err
    assert "names a metric twice" in said
    assert "try:" not in said, "a key of the sweep can't be varied"


def test_hyperopt_looks_for_what_decides_the_best_checkpoint():
    words = [word for word in ROUNDS if not word.startswith("sweep.metric")]
    words += ["sweep=hyperopt", "sweep.num_trials=3", "trainer.params.eta=interval(0.1,1)"]
    data, _ = swept([*words, "run.checkpoint.best.monitor=test/mlogloss"])
    assert data["goals"] == [{"metric": "test/mlogloss", "mode": "min"}]
    assert len(data["trials"]) == 3


def test_a_combination_that_turns_out_wrong_later_fails_as_a_trial(capsys):
    words = ["fit", "mlp", "--multirun", "num_workers=0", "dataset.limit=60", "trainer.max_epochs=1", "sweep=optuna"]
    words += ["sweep.metric=val/loss", "trainer.clip_norm=null,1.0", "trainer.clip_value=null,1.0"]
    data, _ = swept(words, code=1)
    trials = {tuple(one["point"]): one for one in data["trials"]}
    assert sorted(one["status"] for one in trials.values()) == ["failed", "succeeded", "succeeded", "succeeded"]
    assert "contradict each other" in trials["1.0", "1.0"]["error"]["message"]
    assert "contradict each other" in capsys.readouterr().out


def test_without_a_metric_of_its_own_a_sweep_takes_that_of_its_trials_in_its_direction():
    words = [word for word in ROUNDS if not word.startswith("sweep.metric")]
    data, _ = swept([*words, "trainer.params={eval_metric: auc, max_depth: 1}", "trainer.params.eta=0.0001,0.5"])
    assert data["goals"] == [{"metric": "test/auc", "mode": "max"}]
    found = {trial["point"][0]: trial["values"][0] for trial in data["trials"]}
    assert data["trials"][data["best"]]["point"] == [max(found, key=found.get)]


@pytest.mark.parametrize(
    ("trainer", "metric", "meant", "known"),
    [
        ("mlp", "test/loss", "val/loss", "train/rows_per_second"),
        ("mlp", "val/los", "val/loss", "val/accuracy"),
        ("tiny.yaml", "val/loss", "test/loss", "test/merror"),
        ("tiny.yaml", "test/mloglos", "test/mlogloss", "test/mlogloss"),
        ("lightgbm", "val/mlogloss", "val/multi_logloss", "val/multi_error"),
        ("sklearn", "val/acc", "val/accuracy", "val/loss"),
        ("sklearn", "train/epoch_loss", "val/loss", "val/accuracy"),  # a forest tells none
    ],
)
@pytest.mark.parametrize("search", ["grid", "hyperopt"])
def test_a_metric_that_no_trial_reports_is_refused_before_the_first(trainer, metric, meant, known, search, capsys):
    words = ["fit", trainer, "--multirun", "num_workers=0", "dataset.limit=60", "run.seed=1,2"]
    assert rtrain([*words, f"sweep={search}", f"sweep.metric={metric}"]) == 2
    told = capsys.readouterr().err
    assert f"sweep.metric: the trials report no {metric}, only " in told
    assert f"try: rtrain fit {trainer} --multirun " in told
    assert f" sweep.metric={meant}\n" in told
    assert known in told
    assert not Path("runs").exists() or not list(Path("runs").glob("*/*"))


def test_what_lightgbm_measures_is_written_as_plain_numbers():
    words = ["fit", "lightgbm", "--multirun", "num_workers=0", "dataset.limit=60", "trainer.num_boost_round=2"]
    data, folder = swept([*words, "run.seed=1,2"])
    found = yaml.safe_load((folder / "optimization_results.yaml").read_text())
    assert found["best_value"] == data["trials"][data["best"]]["values"][0]


def test_a_metric_that_nobody_reports_is_told(capsys):
    Path("pyproject.toml").write_text("")
    Path("own_metric.py").write_text("def zero(predictions, matrix):\n    return 'zero', 0.0\n")
    words = [word for word in ROUNDS if not word.startswith("sweep.metric")]
    words += ["trainer.metric_functions=[own_metric:zero]", "trainer.params.eval_metric=[merror,mlogloss]"]
    assert rtrain([*words, "sweep.metric=val/loss", "trainer.params.eta=0.1,0.2"]) == 0
    told = capsys.readouterr().err
    assert "has never reported val/loss (sweep.metric); available: test/merror, test/mlogloss" in told
    assert told.count("val/loss") == 1


@pytest.mark.parametrize("trainer", ["xgboost", "lightgbm", "sklearn"])
def test_a_sweep_that_measures_nothing_says_how_to_hold_rows_out(capsys, trainer):
    length = [] if trainer == "sklearn" else ["trainer.num_boost_round=2"]
    words = ["fit", trainer, "--multirun", "num_workers=0", "dataset.limit=60", *length, "run.seed=1,2"]
    assert rtrain([*words, "dataset.split.test=0", "dataset.split.val=0"]) == 0
    out, told = capsys.readouterr()
    assert told.count("a measure of quality; to hold out rows to measure with: dataset.split.val=0.1") == 1
    assert "best        unknown: no trial has reported a measure of quality\n" in out
    assert rtrain([*words, "dataset.split.test=0", "dataset.split.val=0.1"]) == 0
    assert "best        val/" in capsys.readouterr().out


def test_a_sweep_of_loops_without_a_metric_says_so_before_it_starts_and_offers_those_reported_first(capsys):
    write_loops(Path())
    words = ["fit", "loops.yaml", "--multirun", "num_workers=0", "trainer.train_loop_config.rate=4,1"]
    assert rtrain(words) == 0
    out, told = capsys.readouterr()
    assert [line.partition(":")[0] for line in told.splitlines()].count("note") == 2
    assert told.index("sweep.metric=NAME") < told.index("reports epoch, value;")
    assert "reports epoch, value" in told.partition("succeeded")[0]
    folder = only_sweep(Path("runs"))
    command = f"rtrain resume {folder} sweep.metric=value sweep.mode=max"
    assert f"  try: {command}" in told.splitlines()
    assert f"try: {command}" in next(line for line in out.splitlines() if line.startswith("best "))
    assert rtrain(command.split()[1:]) == 0
    assert [one["values"] for one in read_sweep(folder)["trials"]] == [[36.0], [9.0]]
    # What a trial had of the metric before is no value of the metric of now.
    assert rtrain(["resume", str(folder), "sweep.metric=epoch", "sweep.mode=max"]) == 0
    assert [one["values"] for one in read_sweep(folder)["trials"]] == [[9.0], [9.0]]
    assert "NAME" not in capsys.readouterr().err


def test_a_trial_whose_metric_is_never_a_number_is_not_ranked_and_says_so(capsys):
    Path("pyproject.toml").write_text("")
    Path("flaky.py").write_text(
        "import ray.train\n\n\ndef loop(config):\n"
        "    ray.train.report({'score': float('nan') if config['x'] == 1 else config['x']})\n"
    )
    Path("flaky.yaml").write_text(
        "defaults: [{trainer: torch}]\ntrainer: {train_loop: 'flaky:loop', train_loop_config: {x: 0}}\n"
    )
    words = ["fit", "flaky.yaml", "--multirun", "num_workers=0", "trainer.train_loop_config.x=1,2,3"]
    assert rtrain([*words, "sweep.metric=score", "sweep.mode=max"]) == 0
    out, told = capsys.readouterr()
    assert told.count("is not ranked: its score never was a finite number") == 1
    assert "try:" not in told
    assert "best        score 3" in out


def test_trials_of_different_trainers_are_offered_a_metric_that_all_report(capsys):
    words = ["fit", "tiny.yaml", "--multirun", "num_workers=0", "dataset.limit=60", "trainer=xgboost,lightgbm"]
    assert rtrain([*words, "trainer.num_boost_round=2", "trainer.num_threads=1"]) == 0
    told = capsys.readouterr().err
    (command,) = [line.removeprefix("  try: rtrain ") for line in told.splitlines() if line.startswith("  try: ")]
    assert rtrain(command.split()) == 0
    assert all(one["values"] for one in read_sweep(only_sweep(Path("runs")))["trials"])


def test_a_metric_that_the_loop_never_reports_is_told_after_the_first_trial(capsys):
    write_loops(Path())
    words = ["fit", "loops.yaml", "--multirun", "num_workers=0", "trainer.train_loop_config.rate=4,1"]
    assert rtrain([*words, "sweep.metric=valu", "sweep.mode=max"]) == 0
    told = capsys.readouterr().err
    assert told.count("has never reported valu (sweep.metric); available: epoch, value") == 1
    assert f"try: rtrain resume {only_sweep(Path('runs'))} sweep.metric=value sweep.mode=max" in told


@pytest.mark.parametrize("gone", [0, 1], ids=["one", "the best one"])
def test_a_trial_that_was_deleted_is_trained_again(gone, capsys):
    before, folder = sweep("trainer.params.eta=0.1,0.5")
    assert before["best"] == 1
    shutil.rmtree(folder / before["trials"][gone]["name"])
    stamp = (folder / before["trials"][1 - gone]["name"] / "manifest.json").stat().st_mtime_ns
    after, _ = sweep("trainer.params.eta=0.1,0.5")
    assert before["trials"][gone]["name"] in capsys.readouterr().err
    assert [one["values"] for one in after["trials"]] == [one["values"] for one in before["trials"]]
    assert [one["status"] for one in after["trials"]] == ["succeeded", "succeeded"]
    assert Run.load(folder / "best").manifest.status == "succeeded"
    assert (folder / before["trials"][1 - gone]["name"] / "manifest.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize("text", ["garbage", "", "[]", "{}"])
def test_a_trial_whose_manifest_is_damaged_is_trained_again(text, capsys):
    before, folder = sweep("trainer.params.eta=0.1,0.5")
    name = before["trials"][1]["name"]
    (folder / name / "manifest.json").write_text(text)
    assert rtrain(["sweep", "show", str(folder)]) == 0
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [name, "damaged"] in rows
    assert [before["trials"][0]["name"], "succeeded"] in rows
    after, _ = sweep("trainer.params.eta=0.1,0.5")
    assert name in capsys.readouterr().err
    assert [one["values"] for one in after["trials"]] == [one["values"] for one in before["trials"]]
    assert Run.load(folder / "best").manifest.status == "succeeded"
    assert (folder / f".damaged-{name}" / "manifest.json").read_text() == text


def test_what_strangers_wrote_is_not_obeyed_by_the_terminal(capsys):
    data, folder = sweep("trainer.params.eta=0.1,0.5")
    evil = "\x1b]0;evil\x07\r\x9b2J\u202e\ud800"
    data["trials"][0] |= {"status": evil, "error": {"type": evil, "message": evil}}
    (folder / "sweep.json").write_text(json.dumps(data))
    assert rtrain(["sweep", "show", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "rtrain fit" in told
    assert told.replace("\n", "").isprintable()
    best = folder / data["trials"][1]["name"]
    (best / "config.yaml").write_text("a: 1\n")
    assert rtrain(["sweep", "show", str(folder)]) == 0
    assert "rtrain fit" not in capsys.readouterr().out


def test_the_record_is_current_a_moment_after_the_last_change(tmp_path):
    record = SweepRecord(tmp_path, {"axes": []})
    record.write()
    for status in ("interrupted", "failed", "succeeded"):  # within the interval: written together
        record.status = status
        record.write(now=False)
    assert read_sweep(tmp_path)["status"] == "running"
    record._later.join()
    assert read_sweep(tmp_path)["status"] == "succeeded"
    record.status = "failed"
    record.write(now=False)
    record.finish("interrupted")
    assert record._later is None
    assert read_sweep(tmp_path)["status"] == "interrupted"


def test_the_manifest_of_a_trial_whose_process_died_says_so(monkeypatch):
    train = SequentialExecutor.wait

    def die(pool):
        number, plan = pool._next
        with monkeypatch.context() as patch:
            patch.setattr(pool._hearer, "over", lambda *_: None)
            train(pool)
        run = Run.load(plan.composed.run_dir)
        run.manifest.status, run.manifest.exit_reason = "running", None  # what a process that is killed leaves
        run.manifest.write(run.path)
        pool._hearer.over(number, None, died=True)

    monkeypatch.setattr(SequentialExecutor, "wait", die)
    data, folder = swept([*ROUNDS, "trainer.params.eta=0.1,0.2", "run.failure.max_failures=0"], code=1)
    trial = data["trials"][0]
    manifest = Run.load(folder / trial["name"]).manifest
    assert (trial["status"], manifest.status) == ("failed", "failed")
    assert manifest.error["type"] == trial["error"]["type"] == "ProcessDied"
    assert manifest.exit_reason == trial["reason"]
    assert manifest.ended_at


def test_a_sweep_may_have_a_name():
    _, folder = sweep("trainer.params.eta=0.1,0.2", "sweep.name=mine")
    assert folder.name == "mine"


@pytest.mark.parametrize(("most", "begun"), [(None, 5), (2, 2)])
def test_no_more_trials_are_begun_at_once_than_the_key_says(most, begun):
    conf = SEARCHES.load("grid").Conf(max_concurrent=most)
    waiting, running = list(range(5)), {}
    sweep = SimpleNamespace(_pool=SimpleNamespace(most_at_once=None), _conf=conf, _running=running, _queue=waiting)
    sweep._decide_paused, sweep._ask = (lambda: None), (lambda: False)
    sweep._start_one = lambda: running.setdefault(waiting.pop(), True)
    Sweep._fill(sweep)
    assert len(running) == begun


@pytest.mark.parametrize(
    ("answers", "told"),
    [([True, True], ["enough"]), ([False, False], ["head"]), ([False, True], ["head", "enough"]), ([], [])],
)
def test_what_nothing_trains_for_is_told_once_as_it_is(answers, told):
    executor, notices = RayExecutor.__new__(RayExecutor), []
    sweep = SimpleNamespace(_pool=executor, _ending=None, _queue=[SimpleNamespace(name="trial_3")], _told_wait="")
    sweep._observer = SimpleNamespace(notice=notices.append)
    for answer in answers:
        executor._cluster = SimpleNamespace(answers=answer)
        assert Sweep._waits_for_room(sweep)
    assert len(notices) == len(told)
    assert all(part in notice for part, notice in zip(told, notices, strict=True))


def test_notes_on_the_config_are_told_once_for_all_trials(capsys):
    swept([*TINY, "trainer.num_boost_round=4", "trainer.early_stopping_rounds=1,2"])
    assert capsys.readouterr().err.count("trainer.early_stopping_rounds was renamed") == 1


SWITCHED = """
import numpy as np
import ray.train
import torch


def switches():
    error = {"ignore": 0, "warn": 1, "raise": 2}[np.geterr()["over"]]
    return {
        "bits": float(torch.ones(1).element_size()),
        "device": float(torch.get_default_device().type == "meta"),
        "gradients": float(torch.is_grad_enabled()),
        "precision": float(torch.get_float32_matmul_precision() == "highest"),
        "mkldnn": float(torch.backends.mkldnn.enabled),
        "anomalies": float(torch.is_anomaly_enabled()),
        "threads": float(torch.get_num_threads()),
        "strict": float(torch.are_deterministic_algorithms_enabled()),
        "errors": float(error),
        "random": torch.rand(1, device="cpu").item(),
    }


def loop(config):
    ray.train.report(switches())
    if config["changes"]:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        torch.set_float32_matmul_precision("medium")
        torch.backends.mkldnn.enabled = False
        torch.autograd.set_detect_anomaly(True)
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.use_deterministic_algorithms(True)
        np.seterr(over="raise")
        torch.manual_seed(0)
        np.random.seed(0)
"""


def test_a_trial_begins_with_the_switches_of_one_that_is_trained_alone():
    Path("switched.py").write_text(SWITCHED)
    Path("switched.yaml").write_text(
        "defaults: [{trainer: torch}]\n"
        "trainer: {train_loop: 'switched:loop', train_loop_config: {changes: false}}\nrun: {name: switched}\n"
    )
    words = ["fit", "switched.yaml", "num_workers=0"]
    _, folder = swept([*words, "--multirun", "trainer.train_loop_config.changes=true,false"])
    found = [next(Run.load(folder / one["name"]).events()).metrics for one in read_sweep(folder)["trials"]]
    assert len(found) == 2
    assert found[0] == found[1]
    assert found[0]["bits"] == 4
