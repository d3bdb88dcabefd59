"""Of keys that exclude each other, the typed one counts: those that files set give way.

A dataclass of keys names them in its class attribute ``exclusive``: ``(("batch_size", "global_batch_size"),)``. A
trainer names one of another section from the root, with a slash: ``(("datamodule", "/dataset"),)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from rtrain.config.compose.aliases import split_word


def let_typed_win(cfg: DictConfig, words: Sequence[str]) -> None:
    """Set to null what excludes a key that one of the words sets, unless a word sets that too.

    Args:
        cfg: The composed config; it changes.
        words: The overrides that it was composed with.
    """
    typed = [key for _, key, value in map(split_word, words) if value not in (None, "null")]
    for section in dict.fromkeys(["trainer", *(key.rpartition(".")[0] for key in typed)]):
        for keys in _excluding(cfg, section):
            others = [key for key in keys if key not in typed]
            if len(others) < len(keys):
                for key in others:
                    _clear(cfg, key)


def _excluding(cfg: DictConfig, section: str) -> Iterator[list[str]]:
    """Yield the full keys that exclude each other, as the dataclass of a section says."""
    node = _section(cfg, section)
    for names in getattr(OmegaConf.get_type(node), "exclusive", ()) if node is not None else ():
        yield [name[1:] if name.startswith("/") else f"{section}.{name}" for name in names]


def _clear(cfg: DictConfig, key: str) -> None:
    section, _, name = key.rpartition(".")
    node = _section(cfg, section) if section else cfg
    if node is not None:
        with read_write(node), open_dict(node):
            node.update({name: None})


def _section(cfg: DictConfig, key: str) -> DictConfig | None:
    """Return the part of a config at a dotted key; None if it doesn't exist or is not a section."""
    node: object = cfg
    for part in key.split("."):
        is_section = isinstance(node, DictConfig) and not node._is_none() and part in node
        node = node._get_node(part) if isinstance(node, DictConfig) and is_section else None
    return node if isinstance(node, DictConfig) else None
