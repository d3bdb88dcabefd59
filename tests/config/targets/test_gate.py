"""The gate: whatever a config may have called, opened or set, in every place and however it is named."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from small_project import LOGGING, SCHEMAS, check, each_trial, gate, nested, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError, TargetError
from rtrain.runs.signature import with_signature

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


def _with_names(node: Any, name: str) -> Any:
    """Return ``node`` with each name of the canary said in another way."""
    if isinstance(node, dict):
        return {key: _with_names(value, name) for key, value in node.items()}
    if isinstance(node, list):
        return [_with_names(value, name) for value in node]
    return node.replace(SINGS, name) if isinstance(node, str) else node


def _named(said: str, /, **variables: Any) -> Any:
    return lambda path, node: ({**nested(path, _with_names(node, said)), "vars": variables}, [], {})


def _referred(said: str, /, **variables: Any) -> Any:
    return lambda path, node: (
        {**nested(path, said), "vars": {"node": node, "text": _unquoted(node), **variables}},
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
    text = yaml.safe_dump(nested(path, node))
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
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(LOGGING, data))))
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
    data = nested(path, {"()": "${flip:}"})
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(LOGGING, data))))
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


SEARCHED_EVERY_WAY = ("pkg://canary.inner", "structured://canary")


@pytest.mark.parametrize(
    ("path", "way"),
    [(path, way) for path in SEARCHED for way in SEARCHES if way == "literal" or path in SEARCHED_EVERY_WAY],
)
def test_a_search_path_imports_nothing(path, way, mark, tmp_path, monkeypatch):
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
    data = {"defaults": ["digits"], **nested(where, "${vars.node}"), "vars": {"node": {"LD_PRELOAD": "x"}}}
    write("configs/evil.yaml", yaml.safe_dump(data))
    assert f"{where}.LD_PRELOAD" in refused("evil")
    assert f"{where}.LD_PRELOAD" in refused("digits", f"++{where}=${{vars.a}}", "+vars.a.LD_PRELOAD=x")
    write("configs/good.yaml", yaml.safe_dump({"defaults": ["digits"], **nested(where, KNOWN)}))
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
        with_signature("defaults: [digits]\ncluster: {runtime_env: {env_vars: {MY: '1'}}}\n", str(project)),
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
