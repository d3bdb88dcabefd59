"""YAML that OmegaConf reads back unchanged: its loader parses as numbers some texts that PyYAML leaves unquoted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from rtrain.config.value_types.numeric import is_number

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's takes a third of the time, but not each PyYAML is built with it."""


def to_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as the text of a config: ``1e3`` is quoted where it is a text."""
    return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


class _Dumper(_Base):  # type: ignore[misc]  # either of two
    """PyYAML's, with other quotes."""


def _represent_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if is_number(text) else None)


_Dumper.add_representer(str, _represent_text)
