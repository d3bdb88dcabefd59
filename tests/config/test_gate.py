"""The gate: whatever a config may have called, opened or set, in every place and however it is named."""

from __future__ import annotations

import logging
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from tests_config import SCHEMAS, check, each_trial, refused, write

from rtrain.config.gate import Gate
from rtrain.config.session import Session
from rtrain.config.targets import TargetError
from rtrain.errors import ConfigError
from rtrain.runs.seal import with_seal

CANARY = """
from pathlib import Path


def sing(*args, **kwargs):
    Path({mark!r}).touch()
    raise RuntimeError("it sang")
"""
SINGS = "canary.sing"
ANY = "job_logging.handlers.()"
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "callback": ("hydra.callbacks.x", {"_target_": SINGS}),
    "argument": ("hydra.callbacks.x", {"_target_": "models.Net", "width": {"_target_": SINGS}}),
    "element": ("hydra.callbacks.x", {"_target_": "models.Net", "width": [1, [{"_target_": SINGS}]]}),
    "positional": ("hydra.callbacks.x", {"_target_": "models.Net", "_args_": [{"_target_": SINGS}]}),
    "partial": ("hydra.callbacks.x", {"_target_": SINGS, "_partial_": True}),
    "walk": ("hydra.callbacks.x", {"_target_": "models.canary.sing"}),
    "launcher": ("hydra.launcher", {"_target_": SINGS}),
    "sweeper": ("hydra.sweeper", {"_target_": SINGS}),
    "optimizer": ("trainer.optimizer", {"_target_": SINGS}),
    **{
        f"{section}.{kind}.{key}": (f"hydra.{section}.{kind}.x", {key: SINGS, **more})
        for section in ("job_logging", "hydra_logging")
        for kind, key, more in [
            ("handlers", "()", {}),
            ("handlers", "class", {}),
            ("handlers", "stream", {"class": "logging.StreamHandler", "stream": f"ext://{SINGS}"}),
            ("handlers", "queue", {"class": "logging.handlers.QueueHandler", "queue": {"()": SINGS}}),
            ("handlers", "()", {"()": "ext://canary.sing"}),
            ("handlers", "walk", {"class": "models.canary.sing"}),
            ("formatters", "()", {}),
            ("formatters", "class", {}),
            ("filters", "()", {}),
            ("filters", "cfg", {"()": "cfg://filters.x.name", "name": SINGS}),
        ]
    },
}
BASE = {
    "defaults": ["digits"],
    "hydra": {
        section: {"root": {"handlers": ["x"]}, "handlers": {"x": {"class": "logging.NullHandler"}}}
        for section in ("job_logging", "hydra_logging")
    },
}


def _nested(path: str, value: Any) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def _with_names(node: Any, name: str) -> Any:
    """Return ``node`` with each name of the canary said in another way."""
    if isinstance(node, dict):
        return {key: _with_names(value, name) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_names(value, name) for value in node]
    return node.replace(SINGS, name) if isinstance(node, str) else node


def _named(said: str, /, **variables: Any) -> Any:
    return lambda path, node: ({**_nested(path, _with_names(node, said)), "vars": variables}, [], {})


def _referred(said: str, /, **variables: Any) -> Any:
    return lambda path, node: (
        {**_nested(path, said), "vars": {"node": node, "text": _unquoted(node), **variables}},
        [],
        {},
    )


def _unquoted(node: Any) -> str:
    return str(node).replace("'", "")


def _typed(path: str, node: Any) -> Any:
    return {}, [f"++{path}={_unquoted(node)}"], {}


def _typed_reference(path: str, node: Any) -> Any:
    return {"vars": {"node": node}}, [f"++{path}=${{vars.node}}"], {}


def _packaged(path: str, node: Any) -> Any:
    text = f"# @package {path}\n{yaml.safe_dump(node)}"
    return {}, ["+extra=evil"], {"configs/extra/evil.yaml": text}


def _from_defaults(path: str, node: Any) -> Any:
    text = yaml.safe_dump(_nested(path, node))
    return {"defaults": ["digits", {"extra@_global_": "evil"}, "_self_"]}, [], {"configs/extra/evil.yaml": text}


WAYS = {
    "literal": _named(SINGS),
    "reference": _named("${vars.name}", name=SINGS),
    "reference in a reference": _named("${vars.${vars.which}}", which="name", name=SINGS),
    "relative": _named("${vars.relative}", relative="${.name}", name=SINGS),
    "in parts": _named("${vars.a}.${vars.b}", a="canary", b="sing"),
    "variable": _named("${oc.env:CANARY}"),
    "default": _named("${oc.select:vars.nothing,${vars.name}}", name=SINGS),
    "selected": _named("${oc.select:vars.name}", name=SINGS),
    "decoded": _named("${oc.decode:${vars.name}}", name=f"'{SINGS}'"),
    "node": _referred("${vars.node}"),
    "node of a node": _referred("${vars.second}", second="${.node}"),
    "created": _referred("${oc.create:${vars.node}}"),
    "decoded node": _referred("${oc.create:${oc.decode:${vars.text}}}"),
    "typed": _typed,
    "typed reference": _typed_reference,
    "package": _packaged,
    "defaults": _from_defaults,
}


@pytest.fixture
def mark(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the canary leaves behind: an importable module outside of the project, which a module of it imports."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary.py").write_text(CANARY.format(mark=str(tmp_path / "it-sang")))
    monkeypatch.syspath_prepend(str(outside))
    monkeypatch.setenv("CANARY", SINGS)
    monkeypatch.delitem(sys.modules, "models", raising=False)
    write("models.py", "import canary\n\n\nclass Net:\n    def __init__(self, width=8, depth=2):\n        pass\n")
    return tmp_path / "it-sang"


MORE = {
    "callback": tuple(WAYS),
    ANY: ("variable", "node of a node", "package", "defaults"),
    "optimizer": ("node", "created"),
}
CASES = [(place, way) for place in PLACES for way in WAYS if way in MORE.get(place, ("literal",))]


def written(place: str, way: str) -> list[str]:
    """Write the config ``evil``; return its overrides."""
    path, node = PLACES[place]
    data, words, files = WAYS[way](path, node)
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(BASE, data))))
    for name, text in files.items():
        write(name, text)
    return words


@pytest.mark.parametrize(("place", "way"), CASES)
def test_no_name_of_a_callable_passes(place, way, mark):
    with Session("evil", written(place, way), SCHEMAS) as session, pytest.raises(ConfigError) as caught:
        session.run(lambda *_: None)
    assert TargetError in (type(caught.value), type(caught.value.__cause__))
    assert not mark.exists()


@pytest.mark.parametrize("way", ["node", "variable"])
@pytest.mark.parametrize("place", ["callback", ANY])
def test_none_passes_in_a_sweep_and_to_look_runs_nothing(place, way, mark):
    words = written(place, way)
    with Session("evil", words, SCHEMAS) as session:
        assert session.show_cfg("all")
        assert session.show_info("config")
    with Session("evil", [*words, "seed=1,2"], SCHEMAS) as session, pytest.raises(ConfigError):
        each_trial(session, lambda *_: None)
    assert not mark.exists()


def test_a_resolver_that_changes_its_mind_changes_nothing(mark):
    """What is checked when training starts is what is called, whatever was found before."""
    answers = iter(["logging.NullHandler"])
    OmegaConf.register_new_resolver("flip", lambda: next(answers, SINGS), replace=True)
    path, _ = PLACES[ANY]
    data = _nested(path, {"()": "${flip:}"})
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(BASE, data))))
    with Session("evil", [], SCHEMAS) as session:
        session.check()
        with pytest.raises(TargetError):
            session.run(lambda *_: None)
    OmegaConf.clear_resolver("flip")
    assert not mark.exists()


@pytest.mark.parametrize("way", ["override /hydra/job_logging", "hydra/hydra_logging"])
def test_a_group_of_hydras_passes_the_gate_too(way, mark):
    group = way.rpartition("/")[2]
    node = {"version": 1, "root": {"handlers": ["x"]}, "handlers": {"x": {"()": SINGS}}}
    write(f"configs/hydra/{group}/evil.yaml", yaml.safe_dump(node))
    default = [] if way.startswith("hydra") else [{way: "evil"}]
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits", "_self_", *default]}))
    assert SINGS in refused("evil", *(() if default else (f"{way}=evil",)))
    assert not mark.exists()


SEARCHED = ["pkg://canary", "pkg://canary.inner", "pkg://box", "pkg://box.inner", "pkg://models", "structured://canary"]
SEARCHES = {
    "literal": lambda path: ({"hydra": {"searchpath": [path]}}, []),
    "reference": lambda path: ({"hydra": {"searchpath": ["${vars.p}"]}, "vars": {"p": path}}, []),
    "list": lambda path: ({"hydra": {"searchpath": "${vars.p}"}, "vars": {"p": [path]}}, []),
    "node": lambda path: ({"hydra": "${vars.h}", "vars": {"h": {"searchpath": [path]}}}, []),
    "typed": lambda path: ({}, [f"hydra.searchpath=['{path}']"]),
}


@pytest.mark.parametrize("way", SEARCHES)
@pytest.mark.parametrize("path", SEARCHED)
def test_a_search_path_imports_nothing(path, way, mark, tmp_path, monkeypatch):
    for name in ("canary", "box", "box.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for folder in ("outside/box", "outside/box/inner"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text(f"open({str(mark)!r}, 'w')\n")
    outside = tmp_path / "outside/canary.py"
    outside.write_text(f"open({str(mark)!r}, 'w')\n")
    data, words = SEARCHES[way](path)
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], **data}))
    with Session("evil", words, SCHEMAS) as session, suppress(ConfigError):
        session.show_cfg("job")
    with Session("evil", words, SCHEMAS) as session, suppress(ConfigError):
        session.show_info("searchpath")
    with Session("evil", words, SCHEMAS) as session, suppress(ConfigError):
        session.check()
    assert not mark.exists()


# What is let through


@pytest.mark.parametrize("typed", [False, True])
def test_the_configs_of_a_package_are_read(typed, project, tmp_path, monkeypatch):
    (tmp_path / "outside/box/inner/dataset").mkdir(parents=True)
    (tmp_path / "outside/box/__init__.py").write_text("raise RuntimeError\n")
    (tmp_path / "outside/box/inner/__init__.py").touch()
    (tmp_path / "outside/box/inner/dataset/far.yaml").write_text("type: digits\nsplit: 0.5\n")
    monkeypatch.syspath_prepend(str(tmp_path / "outside"))
    path = "pkg://box.inner"
    data = {} if typed else {"hydra": {"searchpath": [path]}}
    write("configs/far.yaml", yaml.safe_dump({"defaults": ["digits"], **data}))
    words = (f"hydra.searchpath=[{path}]",) if typed else ()
    assert check("far", "dataset=far", *words).resolved["dataset"]["split"] == 0.5


def test_handlers_of_a_run_write_where_they_should(project):
    file = {"class": "logging.FileHandler", "filename": "${hydra.runtime.output_dir}/job.log", "formatter": "x"}
    node = {"root": {"handlers": ["x", "y"], "level": "INFO"}, "formatters": {"x": {"format": "got %(message)s"}}}
    handlers = {"x": file, "y": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr"}}
    logging_node = {"version": 1, "disable_existing_loggers": False, **node, "handlers": handlers}
    write("configs/logs.yaml", yaml.safe_dump({"defaults": ["digits"], "hydra": {"job_logging": logging_node}}))
    root, said = logging.getLogger(), "something"
    before, level = list(root.handlers), root.level
    try:
        for words, run in (((), lambda session, task: session.run(task)), (("seed=1,2",), each_trial)):
            with Session("logs", words, SCHEMAS) as session:
                run(session, lambda *_: logging.getLogger("mine").info(said))
    finally:
        for handler in set(root.handlers) - set(before):
            handler.close()
        root.handlers[:], root.level = before, level
    assert [path.read_text() for path in Path("runs").rglob("job.log")] == ["got something\n"] * 3


@pytest.mark.parametrize("name", ["logging.FileHandler", "logging.handlers.RotatingFileHandler"])
@pytest.mark.parametrize("key", ["class", "()"])
def test_no_log_leaves_the_run(key, name, project, tmp_path):
    own = "runs/mine"
    outside = (str(tmp_path / "x.log"), "../x.log", f"{own}/../x.log", "runs/mine-2/x.log", "runs/x.log", "x.log")
    for filename in (*outside, own, None, "cfg://version", f"{own}/manifest.json", f"{own}/logs/x.py", f"{own}/.log"):
        node = {"handlers": {"x": {key: name, "filename": filename}}}
        with pytest.raises(TargetError, match=r"logging\.handlers\.x\.filename"):
            gate().check_logging(node, "logging")
    gate().check_logging({"handlers": {"x": {key: name, "filename": f"{own}/x/y.log"}}}, "logging")


@pytest.mark.parametrize("name", ["logging.handlers.SocketHandler", "logging.handlers.SMTPHandler", "torch.load"])
def test_what_sends_logs_away_has_to_be_allowed(name, project):
    data = _nested("hydra.job_logging.handlers.x", {"class": name})
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(BASE, data))))
    assert name in refused("evil")
    assert check("evil", f"allow=[{name}]").allow == (name,)


@pytest.mark.parametrize("value", ["cfg://version", ["ext://sys.stdout", "cfg://version"], "ext://sys.modules"])
@pytest.mark.parametrize("place", ["root.x", "handlers.x.stream", "formatters.x.format", "loggers.x.handlers"])
def test_what_leads_from_one_part_of_logging_to_another_is_not_followed(place, value, project):
    with pytest.raises(TargetError, match=rf"hydra\.job_logging\.{place}"):
        gate().check_logging(_nested(place, value), "hydra.job_logging")


@pytest.mark.parametrize("section", ["handlers", "formatters", "filters"])
def test_no_attribute_is_changed_unless_it_is_allowed(section, project):
    node = {section: {"x": {"()": "logging.NullHandler", ".": {"emit": "x"}}}}
    key = f"hydra.job_logging.{section}.x.."
    with pytest.raises(TargetError, match=re.escape(key)):
        gate().check_logging(node, "hydra.job_logging")
    gate(allow=(key,)).check_logging(node, "hydra.job_logging")


STORES = [
    "s3://b/x?endpoint_override=evil:9000",
    "s3://b/x?scheme=http",
    "gs://evil.org:80/x",
    "s3://u@b/x",
    "s3://b/x#y",
]
LEADING = """
LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONWARNINGS PATH HOME NCCL_NET_PLUGIN
HYDRA_INSTANTIATE_ALLOWLIST_OVERRIDE NCCL_RAS_ADDR NCCL_COMM_ID NCCL_HOSTID WANDB_BASE_URL WANDB_ENTITY
NCCL_DEBUG_FILE AWS_CONFIG_FILE RAY_RUNTIME_ENV_HOOK GIT_SSH_COMMAND MY_OWN
"""
KNOWN = {
    "NCCL_DEBUG": "INFO",
    "OMP_NUM_THREADS": "4",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "NCCL_SOCKET_IFNAME": "^lo,docker0",
}
KNOWN |= {"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "WANDB_PROJECT": "mnist"}


def gate(**more: Any) -> Gate:
    """Return a gate that allows nothing."""
    return Gate(**{"allow": (), "root": Path.cwd(), "folder": Path("runs/mine").absolute(), **more})


@pytest.mark.parametrize("name", LEADING.split())
def test_a_file_sets_no_variable_that_may_lead_to_code(name):
    with pytest.raises(TargetError, match=rf"env\.{name}"):
        gate().check_variables({name: "x"}, "env")
    gate(allow=(f"env.{name}",)).check_variables({name: "/x"}, "env")
    gate(typed=frozenset({f"env.{name}"})).check_variables({name: "/x"}, "env")


@pytest.mark.parametrize("value", ["/x", "../x", "s3://x", "$(x)", "a\nb"])
def test_a_setting_is_a_word_and_no_place(value):
    gate().check_variables(KNOWN, "env")
    with pytest.raises(TargetError):
        gate().check_variables({"NCCL_DEBUG": value}, "env")


@pytest.mark.parametrize("where", ["hydra.job.env_set", "cluster.runtime_env.env_vars"])
def test_variables_are_those_of_the_command_line_or_known(where, project):
    data = {"defaults": ["digits"], **_nested(where, "${vars.node}"), "vars": {"node": {"LD_PRELOAD": "x"}}}
    write("configs/evil.yaml", yaml.safe_dump(data))
    assert f"{where}.LD_PRELOAD" in refused("evil")
    assert f"{where}.LD_PRELOAD" in refused("digits", f"++{where}=${{vars.a}}", "+vars.a.LD_PRELOAD=x")
    write("configs/good.yaml", yaml.safe_dump({"defaults": ["digits"], **_nested(where, KNOWN)}))
    assert check("good", f"++{where}={{LD_PRELOAD: /usr/lib/libjemalloc.so}}", f"+{where}.MY=1")


@pytest.mark.parametrize(
    "name", ["pip", "conda", "working_dir", "py_modules", "worker_process_setup_hook", "py_executable"]
)
def test_a_file_gives_workers_no_code_of_others(name, tmp_path):
    data = {"trainer": {}, "dataset": {}, "cluster": {"runtime_env": {name: str(tmp_path)}}}
    with pytest.raises(TargetError, match=rf"cluster\.runtime_env\.{name}"):
        gate().check_job(data)
    gate(allow=(f"cluster.runtime_env.{name}",)).check_job(data)
    gate(typed=frozenset({f"cluster.runtime_env.{name}"})).check_job(data)
    own = {"working_dir": str(tmp_path), "py_modules": [str(tmp_path / "x")]}
    gate(root=tmp_path).check_job({**data, "cluster": {"runtime_env": own}})


@pytest.mark.parametrize("place", ["https://x/y.zip", "s3://b/y.zip", "..", "/", "link"])
@pytest.mark.parametrize("name", ["working_dir", "py_modules"])
def test_workers_get_no_code_from_outside_of_the_project(name, place, project, tmp_path):
    Path("link").symlink_to(tmp_path / "elsewhere")
    for value in (place, [place], ["models", place]):
        data = {"trainer": {}, "dataset": {}, "cluster": {"runtime_env": {name: value}}}
        with pytest.raises(TargetError, match=rf"cluster\.runtime_env\.{name}"):
            gate().check_job(data)


def test_a_run_of_this_account_keeps_what_was_typed(project):
    write(
        "configs/mine.yaml",
        with_seal("defaults: [digits]\ncluster: {runtime_env: {env_vars: {MY: '1'}}}\n", str(project)),
    )
    assert check("mine")
    with Path("configs/mine.yaml").open("a") as file:
        file.write("vars: {x: 1}\n")
    assert "cluster.runtime_env.env_vars.MY" in refused("mine")


def test_the_words_of_a_smoke_block_are_those_of_a_file(project):
    with Session("digits", ["+cluster.runtime_env.env_vars.LD_PRELOAD=x"], SCHEMAS) as session:
        session.request.of_file = True
        with pytest.raises(ConfigError, match="LD_PRELOAD"):
            session.check()


@pytest.mark.parametrize("word", ["hydra.run.dir=/tmp/outside", "cluster.address=evil:1", f"run.storage='{STORES[0]}'"])
def test_what_a_smoke_block_says_is_not_typed(word, project):
    assert check("digits", word)
    with Session("digits", [word], SCHEMAS) as session:
        session.request.of_file = True
        with pytest.raises(ConfigError, match=word.partition("=")[0]):
            session.check()


@pytest.mark.parametrize(("key", "value"), [("setup", ["evil"]), ("srun_args", ["x"]), ("partition", "x\nevil")])
def test_a_launcher_gets_no_command_from_a_file(key, value, tmp_path):
    target = "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher"
    node = {"_target_": target, "submitit_folder": str(tmp_path / "runs/.submitit/%j"), "timeout_min": 3}
    own, folder = gate(), tmp_path / "runs"
    own.check_plugin(node, "hydra.launcher", folder)
    for wrong in ({key: value}, {"submitit_folder": str(tmp_path)}, {"name": {"_target_": "os.getcwd"}}):
        with pytest.raises(TargetError):
            own.check_plugin({**node, **wrong}, "hydra.launcher", folder)
    typed = gate(typed=frozenset({f"hydra.launcher.{key}"}))
    typed.check_plugin({**node, key: value}, "hydra.launcher", folder)


def test_a_file_chooses_no_launcher_that_asks_other_machines(tmp_path):
    node = {"_target_": "hydra_plugins.hydra_ray_launcher.ray_launcher.RayLauncher", "ray": {"address": "evil:6379"}}
    with pytest.raises(TargetError, match="other machines"):
        gate().check_plugin(node, "hydra.launcher", tmp_path)
    for key in ("hydra.launcher", "hydra.launcher._target_"):
        gate(typed=frozenset({key})).check_plugin(node, "hydra.launcher", tmp_path)


@pytest.mark.parametrize(
    "address", ["evil:6379", "ray://evil:10001", "evil.module://x", "localhost.evil.org:1", "auto:x"]
)
def test_a_file_names_no_cluster_elsewhere(address, project):
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "cluster": {"address": address}}))
    assert "cluster.address" in refused("evil")
    assert check("evil", "allow=[cluster.address]")
    assert check("digits", f"cluster.address='{address}'")
    for here in (None, "auto", "local", "localhost:6379", "127.0.0.1:6379", "ray://localhost:10001"):
        write("configs/good.yaml", yaml.safe_dump({"defaults": ["digits"], "cluster": {"address": here}}))
        assert check("good")


@pytest.mark.parametrize("url", [*STORES, "abfs://c@evil.org/x", "s3://b/x?region=evil.org", "simplecache::s3://b/x"])
@pytest.mark.parametrize("key", ["run.storage", "dataset.columns", "run.init_from"])
def test_a_file_sends_credentials_to_no_server_of_its_choice(key, url, project):
    value = [url] if key == "dataset.columns" else url
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits", "_self_"], **_nested(key, value)}))
    assert key in refused("evil")
    assert check("evil", f"allow=[{key}]")
    write("configs/good.yaml", yaml.safe_dump({"defaults": ["digits"], **_nested(key, "s3://b/x?region=eu-west-1")}))
    assert key == "dataset.columns" or check("good")


def test_a_sweep_of_a_file_names_no_server_either(project):
    params = {"run.storage": [STORES[0], None]}
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "hydra": {"sweeper": {"params": params}}}))
    with Session("evil", [], SCHEMAS) as session, pytest.raises(ConfigError, match=r"run\.storage"):
        each_trial(session, lambda *_: None)


def test_the_files_of_logging_lie_in_the_run(project, tmp_path):
    handlers = {"x": {"class": "logging.FileHandler", "filename": "", "mode": "w"}}
    write("runs/other/1/manifest.json", "{}")
    for root, filename in (
        (str(tmp_path), "${oc.env:HOME}/.bashrc"),
        (".", "models.py"),
        ("runs", "runs/other/1/x.log"),
    ):
        handlers["x"]["filename"] = filename
        section = {"version": 1, "root": {"handlers": ["x"]}, "handlers": handlers}
        for name in ("job_logging", "hydra_logging"):
            data = {"run": {"root_dir": root}, "hydra": {name: section}}
            write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], **data}))
            assert "filename" in refused("evil")
            with Session("evil", ["seed=1,2"], SCHEMAS) as session, pytest.raises(ConfigError, match="filename"):
                each_trial(session, lambda *_: None)
    assert "class Net" in Path("models.py").read_text()


def test_a_name_in_lists_of_lists_is_seen(project):
    for depth in range(1, 5):
        value: Any = "ext://os.system"
        for _ in range(depth):
            value = [value]
        for wrong in (value, {"b": value}):
            with pytest.raises(TargetError, match=r"os\.system"):
                gate().check_logging({"handlers": {"x": {"()": "logging.NullHandler", "a": wrong}}}, "logging")


@pytest.mark.parametrize("name", ["x", "x.y", "x y", "ä-b"])
def test_the_hint_can_be_pasted(name, project):
    node = {"version": 1, "handlers": {name: {"class": "logging.NullHandler", ".": {"x": 1}}}}
    write("configs/evil.yaml", yaml.safe_dump({"defaults": ["digits"], "hydra": {"job_logging": node}}))
    hint = refused("evil").rpartition("try: ")[2]
    assert check("evil", hint.partition(", or ")[0])
