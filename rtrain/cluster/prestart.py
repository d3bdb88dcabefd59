"""Worker processes that a cluster of rtrain's has ready: they import while the driver reads the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rtrain.cluster.scaling import worker_resources, workers_here
from rtrain.config.schema import ScalingConf

COUNT = "--num_prestart_python_workers"
"""Ray's option, which it sets to the number of CPUs."""
AT_ONCE = "--maximum_startup_concurrency"
"""Ray's option, which it sets to the number of cores: of more processes than that, it starts none before it has to."""
MODULES = "RTRAIN_PRELOAD"
"""Variable that names what each process imports, separated by commas."""
ARRIVALS = "RTRAIN_ARRIVALS"
"""Variable that names the folder where each process leaves a file when it is ready."""


@dataclass(frozen=True)
class Prestart:
    """Processes that Ray starts before one is asked for.

    Ray gives them only to workers that ask for no runtime environment.
    """

    num_processes: int
    modules: tuple[str, ...]
    """What they import."""
    num_threads: int
    num_cpus: int
    """Of the cluster."""
    worker_env: Mapping[str, str] = field(default_factory=dict)
    """Variables that have to be set before the modules are imported; a user's ``cluster.runtime_env`` wins."""
    arrivals: Path | None = None
    """Folder where each leaves a file when it is ready: they start with the cluster, not with the first driver."""

    @classmethod
    def of_run(
        cls,
        scaling: ScalingConf,
        modules: Sequence[str],
        num_cpus: int,
        worker_env: Mapping[str, str] | None = None,
    ) -> Prestart:
        """Return those of the workers of a run.

        Libraries that are imported before a process has its task miss ``OMP_NUM_THREADS``, which Ray sets then: here
        they have the same number from the start.

        Args:
            scaling: The workers.
            modules: What they import.
            num_cpus: What the cluster declares.
            worker_env: Variables that have to be set before the modules are imported.
        """
        num_threads = max(1, int(worker_resources(scaling)["CPU"]))
        return cls(workers_here(scaling), tuple(modules), num_threads, num_cpus, worker_env or {})

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of all processes of the cluster; a user's own value wins."""
        variables = {
            "RAY_preload_python_modules": "rtrain.cluster.preload",
            MODULES: ",".join(self.modules),
            "RAY_num_workers_soft_limit": str(max(self.num_processes, self.num_cpus)),  # Ray ends idle ones above it
            "OMP_NUM_THREADS": str(self.num_threads),
        }
        if self.arrivals is None:
            return variables
        return variables | {
            "RAY_enable_worker_prestart": "1",
            "RAY_prestart_worker_first_driver": "0",
            ARRIVALS: str(self.arrivals),
        }

    def serves(self, wanted: Prestart) -> bool:
        """Return whether these processes are as those that a run would start, and enough of them."""
        enough = wanted.num_processes <= self.num_processes and wanted.num_cpus <= self.num_cpus
        alike = wanted.num_threads == self.num_threads and wanted.worker_env == self.worker_env
        return enough and alike and set(wanted.modules) <= set(self.modules)

    def in_command(self, command: Sequence[str]) -> list[str]:
        """Return the command line of one of Ray's processes with the number of these."""
        options = {COUNT: self.num_processes}
        if self.arrivals is not None:
            options[AT_ONCE] = self.num_processes
        parts = [word.partition("=") for word in command]
        return [f"{name}={options[name]}" if name in options else f"{name}{sep}{value}" for name, sep, value in parts]
