"""Switches: true or false, 1 or 0. OmegaConf takes any number for true: two GPUs would be one."""

from __future__ import annotations

from typing import Any

from omegaconf import BooleanNode, DictConfig
from omegaconf.errors import ValidationError

from rtrain.config.value_types.units import OwnNode, with_own_nodes


class FlagNode(OwnNode, BooleanNode):
    """A switch; takes no number but 0 and 1."""

    def _validate_and_convert_impl(self, value: Any) -> bool:
        if isinstance(value, int | float) and value not in (0, 1):
            raise ValidationError("Value '$VALUE' is not a valid bool (type $VALUE_TYPE)")
        return super()._validate_and_convert_impl(value)


def with_flags(node: DictConfig) -> DictConfig:
    """Return the schema ``node``, whose switches take no other numbers from now on."""
    return with_own_nodes(node, lambda _, child: FlagNode if type(child) is BooleanNode else None)
