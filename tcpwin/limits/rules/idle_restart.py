"""## What it finds

After each pause the sender restarted with a smaller congestion window, so a message that used to leave at once took one
or more extra round trips.

## Why it matters

Linux halves the congestion window for every retransmission timeout of silence, down to ten segments
(`tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`; RFC 5681 §4.1). Nothing is lost and the receive window is open,
so no counter and no drop shows it: messages are simply late by whole round trips.

## How it is judged

`idle_restarts` counts pauses longer than the timeout, followed by a burst that ends within the window that Linux's rule
leaves, below the earlier flight, and continues when the ACK arrives. `idle_restart_cost_ns` is at least `cost_ns`, and
at least `share` of the time with data to send. The rule is silent if `ss` names BBR or the sender's sysctl is 0.
Three restarts seen near the sender, the sysctl at 1, or a congestion window that `ss` saw fall across a pause make the
finding `certain`.

## When it is wrong

An application that writes part of a message, and the rest just as the ACK arrives, looks the same, but this is rare.
Other systems restart by different rules (Windows: CwndRestart of `Set-NetTCPSetting`).

## What to do

Set `net.ipv4.tcp_slow_start_after_idle=0` where the application runs. The sysctl belongs to the **network namespace**,
so a container needs it inside; the host's setting does not apply there (Ably, "Optimizing global message transit
latency", 2024). It affects open connections at once. See `idle-restart.md` for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.events import events_of
from tcpwin.limits.evidence.loss import share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

if TYPE_CHECKING:
    from tcpwin.hosts import SocketSample

SETTING = "net.ipv4.tcp_slow_start_after_idle"
SURE = 3
"""Restarts that make the finding certain: an application may write in step with an ACK once or twice."""
FRAMES = 6


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    cost_ns, share = data.idle_restart_cost_ns, share_of(case, data.idle_restart_cost_ns)
    if share < case.settings["share"]:
        return
    samples = case.sockets(case.sender)
    host = case.host(case.sender)
    setting = host.settings.number(SETTING) if host is not None and host.settings is not None else None
    if setting == 0 or any((sample.congestion_control or "").startswith("bbr") for sample in samples):
        return
    cuts = _cuts(samples)
    events = events_of(case, "idle_restart", side=case.sender)
    values: dict[str, float | int | str] = {
        "idle_restarts": data.idle_restarts,
        "round_trips": data.idle_restart_round_trips,
        "cost_ns": cost_ns,
        "path_rtt_ns": case.connection.path_rtt_ns or 0,
        "rto_ns": data.rto_ns or 0,
        "idle_gaps": data.idle_gaps,
    }
    if setting is not None:
        values[SETTING] = setting
    if samples:
        values["cwnd_falls_in_ss"] = cuts
    yield case.finding(
        f"{case.the_sender} restarted with a smaller congestion window after {count_text(data.idle_restarts, 'pause')} "
        "(tcp_slow_start_after_idle): its messages took "
        f"{count_text(data.idle_restart_round_trips, 'more round trip')} "
        f"({time_text(cost_ns)} total)",
        owner="host",
        side=case.sender,
        confidence=_confidence(case, setting=setting, cuts=cuts),
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=tuple(event.frame for event in events[:FRAMES]),
            start_ns=events[0].time_ns if events else None,
            end_ns=events[-1].time_ns if events else None,
            values=values,
            frames_of=_frames_of(min(len(events), FRAMES), data.idle_restarts),
            ruled_out=(
                "Not the application: the waiting data left with the ACK, a round trip after the burst began. Not the "
                "receive window: it had space."
            ),
        ),
        remedy=_remedy(case, samples),
    )


def _frames_of(shown: int, total: int) -> str | None:
    """Describe the frames, and how many of the pauses they show."""
    which = of_many("first", shown, total, "data that waited for an ACK after the")
    return None if not shown else f"{which} pauses" if which else "data that waited for an ACK after each pause"


def _confidence(case: Case, *, setting: int | None, cuts: int) -> str:
    if case.data.view == "receiver" or case.data.view == "unknown":
        return "certain" if cuts else "likely"
    return "certain" if setting == 1 or cuts or case.data.idle_restarts >= SURE else "likely"


def _cuts(samples: Sequence[SocketSample]) -> int:
    """Count how often the congestion window fell after a silence longer than the timeout, without a retransmission."""
    found = 0
    for before, after in pairwise(samples):
        windows = before.cwnd_segments, after.cwnd_segments
        silence_ns, rto_ns = before.lastsnd_ns, before.rto_ns
        if None in windows or silence_ns is None or rto_ns is None:
            continue
        fell = (after.cwnd_segments or 0) < (before.cwnd_segments or 0)
        found += fell and silence_ns > rto_ns and before.count("retrans_total") == after.count("retrans_total")
    return found


def _remedy(case: Case, samples: Sequence[SocketSample]) -> Remedy:
    pids = sorted({user.pid for sample in samples for user in sample.users})
    pid = str(pids[0]) if len(pids) == 1 else "<pid of the application>"
    return Remedy(
        f"Set {SETTING}=0 on {case.the_sender}, in its network namespace (a container has a separate one).",
        settings=(
            f"sysctl -w {SETTING}=0",
            f"nsenter -t {pid} -n sysctl -w {SETTING}=0",
            f"docker run --sysctl {SETTING}=0 ...",
        ),
        side_effects=(
            "After a pause the whole previous window leaves in one burst, which the path may drop. This affects all "
            "connections of the namespace. Pacing (fq) spreads the burst."
        ),
    )


RULE = Rule(
    code="TW401",
    name="idle-restart",
    title="the congestion window was cut after pauses",
    severity=Severity.WARNING,
    scope="direction",
    limits=("idle_restart",),
    judge=judge,
    page=__doc__,
    when=(("idle_restarts", ">=", 1), ("idle_restart_cost_ns", ">=", "{cost_ns}")),
    thresholds={
        "cost_ns": Threshold(100_000_000, "ns", "People notice a delay of about a tenth of a second."),
        "share": Threshold(0.02, "share", "Less than 2 % of the time with data to send is barely noticeable."),
    },
)
