"""Logging as a config sets it up: it writes into the run, and calls and changes nothing else."""

from __future__ import annotations

import logging
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from small_project import LOGGING, SCHEMAS, check, each_trial, gate, nested, refused, write

from rtrain.config.session import Session
from rtrain.errors import ConfigError, TargetError


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
    data = nested("hydra.job_logging.handlers.x", {"class": name})
    write("configs/evil.yaml", yaml.safe_dump(OmegaConf.to_container(OmegaConf.unsafe_merge(LOGGING, data))))
    assert name in refused("evil")
    assert check("evil", f"allow=[{name}]").allow[:1] == (name,)


@pytest.mark.parametrize("value", ["cfg://version", ["ext://sys.stdout", "cfg://version"], "ext://sys.modules"])
@pytest.mark.parametrize("place", ["root.x", "handlers.x.stream", "formatters.x.format", "loggers.x.handlers"])
def test_what_leads_from_one_part_of_logging_to_another_is_not_followed(place, value, project):
    with pytest.raises(TargetError, match=rf"hydra\.job_logging\.{place}"):
        gate().check_logging(nested(place, value), "hydra.job_logging")


@pytest.mark.parametrize("section", ["handlers", "formatters", "filters"])
def test_no_attribute_is_changed_unless_it_is_allowed(section, project):
    node = {section: {"x": {"()": "logging.NullHandler", ".": {"emit": "x"}}}}
    key = f"hydra.job_logging.{section}.x.."
    with pytest.raises(TargetError, match=re.escape(key)):
        gate().check_logging(node, "hydra.job_logging")
    gate(allow=(key,)).check_logging(node, "hydra.job_logging")


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
    assert check("evil", *shlex.split(hint.partition(", or ")[0])[3:])
