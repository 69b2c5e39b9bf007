"""## What it finds

The receiver's window opened, but the sender learned of it only by probing.

## Why it matters

A receiver announces by itself that its window has opened (RFC 9293 §3.8.6.1). If that update is lost or never sent, the
sender waits for its next probe. Probes are 0.2 s apart at first, and the interval doubles each time.

## How it is judged

The rule counts closed windows that opened with the answer to a probe, within two round trips and 10 ms of it. They are
at least half of all. The delay of each is at most the time between its last two probes, and these add up to at least
`late_ns`. If the receiver's IP identification shows that ACKs are missing, the update was lost on the path. Near the
receiver, none was sent.

## When it is wrong

The window may have opened just before the probe: the stated time is an upper bound. Without the IP identification a
lost update and one that was never sent look the same.

## What to do

Look for loss on the way back to the sender. If a capture at the receiver contains no update, its stack does not send
one: user-space stacks and proxies must send it immediately after a zero window (RFC 9293 §3.8.6.1), as passt does since
its changes of 2025.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from tcpwin.analysis import ZeroWindowEpisode
from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

FRAMES = 6
AT_ONCE_NS = 10_000_000
"""An answer may be late by one timer tick of a slow kernel (HZ=100)."""


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    answered = [each for each in data.zero_window_episodes if each.ended_by == "probe_answer" and each.probes]
    if not answered or len(answered) * 2 < len(data.zero_window_episodes):
        return
    if sum(map(_most_late_ns, answered)) < case.settings["late_ns"]:
        return
    late = sorted(_answered_at_once(case, answered), key=_most_late_ns, reverse=True)
    most_ns = sum(map(_most_late_ns, late))
    if len(late) * 2 < len(data.zero_window_episodes) or most_ns < case.settings["late_ns"]:
        return
    worst = late[0]
    owner, why = _find_owner(case)
    yield case.finding(
        f"{case.the_sender} learned only from a probe that {case.the_receiver}'s window had opened, "
        f"{_how_often(case, len(late))}, up to {time_text(most_ns)} late: no update reached it "
        f"({why})",
        owner=owner,
        side=case.receiver if owner == "host" else None,
        confidence="possible" if owner == "nobody" else "likely",
        cost_ns=most_ns,
        evidence=Evidence(
            frames=tuple(frame for each in late[: FRAMES // 2] for frame in (each.start_frame, each.end_frame)),
            start_ns=worst.start_ns,
            end_ns=worst.end_ns,
            values={
                "ended_by_probe": len(late),
                "episodes": data.zero_window_episode_count,
                "episodes_looked_at": len(data.zero_window_episodes),
                "late_at_most_ns": most_ns,
                "closed_ns": sum(each.duration_ns for each in late),
            },
            ruled_out="Not a spontaneous update: the window opened within two round trips of a probe.",
            frames_of=of_many("latest", min(len(late), FRAMES // 2), len(late), "start and end of the"),
            span_of=of_many("latest", 1, len(late)),
        ),
        remedy=Remedy(
            f"Capture at {case.the_receiver}. If the update is there, look for loss on the path to {case.the_sender}; "
            "if not, update the stack or proxy there.",
        ),
    )


def _how_often(case: Case, late: int) -> str:
    """Return ``3 of 4 times``, and how many were checked if the analysis lists only the first episodes."""
    listed, count = len(case.data.zero_window_episodes), case.data.zero_window_episode_count
    if listed == count:
        return f"{late} of {count_text(count, 'time')}"
    return f"{late} times of the {listed:,} checked, out of {count:,}"


def _answered_at_once(case: Case, episodes: list[ZeroWindowEpisode]) -> list[ZeroWindowEpisode]:
    rtt_ns = case.connection.path_rtt_ns or case.data.rtt_min_ns
    if rtt_ns is None:
        return []
    probes = [event.time_ns for event in case.events("zero_window_probe", side=case.sender)]
    found = []
    for episode in episodes:
        at = bisect_right(probes, episode.end_ns)
        if at and episode.end_ns - probes[at - 1] <= 2 * rtt_ns + AT_ONCE_NS:
            found.append(episode)
    return found


def _find_owner(case: Case) -> tuple[str, str]:
    if case.data.view == "receiver":
        return "host", "none was sent"
    if case.data.acks_missing:
        return "network", "it was lost: the IP identification shows that ACKs are missing here"
    return "nobody", "it was lost or never sent"


def _most_late_ns(episode: ZeroWindowEpisode) -> int:
    """Return the upper bound on the update's delay, from the last probe answered with zero or from the closing."""
    return episode.last_probe_interval_ns if episode.probes > 1 else episode.duration_ns


RULE = Rule(
    code="TW204",
    name="window-update-late",
    title="the window opened, but the sender learned of it only from a probe",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    when=(("zero_window_probes", ">", 0.0), ("zero_window_ns", ">=", "{late_ns}")),
    thresholds={"late_ns": Threshold(200_000_000, "ns", "Linux's shortest probe interval; less is barely noticeable.")},
)
