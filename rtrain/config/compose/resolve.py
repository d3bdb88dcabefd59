"""From a composed config to plain data: missing values, interpolations, and the two texts that are written."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import AnyNode, DictConfig, Node, OmegaConf, flag_override, open_dict, read_write
from omegaconf._utils import get_omega_conf_dumper
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

from rtrain.config.compose.hydra_app import sanitized
from rtrain.config.compose.hydra_parts import hydra_config
from rtrain.config.compose.marks import spell_out, symbolic_environment
from rtrain.config.compose.nodes import Container, children, full_key, is_container, is_reference, plain, unresolved
from rtrain.config.files.written_yaml import to_yaml
from rtrain.config.secrets.masked import mask
from rtrain.config.secrets.masked_config import mask_in_place, secrets_hidden
from rtrain.config.secrets.redact import Redactor, redactor
from rtrain.config.targets.moved import with_names_of_now


class UnresolvedError(Exception):
    """Some interpolations can't be resolved."""

    def __init__(self, errors: dict[str, Exception]) -> None:
        super().__init__(f"{len(errors)} interpolations can't be resolved")
        self.errors = errors
        """What went wrong, by key."""


class MissingValuesError(Exception):
    """Some values have to be given."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys


class NoPackageError(Exception):
    """The config has no such part."""

    def __init__(self, package: str, cfg: DictConfig) -> None:
        super().__init__(package)
        self.package = package
        self.known = [str(key) for key in cfg]


def place_job(cfg: DictConfig, num: int | None = None) -> None:
    """Tell ``cfg`` what Hydra tells it when the job starts: its number in a sweep, and its output folder.

    Raises:
        UnresolvedError: The folder's name refers to values that can't be resolved.
    """
    try:
        _place_job(cfg, num)
    except OmegaConfBaseException:
        with hydra_config(cfg):
            resolve(cfg)
        raise


def _place_job(cfg: DictConfig, num: int | None) -> None:
    with read_write(cfg.hydra), open_dict(cfg.hydra):
        if num is not None:
            cfg.hydra.job.num = num
            cfg.hydra.job.id = f"{cfg.hydra.job.name}_{num}" if num else cfg.hydra.job.name
        keys = ["run.dir"] if num is None else ["sweep.dir", "sweep.subdir"]
        folder = os.path.join(*(_hydras_text(cfg, key) for key in keys))  # noqa: PTH118
    with read_write(cfg.hydra), open_dict(cfg.hydra):
        cfg.hydra.runtime.output_dir = os.path.abspath(folder)  # noqa: PTH100


def _hydras_text(cfg: DictConfig, key: str) -> str:
    section, name = key.split(".")
    node = cfg.hydra[section]._get_node(name)
    if not node._is_interpolation():  # to resolve one takes a while
        return str(node._value())
    with hydra_config(cfg):
        return str(OmegaConf.select(cfg, f"hydra.{key}"))


def put_job(cfg: DictConfig, folder: Path) -> None:
    """Have Hydra run the job of ``cfg`` in ``folder``."""
    with read_write(cfg.hydra), open_dict(cfg.hydra):
        cfg.hydra.run.dir = str(folder)
        cfg.hydra.runtime.output_dir = str(folder.absolute())


@contextmanager
def _hydra_apart(cfg: DictConfig) -> Iterator[None]:
    """Take the node ``hydra`` out while the block runs: the job does not contain it and can't refer to it."""
    content = cfg.__dict__["_content"]
    hydra = content.pop("hydra")
    try:
        yield
    finally:
        content["hydra"] = hydra


def resolve(cfg: DictConfig) -> dict[str, Any]:
    """Return the job of ``cfg`` as plain data without interpolations.

    Raises:
        MissingValuesError: Values are ``???``; with all keys that have to be given.
        UnresolvedError: Interpolations refer to keys that do not exist.
    """
    with _hydra_apart(cfg):
        if missing := list(_missing(cfg)):
            raise MissingValuesError(missing)
        try:
            data: dict[str, Any] = plain(cfg, _referred)
        except OmegaConfBaseException:
            errors = dict(_interpolation_errors(cfg))
            if not errors:
                raise
            raise UnresolvedError(errors) from None
    return data


def shown_config(cfg: DictConfig, what: str, package: str | None, resolve: bool) -> str:
    """Return ``cfg`` as Hydra's ``--cfg`` prints it; ``cfg`` itself is masked and taken apart.

    Raises:
        NoPackageError: There is no part ``package``.
    """
    redact = secrets_of(cfg)
    mask_in_place(cfg)
    name = (package or "").rpartition(".")[2]
    with hydra_config(cfg):
        if resolve:
            with _hydra_apart(cfg) if what == "job" else nullcontext():
                _forget_missing(cfg)
            if what != "job":
                with flag_override(cfg.hydra, "readonly", False):
                    OmegaConf.resolve(cfg.hydra)  # it refers to the job, which may not be shown
        part: Any = sanitized(cfg, what)
        if package not in (None, "_global_"):
            selected = OmegaConf.select(part, package)
            if selected is None:
                raise NoPackageError(package, part)
            part = selected
        if not isinstance(part, Container):
            return redact(f"{mask(part, name)}\n")
        header = f"# @package {package}\n" if package not in (None, "_global_") else ""
        if not resolve:
            return header + OmegaConf.to_yaml(part)
        data = redact.clean_data(mask(OmegaConf.to_container(part, resolve=True, enum_to_str=True), name))
    dumper = get_omega_conf_dumper()
    return header + yaml.dump(data, default_flow_style=False, allow_unicode=True, sort_keys=False, Dumper=dumper)


def secrets_of(cfg: DictConfig) -> Redactor:
    """Return what knows the secrets of a config, which may lack values; that of a planned trial has no ``hydra``."""
    with hydra_config(cfg) if "hydra" in cfg else nullcontext():
        true = plain(cfg, _referred_or_text)
        with secrets_hidden(cfg), _untyped_references(cfg), symbolic_environment():
            marked = plain(cfg, _referred_or_text)
    return redactor(true, mask(spell_out(marked, escape=False)), {})


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is written of a job. It holds no secret."""

    resolved: dict[str, Any]
    """Resolved, but for variables of the environment."""
    yaml: str
    """The text of ``config.yaml``."""
    redact: Redactor
    """Takes the secrets of the job out of texts."""


def recorded(cfg: DictConfig, true: dict[str, Any], env: Mapping[str, str]) -> Record:
    """Return what is written of the job of ``cfg``.

    Secrets are hidden before anything is resolved, so that a reference to one, or to what holds one, leads to a mask.

    Args:
        cfg: The composed config.
        true: The same as plain data, with the true values.
        env: What it sets in the environment.
    """
    with _hydra_apart(cfg), secrets_hidden(cfg), _untyped_references(cfg), symbolic_environment():
        data = with_names_of_now(plain(cfg, _referred_or_text))
    redact = redactor(true, mask(spell_out(data, escape=False)), env)
    for key in ("smoke", "sweep"):  # belong to the recipe and to all trials: a run is the same without them
        data.pop(key, None)
    data = redact.for_records.clean_data(data)
    sections = _type_first(mask(spell_out(data, escape=True)))
    return Record(
        resolved=_type_first(mask(spell_out(data, escape=False))),
        yaml="".join(_yaml(pickle.dumps(section)) for section in sections.items()),
        redact=redact,
    )


@lru_cache(maxsize=64)
def _yaml(section: bytes) -> str:
    """Return the text of a pickled section, name and value; trials share most of them, and PyYAML takes its time."""
    data = dict([pickle.loads(section)])
    return to_yaml(data)


@contextmanager
def _untyped_references(cfg: DictConfig) -> Iterator[None]:
    """Let references be whatever they lead to: the mark of a variable is a text, where a number is wanted too."""
    typed, cache = list(_references(cfg)), OmegaConf.get_cache(cfg)
    OmegaConf.clear_cache(cfg)  # it may hold values of environment variables
    for parent, key, child in typed:
        parent.__dict__["_content"][key] = AnyNode(child._value(), key, parent)
    try:
        yield
    finally:
        for parent, key, child in typed:
            parent.__dict__["_content"][key] = child
        OmegaConf.set_cache(cfg, cache)


def _references(node: Container) -> Iterator[tuple[Container, Any, Node]]:
    for _, key, child in children(node):
        if is_reference(child):
            yield node, key, child
        elif is_container(child):
            yield from _references(child)


def _forget_missing(node: Container) -> None:
    """Show as missing what refers to a missing value: Hydra gives ``hydra.job.num`` to a trial only."""
    for parent, key, _ in list(_references(node)):
        try:
            parent[key]
        except InterpolationToMissingValueError:
            parent.__dict__["_content"][key] = AnyNode("???", key, parent)


def _missing(node: Container, path: str = "") -> Iterator[str]:
    for name, _, child in children(node):
        full = full_key(path, name)
        if child._is_missing():
            yield full
        elif is_container(child):
            yield from _missing(child, full)


def _interpolation_errors(node: Container, path: str = "") -> Iterator[tuple[str, Exception]]:
    for name, key, child in children(node):
        full = full_key(path, name)
        try:
            node[key]
        except (OmegaConfBaseException, RecursionError) as error:
            yield full, error
            continue
        if is_container(child):
            yield from _interpolation_errors(child, full)


def _referred(node: Container, key: Any) -> Any:
    """Return what a reference leads to."""
    value = node[key]
    return plain(value, _referred) if isinstance(value, Container) else value


def _referred_or_text(node: Container, key: Any) -> Any:
    """Return what a reference leads to; where a resolver can't work on the mark of a variable, its text, marked too."""
    try:
        value = node[key]
    except (OmegaConfBaseException, RecursionError):
        return unresolved(node, key).replace("${", "\ue000").replace("}", "\ue001")
    return plain(value, _referred_or_text) if isinstance(value, Container) else value


def _type_first(data: dict[str, Any]) -> dict[str, Any]:
    several = data.get("datasets")
    of_several = [(several, name) for name in several] if isinstance(several, dict) else []
    for nodes, key in [(data, "trainer"), (data, "dataset"), *of_several]:
        node = nodes.get(key)
        if isinstance(node, dict) and "type" in node:
            nodes[key] = {"type": node["type"], **node}
    return data
