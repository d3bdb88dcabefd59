from dataclasses import dataclass
from typing import Annotated

from pydantic import Field


@dataclass(kw_only=True)
class Conf:
    sharpness: Annotated[float, Field(gt=0)] = 1.0
    """How fast the probability of a class falls with the squared distance from its mean."""
