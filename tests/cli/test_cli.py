"""The commands as a user types them, in this process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import make_run

import rtrain
from rtrain.cli.app import run
from rtrain.cli.fit import with_optional_values

RTRAIN = Path(sys.executable).with_name("rtrain")


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "rtrain", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rtrain {rtrain.__version__}\n", "")


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rtrain {rtrain.__version__}\n"


def test_trainers_and_datasets_are_listed(capsys):
    assert run(["trainers"]) == 0
    assert "  PyTorch: " in capsys.readouterr().out
    assert run(["datasets"]) == 0
    assert {"csv", "digits", "images", "mnist", "parquet", "synthetic"} <= {
        line.split()[0] for line in capsys.readouterr().out.splitlines()
    }


def test_all_keys_of_a_plugin_are_explained(capsys):
    assert run(["trainers", "torch"]) == 0
    shown = capsys.readouterr().out
    assert "trainer.accumulate_steps: integer >= 1 = 1\n    " in shown
    assert 'trainer.precision: fp32 | bf16 | fp16 = "fp32"' in shown
    assert "trainer.early_stopping.patience: integer >= 1" in shown
    assert run(["datasets", "csv"]) == 0
    assert "dataset.split.val: number >= 0 < 1 or null = null" in capsys.readouterr().out


def test_a_plugin_that_is_not_there_is_told_with_the_nearest_one(capsys):
    assert run(["trainers", "torhc"]) == 2
    assert "did you mean: torch" in capsys.readouterr().err


def test_schema_is_json_for_the_whole_config_and_for_a_group(capsys):
    assert run(["schema"]) == 0
    assert {"trainer", "dataset", "scaling"} <= set(json.loads(capsys.readouterr().out)["properties"])
    assert run(["schema", "scaling"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["num_workers"]["anyOf"][0]["minimum"] == 0


def test_a_wrong_key_is_told_with_exit_code_2_and_leaves_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "resnet", "trainer.max_epoch=3"]) == 2
    error = capsys.readouterr().err
    assert "trainer.max_epoch" in error
    assert "max_epochs" in error
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_is_told_with_exit_code_2(capsys):
    assert run(["fit", "resnet", "--multirn"]) == 2
    assert "--multirun" in capsys.readouterr().err


def test_info_of_an_unknown_part_names_the_parts(capsys):
    assert run(["fit", "resnet", "--info=nothing"]) == 2
    assert "'defaults-tree'" in capsys.readouterr().err


def test_resolve_without_cfg_is_refused(capsys):
    assert run(["fit", "resnet", "--resolve"]) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fit", "x", "--info"], ["fit", "x", "--info", "all"]),
        (["fit", "x", "--info", "config"], ["fit", "x", "--info", "config"]),
        (["fit", "--info", "x"], ["fit", "--info", "all", "x"]),
    ],
)
def test_info_may_stand_without_a_value(words, expected):
    assert with_optional_values(words) == expected


def test_options_may_stand_between_overrides(capsys):
    assert run(["fit", "resnet", "num_workers=3", "--cfg", "job", "epochs=4", "--package", "scaling"]) == 0
    assert "num_workers: 3" in capsys.readouterr().out


def test_a_run_ends_with_six_lines_and_the_same_record(capsys, tmp_path):
    words = ["fit", "mlp", "num_workers=0", "epochs=2", f"run.root_dir={tmp_path}"]
    assert run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-6:]] == ["result", "time", "best", "checkpoint", "run", "next"]
    assert [line.split()[1] for line in lines if line.startswith("epoch")] == ["1/2", "2/2"]
    (path,) = (tmp_path / "mlp").iterdir()
    assert json.loads((path / "manifest.json").read_text())["status"] == "succeeded"


def test_a_sweep_trains_each_combination(capsys, tmp_path):
    words = ["fit", "mlp", "num_workers=0", "epochs=1", "lr=0.001,0.01", "--multirun", f"run.root_dir={tmp_path}"]
    assert run(words) == 0
    rates = {
        json.loads(path.read_text())["config"]["trainer"]["optimizer"]["lr"] for path in tmp_path.rglob("manifest.json")
    }
    assert rates == {0.001, 0.01}


def test_a_missing_dataset_is_an_error_before_anything_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "resnet", "num_workers=0", "dataset=mnist", "dataset.path=nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rtrain fi", "fit"),
        ("rtrain fit resn", "resnet"),
        ("rtrain fit resnet --mul", "--multirun"),
        ("rtrain fit resnet dataset=mn", "dataset=mnist"),
        ("rtrain fit resnet scaling.num_w", "scaling.num_workers="),
        ("rtrain fit resnet trainer.max_e", "trainer.max_epochs="),
        ("rtrain rec", "recipes"),
        ("rtrain recipes s", "show"),
        ("rtrain smoke rtr", "rtrain/"),
        ("rtrain runs l", "ls"),
        ("rtrain sweep s", "show"),
        ("rtrain runs ls rtr", "rtrain/"),
    ],
)
def test_completion_offers(line, expected, capsys):
    assert run(["complete", line]) == 0
    assert expected in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rtrain resume la", ["last", "last:mlp"]),
        ("rtrain predict best:", ["best:mlp"]),
        ("rtrain evaluate 0a", ["0a1b"]),
        ("rtrain runs verify 0a", ["0a1b"]),
        ("rtrain sweep show run", ["runs/"]),
    ],
)
def test_completion_offers_runs(line, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs", "mlp", "0a1b")
    assert run(["complete", line]) == 0
    assert capsys.readouterr().out.splitlines() == expected


def test_completion_works_in_a_real_bash(tmp_path):
    script = (
        f"export PATH={RTRAIN.parent}:$PATH; source <(rtrain completion bash); "
        "COMP_LINE='rtrain fit resnet dataset=mn'; COMP_POINT=${#COMP_LINE}; "
        "COMP_WORDS=(rtrain fit resnet dataset = mn); COMP_CWORD=5; compopt() { :; }; "
        '_rtrain_complete rtrain mn =; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "mnist", done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "fit ~nosuchuser/a",
        "fit ~nosuchuser/a.yaml",
        "check mlp ~run.stop.target.val/accuracy",
        "check mlp --config-dir ~nosuchuser/a",
        'check mlp run.init_from="~nosuchuser/a"',
        'check mlp run.storage="file://~nosuchuser/a"',
        'check xgboost dataset=csv dataset.label=y dataset.path="~nosuchuser/a.csv"',
        'check xgboost dataset=csv dataset.label=y dataset.path="~nosuchuser/*.csv"',
        'check xgboost dataset=parquet dataset.label=y dataset.path="~nosuchuser/a"',
        'check mlp dataset=images dataset.path="~nosuchuser/a"',
        'check transformers dataset=text dataset.path="~nosuchuser/a"',
        "init --dataset ~nosuchuser/a.csv",
        "init --dataset ~nosuchuser/a",
        "smoke ~nosuchuser",
        "resume ~nosuchuser/a",
        "evaluate ~nosuchuser/a",
        "predict ~nosuchuser/a -o out.csv",
        "runs ls ~nosuchuser/a",
        "runs show ~nosuchuser/a",
        "runs compare ~nosuchuser/a ~nosuchuser/b",
        "runs gc ~nosuchuser/a",
        "sweep show ~nosuchuser/a",
    ],
)
def test_a_home_of_no_account_is_a_name_as_in_a_shell(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(words.split()) in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "home directory" not in said


@pytest.mark.parametrize("package", [[], ["-p", "run"]])
@pytest.mark.parametrize("value", ["${oc.env:NO_SUCH_VARIABLE}", "${vars.nothing}"])
def test_a_reference_to_nothing_in_a_shown_config_names_its_key(capsys, tmp_path, monkeypatch, package, value):
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "mlp", f"run.notes={value}", "--cfg", "job", "--resolve", *package]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: run.notes: refers to ")
    assert "try:" not in told
