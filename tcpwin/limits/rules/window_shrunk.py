"""## What it finds

The receiver took back window that it had offered: the right edge moved left.

## Why it matters

A receiver should not do this (RFC 9293 §3.8.6.2.2, SHLD-14). Data sent into the old window may be dropped and need
retransmission, and the sender's state becomes inconsistent; senders must tolerate it (RFC 9293 MUST-34).

## How it is judged

An in-order ACK moved the right edge left by at least one unit of the scale, at least `shrinks` times. Less is rounding
(RFC 7323 §2.4). Late ACKs are ignored (SND.WL1). It is a warning if the window went to zero. If the receiver's settings
are available, the finding names the kernel's rule: from Linux 6.5 on `net.ipv4.tcp_shrink_window` = 1 allows shrinking
(commit b650d953cd39); from 6.6 on a receiver that is out of memory announces zero (commit e2142825c120).

## When it is wrong

A middlebox that shapes traffic by rewriting windows has the same effect. A capture that lost packets, or wrote them in
the wrong order, shows edges that were never in force; so do ACKs that overtook one another.

## What to do

Nothing if tcp_shrink_window is set on purpose to limit memory. Otherwise give the receiver more memory, or look for a
middlebox.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.doubled import copied_after_ns
from tcpwin.limits.evidence.receive_buffer import kernel_at
from tcpwin.limits.evidence.window import spread
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text

SETTING = "net.ipv4.tcp_shrink_window"


def judge(case: Case) -> Iterator[Finding]:
    if copied_after_ns(case) is not None:
        # Near one end, a later segment of the other end may be captured before an earlier one.
        return
    data, receiver = case.data, case.receiver
    host = case.host(receiver)
    setting = None if host is None or host.settings is None else host.settings.number(SETTING)
    kernel = kernel_at(host)
    shrunk = case.events("window_shrink", side=receiver)
    to_zero = sum(event.window_raw == 0 for event in shrunk)
    why, remedy, confidence = _explain(setting, kernel, to_zero == len(shrunk) and to_zero > 0, case.the_receiver)
    yield case.finding(
        f"{case.the_receiver} took back offered window {count_text(data.window_shrinks, 'time')}: {why}",
        owner="host",
        side=receiver,
        confidence=confidence,
        severity=Severity.WARNING if to_zero else Severity.INFO,
        evidence=Evidence(
            frames=spread([event.frame for event in shrunk]),
            start_ns=shrunk[0].time_ns if shrunk else None,
            end_ns=shrunk[-1].time_ns if shrunk else None,
            values={"window_shrinks": data.window_shrinks, "to_zero": to_zero, "retransmissions": data.retransmissions},
            ruled_out="Not rounding by the scale, which is less than one unit, nor late ACKs.",
        ),
        remedy=remedy,
    )


def _explain(
    setting: int | None, kernel: tuple[int, int] | None, all_zero: bool, receiver: str
) -> tuple[str, Remedy, str]:
    if setting == 1:
        return (
            f"{SETTING} is 1 there, which allows it",
            Remedy(
                f"Nothing if it limits memory on {receiver} on purpose; otherwise switch it off.",
                settings=(f"sysctl -w {SETTING}=0",),
                side_effects="Without it a receive buffer may exceed tcp_rmem while data arrives.",
            ),
            "certain",
        )
    if all_zero and kernel is not None and kernel >= (6, 6):
        return (
            "always to zero, as Linux does from 6.6 on when the socket is out of memory",
            Remedy(
                f"Check TCP's memory on {receiver}: `mem` of /proc/net/sockstat against net.ipv4.tcp_mem, in pages.",
                side_effects="A higher limit leaves less memory for everything else.",
            ),
            "likely",
        )
    return (
        "its stack shrinks windows, or a box on the path rewrites them",
        Remedy(f"Compare with a capture at {receiver}: windows that differ were rewritten on the path."),
        "likely",
    )


RULE = Rule(
    code="TW205",
    name="window-shrunk",
    title="the receiver shrank a window that it had advertised",
    severity=Severity.INFO,
    scope="direction",
    limits=("receiver_window", "path_loss"),
    judge=judge,
    page=__doc__,
    when=(("window_shrinks", ">=", "{shrinks}"),),
    thresholds={
        "shrinks": Threshold(3, "count", "Once or twice may be ACKs that overtook one another, which look the same.")
    },
)
