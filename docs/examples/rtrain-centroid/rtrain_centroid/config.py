from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from rtrain.config.needs import Need

STEPS = Need(
    met=lambda way: False,
    otherwise="the means are computed in one step",
    instead="Leave it out.",
    keys=(),
)


@dataclass(kw_only=True)
class Conf:
    follows: ClassVar = (STEPS.of("run.stop", "run.log_every_steps", "run.failure.nan_loss"),)

    sharpness: Annotated[float, Field(gt=0)] = 1.0
    """How fast the probability of a class falls with the squared distance from its mean."""
