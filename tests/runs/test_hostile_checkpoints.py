"""A checkpoint of somebody else's runs nothing, reads no variable, and predicts all the same if it only computes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import types
from pathlib import Path

import pytest
import torch
from attacks import pickles, watched
from safetensors.torch import load_file, save_file
from strange import KINDS, guarded, put_strange

import rtrain
from rtrain.cli.app import run as command
from rtrain.config.targets.servers import is_well_known
from rtrain.errors import CheckpointError, DatasetError, RtrainError
from rtrain.runs.checkpoints import RECORD_NAME
from rtrain.runs.filesystem.files import sha256_of
from rtrain.runs.signature import key_path
from rtrain.runs.verify import check_whole
from rtrain.testing.damage import Calls, replace_file
from rtrain.trainers.trained import read_about

CODE = """
import pathlib
import torch

pathlib.Path({mark!r}).touch()


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(4, 2)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on four numbers, by a model of torch's own."""
    folder = tmp_path_factory.mktemp("trained")
    words = [
        "dataset=synthetic",
        "dataset.num_rows=200",
        "num_workers=0",
        f"run.root_dir={folder}",
        "trainer.max_epochs=1",
    ]
    return rtrain.fit("mlp", words)


@pytest.fixture
def stolen(trained, tmp_path):
    """A copy of its checkpoint, which ``rewrite`` makes somebody else's."""
    return shutil.copytree(trained.best_checkpoint, tmp_path / "stolen")


@pytest.fixture
def mark(tmp_path):
    """What a hostile checkpoint would leave behind."""
    return tmp_path / "it-ran"


def rewrite(checkpoint: Path, **changes: object) -> Path:
    """Change what the checkpoint says of itself, as somebody does who has no key of ours but can count."""
    path = checkpoint / "about.json"
    about = json.loads(path.read_text())
    for key, value in changes.items():
        place = about
        *outer, last = key.split("__")
        for name in outer:
            place = place[name]
        place[last] = value
    path.write_text(json.dumps(about))
    return recorded(checkpoint)


def recorded(checkpoint: Path) -> Path:
    """List the files as they are now."""
    path = checkpoint / RECORD_NAME
    record = json.loads(path.read_text())
    for name, file in record["files"].items():
        file |= {"size_bytes": (checkpoint / name).stat().st_size, "sha256": sha256_of(checkpoint / name)}
    path.write_text(json.dumps(record))
    return checkpoint


def test_a_model_of_a_framework_predicts_whoever_trained_it(trained, stolen):
    assert read_about(stolen).seal
    assert not read_about(rewrite(stolen, project_root="/elsewhere")).seal
    assert rtrain.evaluate(stolen) == rtrain.evaluate(trained.path)


def test_the_mark_of_another_account_counts_for_nothing(stolen, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not read_about(stolen).seal
    assert not key_path().exists(), "reading made a key"


def test_a_key_that_others_can_read_is_none(stolen):
    key_path().chmod(0o644)
    try:
        assert not read_about(stolen).seal
    finally:
        key_path().chmod(0o600)


def test_code_of_a_stranger_runs_only_if_it_is_trusted(stolen, mark, tmp_path, capfd):
    project = tmp_path / "project"
    project.mkdir()
    (project / "evil_net.py").write_text(CODE.format(mark=str(mark)))
    rewrite(stolen, project_root=str(project), allow=["evil_net.*"], trainer__model={"_target_": "evil_net.Net"})
    for verb in ("evaluate", "predict"):
        out = ["-o", str(tmp_path / "out.csv")]
        assert command([verb, str(stolen), *out]) == 1
        assert not mark.exists()
        assert "evil_net.Net" in (told := capfd.readouterr().err)
        assert "--trust" in told
    command(["evaluate", str(stolen), "--trust"])
    assert mark.exists()
    sys.path[:] = [path for path in sys.path if path != str(project)]


def test_code_in_the_folder_of_the_checkpoint_or_the_current_one_does_not_run(stolen, mark, monkeypatch):
    for folder in (stolen, stolen.parent):
        for name in ("evil_net", "sitecustomize", "torch", "safetensors"):
            (folder / f"{name}.py").write_text(CODE.format(mark=str(mark)))
        (folder / "pyproject.toml").write_text("[tool.rtrain]\nallow = ['*']\n")
    monkeypatch.chdir(stolen.parent)
    rewrite(stolen, project_root=str(stolen))
    rtrain.evaluate(stolen)
    rewrite(stolen, trainer__model={"_target_": "evil_net.Net"})
    with pytest.raises(RtrainError):
        rtrain.evaluate(stolen)
    assert not mark.exists()


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "subprocess.run",
        "builtins.eval",
        "torch.load",
        "torch.hub.load",
        "torch.jit.load",
        "torch.ops.load_library",
        "torch.classes.load_library",
        "torch.utils.cpp_extension.load",
        "torch.serialization.os.system",
        "torch.nn.modules.module.warnings.sys.modules.clear",
        "torch.nn.Embedding.from_pretrained",
        "torch.nn.functional.torch.load",
        "transformers.AutoModel.from_pretrained",
        "sklearn.utils.Bunch",
        "datasets.load_dataset",
        "tensorflow.io.write_file",
        "tensorflow.load_op_library",
        "ray.train.get_context",
        "rtrain.runs.filesystem.files.write_atomic",
        "rtrain.config.targets.builder.Builder",
        "rtrain.fit",
        "torch.nn.Linear.__init__",
        "torch.nn.modules.linear.Linear",
        "torch.nn.utils.parametrizations.weight_norm",
        "keras.layers.Lambda",
        "keras.layers.TextVectorization",
        "torchvision.models._api.WeightsEnum.get_state_dict",
        "torchvision.models.get_model",
    ],
)
def test_what_could_do_more_than_compute_is_not_called(stolen, mark, target):
    evil = {"_target_": target, "_args_": [f"touch {mark}"]}
    for node in (evil, {"_target_": "torch.nn.Sequential", "_args_": [evil]}):
        rewrite(stolen, trainer__model=node)
        with pytest.raises(RtrainError, match=r"trust=True|not allowed|not a dotted path"):
            rtrain.evaluate(stolen)
        assert not mark.exists()


def test_weights_of_torchvision_are_not_fetched_for_a_stranger(stolen, mark, monkeypatch):
    def called(*_, **__):
        mark.touch()

    top, models, api = (types.ModuleType(f"torchvision{part}") for part in ("", ".models", ".models._api"))
    top.__path__ = models.__path__ = []
    api.WeightsEnum = type("WeightsEnum", (), {"get_state_dict": called, "__module__": "torchvision.models._api"})
    called.__module__ = "torchvision.models._api"
    models.resnet18, models._api, top.models = called, api, models
    for module in (top, models, api):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    weights = {"_target_": "torchvision.models._api.Weights", "url": "file:///evil.pth", "transforms": None, "meta": {}}
    for node in (
        {"_target_": "torchvision.models._api.WeightsEnum.get_state_dict", "self": weights},
        {"_target_": "torchvision.models.resnet18", "weights": "DEFAULT"},
        {"_target_": "torchvision.models.resnet18", "_args_": [True]},
        {
            "_target_": "torch.nn.Sequential",
            "_args_": [{"_target_": "torchvision.models.resnet18", "weights": weights}],
        },
    ):
        rewrite(stolen, trainer__model=node)
        with pytest.raises(RtrainError) as raised:
            rtrain.evaluate(stolen)
        assert "trust=True" in raised.value.hint
        assert not mark.exists()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Runs of scikit-learn by the name of the file that holds the estimator: data, and a pickle."""
    folder = tmp_path_factory.mktemp("fitted")
    words = ["dataset=synthetic", "dataset.num_rows=200", "num_workers=0", f"run.root_dir={folder}"]
    kinds = {"estimator.skops": "linear_model.SGDClassifier", "estimator.pkl": "neighbors.KNeighborsClassifier"}
    return {
        name: rtrain.fit("sklearn", [*words, f"trainer.estimator={{_target_: sklearn.{kind}}}"])
        for name, kind in kinds.items()
    }


def test_an_estimator_of_a_stranger_is_read_as_data(fitted, tmp_path):
    run = fitted["estimator.skops"]
    stolen = rewrite(shutil.copytree(run.best_checkpoint, tmp_path / "stolen"), project_root="/elsewhere")
    with watched() as events:
        assert rtrain.evaluate(stolen) == rtrain.evaluate(run.path)
    assert not [event for event in events if "pickle" in event or "system" in event]


def test_a_pickle_of_a_stranger_is_opened_only_if_it_is_trusted(fitted, tmp_path, capfd):
    run = fitted["estimator.pkl"]
    before = rtrain.evaluate(run.path)
    stolen = rewrite(shutil.copytree(run.best_checkpoint, tmp_path / "stolen"), project_root="/elsewhere")
    for verb in ("evaluate", "predict"):
        assert command([verb, str(stolen), "-o", str(tmp_path / "out.csv")]) == 1
        told = capfd.readouterr().err
        assert "estimator.pkl" in told
        assert "--trust" in told
    assert rtrain.evaluate(stolen, trust=True) == before


def test_generated_pickles_run_nothing_in_any_verb(fitted, tmp_path, mark, capfd):
    run = fitted["estimator.pkl"]
    copy = shutil.copytree(run.path, tmp_path / "copy", symlinks=True)
    checkpoint = copy / "checkpoints" / run.best_checkpoint.name
    for content in pickles(2, f"touch {mark}"):
        replace_file(rewrite(checkpoint, project_root="/elsewhere"), "estimator.pkl", content)
        resumed = [f"run.resume={copy}", "num_workers=0", "dataset=synthetic", "dataset.num_rows=200"]
        same = "trainer.estimator={_target_: sklearn.neighbors.KNeighborsClassifier}"
        with watched() as events:
            assert command(["evaluate", str(copy)]) == 1
            assert command(["predict", str(checkpoint), "-o", str(tmp_path / "out.csv")]) == 1
            assert command(["fit", "sklearn", same, *resumed]) == 2
        assert capfd.readouterr().err.count("estimator.pkl") >= 3
        assert not [event for event in events if "pickle" in event or "system" in event]
        assert not mark.exists()


@pytest.mark.parametrize(
    "dataset",
    [
        {"type": "python", "function": "os:getcwd"},
        {"type": "sql", "url": "sqlite:///mine.db", "query": "DELETE FROM everything"},
    ],
    ids=["python", "sql"],
)
def test_rows_are_not_read_by_code_of_a_stranger(stolen, dataset):
    rewrite(stolen, dataset=dataset)
    with pytest.raises(CheckpointError, match=f"dataset.type={dataset['type']}, which runs"):
        rtrain.evaluate(stolen)


def test_no_variable_of_the_environment_goes_into_an_address_of_a_stranger(stolen, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    url = "http://127.0.0.1:9/${oc.env:MY_TOKEN}.csv"
    rewrite(stolen, dataset={"type": "csv", "path": url, "label": "y"})
    with pytest.raises(CheckpointError, match=r"dataset\.path is .*MY_TOKEN") as raised:
        rtrain.evaluate(stolen)
    assert "s3cret" not in str(raised.value)
    (tmp_path / "mine.csv").write_text("y\n1\n")
    with pytest.raises(DatasetError, match="another kind of rows"):  # it gets as far as the user's own file
        rtrain.evaluate(stolen, [f"dataset.path={tmp_path}/mine.csv"])


URLS = [
    *("s3://bucket/x.csv?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1", "s3://bucket/x?scheme=http"),
    *("S3://bucket/x?anonymous=false", "s3://me:key@bucket/x", "gs://bucket/x.csv?endpoint_override=127.0.0.1:9"),
    *("gcs://bucket/x?scheme=http", "abfs://box@evil.example.com/x", "abfss://127.0.0.1:9/box/x", "az://box@evil/x"),
    *("abfs://box@evil.dfs.core.windows.net.evil.com/x", "abfs://b@a.dfs.core.windows.net/x?blob_storage_scheme=http"),
    *("http://evil/x.csv", "HTTPS://evil/x.csv"),  # none would, but the answer may never end
    *("hdfs://evil:9/x", "sftp://evil/x", "ftp://evil/x", "simplecache::s3://b/x", "reference::file:///x", "smb://e/x"),
    *("file://a::sftp://evil/x", "hf://a/b::s3://b/x?endpoint_override=evil", "file:///a::reference://evil/x"),
]


@pytest.mark.parametrize("url", URLS)
def test_a_stranger_names_no_server_that_credentials_would_go_to(stolen, monkeypatch, url):
    def asked(*_):
        raise AssertionError("a store was asked")

    monkeypatch.setattr("rtrain.datasets.remote.open_store", asked)
    for path in (url, {"train": "mine.csv", "test": url}):
        rewrite(stolen, dataset={"type": "csv", "path": path, "label": "y"})
        with pytest.raises(CheckpointError, match=r"dataset\.path[\s\S]*trust=True") as raised:
            rtrain.evaluate(stolen)
        assert "key" not in str(raised.value)
        assert command(["predict", str(stolen), "-o", str(stolen / "out.csv")]) == 1


def test_a_stranger_names_nothing_of_a_hub(stolen, tmp_path, monkeypatch):
    def asked(*_, **__):
        raise ConnectionError("the hub was asked")

    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets, "load_dataset", asked)
    rewrite(stolen, dataset={"type": "huggingface", "path": "stranger/rows", "label": "y"})
    for words in ([], ["dataset.label=z"]):
        with pytest.raises(CheckpointError, match=r"dataset\.path is stranger/rows[\s\S]*trust=True"):
            rtrain.evaluate(stolen, words)
    for path in ("mine/rows", tmp_path):  # the user's own choice, and a folder that is there
        with pytest.raises(DatasetError, match=r"the hub was asked|can't be opened"):
            rtrain.evaluate(stolen, [f"dataset.path={path}"])
    rewrite(stolen, dataset__path=str(tmp_path))
    with pytest.raises(DatasetError, match="can't be opened"):
        rtrain.evaluate(stolen)


def test_a_stranger_gives_no_options_to_a_store(stolen):
    dataset = {"type": "delta", "path": "s3://bucket/x", "label": "y"}
    for options in ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, {"proxy_url": "http://127.0.0.1:9"}):
        rewrite(stolen, dataset={**dataset, "storage_options": options})
        with pytest.raises(CheckpointError, match="trust=True"):
            rtrain.evaluate(stolen)


@pytest.mark.parametrize(
    "url", ["s3://bucket/x.csv", "gs://bucket/a/x.csv", "https://example.com/x.csv?a=b", "file:///x"]
)
def test_a_place_whose_server_is_well_known_may_be_named_by_anybody(url):
    assert is_well_known(url)


@pytest.mark.parametrize("name", ["model.safetensors", "about.json"])
def test_a_file_with_other_bytes_is_named_before_anything_reads_it(trained, stolen, name):
    content = bytearray((stolen / name).read_bytes())
    content[len(content) // 2] ^= 1
    (stolen / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        rtrain.evaluate(stolen)


def test_weights_that_are_a_pickle_are_not_unpickled(stolen, mark):
    torch.save({"weights": Calls(os.system, f"touch {mark}")}, stolen / "model.safetensors")
    recorded(stolen)
    with pytest.raises(CheckpointError):
        rtrain.evaluate(stolen)
    assert not mark.exists()


def test_names_in_a_file_make_no_long_error(stolen, capfd):
    weights = load_file(stolen / "model.safetensors")
    save_file({**weights, "n" * 1_000_000: torch.zeros(1)}, stolen / "model.safetensors")
    recorded(stolen)
    assert command(["evaluate", str(stolen)]) == 1
    assert 100 < len(capfd.readouterr().err) < 20_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["model.safetensors", "training.pt", "about.json", RECORD_NAME, "new"])
def test_what_is_no_file_is_refused_at_once(stolen, tmp_path, capfd, name, kind):
    if name == "training.pt":
        record = json.loads((stolen / RECORD_NAME).read_text())
        record["files"].pop(name)  # the record is the stranger's, too
        (stolen / RECORD_NAME).write_text(json.dumps(record))
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "secret.txt").write_text("mine")
    put_strange(stolen / name, kind, tmp_path / "victim")
    if kind == "folder" and name in ("training.pt", "new"):
        check_whole(stolen)
        return
    with guarded():
        assert command(["evaluate", str(stolen)]) == 1
    told = capfd.readouterr().err
    assert stolen.name in told
    assert "Traceback" not in told


def test_weights_of_another_run_are_no_pipe(stolen, tmp_path):
    put_strange(stolen / "model.safetensors", "fifo", tmp_path)
    words = ["dataset=synthetic", "num_workers=0", f"run.root_dir={tmp_path}/new", f"run.init_from={stolen}"]
    with guarded():
        assert command(["fit", "mlp", *words]) == 2


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 500 + "]" * 500, "a", "{}", "[]", '{"trainer": 3}', "null"])
def test_what_says_nothing_of_itself_is_no_checkpoint(stolen, text):
    (stolen / "about.json").write_text(text)
    recorded(stolen)
    with pytest.raises(CheckpointError, match="not a checkpoint to predict with"):
        rtrain.evaluate(stolen)


def test_a_run_of_a_stranger_goes_on_only_if_it_is_trusted(trained, mark, tmp_path, capfd):
    run = shutil.copytree(trained.path, tmp_path / "run")
    words = ["trainer.max_epochs=2"]
    project = tmp_path / "project"
    project.mkdir()
    (project / "evil_net.py").write_text(CODE.format(mark=str(mark)))
    text = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(text.replace("rtrain.models.torch.MLP", "evil_net.Net"))
    assert command(["resume", str(run), *words]) == 2
    assert "another account" in (told := capfd.readouterr().err)
    assert "--trust" in told
    (run / "config.yaml").write_text(text)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"project_root": str(project)}))
    assert command(["resume", str(run), *words]) == 2
    assert not mark.exists()
    assert command(["resume", str(run), *words, "--trust"]) == 0
    assert command(["resume", str(run), "trainer.max_epochs=3"]) == 0, "now it is one's own"


def test_a_manifest_beside_a_config_of_ours_does_not_say_where_a_copy_is_brought(trained, tmp_path, capfd):
    copy, home = shutil.copytree(trained.path, tmp_path / "store" / "mlp" / trained.path.name), tmp_path / "home"
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["config"]["run"]["root_dir"] = str(home)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert command(["resume", f"file://{copy}"]) == 2
    assert "run.root_dir is" in capfd.readouterr().err
    assert not home.exists()


@pytest.mark.parametrize("root", ["{home}", "../../{home}"])
def test_a_copy_of_a_run_is_not_brought_where_a_stranger_wants_it(trained, tmp_path, capfd, root):
    copy, home = shutil.copytree(trained.path, tmp_path / "store" / "mlp" / trained.path.name), tmp_path / "home"
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace("seed: 0", "seed: 1"))
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["config"]["run"]["root_dir"] = root.format(home=home)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert command(["resume", f"file://{copy}"]) == 2
    assert "--trust" in capfd.readouterr().err
    assert not home.exists()


def test_what_the_config_allowed_is_allowed_to_the_account_that_trained_and_to_nobody_else(
    tmp_path, monkeypatch, trained
):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "other_lib.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Linear):\n    def __init__(self):\n        super().__init__(16, 4)\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "lib")
    info = read_about(trained.best_checkpoint).info
    assert (info.input_shape, info.num_classes) == ((16,), 4)
    words = [word for word in trained.manifest.overrides if not word.startswith("run.root_dir")]
    model = ["trainer.model={_target_: other_lib.Net}", "allow=[other_lib.*]"]
    run = rtrain.fit("mlp", [*words, *model, f"run.root_dir={tmp_path}/runs"])
    assert "accuracy" in rtrain.evaluate(run.path)
    stolen = rewrite(shutil.copytree(run.best_checkpoint, tmp_path / "stolen"), project_root="/elsewhere")
    with pytest.raises(CheckpointError, match=r"other_lib\.Net, which is code of another project"):
        rtrain.evaluate(stolen)
