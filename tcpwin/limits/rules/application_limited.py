"""## What it finds

The sender had nothing to send for most of the time. Neither the path nor the receiver limited it.

## Why it matters

The rate of such a connection says nothing about the network, and no TCP setting raises it. Most connections are like
this, including many that are blamed on "a slow network".

## How it is judged

The rule looks at the direction that carried more data, if it carried at least `bytes` in at least `duration_ns`.

From the packets: `idle_ns` (silence longer than the retransmission timeout with nothing in flight), minus the time in
which the receive window was closed or full, is at least `share` of the connection. For shorter pauses, the rule counts
round trips in which the sender ran out of data: nothing was in flight for a quarter of the round trip, or the last
segment was not full. If these add up to at least `share` (`budget_application_ns`, minus the time before the first and
after the last data), the finding is `likely`.

In a conversation (`turns_state` is known or overlapping) only the time that is nobody's turn counts: waiting for a
request or for the path is not the sender's pace. Slow answers are TW412.

From the kernel: at least `flagged` of five or more `ss` samples show `app_limited` (commit d7722e8570fc: at the last
ACK less than one segment was left to send). Five samples without the flag rule out the shorter pauses.

## When it is wrong

An application that always writes whole segments, and writes again before they are acknowledged, leaves no trace in the
packets; only `ss` can show it. A sender that waits for a lock, a disk or a third host is limited by that, not by TCP.
On a Multipath TCP subflow (RFC 8684) silence is only possible evidence, because the data may have used another subflow.

## What to do

Nothing on the network. If the transfer is too slow, find out what the application waits for: the peer's next request, a
disk, a database, or its own rate limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import table_of
from tcpwin.limits.evidence.events import stalls_of
from tcpwin.limits.evidence.shaping import find_shaping
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.reading import first_pauses, idle_frames
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text

SHAPED_NS = 1_000_000_000
FEWEST_SAMPLES = 5
PAUSES = ("application", "idle", "response")
"""Stall causes that mean the sender had nothing to send."""
SHOWN = 3
MOST_ROWS = 200_000
"""Connections with more segments are not searched row by row for frames to show."""


def judge(case: Case) -> Iterator[Finding]:
    data, connection = case.data, case.connection
    least_ns = case.settings["share"] * connection.duration_ns
    flagged, samples = _flags(case)
    is_known = samples >= FEWEST_SAMPLES
    is_flagged = is_known and flagged >= case.settings["flagged"] * samples
    if not is_flagged and max(data.idle_ns, data.budget_application_ns) < least_ns:
        return
    if data.budget_application_ns >= SHAPED_NS and find_shaping(case) is not None:
        # TW414: what seems idle waits before the capture point.
        return
    silent_ns = data.idle_ns - data.zero_window_ns - data.window_limited_ns
    if connection.turns_state in ("known", "overlapping"):
        # In a conversation, only what is nobody else's turn is the sender's own.
        silent_ns = min(silent_ns, data.budget_application_ns)
    is_silent = silent_ns >= least_ns
    paced_ns = 0 if is_known else _paced_ns(case)
    is_paced = not is_known and paced_ns >= least_ns
    if not (is_silent or is_flagged or is_paced) or data.unique_bytes < case.back.unique_bytes:
        return
    values: dict[str, float | int | str] = {
        "idle_ns": data.idle_ns,
        "window_closed_or_full_ns": data.zero_window_ns + data.window_limited_ns,
        "duration_ns": connection.duration_ns,
        "idle_gaps": data.idle_gaps,
    }
    if samples:
        values |= {"app_limited_samples": flagged, "samples": samples}
    if is_silent:
        what = (
            f"{case.the_sender} had nothing to send for {time_text(silent_ns)} of {time_text(connection.duration_ns)}"
        )
        ruled_out = "nothing was in flight to wait for, and the receive window had space."
    elif is_flagged:
        what = f"{case.the_sender} had no full segment left to send in {flagged} of {samples} samples of its kernel"
        ruled_out = "the sender's kernel had sent everything that the application wrote."
    else:
        values["ran_out_ns"] = paced_ns
        what = (
            f"{case.the_sender} ran out of data in round trips that make up {time_text(paced_ns)} of "
            f"{time_text(connection.duration_ns)}"
        )
        ruled_out = "nothing was in flight, or the last segment was not full, and the receive window had space."
    start_ns, end_ns, frames = _pauses(case)
    waits = f": {case.the_sender} and {case.the_receiver} take turns" if data.turns > 1 else ""
    yield case.finding(
        f"The application sets the pace: {what}{waits}",
        owner="application",
        side=None if waits else case.sender,
        confidence=_confidence(case, is_known=is_silent or is_flagged),
        evidence=Evidence(
            frames=frames or _short_pauses(case),
            start_ns=start_ns,
            end_ns=end_ns,
            values=values,
            ruled_out=f"The network and the receiver: {ruled_out}",
        ),
        remedy=Remedy("Nothing to change in TCP. If it is too slow, find out what the application waits for."),
    )


def _confidence(case: Case, *, is_known: bool) -> str:
    if case.connection.multipath:
        # Other subflows may have carried the data (RFC 8684 §3.3).
        return "possible"
    return "certain" if is_known else "likely"


def _pauses(case: Case) -> tuple[int | None, int | None, tuple[int, ...]]:
    """Return the start and end of the sender's longest pause, and the frames around its longest pauses.

    If the capture may not be read again, only the frames that ended them are known.
    """
    if not case.may_follow:
        gaps_seen = first_pauses(case.analysis, case.connection.id, case.sender)
        if gaps_seen:
            return gaps_seen[0][0], gaps_seen[0][1], tuple(frame for _, _, frame in gaps_seen)
        gaps = idle_frames(case.analysis, case.connection.id, case.sender)
        return None, None, gaps or (case.connection.first_frame,)
    pauses = sorted(
        (each for each in stalls_of(case) if each.sender == case.sender and each.cause in PAUSES),
        key=lambda pause: -pause.duration_ns,
    )[:SHOWN]
    frames = tuple(frame for pause in pauses for frame in (pause.before_frame, pause.after_frame))
    return (pauses[0].start_ns, pauses[0].end_ns, frames) if pauses else (None, None, ())


def _paced_ns(case: Case) -> int:
    """Return the time of round trips in which the sender ran out of data, between its first and last data."""
    data, connection = case.data, case.connection
    if data.first_data_ns is None or data.last_data_ns is None:
        return 0
    around_ns = data.first_data_ns - connection.start_ns + connection.end_ns - data.last_data_ns
    return max(data.budget_application_ns - around_ns, 0)


def _short_pauses(case: Case) -> tuple[int, ...]:
    """Return the frames around the sender's longest pauses: longer than a round trip, or after a partial segment.

    Reads the source.
    """
    if case.data.segments + case.back.segments > MOST_ROWS:
        return ()
    table = table_of(case)
    if table is None:
        return ()
    # Already imported by the reader of the columns.
    import numpy as np

    mss_bytes, rtt_ns = case.data.mss_bytes or 1, case.connection.path_rtt_ns or 0
    sent = np.flatnonzero((table["direction"] == case.sender) & (table["length"] > 0))
    gaps_ns = np.diff(table["time_ns"][sent])
    is_pause = (table["length"][sent][:-1] % mss_bytes != 0) | (gaps_ns > rtt_ns)
    pauses = np.flatnonzero(is_pause)
    longest = pauses[np.argsort(-gaps_ns[pauses], kind="stable")][:SHOWN]
    return tuple(table["frame"][sent[np.stack((longest, longest + 1), axis=1).ravel()]].tolist())


def _flags(case: Case) -> tuple[int, int]:
    """Count the samples flagged application-limited, and all samples that report the sender's rate."""
    if not case.analysis.hosts:
        return 0, 0
    samples = [each for each in case.sockets(case.sender) if each.delivery_rate_bps is not None]
    return sum(1 for each in samples if each.app_limited), len(samples)


RULE = Rule(
    code="TW402",
    name="application-limited",
    title="the applications set the pace",
    severity=Severity.INFO,
    scope="direction",
    limits=("sender_application",),
    judge=judge,
    page=__doc__,
    when=(("unique_bytes", ">=", "{bytes}"), ("connection.duration_ns", ">=", "{duration_ns}")),
    thresholds={
        "share": Threshold(0.5, "share", "Most of the time."),
        "flagged": Threshold(
            0.8, "share", "The flag describes the last ACK only; any sender runs out of data now and then."
        ),
        "bytes": Threshold(100_000, "bytes", "The rate of a smaller transfer matters to nobody."),
        "duration_ns": Threshold(1_000_000_000, "ns", "Shorter transfers end before their rate matters."),
    },
)
