"""Train trials on a Ray cluster, as many in parallel as resources allow, in processes that each train one at a time.

A trial of one worker is trained by its host itself. The host of one with more workers starts them as ``rtrain fit``
does, and holds no core: Ray Train's placement group holds what the workers need. It keeps them for its next trial.
"""

from __future__ import annotations

import gc
import json
import queue
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rtrain.cluster.ray_cluster import WHY_LOST, Cluster, remove_placement_groups, resources_by_node, worker_runtime_env
from rtrain.cluster.scaling import fewest_and_most, threads_per_worker, worker_resources, workers_here
from rtrain.config.composed import Composed
from rtrain.config.trials import Plan
from rtrain.engine.ray.channel import DriverChannel, WorkerChannel, request_stop
from rtrain.engine.ray.worker_group import Group, KeptGroup, can_be_kept
from rtrain.errors import NoRoomError, RtrainError, TrainingError
from rtrain.process.interrupts import StopRequest, leave_signals_to_driver
from rtrain.process.variables import drop_arguments
from rtrain.runs.events import Event
from rtrain.runs.records import TrialBeganRecord, TrialDoneRecord, TrialRecord
from rtrain.runs.status import Status
from rtrain.sweeps.data import Data
from rtrain.sweeps.executors.base import NO_ROOM, TrialListener
from rtrain.sweeps.resources import JoinedResourceTracker, ResourceRequest, ResourceTracker, shape_of
from rtrain.sweeps.trial_runner import ForwardingObserver, Task, train_trial
from rtrain.trainers.registry import trainer_of

INTERVAL_SECONDS = 0.05
"""How often records and stop requests are looked for: a scheduler decides while the trial trains on."""
IDLE_SECONDS = 10.0
"""How long a host without a trial is kept: others may wait for what it holds."""
LAST_WORD_SECONDS = 0.5
"""Time for the last records of a host that has died to arrive."""


class RemoteStop(StopRequest):
    """Ends the trial of a host when the sweep's process says so."""

    def __init__(self, channel: WorkerChannel) -> None:
        self._channel, self._reason = channel, None
        super().__init__()

    @property
    def reason(self) -> str | None:
        """Why it should end."""
        if self.asked is None and self._channel.stop_reason is not None:
            self.asked = tuple(json.loads(self._channel.stop_reason))
        return None if self.asked is None else Status.INTERRUPTED

    @reason.setter
    def reason(self, value: str | None) -> None:
        pass


class TrialActor:
    """An actor that trains one trial after the other.

    Args:
        group: Name of the workers that it does so with; None: by itself.
        keeps: They train other trials too.
    """

    def __init__(self, group: str | None = None, *, keeps: bool = False) -> None:
        import ray

        leave_signals_to_driver()
        drop_arguments()
        self._frozen = False
        self._group = None if group is None else Group(group)
        if group is not None and keeps:
            self._group = KeptGroup(group, ray.get_runtime_context().current_actor)

    def train(self, task: Task, dataset: list[Any], channel_name: str) -> None:
        """Train a trial.

        Args:
            task: The trial.
            dataset: A reference to its data, or to why they can't be read, or None.
            channel_name: Where its records go.
        """
        import ray

        channel = WorkerChannel(channel_name, 0, INTERVAL_SECONDS)

        def tell(record: TrialRecord) -> None:
            channel.send(record)
            if isinstance(record, Event):  # a scheduler decides by it
                channel.flush()

        if self._group is not None:
            self._group.data = dataset[0]
        tell(TrialBeganRecord())
        try:
            data = None if dataset[0] is None else ray.get(dataset[0])
            if isinstance(data, RtrainError):
                raise data
            error = train_trial(task, data, ForwardingObserver(tell), RemoteStop(channel), self._group)
        except Exception as raised:  # told as the trial's
            error = {"type": type(raised).__name__, "message": str(raised)}
        tell(TrialDoneRecord(error=error))
        channel.close()
        data = dataset[0] = None
        if self._group is not None:
            self._group.data = None
        channel.check()
        _let_go(first=not self._frozen)
        self._frozen = True

    def next_number(self, done: int) -> int | None:
        """Answer the workers as ``KeptGroup`` does, in a second thread."""
        assert isinstance(self._group, KeptGroup)
        return self._group.next_number(done)

    def task(self) -> dict[str, Any] | None:
        """Answer the workers as ``KeptGroup`` does, in a second thread."""
        assert isinstance(self._group, KeptGroup)
        return self._group.task


def _let_go(*, first: bool) -> None:
    """Free what a trial has left, on the GPU too; what the first one has imported is not looked at again."""
    gc.collect()
    if first:
        gc.freeze()


@dataclass(kw_only=True)
class ActorSlot:
    """A host, and the trial that it trains."""

    actor: Any
    kind: str
    """Hosts of the same kind can train the same trials."""
    group: str | None
    """Name of its workers, if it does not train by itself."""
    trial: int | None = None
    channel: str = ""
    answer: Any = None
    """Ray's reference to the end of the training."""
    died_at: float | None = None
    idle_since: float = 0.0
    begins_before: float | None = None
    """Deadline to begin, after which its resources count as taken by others; None: it has begun."""


class RayExecutor:
    """A pool of hosts.

    Args:
        cluster: Where they are.
        hearer: Receives the state of trials.
        data: Reads their data.
    """

    most_at_once: int | None = None

    @property
    def obstacle(self) -> str:
        """Why the next trial is not started although none is trained."""
        return NO_ROOM if self._cluster.answers else "the head of the cluster does not answer"

    def __init__(self, cluster: Cluster, hearer: TrialListener, data: Data) -> None:
        self._cluster, self._hearer, self._data = cluster, hearer, data
        self._room = ResourceTracker(cluster.nodes) if cluster.own else JoinedResourceTracker(resources_by_node)
        self._seats: list[ActorSlot] = []
        self._name = f"sweep-{secrets.token_hex(6)}"
        self._count = 0
        self._records: queue.SimpleQueue[tuple[TrialRecord, str]] = queue.SimpleQueue()
        self._channel = DriverChannel(self._name, lambda *heard: self._records.put(heard), INTERVAL_SECONDS, cluster)

    def try_start(self, number: int, plan: Plan) -> bool:
        """Give the trial to a free host, or to a new one if resources allow, in place of idle ones if necessary."""
        if not self._cluster.answers:
            return False
        kind, shape = self._kind(plan.composed), shape_of(plan.composed, own_cluster=self._cluster.own)
        seat = next((one for one in self._seats if one.trial is None and one.kind == kind), None)
        if seat is None:
            for idle in [one for one in self._seats if one.trial is None]:
                if not self._room.fits(shape):
                    self._dismiss(idle)
            if not self._room.fits(shape):
                return False
            seat = self._new_seat(kind, self._room.widened(shape), plan.composed)
        self._give(seat, number, plan)
        return True

    def _kind(self, composed: Composed) -> str:
        scaling = composed.conf.scaling
        parts: list[Any] = [worker_resources(scaling), self._runtime_env(composed)]
        if not _is_alone(composed, self._cluster):
            parts += [workers_here(scaling), scaling.placement_strategy, *_joined_by(composed)]
        return json.dumps(parts, sort_keys=True, default=str)

    def _runtime_env(self, composed: Composed) -> dict[str, Any] | None:
        plugin = trainer_of(composed.resolved["trainer"])
        needed = plugin.worker_env(composed.conf.trainer)
        return worker_runtime_env(composed.conf.cluster, self._cluster, str(composed.project_root), needed)

    def _new_seat(self, kind: str, shape: ResourceRequest, composed: Composed) -> ActorSlot:
        import ray

        env, group = self._runtime_env(composed), None
        options: dict[str, Any] = {"runtime_env": env, "max_restarts": 0}
        if _is_alone(composed, self._cluster):
            amounts = dict(shape.worker)
            options |= {"num_cpus": amounts.pop("CPU", 0), "num_gpus": amounts.pop("GPU", 0), "resources": amounts}
            host = ray.remote(**options)(TrialActor).remote()
        else:
            here = ray.get_runtime_context().get_node_id()
            options |= {"num_cpus": 0, "max_concurrency": 2, "label_selector": {ray._raylet.RAY_NODE_ID_KEY: here}}
            group = f"{self._name}-{secrets.token_hex(4)}"
            host = ray.remote(**options)(TrialActor).remote(group, keeps=_keeps_workers(composed))
        seat = ActorSlot(actor=host, kind=kind, group=group)
        self._room.take(id(seat), shape)
        self._seats.append(seat)
        return seat

    def _give(self, seat: ActorSlot, number: int, plan: Plan) -> None:
        self._count += 1
        seat.trial, seat.channel, seat.died_at = number, f"{self._name}/{self._count:06d}", None
        scaling = plan.composed.conf.scaling
        task = Task(
            plan=plan,
            cluster=None if _is_alone(plan.composed, self._cluster) else replace(self._cluster, session=None),
            num_threads=threads_per_worker(scaling, own_cluster=False),
        )
        seat.begins_before = time.monotonic() + scaling.start_timeout_seconds
        seat.answer = seat.actor.train.remote(task, [self._data.shared(plan.composed)], seat.channel)

    def wait(self) -> None:
        """Hand on what has arrived; notice hosts that have died.

        Raises:
            TrainingError: The cluster was lost.
        """
        import ray

        if (lost := self._cluster.lost) is not None:
            how = "The same command resumes the sweep, and its trials from their checkpoints."
            raise TrainingError(f"{lost} was lost", f"{WHY_LOST} {how}")
        if not self._cluster.answers:
            time.sleep(INTERVAL_SECONDS)
            return
        answers = [one.answer for one in self._seats if one.trial is not None and one.died_at is None]
        if answers:
            ray.wait(answers, num_returns=1, timeout=INTERVAL_SECONDS)
        else:
            time.sleep(INTERVAL_SECONDS)
        self._channel.check()
        self._hand_on()
        for seat in list(self._seats):
            if seat.trial is not None:
                self._look_after(seat)
            elif time.monotonic() - seat.idle_since > IDLE_SECONDS:
                self._dismiss(seat)

    def _hand_on(self) -> None:
        while True:
            try:
                record, channel = self._records.get_nowait()
            except queue.Empty:
                return
            seat = next((one for one in self._seats if one.channel == channel), None)
            if seat is None or seat.trial is None:
                continue
            match record:
                case TrialDoneRecord():
                    self._end(seat, record.error)
                case TrialBeganRecord():
                    seat.begins_before = None
                case _:
                    self._hearer.hear(seat.trial, record)

    def _end(self, seat: ActorSlot, error: Mapping[str, Any] | None, *, died: bool = False) -> None:
        number = seat.trial
        assert number is not None
        seat.trial, seat.idle_since = None, time.monotonic()
        if error is not None or died:
            self._dismiss(seat)  # whatever went wrong in this process is gone with it
        self._hearer.over(number, error, died=died)

    def _look_after(self, seat: ActorSlot) -> None:
        import ray
        from ray.exceptions import RayError

        if seat.begins_before is not None and time.monotonic() > seat.begins_before:
            self._end(seat, {"type": NoRoomError.__name__, "message": "its process did not start in time."})
        elif seat.died_at is None:
            done, _ = ray.wait([seat.answer], timeout=0)
            try:
                ray.get(done)
            except RayError:  # its death is reported elsewhere, this error adds nothing
                seat.died_at = time.monotonic()
        elif time.monotonic() - seat.died_at > LAST_WORD_SECONDS:
            self._end(seat, None, died=True)

    def _dismiss(self, seat: ActorSlot) -> None:
        import ray
        from ray.exceptions import ActorHandleNotFoundError

        self._seats.remove(seat)
        self._room.free(id(seat))
        with suppress(ActorHandleNotFoundError):  # Ray has forgotten it: it is gone
            ray.kill(seat.actor)
        if seat.group is not None:
            remove_placement_groups(seat.group)

    def stop(self, number: int, status: str, reason: str) -> None:
        """Ask the trial's host."""
        for seat in self._seats:
            if seat.trial == number:
                request_stop(seat.channel, json.dumps([status, reason]))
                if seat.begins_before is not None:  # a process that has not begun can't receive it
                    seat.begins_before = 0.0

    def close(self) -> None:
        """End all hosts; those of a cluster that was lost end by themselves."""
        for seat in [] if self._cluster.is_lost else list(self._seats):
            self._dismiss(seat)
        self._channel.close()
        self._channel.check()


def _is_alone(composed: Composed, cluster: Cluster) -> bool:
    """Tell whether its host is the one worker of a trial."""
    return fewest_and_most(composed.conf.scaling, own_cluster=cluster.own)[1] <= 1


def _joined_by(composed: Composed) -> list[Any]:
    """Return the options, other than resources, of workers that train a trial together."""
    conf, name = composed.conf, composed.resolved["trainer"]["type"]
    backend = trainer_of(composed.resolved["trainer"]).backend_config(conf.trainer)
    limits = [conf.run.failure.hang_seconds, conf.scaling.start_timeout_seconds]
    return [name, type(backend).__name__, vars(backend), _keeps_workers(composed), *limits]


def _keeps_workers(composed: Composed) -> bool:
    return can_be_kept(trainer_of(composed.resolved["trainer"]), composed.conf)
