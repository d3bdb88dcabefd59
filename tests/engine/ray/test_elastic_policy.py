"""When a run with a range of workers trains with more of them, or fewer."""

from types import SimpleNamespace

import pytest
import ray
from ray.train import ScalingConfig
from ray.train.v2._internal.execution.scaling_policy import NoopDecision, ResizeDecision

from rtrain.engine.ray.controller import _ElasticScalingPolicy


@pytest.mark.parametrize(
    ("going", "decision"), [({"second": 0}, NoopDecision), ({"other": 0}, ResizeDecision), ({}, ResizeDecision)]
)
def test_workers_on_a_machine_that_is_going_wait_for_its_notice(monkeypatch, going, decision):
    """Else a run whose machine is taken away would say that it was resized, whichever came first."""
    policy = _ElasticScalingPolicy(ScalingConfig(num_workers=(1, 2), elastic_resize_monitor_interval_s=0))
    monkeypatch.setattr(policy, "_maybe_send_resource_request", lambda: None)
    monkeypatch.setattr(policy, "_get_reserved_resources", dict)
    monkeypatch.setattr(policy, "_count_possible_workers", lambda _: 1)
    monkeypatch.setattr(ray._private.state.state, "get_draining_nodes", lambda: going)
    workers = [SimpleNamespace(metadata=SimpleNamespace(node_id=node)) for node in ("first", "second")]
    state = SimpleNamespace(workers=workers, num_workers=2, start_time=0.0)
    assert isinstance(policy.make_decision_for_running_worker_group(state, None), decision)
