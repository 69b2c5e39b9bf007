"""A conversation's exchanges as evidence: the time in which something was asked, and frames to show in a finding.

In: a connection, or a case whose segments may be read a second time. Out: times and frames. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcpwin.limits.case import Case
from tcpwin.limits.connection import Connection
from tcpwin.limits.evidence.events import stalls_of
from tcpwin.limits.finding import of_many

SHOWN = 3


def asked_ns(connection: Connection) -> int:
    """Return the time in which something was asked: the connection's, without the requester's own; at least 1."""
    own_ns = connection.requester_turn_ns + connection.nothing_asked_ns
    return max(connection.duration_ns - own_ns, 1)


def exchange_frames(case: Case, *, slowest: bool = False) -> tuple[tuple[int, ...], str | None]:
    """Return the last frame of a few requests and the first of their answers, and which exchanges those are.

    Args:
        slowest: show the answers that took longest to prepare instead of the first ones.
    """
    found = case.reading.exchanges(case.analysis, case.connection.id) if case.may_read else None
    if found is None or not found.height:
        return _longest_waits(case)
    shown: Iterable[int] = range(min(found.height, SHOWN))
    if slowest:
        # Already imported by the reader of the columns.
        import numpy as np

        shown = np.argsort(-np.asarray(found["work_ns"]), kind="stable")[:SHOWN].tolist()
    frames = tuple(int(found[name][place]) for place in shown for name in ("request_end_frame", "answer_frame"))
    return frames, of_many("slowest" if slowest else "first", len(frames) // 2, found.height)


def _longest_waits(case: Case) -> tuple[tuple[int, ...], str | None]:
    """Return the frames around the requester's longest waits for an answer; without any, the connection's first."""
    waits = sorted((each for each in stalls_of(case) if each.cause == "response"), key=lambda each: -each.duration_ns)
    frames = tuple(frame for each in waits[:SHOWN] for frame in (each.before_frame, each.after_frame))
    if not frames:
        return (case.connection.first_frame,), None
    return frames, of_many("longest", len(frames) // 2, len(waits), "before and after the") or "around each silence"
