"""The arguments of a call from Python, and its errors in the words of Python."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from omegaconf import OmegaConf

from rtrain.config.calls.call import OPTIONS, Call, in_python
from rtrain.config.calls.edited import note_imported, tell_of_edited
from rtrain.config.calls.overrides import Overrides, given_overrides
from rtrain.config.calls.plain import plain_value
from rtrain.config.did_you_mean import closest, did_you_mean
from rtrain.config.files.locations import CONFIG, Primary, called
from rtrain.config.files.written_yaml import to_yaml
from rtrain.errors import ConfigError, RtrainError
from rtrain.process.variables import arguments_hidden

Config = str | os.PathLike[str] | Mapping[str, Any]
"""A path or a name, or the content of a config."""
NAME = "the config"
"""What errors call a config that is a mapping."""


@contextmanager
def opened_call(
    function: str, config: Config, overrides: Overrides = (), short: Mapping[str, Any] | None = None
) -> Iterator[Call]:
    """Yield a call whose arguments have been read; errors of the block speak of it, not of a command.

    In the block, ``sys.argv`` holds nothing but the script's name.

    Args:
        function: Of rtrain.
        config: A config, or whatever the function has for its first argument.
        overrides: In any of the forms.
        short: Overrides that are keywords.

    Raises:
        ConfigError: An argument is of another kind.
    """
    with ExitStack() as stack:
        stack.enter_context(arguments_hidden())
        tell_of_edited()
        stack.callback(note_imported)
        given = stack.enter_context(_written(config)) if _is_mapping(config) else None
        place = str(_path_of(config)) if given is None else str(given.path)
        call = Call(function, place, tuple(given_overrides(overrides, short)), given)
        try:
            yield call
        except RtrainError as error:
            error.message, error.hint = in_python(error.message, call) or "", in_python(error.hint, call)
            if (meant := _misspelled_option(error, short or {}, function)) is not None:
                error.hint = meant
            raise


def _misspelled_option(error: RtrainError, short: Mapping[str, Any], function: str) -> str | None:
    """Return what to write for a keyword that is not a config key, but close to the name of an option."""
    for name, value in short.items():
        is_wrong = error.message.startswith((f"there is no key '{name}'", f"{name}="))
        option = closest(name, OPTIONS[function][1:]) if is_wrong else None  # the first one was given
        if option is not None:
            return f"  {did_you_mean(f'{option}={value!r}')}"
    return None


def _is_mapping(config: Config) -> bool:
    return isinstance(config, Mapping) or OmegaConf.is_config(config)


def _path_of(config: Any) -> str:
    if isinstance(config, str | os.PathLike):
        return os.fsdecode(config)
    raise ConfigError(
        f"a config must be a path, a name or a mapping, not a {type(config).__qualname__}.",
        "  e.g. rtrain.fit(\"mlp\") or rtrain.fit({'defaults': ['/mlp']})",
    )


@contextmanager
def _written(config: Any) -> Iterator[Primary]:
    """Write a mapping to a file that exists while the block runs; only this account can read it."""
    data = plain_value(config)
    if not isinstance(data, dict):
        raise ConfigError("a config must be a mapping, not a list.")
    with TemporaryDirectory(prefix="rtrain-") as folder:
        path = Path(folder).resolve() / f"{CONFIG}.yaml"
        path.write_text(to_yaml(data), encoding="utf-8")
        with called(path, NAME):
            yield Primary(path=path, builtin=False, given=True)
