"""A section of which keys are typed, and nothing says what it is: the option, or the data set, that was meant."""

from __future__ import annotations

from dataclasses import replace

from omegaconf import DictConfig

from rtrain.config.compose.aliases import split_word
from rtrain.config.diagnostics.diagnostic import Diagnostic, command_with
from rtrain.config.diagnostics.meant.examples import node_at
from rtrain.config.diagnostics.meant.keys.schema_keys import names_of
from rtrain.config.diagnostics.meant.keys.wrong_keys import WrongKeys
from rtrain.config.diagnostics.screen import CliWord
from rtrain.config.did_you_mean import closest, there_are

SEVERAL = "datasets"


def without_type(wrong: WrongKeys, section: str, message: str, place: CliWord) -> Diagnostic:
    """Return what there is to say about a section of which a key is typed, but whose plugin is not chosen.

    Args:
        wrong: Explains keys.
        section: Its key.
        message: What is wrong with it.
        place: The word that sets a key of it.
    """
    node = node_at(wrong.composed, SEVERAL)
    if section.startswith(f"{SEVERAL}.") and isinstance(node, DictConfig):
        names = [str(one) for one in node]
        meant = closest(section.partition(".")[2], names)
        if meant is not None:
            return _other_name(wrong, section, f"{SEVERAL}.{meant}", place)
        message = f"there is no such data set, and a new one needs a type; {there_are(names)}"
    return Diagnostic(f"{section}: {message}", place, None, _with_plugin(wrong, section, place))


def _other_name(wrong: WrongKeys, section: str, meant: str, place: CliWord) -> Diagnostic:
    """Explain a key of a data set that isn't there, whose name is nearly that of one."""
    word = place.command[place.index].replace(section, meant, 1)
    attempt = command_with(place, word) if wrong.checked(place, word) is None else None
    return Diagnostic(f"there is no data set '{section.partition('.')[2]}'", place, meant, attempt)


def _with_plugin(wrong: WrongKeys, section: str, place: CliWord) -> str | None:
    """Return the command that chooses a plugin that has the key, as well; None if none passes the checks."""
    of_several = section.startswith(f"{SEVERAL}.")
    group, choice = (SEVERAL, section) if of_several else (section.replace(".", "/"),) * 2
    _, key, value = split_word(place.command[place.index])
    named = next((one for one in place.command if one.startswith(f"{section}=")), "")  # in place of the option
    plugins = wrong.schemas.group(group)
    for plugin in [one for one in plugins if named in ("", f"{section}={one}")]:
        keys = replace(wrong.keys, known=[f"{section}.{name}" for name in names_of(plugins[plugin])])
        fitting = [key] if key in keys.known else [one.key for one in keys.meanings(key, value)]
        for meant in [one for one in fitting if one in keys.known][:1]:
            words = [f"{choice}={plugin}", f"{meant}={value}"]
            if wrong.checked(place, *words, without=named) is None:
                return command_with(place, *words, without=named)
    return None
