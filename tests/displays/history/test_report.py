"""One run on a screen, and several next to each other."""

from __future__ import annotations

import json
import math

import pytest
from made_runs import add_checkpoint, make_run, make_sweep

from rtrain.displays.history.comparison import comparison_lines
from rtrain.displays.history.curves import chart, sparkline
from rtrain.displays.history.report import run_report
from rtrain.displays.history.texts import broken_lines
from rtrain.history.comparison import Comparison
from rtrain.history.index import read_row
from rtrain.runs.filesystem.lock import locked

FAILED = {
    "status": "failed",
    "error": {
        "type": "ValueError",
        "message": "x must be positive\x1b[2J",
        "rank": 1,
        "traceback": "",
        "frames": {
            "lines": [{"file": "my/loop.py", "line": 12, "function": "step", "source": "return root(x)"}],
            "own": True,
            "more": 0,
            "folded": {},
            "causes": [],
        },
    },
}


def report(folder, width=80):
    return [str(line) for line in run_report(read_row(folder), width)]


def compared(folders, metrics=(), width=80, **how):
    comparison = Comparison([read_row(folder) for folder in folders], **how)
    return [str(line) for line in comparison_lines(comparison, metrics, width)]


def test_a_run_is_shown_with_its_metrics_checkpoints_and_timings(tmp_path):
    run = make_run(tmp_path, command=["rtrain", "fit", "mlp", "lr=0.1"], losses=(0.9, 0.5, 0.4))
    checkpoint = add_checkpoint(run, step=10, size=2000)
    lines = report(run)
    assert lines[0].split() == ["mlp", "0a1b", "succeeded", "after", "1:30"]
    metric = next(line for line in lines if line.startswith("val/loss"))
    assert metric.split() == ["val/loss", "0.4", "0.4", "0.9", "█▂▁"]
    assert f"  {checkpoint.name}  2.0 kB  best" in lines
    assert any("train 1:00" in line for line in lines)
    assert any(line.endswith("rtrain fit mlp lr=0.1") for line in lines)


def test_a_failed_run_is_shown_with_the_users_last_line(tmp_path):
    lines = report(make_run(tmp_path, workers={"0": {}, "1": {}}, **FAILED))
    assert any("ValueError: x must be positive\\x1b[2J" in line for line in lines)
    assert any(line.split() == ["on", "rank", "1"] for line in lines)
    assert any("my/loop.py:12 in step" in line for line in lines)
    assert any("return root(x)" in line for line in lines)


def test_attempts_and_resumes_are_shown_if_there_was_more_than_one(tmp_path):
    attempts = [
        {"started_at": "2026-11-01T12:00:00", "ended_because": {"kind": "worker died", "message": "killed"}},
        {"started_at": "2026-11-01T12:05:00", "from_checkpoint": "epoch-0001"},
    ]
    command = ["rtrain", "resume", "x"]
    resumes = [{"time": "2026-11-01T12:05:00", "command": command, "status_before": "interrupted"}]
    lines = report(make_run(tmp_path, attempts=attempts, resumes=resumes))
    assert "  2026-11-01 12:00:00 from the start: worker died, killed" in lines
    assert "  2026-11-01 12:05:00 from epoch-0001" in lines
    assert "  2026-11-01 12:05:00 rtrain resume x  (it was interrupted)" in lines


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_broken_inside_a_word(width, tmp_path):
    command = ["rtrain", "fit", *(f"trainer.optimizer.parameter_{number}=0.00{number}" for number in range(9))]
    lines = report(make_run(tmp_path, command=command, config={"run": {"notes": "a long note " * 20}}), width)
    words = {word for line in lines for word in line.split()}
    assert set(command) <= words
    longest = max(len(word) for word in words)
    assert all(len(line) <= max(width, longest + 12) for line in lines)


@pytest.mark.parametrize(
    "wrong",
    [
        {"best": {"value": 1}},
        {"checkpoints": [{"name": "a", "size_bytes": "x"}]},
        {"attempts": [3, 4]},
        {"resumes": [{"command": None, "time": 7}]},
        {"error": {"frames": {"lines": [1]}}},
        {"dataset": [1], "timings_seconds": "long", "metrics": {"a": "b"}},
    ],
    ids=str,
)
def test_a_manifest_of_any_content_is_shown(wrong, tmp_path):
    run = make_run(tmp_path)
    path = run / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong}))
    assert report(run)[1].startswith("folder")


def test_a_damaged_manifest_is_a_report_that_says_so(tmp_path):
    run = make_run(tmp_path)
    (run / "manifest.json").write_text("{")
    lines = report(run)
    assert lines[0].split() == ["mlp", "0a1b", "damaged"]
    assert lines[2].startswith("problem")


def test_lines_are_wrapped_between_words_alone():
    assert broken_lines("a bb/ccccccccccccc-dddd e", 5) == ["a", "bb/ccccccccccccc-dddd", "e"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2, 3, 4, 5, 6, 7, 8], "▁▂▃▄▅▆▇█"), ([3, 3], "▅▅"), ([1, math.nan, 2], "▁▁█"), ([math.nan], ""), ([], "")],
)
def test_a_curve_in_one_line(values, expected):
    assert sparkline(list(enumerate(map(float, values))), 8) == expected


def test_a_long_curve_has_the_means_of_its_parts():
    assert sparkline([(step, float(step >= 500)) for step in range(1000)], 10) == "▁▁▁▁▁█████"


def test_curves_over_each_other():
    up, down = [(0, 0.0), (10, 1.0)], [(0, 1.0), (10, 0.0)]
    lines = [str(line) for line in chart({"A": up, "B": down}, 30, 5)]
    assert lines[0].startswith("1 ") or lines[0].lstrip().startswith("1 ")
    assert lines[0].rstrip().endswith("A")
    assert lines[4].rstrip().endswith("B")
    assert "*" in "".join(lines)
    assert lines[-1].split() == ["step", "0", "10"]
    assert all(len(line) <= 30 for line in lines)
    assert chart({"A": [(0, math.nan)]}, 30) == []
    assert chart({"A": [(5, 1.0)]}, 30)


def test_runs_are_compared_by_what_differs(tmp_path):
    torch = {"type": "torch", "optimizer": {"lr": 0.1, "momentum": 0.9}}
    other = {"type": "torch", "optimizer": {"lr": 0.2, "momentum": 0.9}}
    git = {"commit": "a" * 40, "dirty": False}
    a = make_run(tmp_path, short_id="000a", config={"trainer": torch}, versions={"torch": "2.9"}, git=git)
    b = make_run(
        tmp_path, short_id="000b", config={"trainer": other}, versions={"torch": "2.10"}, git=git, losses=(0.3,)
    )
    lines = compared([a, b])
    assert lines[0].split()[:4] == ["A", "mlp", "000a", "succeeded"]
    words = [line.split() for line in lines]
    assert ["trainer.optimizer.lr", "0.1", "0.2"] in words
    assert not any("momentum" in line for line in lines)
    assert ["torch", "2.9", "2.10"] in words
    assert ["val/loss", "0.4", "0.3"] in words
    assert "nothing differs in: code, data" in lines
    assert not any("unknown" in line for line in lines)
    assert any("│" in line and "A" in line for line in lines)


def test_code_outside_git_is_not_called_the_same(tmp_path):
    git = {"commit": "a" * 40, "dirty": False}
    runs = [make_run(tmp_path, short_id=f"000{one}", git=git if one == "a" else None) for one in "abc"]
    for pair in (runs[:2], runs[1:]):
        lines = compared(pair)
        assert "the code of some is unknown: it is not in git" in lines
        assert not any("nothing differs" in line and "code" in line for line in lines)


def test_keys_of_other_trainers_are_counted_unless_they_were_typed(tmp_path):
    a = make_run(tmp_path, short_id="000a", config={"trainer": {"type": "torch", "precision": "fp32", "compile": True}})
    trees = {"type": "xgboost", "params": {"eta": 0.3}, "rounds": 5}
    b = make_run(tmp_path, short_id="000b", config={"trainer": trees}, overrides=["trainer.params.eta=0.3"])
    lines = compared([a, b])
    assert any("trainer.params.eta" in line for line in lines)
    assert "and 3 keys that only some of the runs have: --all" in lines
    assert any("trainer.precision" in line for line in compared([a, b], all_keys=True))


def test_trials_are_compared_and_lines_fit(tmp_path):
    sweep = make_sweep(tmp_path, rates=tuple(0.1 / number for number in range(1, 7)))
    trials = sorted(path for path in sweep.iterdir() if path.is_dir())
    lines = compared(trials, ["val/loss", "nothing"])
    assert any(line.startswith("trainer.optimizer.lr") for line in lines)
    assert all(len(line) <= 80 for line in lines[len(trials) :])
    assert lines[-1] == "  no run has reported it"


def test_damaged_runs_are_compared_as_far_as_they_are_known(tmp_path):
    a, b = make_run(tmp_path, short_id="000a"), make_run(tmp_path, short_id="000b")
    (b / "manifest.json").write_text("{")
    (b / "events.jsonl").unlink()
    assert any("damaged" in line for line in compared([a, b]))


def test_a_sweep_is_compared_by_what_its_trials_have(tmp_path):
    run = make_run(tmp_path, versions={"torch": "2.9"}, git={"commit": "a" * 40, "dirty": False})
    sweep = make_sweep(tmp_path)
    for manifest in sweep.glob("*/manifest.json"):
        facts = {"versions": {"torch": "2.9"}, "git": {"commit": "b" * 40, "dirty": False}}
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **facts}))
    words = [line.split() for line in compared([run, sweep])]
    assert not any("torch" in line for line in words)
    assert any(line[:1] == ["commit"] for line in words)


def test_what_comes_next_of_a_run_that_goes_on_is_to_look_at_it(tmp_path):
    run = make_run(tmp_path, status="running")
    with locked(run):
        assert "next        rtrain runs attach" in "\n".join(report(run))
    assert "next        rtrain resume" in "\n".join(report(run))
