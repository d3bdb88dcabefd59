"""Free values that the command line gives and no reference reads: a note, for a record of them may be what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from omegaconf import DictConfig, OmegaConf

from rtrain.config.compose.request import Request

SECTION = "vars."


def unread_vars(request: Request, cfg: DictConfig) -> Iterator[str]:
    """Yield a note for each typed word of ``vars`` that nothing refers to.

    Args:
        request: What was asked for.
        cfg: The composed config, its references unresolved.
    """
    typed = dict.fromkeys(word.key for word in request.words if word.key.startswith(SECTION))
    if not typed:
        return
    defaults_list = request.primary.path.read_text(encoding="utf-8")
    references = " ".join(re.findall(r"\$\{.*", OmegaConf.to_yaml(cfg) + defaults_list))
    if "${." in references or "vars.$" in references:  # relative ones, and names that are made of values
        return
    yield from (f"{key} has no effect: nothing refers to it by ${{{key}}}" for key in typed if _unread(key, references))


def _unread(key: str, references: str) -> bool:
    """Return whether no reference names a key, what lies in it, or the whole of a mapping that holds it."""
    parts = key.split(".")
    above = (".".join(parts[:length]) for length in range(1, len(parts)))
    patterns = [rf"\b{re.escape(key)}(?!\w)", *(rf"\b{re.escape(one)}(?![\w.])" for one in above)]
    return not any(re.search(one, references) for one in patterns)
