"""What a config may say: the root and every part that no plugin owns. A field's docstring is the user's documentation.

Each dataclass serves twice: OmegaConf reads it as a structured config while Hydra composes, and pydantic checks ranges
and cross-field rules afterwards. Fields therefore use only types that both understand.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from rtrain.config.needs import LOOP, SEVERAL_WORKERS, SMOKE, WORKERS, Need, Rules
from rtrain.config.run_conf import BoundsConf, RunConf
from rtrain.config.targets.allow_list import is_framework
from rtrain.config.value_types.num_workers import NUM_WORKERS_SCHEMA, Elastic, read_num_workers
from rtrain.config.value_types.texts import one_of

RANGE = Need(
    met=lambda way: isinstance(way.conf.scaling.num_workers, Elastic),
    otherwise="the number of workers is fixed",
    instead="Give a range of workers: num_workers=[1,8]",
    keys=("scaling.num_workers",),
    portable=True,
)
PLACED = replace(SEVERAL_WORKERS, otherwise="a single worker needs no placement", portable=True)
OWN_CLUSTER = Need(
    met=lambda way: way.conf.cluster.address is None,
    otherwise="the cluster at cluster.address is already running",
    instead="Leave it out, or start a new cluster: cluster.address=null",
    keys=("cluster.address",),
    portable=True,
)
ALONE = Need(
    met=lambda way: way.conf.dataset is None,
    otherwise="it replaces dataset, which is also set",
    instead="Keep only one of them; to remove dataset: dataset=null",
    keys=("dataset",),
)


@dataclass(kw_only=True)
class ScalingConf:
    """How many workers train, and what each of them gets."""

    scalar: ClassVar[str] = "num_workers"
    needs: ClassVar[Rules] = (
        WORKERS.of("cpus_per_worker", "resources_per_worker", "placement_strategy", "start_timeout_seconds"),
        PLACED.of("placement_strategy"),
        RANGE.of("resize_seconds"),
    )

    num_workers: Annotated[Any, BeforeValidator(read_num_workers), WithJsonSchema(NUM_WORKERS_SCHEMA)] = 1
    """Number of training processes. 0 trains inside this process, without Ray. ``{min: 1, max: 8}``, or ``[1, 8]``,
    starts as many as the free resources allow, and adapts when machines join or leave."""

    resize_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Interval in seconds at which a run with a range of workers checks whether to change their number. When it does,
    the workers restart from a checkpoint that is written just before."""

    use_gpu: bool = False
    """Give each worker one GPU."""

    cpus_per_worker: Annotated[float, Field(gt=0)] = 1.0
    """Cores each worker reserves. On a cluster started by rtrain, workers may share cores."""

    resources_per_worker: dict[str, float] = field(default_factory=dict)
    """More Ray resources each worker reserves, by Ray's names, e.g. ``{memory: 8e9}``; part of a GPU, with ``use_gpu``:
    ``{GPU: 0.5}``."""

    placement_strategy: Annotated[str, *one_of("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")] = "PACK"
    """How Ray places the workers on nodes."""

    start_timeout_seconds: Annotated[float, Field(gt=0)] = 120.0
    """Longest wait for the workers to start before the run fails with a message."""

    @property
    def min_workers(self) -> int:
        """The fewest workers that will do."""
        return self.num_workers.min if isinstance(self.num_workers, Elastic) else int(self.num_workers)


@dataclass(kw_only=True)
class ClusterConf:
    """The Ray cluster to train on."""

    scalar: ClassVar[str] = "address"
    needs: ClassVar[Rules] = (WORKERS.of_all(), OWN_CLUSTER.of("object_store_bytes"))

    address: str | None = None
    """Address of a running cluster (``host:6379``, ``auto``); null: ``RAY_ADDRESS``, else rtrain starts one."""

    start_timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    """Longest wait for the cluster to answer or start."""

    object_store_bytes: Annotated[int, Field(ge=80_000_000)] | None = None
    """Shared memory of a cluster started by rtrain; null: by the size of the data."""

    runtime_env: dict[str, Any] = field(default_factory=dict)
    """Ray runtime environment of the workers, e.g. ``{env_vars: {NCCL_DEBUG: INFO}}``. A cluster started by
    rtrain accepts only ``env_vars``. A file sets known settings; others have to be typed, or be in ``allow``."""


@dataclass(kw_only=True)
class SmokeConf:
    """How ``rtrain smoke`` trains this config within seconds, and what has to come of it. Other commands ignore it."""

    needs: ClassVar[Rules] = (SMOKE.of_all(),)

    overrides: list[str] = field(default_factory=list)
    """Overrides as on a command line, e.g. ``trainer.max_epochs=1``."""

    expect: dict[str, BoundsConf] = field(default_factory=dict)
    """Bounds by metric, e.g. ``test/accuracy: {min: 0.9}``; without any, the training only has to succeed."""


@dataclass(kw_only=True)
class RtrainConf:
    """The whole config. ``trainer`` and ``dataset`` are checked against the plugin that their ``type`` names."""

    needs: ClassVar[Rules] = (LOOP.of("datasets"), ALONE.of("datasets"))

    trainer: Any = "???"
    """What trains: ``type`` names the plugin, the other keys are the plugin's."""

    dataset: Any = None
    """What is trained on: ``type`` names the source, the other keys are the source's."""

    datasets: dict[str, Any] = field(default_factory=dict)
    """In place of ``dataset``, what ``trainer.train_loop`` is trained on: data sets by the names that
    ``ray.train.get_dataset_shard`` takes, ``{train: {type: csv, path: a.csv}}`` say. Each is read whole, with its own
    columns."""

    scaling: ScalingConf = field(default_factory=ScalingConf)
    run: RunConf = field(default_factory=RunConf)
    cluster: ClusterConf = field(default_factory=ClusterConf)

    allow: list[str] = field(default_factory=list)
    """Modules beyond the usual ones that a ``_target_`` may come from, e.g. ``my_pkg.*``; and keys that a file may set
    with it only: ``hydra.job.env_set.PATH``."""

    vars: dict[str, Any] = field(default_factory=dict)
    """Free values for interpolation, e.g. ``${vars.width}``."""

    sweep: Any = None
    """What ``--multirun`` varies and how: ``type`` names the search, the other keys are the search's."""

    smoke: SmokeConf = field(default_factory=SmokeConf)


@dataclass(frozen=True, kw_only=True)
class Schemas:
    """The conf dataclasses of all plugins: config is below the plugins, so that these come in from above."""

    trainer: Mapping[str, type]
    dataset: Mapping[str, type]
    sweep: Mapping[str, type] = field(default_factory=dict)
    scheduler: Mapping[str, type] = field(default_factory=dict)
    logger: Mapping[str, type] = field(default_factory=dict)
    part: Mapping[str, type] = field(default_factory=dict)
    """Of the data sets in ``datasets``."""

    def is_foreign(self, trainer: str | None, target: object) -> bool:
        """Tell whether ``target`` names a class of a framework that a trainer can't use."""
        modules = getattr(self.trainer.get(trainer or ""), "foreign", ())
        return str(target).startswith(tuple(f"{one}." for one in modules))

    def modules(self, section: Any) -> list[str]:
        """Return the modules that the trainer of a section adds to the known frameworks: its package, its ``homes``."""
        conf = self.trainer.get(str(section.get("type"))) if isinstance(section, Mapping) else None
        homes: Mapping[str, Sequence[str]] = getattr(conf, "homes", {})
        found = [] if conf is None else [conf.__module__.partition(".")[0], *chain.from_iterable(homes.values())]
        return [one for one in found if not (is_framework(one) or one.partition(".")[0] in sys.stdlib_module_names)]

    def group(self, name: str) -> Mapping[str, type]:
        """Return the plugins' dataclasses of a config group, by plugin name."""
        groups: dict[str, Mapping[str, type]] = {
            "trainer": self.trainer,
            "dataset": self.dataset,
            "sweep": self.sweep,
            "sweep/scheduler": self.scheduler,
            "datasets": self.part,
            "run/loggers": self.logger,
        }
        return groups[name]
