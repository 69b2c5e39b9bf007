"""A second flow that shares the queue, from a separate host to the router behind the queue.

In: a path. Out: two forks that start on request and end with the run. Its packets are in no capture: the hosts of the
first flow do not see them.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from tcpwin.lab.forked import Fork
from tcpwin.lab.network import CROSS_ADDRESS, inside
from tcpwin.lab.scenario import Route
from tcpwin.lab.workload import DEFAULT_PORT, Log, workloads

_WHOLE_S = 1e6


class CrossTraffic:
    """A bulk transfer in parallel with the scenario's."""

    def __init__(self, route: Route, out: Path) -> None:
        where = (CROSS_ADDRESS, DEFAULT_PORT)
        bulk = workloads()["bulk"]
        listener = inside("cross", lambda: socket.create_server(where))

        def serve() -> None:
            with Path("/dev/null").open("w", encoding="utf8") as log:
                bulk.serve(listener, bulk.serve_settings(seconds=route.cross_s or _WHOLE_S), Log(log))

        def drive() -> None:
            time.sleep(max(0.0, route.cross_start_s))
            with Path("/dev/null").open("w", encoding="utf8") as log:
                bulk.drive(where, bulk.drive_settings(), Log(log))

        self._lead_s = max(0.0, -route.cross_start_s)
        self._forks = [Fork(end, act, out / "complaint.txt") for end, act in (("cross", serve), ("far", drive))]
        listener.close()

    def go(self) -> None:
        """Start, and return when the first flow should start."""
        for fork in self._forks:
            fork.go()
        time.sleep(self._lead_s)

    def end(self) -> None:
        """End both."""
        for fork in reversed(self._forks):
            fork.end()
