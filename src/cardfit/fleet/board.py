"""Where nodes tell how far their runs are, for the one line that a person watches.

In: moments of runs. Out: the latest of every worker. It lives in a small actor of the cluster; nothing depends on it.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from importlib import import_module
from typing import Any

from cardfit.fleet.cluster import Cluster
from cardfit.measure.run import Moment

_FRESH_S = 10.0  # what was told longer ago is not shown


class Board:
    """The driver's side."""

    def __init__(self, cluster: Cluster) -> None:
        self.ray, self.name = cluster.ray, f"cardfit-board-{secrets.token_hex(4)}"
        self.actor = self.ray.remote(_kept()).options(name=self.name, num_cpus=0).remote()
        self.latest: list[tuple[str, Moment]] = []
        self.asked: Any = None

    def read(self) -> list[tuple[str, Moment]]:
        """Nodes with where they are, as last heard: a call never waits for an answer."""
        if self.asked is None:
            self.asked = self.actor.read.remote(_FRESH_S)
        ready, _ = self.ray.wait([self.asked], timeout=0)
        if ready:
            self.asked = None
            with suppress(self.ray.exceptions.RayError):
                self.latest = [(node, Moment(*told)) for node, told in self.ray.get(ready[0])]
        return self.latest


def tell(name: str, told: tuple[Any, ...]) -> None:
    """Tell the board called ``name``, from a task."""
    ray = import_module("ray")
    context = ray.get_runtime_context()
    node = ray.util.get_node_ip_address()
    ray.get_actor(name).tell.remote(context.get_worker_id(), node, told)


def _kept() -> type:
    """The actor's class: it travels whole, so that the node it lands on needs nothing of cardfit."""

    class Kept:
        def __init__(self) -> None:
            self.told: dict[str, tuple[float, str, Any]] = {}

        def tell(self, worker: str, node: str, told: Any) -> None:
            import time

            self.told[worker] = (time.monotonic(), node, told)

        def read(self, fresh_s: float) -> list[tuple[str, Any]]:
            import time

            oldest = time.monotonic() - fresh_s
            self.told = {name: one for name, one in self.told.items() if one[0] >= oldest}
            return [(node, told) for _, node, told in self.told.values()]

    return Kept
