"""## What it finds

The receiver closed its window (advertised zero), and the sender waited until it opened again.

## Why it matters

Only probes can be sent into a closed window (RFC 9293 §3.8.6.1). The receiver's buffer is full: its application reads
more slowly than data arrives. A faster network or a larger congestion window changes nothing.

## How it is judged

The time from an accepted zero window to the next non-zero one, summed over the connection, is at least `stall_ns` and
at least `share` of the connection's duration. Windows are accepted as a sender would (SND.WL1, RFC 9293 §3.10.7.4), so
a reordered ACK closes nothing. TW203 reports windows that never opened again.

## When it is wrong

A consumer that pauses on purpose (backpressure) closes its window by design. If the capture lost the window update, the
window appears closed for too long; the next data sent ends the episode.

## What to do

On the receiver, find why the application reads slowly: `ss -tmi` shows Recv-Q near the buffer size (`skmem` r against
rb). A larger `net.ipv4.tcp_rmem` only postpones the stall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.names import read_faster
from tcpwin.limits.reader import only_stop_ns
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text

FRAMES = 6


def judge(case: Case) -> Iterator[Finding]:
    data, connection = case.data, case.connection
    episodes, count = list(data.zero_window_episodes), data.zero_window_episode_count
    cost_ns = data.zero_window_ns
    if episodes and episodes[-1].ended_by in ("open", "reset"):
        # Other rules report a window that never opened again, and a peer that fell silent while it was closed.
        if data.stall_at_end == "peer_silent":
            cost_ns -= data.stall_at_end_ns
        else:
            cost_ns -= episodes.pop().duration_ns
            count -= 1
    share = cost_ns / connection.duration_ns if connection.duration_ns else 0.0
    if not episodes or cost_ns < case.settings["stall_ns"] or share < case.settings["share"]:
        return
    episodes.sort(key=lambda episode: -episode.duration_ns)
    longest = episodes[0]
    frames = [frame for episode in episodes[: FRAMES // 2] for frame in (episode.start_frame, episode.end_frame)]
    yield case.finding(
        f"{case.the_receiver}'s application reads too slowly: zero window {count_text(count, 'time')}, "
        f"{time_text(cost_ns)} total ({share_text(share)} of the connection)",
        owner="application",
        side=case.receiver,
        confidence="certain",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=tuple(frame for frame in frames if frame),
            start_ns=longest.start_ns,
            end_ns=longest.end_ns,
            values={
                "zero_window_ns": cost_ns,
                "episodes": count,
                "longest_ns": longest.duration_ns,
            },
            ruled_out="Not loss or congestion: the sender waited at a zero window, which only the receiver sets.",
            frames_of=of_many("longest", len(frames) // 2, count, "start and end of the") or _of_all(frames),
            span_of=of_many("longest", 1, count),
        ),
        remedy=Remedy(
            read_faster(case.the_receiver, only_stop_ns(case.data)),
            side_effects="A larger receive buffer only postpones the stall, and adds delay.",
        ),
    )


def _of_all(frames: Sequence[int | None]) -> str | None:
    """Describe the frames if all episodes are shown; None if the end of one is missing."""
    if not all(frames):
        return None
    return "its start and end" if len(frames) == 2 else "start and end of each"


RULE = Rule(
    code="TW201",
    name="zero-window-stall",
    title="the receiver's window was closed",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_application",),
    judge=judge,
    page=__doc__,
    when=(("zero_window_ns", ">=", "{stall_ns}"),),
    thresholds={
        "stall_ns": Threshold(200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."),
        "share": Threshold(0.02, "share", "A window that is closed for less than 2 % of the time works as designed."),
    },
    yields_to=("TW204",),
)
