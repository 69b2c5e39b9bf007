"""Live view of a recorder: the newest round, its worst connections, and the latest alerts.

In: rounds, alerts and bundles. Out: a JSON document per round, as server-sent events (HTML standard, section 9.2). The
worst connections are computed only while somebody listens.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from threading import Condition
from typing import Any

from tcpwin.errors import TcpwinError
from tcpwin.limits import Analysis, roles_of
from tcpwin.watch.alerts import Alert
from tcpwin.watch.run import Notice, Round

SCHEMA = "tcpwin/watch/1"
WORST = 10
LATELY = 20
MOST_LISTENERS = 16
QUIET_S = 5.0
"""Interval of keep-alive comments, which reveal closed connections."""


class Live:
    """The newest round, and its listeners.

    Args:
        name: name of the source.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lately: deque[dict[str, Any]] = deque(maxlen=LATELY)
        self._changed = Condition()
        self._number = 0
        self._data = b""
        self._listeners = 0
        self._is_over = False
        self._lacks_worst = False

    @property
    def is_wanted(self) -> bool:
        """Whether a listener still lacks the newest round's worst connections."""
        return self._lacks_worst and self._listeners > 0

    def take(self, notice: Notice) -> None:
        """Record a notice; after a round, publish it to all listeners."""
        if isinstance(notice, Alert):
            self._lately.append({"type": "strike", **notice.document()})
        elif isinstance(notice, Path):
            self._lately.append({"type": "bundle", "path": str(notice)})
        elif isinstance(notice, str):
            self._lately.append({"type": "trouble", "text": notice})
        else:
            self._show(notice)

    def _show(self, round: Round) -> None:
        worst = worst_of(round.analysis) if self._listeners and round.analysis is not None else None
        self._lacks_worst = worst is None and round.analysis is not None
        document = {"schema": SCHEMA, "name": self._name, "round": round.document(), "worst": worst}
        data = json.dumps({**document, "lately": list(self._lately)})
        with self._changed:
            self._number += 1
            self._data = f"event: round\ndata: {data}\n\n".encode()
            self._changed.notify_all()

    def stream(self) -> Generator[bytes] | None:
        """Stream the newest round and each further one; None if there are too many listeners."""
        with self._changed:
            if self._listeners >= MOST_LISTENERS or self._is_over:
                return None
            self._listeners += 1
        return self._stream()

    def _stream(self) -> Generator[bytes]:
        seen = 0
        try:
            while not self._is_over:
                with self._changed:
                    if self._number == seen and not self._is_over:
                        self._changed.wait(QUIET_S)
                    number, data = self._number, self._data
                yield data if number != seen else b": nothing new\n\n"
                seen = number
        finally:
            with self._changed:
                self._listeners -= 1

    def close(self) -> None:
        """Disconnect the listeners."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


def worst_of(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the connections that lost most time, with their verdicts and sketches of window and flight."""
    from tcpwin.figures import SKETCH_BUCKETS, draw_sketch

    worst = analysis.worst(WORST)
    try:
        views = analysis.views([each.id for each in worst], buckets=SKETCH_BUCKETS)
    except TcpwinError:
        views = []
    sketches = [draw_sketch(view, each.verdict.direction or "a_to_b") for view, each in zip(views, worst, strict=False)]
    found = []
    for place, connection in enumerate(worst):
        verdict, roles = connection.verdict, roles_of(connection)
        found.append(
            {
                "ends": [
                    f"{role} {end}" for role, end in zip(roles.values(), (connection.a, connection.b), strict=True)
                ],
                "limit": verdict.limit,
                "is_problem": verdict.is_problem,
                "lost_ns": verdict.lost_ns,
                "text": verdict.text,
                "fix": verdict.fix,
                "sketch": asdict(sketches[place]) if sketches else None,
            }
        )
    return found
