"""The metrics that decide something, and whether the module logs them."""

from __future__ import annotations

from collections.abc import Collection

from rtrain.config.did_you_mean import closest, did_you_mean
from rtrain.errors import TrainingError
from rtrain.trainers.lightning.metrics.logged import TRAIN
from rtrain.trainers.loops.monitor import Monitor, goal_names
from rtrain.trainers.worker import Worker

EVALUATED = ("val", "test")


class Watched:
    """The metrics that the config names for a decision.

    Args:
        worker: Its config names them.
        monitor: The metric of the best checkpoint.
    """

    def __init__(self, worker: Worker, monitor: Monitor) -> None:
        conf, named, self._worker = worker.conf, worker.run.checkpoint.best.monitor, worker
        watched = [("run.checkpoint.best.monitor", named)]
        if conf.early_stopping is not None:
            watched.append(("trainer.early_stopping.monitor", conf.early_stopping.monitor or monitor.name))
        watched += [(key, name) for name, key in goal_names(worker.run.stop).items()]
        self._chooses = str(monitor.name)
        self._keys = [(key, name) for key, name in watched if name is not None]
        """Each metric after the key that names it."""
        self._refuses = conf.trainer_args.get("num_sanity_val_steps") != 0
        self._known: set[str] = set()
        """Metrics that were logged, or of which the user knows that they are not."""

    @property
    def of_validation(self) -> bool:
        """Whether the validation may log some of them."""
        return any(not name.startswith(f"{TRAIN}/") for _, name in self._keys)

    def look(self, logged: Collection[str], *, evaluated: bool = True, ended: bool = False) -> None:
        """Look for the metrics that should be there by now; one that comes later is noted once.

        Args:
            logged: All that was logged so far.
            evaluated: An evaluation has just come.
            ended: An epoch has just ended.

        Raises:
            TrainingError: One is missing and has nearly the name of another one; names its key.
        """
        self._known.update(logged)
        for key, name in self._keys:
            of, slash, _ = name.partition("/")
            due = evaluated if not slash or of in EVALUATED else ended
            if name not in self._known and due:
                self._refuse(key, name, logged)
                self._known.add(name)
                self._worker.notice(f"{key}: so far the module logs no {name}, only {_listed(logged)}.")

    def _refuse(self, key: str, name: str, logged: Collection[str]) -> None:
        """Fail if ``name`` is probably a typo; all names that are recorded have a slash."""
        near, can_come = _near(name, logged), "/" in name
        if near is not None and (self._refuses or not can_come):
            later = f"\nIf {name} is logged later: trainer.trainer_args.num_sanity_val_steps=0" if can_come else ""
            raise TrainingError(
                f"{key}: the module logs no {name}, only {_listed(logged)}.", did_you_mean(near) + later
            )

    def end(self, recorded: Collection[str]) -> None:
        """Name the metrics that never came; also that of the best checkpoint if the config names none.

        Args:
            recorded: All that has a value.
        """
        is_named = any(name == self._chooses for _, name in self._keys)
        default = [] if is_named else [("run.checkpoint.best.monitor", self._chooses)]
        for key, name in [*self._keys, *default]:
            if name not in recorded:
                newest = " The latest checkpoint counts as the best." if name == self._chooses else ""
                self._worker.notice(
                    f"{key}: the run recorded no {name}, only {_listed(recorded)}.{newest} Log it with "
                    f"self.log(..., on_epoch=True), or set {key} to another."
                )


def _near(name: str, logged: Collection[str]) -> str | None:
    """Return the logged metric that ``name`` was probably meant to be, or None."""
    of, _, rest = name.partition("/")
    rests = [one.removeprefix(f"{of}/") for one in logged if one.startswith(f"{of}/")]
    if rests:
        near = next((one for one in rests if one.startswith(f"{rest}/dataloader_idx_")), None) or closest(rest, rests)
        return None if near is None else f"{of}/{near}"
    # A metric of training is not what one of the validation was meant to be.
    others = [one for one in logged if of not in EVALUATED or not one.startswith(f"{TRAIN}/")]
    same = [one for one in others if one.endswith(f"/{rest or name}") and (of in EVALUATED or not rest)]
    return same[0] if same else closest(name, others)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
