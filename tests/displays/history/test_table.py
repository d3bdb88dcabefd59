"""The list of runs fits the terminal, whatever its width."""

from __future__ import annotations

import pytest
from made_runs import make_run, make_sweep

from rtrain.displays.history.table import table_lines
from rtrain.errors import ConfigError
from rtrain.history.index import list_rows


def lines_of(root, columns=None, width=80):
    rows = [row for row in list_rows([root]) if row.kind != "trial"]
    return [str(line) for line in table_lines(rows, columns, width, rows)]


@pytest.fixture
def root(tmp_path):
    for number, rate in enumerate((0.1, 0.01, 0.001)):
        optimizer = {"lr": rate, "momentum": 0.9, "weight_decay": rate / 10}
        config = {"trainer": {"type": "torch", "optimizer": optimizer, "model": {"_target_": f"my.models.Net{number}"}}}
        overrides = [f"lr={rate}", f"optimizer.weight_decay={rate / 10}"]
        make_run(tmp_path, "digits", f"0a1{number}", config=config, overrides=overrides, minutes=number)
    make_run(
        tmp_path, "trees", "0b00", config={"trainer": {"type": "xgboost", "params": {"eta": 0.3}}}, status="failed"
    )
    return tmp_path


def test_what_differs_is_shown_as_far_as_it_fits(root):
    wide, narrow = lines_of(root, width=200), lines_of(root, width=80)
    assert wide[0].split() == [
        *("id", "name", "trainer", "status", "age", "took", "val/loss", "lr", "weight_decay", "_target_")
    ]
    assert narrow[0].split()[:8] == wide[0].split()[:8]
    assert all(len(line) <= 80 for line in narrow)
    assert "momentum" not in wide[0]
    assert "eta" not in wide[0]


@pytest.mark.parametrize("width", range(20, 200, 15))
def test_no_line_is_wider_than_the_terminal_if_the_most_needed_columns_fit(root, width):
    lines = lines_of(root, width=width)
    needed = {"id", "name", "status", "val/loss"}
    assert needed <= set(lines[0].split())
    least = max(map(len, lines_of(root, width=1)))
    assert max(map(len, lines)) <= max(width, least)


def test_columns_are_chosen_or_added(root):
    assert lines_of(root, "id,lr,val/loss")[0].split() == ["id", "lr", "val/loss"]
    assert lines_of(root, "+seed")[0].split()[-1] == "seed"
    with pytest.raises(ConfigError, match=r"did you mean: trainer\.optimizer\.momentum"):
        lines_of(root, "momentm")


def test_numbers_are_aligned_and_what_is_missing_is_a_dash(root):
    lines = lines_of(root, "id,lr")
    assert sorted(line.split()[1] for line in lines[1:]) == ["-", "0.001", "0.01", "0.1"]
    assert len({len(line) for line in lines}) == 1


def test_runs_of_several_metrics_name_them(root):
    best = {"monitor": "val/accuracy", "mode": "max", "value": 0.9, "step": 1, "epoch": 1}
    make_run(root, "other", "0c00", best=best)
    lines = lines_of(root)
    assert "best" in lines[0].split()
    assert any("val/accuracy 0.9" in line for line in lines)


def test_long_names_are_cut_and_control_characters_are_spelled(tmp_path):
    make_run(tmp_path, "x" * 60)
    make_run(tmp_path, "a\x1b[2J", "0a1c")
    text = "\n".join(lines_of(tmp_path))
    assert "x" * 31 + "…" in text
    assert "\x1b" not in text


def test_a_sweep_is_one_line_with_its_trials_counted(tmp_path):
    make_sweep(tmp_path)
    heading, line = lines_of(tmp_path)
    assert heading.split()[:3] == ["id", "name", "trainer"]
    assert line.split()[:4] == ["330826", "mlp", "2", "trials"]


def test_trainers_that_differ_come_before_keys_that_do(root):
    shown = [lines_of(root, width=width)[0].split() for width in range(30, 200)]
    # lr, which is narrower, may still have a place where the trainer has none
    assert not any("weight_decay" in names and "trainer" not in names for names in shown)
    assert any("trainer" in names and "weight_decay" not in names for names in shown)
