"""Findings of rules: what happened, where and when, its cost, confidence, evidence and remedy.

A finding is data, independent of rules, files and text formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from tcpwin.analysis import DirectionName


class Severity(IntEnum):
    """The severity of a finding: `INFO` explains, `WARNING` costs something, `ERROR` breaks or stalls."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for a finding.

    Attributes:
        frames: numbers of frames to open in Wireshark, most relevant first, at most a dozen.
        start_ns, end_ns: when it happened, in nanoseconds since the epoch; None for the whole connection.
        values: the compared numbers, by names with units: ``{"window_bytes": 65535, "bdp_bytes": 1250000}``.
        ruled_out: the likeliest alternative explanation and why it does not apply; a sentence.
        frames_of: which occurrences the frames show, from `of_many`: ``first 6 of 19``; None if they show all.
        span_of: which occurrences the times cover: ``longest of 66``; None if they cover all.
    """

    frames: tuple[int, ...] = ()
    start_ns: int | None = None
    end_ns: int | None = None
    values: Mapping[str, float | int | str] = field(default_factory=dict)
    ruled_out: str | None = None
    frames_of: str | None = None
    span_of: str | None = None


def of_many(which: str, shown: int, total: int, frames: str = "") -> str | None:
    """Describe which occurrences are shown: ``first 6 of 19``, ``longest of 66``; None if all are.

    Args:
        frames: what the frames show of each occurrence, if there are several: ``start and end of the``.
    """
    if shown >= total:
        return None
    return f"{frames} {which} {'' if shown == 1 else f'{shown} '}of {total:,}".lstrip()


@dataclass(frozen=True, slots=True)
class Remedy:
    """A recommended change.

    Attributes:
        text: a sentence naming the change and the host.
        settings: ready-made commands for that host, such as ``sysctl -w net.ipv4.tcp_slow_start_after_idle=0``.
        side_effects: other effects of the change; a sentence.
    """

    text: str
    settings: tuple[str, ...] = ()
    side_effects: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule.

    Attributes:
        code, name: those of the rule: ``TW201``, ``zero-window-stall``.
        severity: severity of this finding; by default the rule's.
        text: what happened, in one or two sentences with numbers.
        connection: the connection's number; None for a finding about the capture or a host.
        direction: the affected direction, ``a_to_b`` or ``b_to_a``; None if both or neither.
        owner: who can change it: one of `tcpwin.limits.OWNERS`.
        side: the end where something should change, ``client`` or ``server``; None if it is not an end.
        cost_ns: how much sooner the connection would have ended without it, in nanoseconds, like `Verdict.cost_ns`; 0
            if it cost a rate instead, or nothing.
        lost_bps: rate lost relative to the path's, in bits per second; None if unknown.
        confidence: one of `tcpwin.limits.CONFIDENCES`.
        limits: the limits that it is about, by default the rule's.
        items_ns: time that it claims from the direction's budget, by item; no other finding claims the same time.
    """

    code: str
    name: str
    severity: Severity
    text: str
    connection: int | None
    direction: DirectionName | None
    owner: str
    side: str | None
    cost_ns: int
    lost_bps: float | None
    confidence: str
    evidence: Evidence
    remedy: Remedy | None = None
    limits: tuple[str, ...] = ()
    items_ns: Mapping[str, int] = field(default_factory=dict)
