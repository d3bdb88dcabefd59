"""A Ray cluster of somebody else on this machine, to which nodes can be added."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}


@contextmanager
def growing_cluster() -> Iterator[Any]:
    """Run a cluster of one node with one core, and join it, while the block runs."""
    import ray
    from ray._common.utils import reset_ray_address
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args=NODE)
    reset_ray_address()  # the file names it to all on this machine, even when it has ended
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def add_node(cluster: Any) -> Any:
    """Add a node with one core, and return it."""
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    return node
