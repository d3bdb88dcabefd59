"""From a composed config to plain data: missing values, interpolations, and the two texts that are written."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import AnyNode, DictConfig, ListConfig, OmegaConf, flag_override, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from rtrain.config.hydra_app import hydra_config, sanitized
from rtrain.config.nodes import Container, children, joined
from rtrain.config.secrets import mask, mask_in_place, spell_out, symbolic_environment


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
            job = job_config(cfg)
            refuse_missing(job)
            resolve(job)
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


def job_config(cfg: DictConfig) -> DictConfig:
    """Return a copy of ``cfg`` without its node ``hydra``, which is as large as all others together."""
    hydra = cfg.hydra
    with flag_override(cfg, ["struct", "readonly", "no_deepcopy_set_nodes"], [False, False, True]):
        del cfg["hydra"]
        try:
            job = copy.deepcopy(cfg)
        finally:
            hydra._set_parent(None)  # else it is copied
            cfg["hydra"] = hydra
    for flag in ("struct", "readonly", "no_deepcopy_set_nodes"):
        job._set_flag(flag, cfg._get_node_flag(flag))
    return job


def resolve(job: DictConfig) -> dict[str, Any]:
    """Return ``job`` as plain data without interpolations.

    Raises:
        UnresolvedError: Interpolations refer to what is not there.
    """
    try:
        data: Any = OmegaConf.to_container(job, resolve=True)
    except OmegaConfBaseException:
        errors = dict(_interpolation_errors(job))
        if not errors:
            raise
        raise UnresolvedError(errors) from None
    assert isinstance(data, dict)
    return data


def refuse_missing(job: DictConfig) -> None:
    """Check that no value is ``???``.

    Raises:
        MissingValuesError: With all keys that have to be given.
    """
    keys = list(_missing(job))
    if keys:
        raise MissingValuesError(keys)


def shown_config(cfg: DictConfig, what: str, package: str | None, resolve: bool) -> str:
    """Return ``cfg`` as Hydra's ``--cfg`` prints it; ``cfg`` itself is masked and taken apart.

    Raises:
        NoPackageError: There is no part ``package``.
    """
    mask_in_place(cfg)
    with hydra_config(cfg):
        part: Any = sanitized(cfg, what)
        if package not in (None, "_global_"):
            selected = OmegaConf.select(part, package)
            if selected is None:
                raise NoPackageError(package, part)
            part = selected
        if not isinstance(part, Container):
            return f"{part}\n"
        header = f"# @package {package}\n" if package not in (None, "_global_") else ""
        return header + OmegaConf.to_yaml(part, resolve=resolve)


def symbolic(job: DictConfig) -> tuple[dict[str, Any], str]:
    """Return the resolved config for the record, and the text of ``config.yaml``; neither holds a secret.

    Args:
        job: The config without its node ``hydra``; it is taken apart.
    """
    with flag_override(job, ["struct", "readonly"], False):
        for key in ("smoke", "sweep"):  # belong to the recipe and to all trials: a run is the same without them
            job.pop(key, None)
    _untype_references(job)
    OmegaConf.clear_cache(job)  # it may hold values of environment variables
    with symbolic_environment():
        plain = _lenient(job)
    shown = _type_first(mask(spell_out(plain, escape=False)))
    sections = _type_first(mask(spell_out(plain, escape=True)))
    return shown, "".join(_yaml(pickle.dumps(section)) for section in sections.items())


@lru_cache(maxsize=64)
def _yaml(section: bytes) -> str:
    """Return the text of a pickled section, name and value; trials share most of them, and PyYAML takes its time."""
    return yaml.safe_dump(dict([pickle.loads(section)]), sort_keys=False, allow_unicode=True, width=110)


def _untype_references(node: Container) -> None:
    """Let references be whatever they lead to: the mark of a variable is a text, where a number is wanted too."""
    for _, key, child in children(node):
        if child._is_interpolation():
            node.__dict__["_content"][key] = AnyNode(child._value(), key, node)
        elif isinstance(child, Container):
            _untype_references(child)


def _missing(node: Container, path: str = "") -> Iterator[str]:
    for name, _, child in children(node):
        full = joined(path, name)
        if child._is_missing():
            yield full
        elif isinstance(child, Container):
            yield from _missing(child, full)


def _interpolation_errors(node: Container, path: str = "") -> Iterator[tuple[str, Exception]]:
    for name, key, child in children(node):
        full = joined(path, name)
        try:
            node[key]
        except (OmegaConfBaseException, RecursionError) as error:
            yield full, error
            continue
        if isinstance(child, Container):
            yield from _interpolation_errors(child, full)


def _lenient(node: Any) -> Any:
    """Return plain data; where a resolver can't work on the mark of a variable, the text of the interpolation."""
    if isinstance(node, DictConfig):
        return {str(key): _lenient_child(node, key) for key in node}
    return [_lenient_child(node, index) for index in range(len(node))]


def _lenient_child(node: Any, key: Any) -> Any:
    try:
        child = node[key]
    except OmegaConfBaseException:
        text = str(node._get_node(key)._value())
        return text.replace("${", "\ue000").replace("}", "\ue001")
    return _lenient(child) if isinstance(child, DictConfig | ListConfig) else child


def _type_first(data: dict[str, Any]) -> dict[str, Any]:
    for group in ("trainer", "dataset"):
        node = data.get(group)
        if isinstance(node, dict) and "type" in node:
            data[group] = {"type": node["type"], **node}
    return data
