"""Ray Train's trainer with rtrain's controller, which asks the driver before it starts workers again.

On a cluster that rtrain started, which ends with the run, three things are left out that take seconds at every start
(measured on 2 cores): the placement-group cleaner and the autoscaling coordinator (an actor each), and a runtime
environment for the controller, which would keep it from using an existing process. The process that has started
the cluster runs the controller itself, as all that it needs is imported there. What workers would ask an actor for, the
checkpoints that were reported, rtrain answers.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import ray
from ray._private import auto_init_hook
from ray.exceptions import OutOfMemoryError
from ray.runtime_context import RuntimeContext
from ray.train.v2._internal.callbacks.datasets import DatasetsCallback
from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
from ray.train.v2._internal.constants import get_env_vars_to_propagate
from ray.train.v2._internal.exceptions import WorkerGroupStartupFailedError, WorkerGroupStartupTimeoutError
from ray.train.v2._internal.execution.controller import TrainController
from ray.train.v2._internal.execution.controller.controller import TrainControllerLoopIterationResult
from ray.train.v2._internal.execution.controller.state import (
    ErroredState,
    InitializingState,
    PreemptingState,
    ReschedulingState,
    ResizingState,
    RestartingState,
    RunningState,
    ShuttingDownState,
)
from ray.train.v2._internal.execution.scaling_policy import (
    ElasticScalingPolicy,
    FixedScalingPolicy,
    NoopDecision,
    ResizeDecision,
)
from ray.train.v2._internal.execution.worker_group import WorkerGroup
from ray.train.v2._internal.execution.worker_group.placement_group_handle import DefaultPlacementGroupHandle
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from ray.train.v2.api.exceptions import ControllerError, PreemptionError, WorkerGroupError
from ray.util.placement_group import placement_group

from rtrain.cluster.ray_cluster import Cluster, remove_placement_groups
from rtrain.engine.ray.channel import INTERVAL_SECONDS, ControllerChannel
from rtrain.engine.ray.failures import is_root, oom_kills, read_failures
from rtrain.engine.ray.synchronization import meet_at_rank_zero
from rtrain.engine.ray.worker_actor import RayTrainWorker
from rtrain.process.variables import variables_set
from rtrain.runs.records import AttemptFailedRecord

OWN_CLUSTER = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.1",  # each report of a custom loop waits for one such interval
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",  # a local machine is not drained
    "RAY_TRAIN_ENABLE_CONTROLLER_STRUCTURED_LOGGING": "0",
}
JOINED_CLUSTER = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.5",
    "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": "1",
}
WAITING = (InitializingState, RestartingState, ReschedulingState)
"""States of the controller without workers."""
WAIT_SECONDS = 0.1
"""How often the controller looks at its workers."""
TRY_SECONDS = 15.0
"""How long the controller waits for workers without an answer; the driver decides how often it does so."""
ELASTIC_TRY_SECONDS = 5.0
"""The same with a range of workers: for some seconds Ray still counts a machine that is gone."""
SAVE_SECONDS = 30.0
"""Longest wait for a checkpoint before the number of workers changes; a custom loop may write none."""
OTHERS_SECONDS = 2.0
"""How long to wait for the report of the worker that failed first, when others have lost their connection to it."""


class _LocalScalingPolicy(FixedScalingPolicy):
    """A fixed number of workers for which the cluster need not grow, so that no autoscaler has to be notified."""

    def after_controller_start(self, train_run_context: Any) -> None:
        """Request nothing."""

    def _maybe_send_resource_request(self) -> None:
        """Request nothing."""


class _ElasticScalingPolicy(ElasticScalingPolicy):
    """Ray's policy for a range of workers; left alone, it counts on machines that are gone, or going, for a while."""

    def make_decision_for_running_worker_group(self, worker_group_state: Any, worker_group_status: Any) -> Any:
        """Leave workers on a machine that is going to its notice, which comes seconds later and says why they stop."""
        decision = super().make_decision_for_running_worker_group(worker_group_state, worker_group_status)
        nodes = {worker.metadata.node_id for worker in worker_group_state.workers}
        is_going = isinstance(decision, ResizeDecision) and nodes & set(ray._private.state.state.get_draining_nodes())
        return NoopDecision() if is_going else decision

    def _count_possible_workers(self, reserved_resources: Any) -> int:
        leaving = ray._private.state.state.get_draining_nodes()
        there = {node["NodeID"] for node in ray.nodes() if node["Alive"]} - set(leaving)
        reserved = {node: amounts for node, amounts in reserved_resources.items() if node in there}
        return int(super()._count_possible_workers(reserved))


class _Controller(TrainController):
    """Ray's controller; after a failure it stops all workers, asks the driver, and waits for its answer.

    Args:
        settings: Environment variables that Ray's controller reads while it is made. They are not left in the
            environment, which is handed on to the workers.
        channel: Name of the run's channel.
        start_timeout_seconds: Longest wait for workers.
        own: The cluster is one that rtrain started.
        is_left: Of a controller in the driver: tells that the cluster is lost, or about to be shut down.
        parts: Ray's own arguments.
    """

    def __init__(
        self,
        settings: dict[str, str],
        channel: str,
        start_timeout_seconds: float,
        own: bool,
        is_left: Callable[[], bool] | None = None,
        **parts: Any,
    ) -> None:
        self._driver, self._is_left = ControllerChannel(channel), is_left
        elastic = parts["train_run_context"].scaling_config.elasticity_enabled
        self._try_seconds = min(start_timeout_seconds, ELASTIC_TRY_SECONDS if elastic else TRY_SECONDS)
        self._granted: Any = None
        """The state after a failure after which the driver lets the run continue."""
        self._idle_since: float | None = None
        self._preempting: float | None = None
        """When the notice arrived that was passed to the workers."""
        self._oom_kills = oom_kills()
        self.worker_group_cls = _worker_group(channel, self._try_seconds, inherits=own)
        meet_at_rank_zero(own)
        added = {name: value for name, value in settings.items() if name not in os.environ}
        with variables_set(added):
            super().__init__(**parts)

    def _check_not_left(self) -> None:
        if self._is_left is not None and self._is_left():
            raise asyncio.CancelledError

    async def _step(self) -> Any:
        self._check_not_left()
        state = self.get_state()
        if isinstance(state, ResizingState) and not await self._saved_before_resize():
            return TrainControllerLoopIterationResult(
                run_attempt_id=self._get_run_attempt_id(), previous_state=state, next_state=RunningState()
            )
        if isinstance(state, RestartingState | ReschedulingState) and state is not self._granted:
            if not await self._may_go_on(state.training_failed_error):
                self._set_state(ShuttingDownState(next_state=ErroredState(state.training_failed_error)))
                return await super()._step()
            self._granted = state
        try:
            result = await super()._step()
        except OutOfMemoryError as killed:  # a worker that starts
            raise WorkerGroupStartupFailedError(str(killed)) from killed
        if result.next_state is not state or not isinstance(state, WAITING):
            self._idle_since = None
        elif not await self._may_wait():
            error = ControllerError(WorkerGroupStartupTimeoutError(self._scaling_policy.scaling_config.min_workers))
            result.next_state = ShuttingDownState(next_state=ErroredState(error))
        return result

    async def _saved_before_resize(self) -> bool:
        """Have the workers write a checkpoint, so that nothing is lost; return False if they end meanwhile."""
        self._driver.request_save()
        deadline = time.monotonic() + SAVE_SECONDS
        while not self._driver.saved() and time.monotonic() < deadline:
            status = await self._poll_workers()
            if status.errors or status.finished:
                return False
        return True

    async def _handle_preempting_state(self, controller_state: Any) -> Any:
        """Have the workers write a checkpoint, and leave the machine as soon as they have."""
        if self._preempting != controller_state.detected_at_s:
            self._preempting = controller_state.detected_at_s
            self._driver.request_save()
        result = await super()._handle_preempting_state(controller_state)
        if not isinstance(result.next_state, PreemptingState) or not self._driver.saved():
            return result
        error = PreemptionError(controller_state.preemption_info)
        return self._execute_failure_decision(self._failure_policy.make_decision(error), training_failed_error=error)

    async def _may_go_on(self, error: BaseException) -> bool:
        """Stop what is left of the workers, and wait for the driver's word without holding up anything else."""
        failed, nodes = await self._all_failures(error), []
        self._check_not_left()
        if self._worker_group is not None:
            nodes = [worker.metadata.node_id for worker in self._worker_group.get_workers()]
            await asyncio.sleep(2 * INTERVAL_SECONDS)  # workers that live deliver what they have reported
            self._shutdown_worker_group()
        self._driver.ask(replace(failed, nodes=nodes, oom_kills=oom_kills() - self._oom_kills))
        while (answer := self._driver.answer()) is None:
            await asyncio.sleep(WAIT_SECONDS)
            self._check_not_left()
        self._oom_kills = oom_kills()
        return answer

    async def _all_failures(self, error: BaseException) -> AttemptFailedRecord:
        """Return what is known of each worker; wait a little for the one that the others only suffer from."""
        found = read_failures(error)
        deadline = time.monotonic() + OTHERS_SECONDS
        while isinstance(error, WorkerGroupError) and self._worker_group is not None and time.monotonic() < deadline:
            if any(map(is_root, found.workers)):
                break
            await asyncio.sleep(WAIT_SECONDS)
            status = self._worker_group.poll_status(timeout=WAIT_SECONDS)
            found = read_failures(status.get_worker_group_error())
        return found

    async def _may_wait(self) -> bool:
        """Let time pass, because Ray's loop asks for resources without a pause; ask the driver now and then."""
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since > self._try_seconds:
            self._idle_since = None
            return await self._may_go_on(WorkerGroupStartupTimeoutError(1))
        await asyncio.sleep(WAIT_SECONDS)
        return True

    def _start_worker_group(self, num_workers: int, resources_per_worker: dict[str, float]) -> None:
        self._driver.begin_attempt()
        super()._start_worker_group(num_workers, resources_per_worker)


@contextmanager
def _outside_of_an_actor() -> Iterator[None]:
    """Let a controller run outside of an actor, where Ray would raise an error, or start another cluster.

    It asks for its own actor, to name it to the workers. When the cluster has been shut down, its next call would make
    Ray start a new one.
    """
    actor, connects = RuntimeContext.current_actor, auto_init_hook.enable_auto_connect
    RuntimeContext.current_actor, auto_init_hook.enable_auto_connect = None, False
    try:
        yield
    finally:
        RuntimeContext.current_actor, auto_init_hook.enable_auto_connect = actor, connects


def _worker_group(owner: str, start_timeout_seconds: float, *, inherits: bool) -> type[WorkerGroup]:
    """Return Ray's worker group with another start timeout, which Ray takes from the environment only.

    Args:
        owner: What the names of its placement groups begin with, so that they can be removed when this process dies.
        start_timeout_seconds: The timeout.
        inherits: The workers have the driver's variables anyway: without more, Ray gives them processes that it has
            ready.
    """

    class Workers(WorkerGroup):
        _worker_cls = RayTrainWorker

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._worker_group_start_timeout_s = start_timeout_seconds

        @staticmethod
        def _get_worker_runtime_env(custom_runtime_env: Any) -> Any:
            return custom_runtime_env if inherits else WorkerGroup._get_worker_runtime_env(custom_runtime_env)

        def shutdown(self) -> None:
            try:
                super().shutdown()
            except OutOfMemoryError:  # of a worker that is gone; Ray's callbacks expect any other death of one
                self._worker_group_state.shutdown()
                self._clear_state()

        def _create_placement_group(self, _: Any, context: Any) -> DefaultPlacementGroupHandle:
            group = placement_group(
                [context.resources_per_worker] * context.num_workers,
                strategy=context.placement_strategy,
                name=f"{owner}-{secrets.token_hex(4)}",
                bundle_label_selector=context.label_selector,
            )
            return DefaultPlacementGroupHandle(group)

    return Workers


class RunTrainer(DataParallelTrainer):
    """Trains one run.

    Args:
        args: As for Ray's trainer.
        channel: Name of the run's channel.
        cluster: Where it is.
        start_timeout_seconds: Longest wait for workers.
        kwargs: As for Ray's trainer.
    """

    def __init__(
        self,
        *args: Any,
        channel: str,
        cluster: Cluster,
        start_timeout_seconds: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._channel, self._cluster = channel, cluster
        self._start_timeout_seconds = start_timeout_seconds
        self._is_actor = cluster.session is None
        self._left = threading.Event()

    def leave(self) -> bool:
        """Have a controller in this process end before it calls Ray once more; return whether there is one.

        Ray ends the process when a thread calls it after its cluster has been shut down.
        """
        self._left.set()
        if not self._is_actor and not self._cluster.is_lost:
            remove_placement_groups(self._channel)  # it may be waiting for workers that start
        return not self._is_actor

    def _is_left(self) -> bool:
        return self._left.is_set() or self._cluster.is_lost

    def _create_default_callbacks(self) -> list[Any]:
        # The driver itself removes what a controller that dies leaves behind.
        needless: tuple[type, ...] = (PlacementGroupCleanerCallback,)
        if self._cluster.own and not self.datasets:
            needless = (*needless, DatasetsCallback)
        return [callback for callback in super()._create_default_callbacks() if not isinstance(callback, needless)]

    def _initialize_and_run_controller(self, **parts: Any) -> Any:
        options: dict[str, Any] = {"num_cpus": 0}
        if self.scaling_config.elasticity_enabled:
            parts["scaling_policy"] = _ElasticScalingPolicy(self.scaling_config)
        elif self._cluster.own or self._cluster.shared:
            # Those of a sweep have room already; what they request would stay when their controller is killed.
            parts["scaling_policy"] = _LocalScalingPolicy(self.scaling_config)
        if not self._cluster.own:
            here = ray.get_runtime_context().get_node_id()
            options["label_selector"] = {ray._raylet.RAY_NODE_ID_KEY: here}
            options["runtime_env"] = {"env_vars": get_env_vars_to_propagate()}
        parts |= {
            "settings": OWN_CLUSTER if self._cluster.own else JOINED_CLUSTER,
            "channel": self._channel,
            "start_timeout_seconds": self._start_timeout_seconds,
            "own": self._cluster.own,
        }
        if not self._is_actor:
            with _outside_of_an_actor():
                controller = _Controller(is_left=self._is_left, **parts)
                asyncio.run(controller.run())
                return controller.get_result()
        controller = ray.remote(**options)(_Controller).remote(**parts)
        ray.get(controller.run.remote())
        return ray.get(controller.get_result.remote())
