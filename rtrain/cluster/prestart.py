"""Worker processes that a cluster of rtrain's has ready: they import while the driver reads the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtrain.cluster.scaling import worker_resources, workers_here
from rtrain.config.schema import ScalingConf

COUNT = "--num_prestart_python_workers="
"""Ray's option, which it sets to the number of CPUs."""


@dataclass(frozen=True)
class Prestart:
    """Processes that Ray starts before one is asked for.

    Ray gives them only to workers that ask for no runtime environment.
    """

    num_processes: int
    variables: Mapping[str, str]
    """Environment variables of all processes of the cluster; a user's own value wins."""

    @classmethod
    def of_run(cls, scaling: ScalingConf, modules: Sequence[str], num_cpus: int) -> Prestart:
        """Return those of the workers of a run, and of the actor by which Ray Train synchronizes them.

        Libraries that are imported before a process has its task miss ``OMP_NUM_THREADS``, which Ray sets then: here
        they have the same number from the start.

        Args:
            scaling: The workers.
            modules: What they import.
            num_cpus: What the cluster declares.
        """
        processes = workers_here(scaling) + 1
        variables = {
            "RAY_preload_python_modules": ",".join(modules),
            "RAY_num_workers_soft_limit": str(max(processes, num_cpus)),  # Ray ends idle processes above it
            "OMP_NUM_THREADS": str(max(1, int(worker_resources(scaling)["CPU"]))),
        }
        return cls(processes, variables)

    def in_command(self, command: Sequence[str]) -> list[str]:
        """Return the command line of one of Ray's processes with the number of these."""
        return [f"{COUNT}{self.num_processes}" if word.startswith(COUNT) else word for word in command]
