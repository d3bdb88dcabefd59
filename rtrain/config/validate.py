"""Check resolved data against the dataclasses: ranges, cross-field rules, and keys that came in through ``+key``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from rtrain.config.compose.sources.store import DEFAULT_PLUGINS, PLUGIN_GROUPS
from rtrain.config.diagnostics.omegaconf_messages import as_written
from rtrain.config.did_you_mean import one_edit
from rtrain.config.renamed import old_keys, with_new_names
from rtrain.config.schema import RtrainConf, Schemas
from rtrain.config.value_types.fields import annotation_of, hints_of
from rtrain.config.value_types.names import NAME
from rtrain.config.value_types.texts import ChoiceError
from rtrain.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong with one key."""

    key: str
    message: str
    known: tuple[str, ...] = ()
    """Words that stand where the wrong one is, for a suggestion."""
    word: str | None = None
    """The wrong word."""
    owner: type | None = None
    """The dataclass that lacks the wrong word, where that is a key."""
    lacks_type: bool = False
    """Whether the section doesn't say which plugin it is for."""


class InvalidError(Exception):
    """The config has problems."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def validate(data: Mapping[str, Any], schemas: Schemas) -> RtrainConf:
    """Return ``data`` as dataclasses all the way down.

    Raises:
        InvalidError: Lists all problems.
    """
    problems: list[Problem] = []
    parts = {group: _plugin_conf(group, data.get(group), schemas, problems) for group in PLUGIN_GROUPS}
    rest = {key: value for key, value in data.items() if key not in PLUGIN_GROUPS}
    conf = _checked(RtrainConf, {**rest, **dict.fromkeys(PLUGIN_GROUPS)}, "", problems)
    several = data.get("datasets")
    sets = {
        name: _plugin_conf("datasets", one, schemas, problems, f"datasets.{name}")
        for name, one in (several.items() if isinstance(several, Mapping) else ())
    }
    sweep = parts["sweep"]
    if sweep is not None and sweep.scheduler is not None:
        sweep.scheduler = _plugin_conf("sweep/scheduler", sweep.scheduler, schemas, problems)
    loggers = _logger_confs(data.get("run"), schemas, problems)
    if problems:
        raise InvalidError(problems)
    assert isinstance(conf, RtrainConf)
    conf.run.loggers = loggers
    conf.trainer, conf.dataset, conf.datasets, conf.sweep = parts["trainer"], parts["dataset"], sets, sweep
    return conf


def logger_conf(name: str, keys: Mapping[str, Any], schemas: Schemas) -> Any:
    """Return the keys of the logger ``name``, as below ``run.loggers``.

    Raises:
        InvalidError: There is no such logger, or something is wrong with its keys.
    """
    problems: list[Problem] = []
    found = _logger_confs({"loggers": {name: keys}}, schemas, problems)
    if problems:
        raise InvalidError(problems)
    return found[name]


def refusal(conf: type, name: str, value: Any) -> str | None:
    """Return what is wrong with a value of one field of a dataclass; None if the field takes it."""
    try:
        TypeAdapter(annotation_of(conf, name)).validate_python(value)
    except ValidationError as error:
        return _plain_words(error.errors(include_url=False)[0])
    return None


def forbid_extra(conf: type) -> type:
    """Make pydantic refuse keys that ``conf``, or a dataclass inside it, doesn't have."""
    settings = ConfigDict(extra="forbid", allow_inf_nan=False)
    for one in dataclasses_in(conf, set()):
        one.__pydantic_config__ = settings
    return conf


def key_names(conf: type) -> tuple[str, ...]:
    """Return the names of the keys of a dataclass."""
    return tuple(one.name for one in fields(conf) if one.init)


def _plugin_conf(group: str, node: Any, schemas: Schemas, problems: list[Problem], where: str | None = None) -> Any:
    known, where = tuple(schemas.group(group)), where or group.replace("/", ".")
    if node is None and group not in ("trainer", "datasets"):
        return None
    if not isinstance(node, Mapping):
        shown = "is not chosen" if node is None else f"must be a mapping with a type, not {as_written(node)}"
        problems.append(Problem(key=where, message=f"{shown}; available: {', '.join(known)}"))
        return None
    name = node.get("type", DEFAULT_PLUGINS.get(group))
    near = next((key for key in node if one_edit(str(key), "type")), None)
    if name is None and near is not None:
        message = f"there is no key '{near}' here, and no type"
        problems.append(Problem(key=f"{where}.{near}", message=message, known=("type",), word=str(near)))
        return None
    if name is None:
        message = f"has no type; available: {', '.join(known)}"
        problems.append(Problem(key=where, message=message, lacks_type=True))
        return None
    if name not in known:
        message = f"there is no {'dataset' if group == 'datasets' else group} '{name}'; available: {', '.join(known)}"
        problems.append(Problem(key=f"{where}.type", message=message, known=known, word=str(name)))
        return None
    return _checked(
        schemas.group(group)[name], {key: value for key, value in node.items() if key != "type"}, where, problems
    )


def _logger_confs(run: Any, schemas: Schemas, problems: list[Problem]) -> dict[str, Any]:
    """Return the keys of each logger that is not turned off, by name."""
    named = run.get("loggers") if isinstance(run, Mapping) else None
    known, found = tuple(schemas.logger), {}
    for name, node in named.items() if isinstance(named, Mapping) else ():
        where = f"run.loggers.{name}"
        if name not in known:
            message = f"there is no logger '{name}'; available: {', '.join(known)}"
            problems.append(Problem(key=where, message=message, known=known, word=str(name)))
        elif isinstance(node, Mapping):
            found[name] = _checked(schemas.logger[name], dict(node), where, problems)
        elif node is not None:
            problems.append(Problem(key=where, message=f"must be a mapping of its keys, not {as_written(node)}"))
    return found


@cache
def _adapter(conf: type) -> TypeAdapter[Any]:
    """Return what checks a dataclass; it takes longer to make than to use."""
    return TypeAdapter(forbid_extra(conf))


def _checked(conf: type, data: dict[str, Any], where: str, problems: list[Problem]) -> Any:
    given, data = data, with_new_names(conf, data)
    try:
        return _adapter(conf).validate_python(data)
    except ValidationError as error:
        found = list(_merged([_problem(one, conf, data, where) for one in error.errors(include_url=False)]))
        problems.extend(_without_copies(found, conf, given, where))
    except ConfigError as error:
        problems.append(Problem(key=where, message=str(error)))
    return None


def _without_copies(found: list[Problem], conf: type, given: dict[str, Any], where: str) -> Iterator[Problem]:
    """Yield the problems but those of values that were set under an old name, where that one has the same problem."""
    names = {f"{where}.{now}".strip("."): f"{where}.{old}".strip(".") for old, now in old_keys(conf, given)}
    same = {(one.key, one.message) for one in found}
    yield from (one for one in found if (names.get(one.key), one.message) not in same)


def _problem(error: ErrorDetails, conf: type, data: Any, where: str) -> Problem:
    location = _real_location(error, data)
    key = ".".join([*([where] if where else []), *location])
    if error["type"] == "unexpected_keyword_argument":
        owner = _owner(conf, location[:-1])
        known = key_names(owner) if owner is not None else ()
        message = f"there is no key '{location[-1]}' here"
        return Problem(key=key, message=message, known=known, word=location[-1], owner=owner)
    cause = error.get("ctx", {}).get("error")
    return Problem(key=key, message=_plain_words(error), known=cause.choices if isinstance(cause, ChoiceError) else ())


def _real_location(error: ErrorDetails, data: Any) -> list[str]:
    """Return the part of pydantic's location that is keys and indexes, without its names of union members."""
    found = []
    for part in error["loc"]:
        inside = (isinstance(data, Mapping) and part in data) or (isinstance(data, list) and isinstance(part, int))
        if not inside and error["type"] not in ("missing", "missing_keyword_only_argument"):
            break
        found.append(str(part))
        data = data[part] if inside else None
    return found


def _merged(problems: list[Problem]) -> Iterator[Problem]:
    """Yield one problem for each key; the members of a union each have their own to say."""
    by_key: dict[str, list[Problem]] = {}
    for problem in problems:
        by_key.setdefault(problem.key, []).append(problem)
    for same in by_key.values():
        first = same[0]
        messages = list(dict.fromkeys(one.message for one in same))
        if len(messages) == 1:
            yield first
        else:
            yield Problem(key=first.key, message=" or ".join(messages), known=first.known, word=first.word)


_BOUNDS = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "greater_than": ("gt", "must be above {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "less_than": ("lt", "must be below {}"),
    "multiple_of": ("multiple_of", "must be a multiple of {}"),
    "string_pattern_mismatch": ("pattern", "must match {}"),
    "string_too_long": ("max_length", "may have at most {} characters"),
    "string_too_short": ("min_length", "must have at least {} characters"),
    "too_short": ("min_length", "must have at least {} items"),
    "too_long": ("max_length", "may have at most {} items"),
}
_PATTERNS = {NAME: "must contain only letters, digits, . _ and -, and start with a letter or a digit"}
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "a mapping",
    "dataclass": "a mapping",
    "tuple": "a list",
    "literal": "one of the known values",
}


def _plain_words(error: ErrorDetails) -> str:
    kind, value = error["type"], as_written(error["input"])
    if kind in _BOUNDS:
        name, text = _BOUNDS[kind]
        if kind == "string_pattern_mismatch" and error["ctx"]["pattern"] in _PATTERNS:
            return f"{_PATTERNS[error['ctx']['pattern']]}: not {value}"
        return f"{text.format(error.get('ctx', {}).get(name))}, not {value}"
    if kind == "value_error":
        message = error["msg"].removeprefix("Value error, ")
        tells_value = not message.startswith("must") or isinstance(error["input"], dict)
        return message if tells_value else f"{message}, not {value}"
    if kind.startswith("missing"):
        return "is required"
    expected = _TYPES.get(kind.split("_")[0])
    return f"must be {expected}, not {value}" if expected else f"{error['msg']}, not {value}"


def _owner(conf: type, location: list[str]) -> type | None:
    """Return the dataclass that holds the keys at ``location`` below ``conf``."""
    for part in location:
        if is_dataclass(conf) and part in key_names(conf):
            inner = [one for one in _mentioned(hints_of(conf)[part]) if is_dataclass(one)]
            if not inner:
                return None
            conf = _as_class(inner[0])
        elif not part.isdigit() and not is_dataclass(conf):
            return None
    return conf


def _as_class(one: Any) -> type:
    assert isinstance(one, type)
    return one


def dataclasses_in(conf: Any, seen: set[type]) -> Iterator[Any]:
    """Yield a dataclass and those inside it, but for those that ``seen`` holds, to which they are added."""
    if not isinstance(conf, type) or not is_dataclass(conf) or conf in seen:
        return
    seen.add(conf)
    yield conf
    for hint in hints_of(conf).values():
        for one in _mentioned(hint):
            yield from dataclasses_in(one, seen)


def _mentioned(hint: Any) -> Iterator[Any]:
    yield hint
    for one in get_args(hint):
        yield from _mentioned(one)
