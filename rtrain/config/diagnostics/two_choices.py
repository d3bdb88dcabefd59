"""Two words of one command that choose different options of one config group."""

from __future__ import annotations

from rtrain.config.compose.aliases import split_word
from rtrain.config.compose.request import Request
from rtrain.config.diagnostics.diagnostic import Diagnostic
from rtrain.config.diagnostics.source_map import SourceMap


def refuse_two_choices(request: Request) -> None:
    """Refuse a command that chooses two options of one group, of which one would be ignored.

    Raises:
        ConfigError: Names both words.
    """
    first: dict[str, str] = {}
    for word in request.words:
        sign, group, option = split_word(word.text)
        if sign == "~" or option is None or first.setdefault(group, option) == option or not request.is_choice(word):
            continue
        typed = [one for one in request.command if one.endswith((f"={option}", f"={first[group]}"))]
        raise Diagnostic(
            f"{group} is chosen twice: {' and '.join(typed)}",
            SourceMap(request).of_word(word.text),
            note="remove one of them",
        ).as_error()
