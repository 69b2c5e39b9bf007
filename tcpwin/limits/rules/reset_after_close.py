"""## What it finds

A connection was reset after both sides had closed it (FIN both ways).

## Why it matters

Usually it does not: all data was sent, and the RST only ends the wait. Data that was still unacknowledged is lost.

## How it is judged

A RST followed both FINs. If at least `lost_bytes` were never acknowledged, the finding is a warning. Fewer bytes are
often TLS's close_notify, which the side that closes first does not wait for. Connections that lost less share one
finding.

## When it is wrong

A RST that answers a late copy of a segment looks the same, and is just as harmless.

## What to do

Nothing if no data was lost. Otherwise the application that closes first should read until it sees the other side's end
of stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FRAMES, GOODBYE_BYTES, RST, first_frames, rows_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.roles import the_end
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text

LISTED = 100
"""Connections to report one by one, those that lost most first."""


def judge(case: Case) -> Iterator[Finding]:
    ids = [id for id, _ in case.asked[0]]
    if not ids:
        return
    lost = _unacknowledged(case, ids)
    losing = [id for id in ids if max(lost[id]) >= case.settings["lost_bytes"]]
    for id in sorted(losing, key=lambda id: (-max(lost[id]), id))[:LISTED]:
        yield _lost(case, id, *lost[id])
    harmless = [id for id in ids if max(lost[id]) < case.settings["lost_bytes"]]
    if harmless:
        yield _harmless(case, harmless, max(max(lost[id]) for id in harmless))


def _unacknowledged(case: Case, ids: list[int]) -> dict[int, tuple[int, int]]:
    """Return each end's unacknowledged bytes by connection; 0 if the other side was not captured."""
    connections = case.analysis.connections
    columns = []
    for direction, back in (("a_to_b", "b_to_a"), ("b_to_a", "a_to_b")):
        lost = (
            connections.column(f"{direction}.unique_bytes")[ids] - connections.column(f"{direction}.acked_bytes")[ids]
        )
        seen = connections.column(f"{back}.segments")[ids] > 0
        columns.append((lost.clip(0) * seen).tolist())
    return dict(zip(ids, zip(*columns, strict=True), strict=True))


def _lost(case: Case, id: int, lost_a: int, lost_b: int) -> Finding:
    connection = case.analysis.connections[id]
    by, side = connection.reset_by, "a" if lost_a >= lost_b else "b"
    the_resetter, the_loser = the_end(connection, by or "a"), the_end(connection, side)
    resets = [row["frame"] for row in rows_of(case, connection) if row["flags"] & RST]
    found = case.finding(
        f"{the_resetter} reset the connection after both ends had closed: {bytes_text(max(lost_a, lost_b))} from "
        f"{the_loser} were never acknowledged and may be lost",
        severity=Severity.WARNING,
        owner="application",
        side=by,
        confidence="likely",
        evidence=Evidence(
            frames=tuple(resets[:3]),
            start_ns=connection.start_ns,
            end_ns=connection.end_ns,
            values={"reset_by": by or "", "unacknowledged_a_bytes": lost_a, "unacknowledged_b_bytes": lost_b},
            ruled_out="Not just TLS's close_notify: more bytes are missing.",
        ),
        remedy=Remedy(f"Make {the_resetter}'s application read to the end before it closes."),
    )
    return replace(found, connection=id)


def _harmless(case: Case, ids: list[int], most: int) -> Finding:
    lost = (
        f": at most {bytes_text(most)} of each were never acknowledged, no more than TLS's close_notify"
        if most
        else " with all data acknowledged: nothing was lost"
    )
    found = case.finding(
        f"{count_text(len(ids), 'connection')} {'was' if len(ids) == 1 else 'were'} reset after both ends had "
        f"closed{lost}",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=_reset_frames(case, ids[0]) if len(ids) == 1 else first_frames(case, ids[:FRAMES]),
            values={"connections": len(ids), "most_unacknowledged_bytes": most},
            ruled_out="Not an abort: both FINs came first.",
        ),
    )
    return replace(found, connection=ids[0]) if len(ids) == 1 else found


def _reset_frames(case: Case, id: int) -> tuple[int, ...]:
    rows = rows_of(case, case.analysis.connections[id])
    return tuple(row["frame"] for row in rows if row["flags"] & RST)[:3]


RULE = Rule(
    code="TW505",
    name="reset-after-close",
    title="reset after both ends had closed",
    severity=Severity.INFO,
    scope="capture",
    asks=(("connection", (("close", "==", "reset_after_close"),)),),
    judge=judge,
    page=__doc__,
    thresholds={
        "lost_bytes": Threshold(
            GOODBYE_BYTES, "bytes", "Larger than a TLS close_notify, which is often refused and carries no data."
        )
    },
)
