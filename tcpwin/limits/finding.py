"""What a rule found: which limit, where, when, what it cost, how sure that is, and what to change.

A finding is data. It knows nothing of rules, files or text formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from tcpwin.analysis import DirectionName


class Severity(IntEnum):
    """How much a finding matters: `INFO` explains, `WARNING` costs something, `ERROR` breaks or stalls."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What proves a finding.

    Attributes:
        frames: numbers of frames to open in Wireshark, the telling ones first, at most a dozen.
        start_ns, end_ns: between which it happened, nanoseconds since the epoch; None for all of the connection.
        values: the numbers compared, by names with units: ``{"window_bytes": 65535, "bdp_bytes": 1250000}``.
        ruled_out: the likeliest other explanation, and why it is none; a sentence.
        frames_of: which of how many times the frames show, `of_many`: ``first 6 of 19``; None where they show all.
        span_of: likewise of which the times are: ``longest of 66``.
    """

    frames: tuple[int, ...] = ()
    start_ns: int | None = None
    end_ns: int | None = None
    values: Mapping[str, float | int | str] = field(default_factory=dict)
    ruled_out: str | None = None
    frames_of: str | None = None
    span_of: str | None = None


def of_many(which: str, shown: int, total: int, frames: str = "") -> str | None:
    """Which of several times are shown: ``first 6 of 19``, ``longest of 66``; None where all are.

    Args:
        frames: what of each the frames are, where there are several: ``start and end of the``.
    """
    if shown >= total:
        return None
    return f"{frames} {which} {'' if shown == 1 else f'{shown} '}of {total:,}".lstrip()


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to change.

    Attributes:
        text: a sentence: what, on which host.
        settings: ready lines for that host, as ``sysctl -w net.ipv4.tcp_slow_start_after_idle=0``.
        side_effects: what else the change does; a sentence.
    """

    text: str
    settings: tuple[str, ...] = ()
    side_effects: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        code, name: of its rule: ``TW201``, ``zero-window-stall``.
        severity: of this finding; by default its rule's.
        text: what happened, in one or two sentences with numbers.
        connection: the connection's number; None for a finding of the capture or of a host.
        direction: ``a_to_b`` or ``b_to_a``: whose data suffered; None where it is both or neither.
        owner: one of `tcpwin.limits.OWNERS`.
        side: the end, ``client`` or ``server``, at which to change something; None where it is no end.
        cost_ns: by how much sooner it would have ended without it, nanoseconds, as `Verdict.cost_ns` has it; 0 where it
            is a rate that is lost, or nothing.
        lost_bps: rate lost against what the path gave, bits per second; None where it is not known.
        confidence: one of `tcpwin.limits.CONFIDENCES`.
        limits: its rule's.
        items_ns: the time of the direction's budget that it claims, by item; no other finding claims the same.
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
