"""Ray clusters on this machine: several nodes, each with one CPU, that tests kill."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

#: Bytes of shared memory of a node, near the least that Ray takes.
OBJECT_STORE = 80 << 20


class RayNodes:
    """The nodes of a cluster. The first one is the head, which has no CPUs and lives on."""

    def __init__(self, cluster: Any, count: int) -> None:
        self.cluster = cluster
        self.nodes: list[Any] = [self.add() for _ in range(count)]

    def add(self) -> Any:
        """Add a node. On a busy machine Ray may give one up before it has started."""
        for _ in range(3):
            with contextlib.suppress(Exception):
                return self.cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE)
        return self.cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE)

    def kill(self, number: int) -> None:
        """End a node without warning, and its workers with it."""
        node, self.nodes[number] = self.nodes[number], None
        self.cluster.remove_node(node, allow_graceful=False)

    def replace(self, number: int) -> None:
        """Kill a node and add another one."""
        if self.nodes[number] is not None:
            self.kill(number)
        self.nodes[number] = self.add()


@contextlib.contextmanager
def ray_nodes(count: int) -> Iterator[RayNodes]:
    """Yield the nodes of a cluster that this process is connected to.

    The head counts as one of the nodes, but takes no tasks.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": OBJECT_STORE,
            "include_dashboard": False,
        },
    )
    try:
        nodes = RayNodes(cluster, count - 1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        yield nodes
    finally:
        ray.shutdown()
        cluster.shutdown()
