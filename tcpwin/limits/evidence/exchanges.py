"""Frames of a conversation's exchanges, to show in a finding.

In: a case whose segments may be read a second time. Out: frames. Judges nothing.
"""

from __future__ import annotations

from tcpwin.analysis import exchanges_of
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import table_of
from tcpwin.limits.finding import of_many

SHOWN = 3


def exchange_frames(case: Case, *, slowest: bool = False) -> tuple[tuple[int, ...], str | None]:
    """Return the last frame of a few requests and the first of their answers, and which exchanges those are.

    Args:
        slowest: show the answers that took longest to prepare instead of the first ones.
    """
    table = table_of(case) if case.may_read else None
    if table is None:
        return (case.connection.first_frame,), None
    found = exchanges_of(case.connection, table)
    places = list(range(len(found)))
    if slowest:
        places.sort(key=lambda place: -int(found.work_ns[place]))
    shown = places[:SHOWN]
    frames = tuple(
        int(frame) for place in shown for frame in (found.request_end_frame[place], found.answer_frame[place])
    )
    if not frames:
        return (case.connection.first_frame,), None
    return frames, of_many("slowest" if slowest else "first", len(shown), len(found))
