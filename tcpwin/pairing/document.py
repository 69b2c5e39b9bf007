"""The JSON document of a pairing; `schema.json` in this folder describes it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tcpwin.limits import describe_budget, describe_verdict

if TYPE_CHECKING:
    from tcpwin.pairing.clock import Clock
    from tcpwin.pairing.connection import Change, PairedConnection, PairedDirection
    from tcpwin.pairing.judging import JudgedConnection, JudgedDirection
    from tcpwin.pairing.pairing import Pairing
    from tcpwin.pairing.unpaired import UnpairedConnection

SCHEMA = "tcpwin/pair/1"
_COUNTS = (
    *("sent", "delivered", "lost", "late", "duplicated", "unknown", "outside", "unseen", "in_neither"),
    *("missed_at_source", "missed_at_target", "captured_twice", "injected", "retransmissions", "altered", "bytes"),
)


def describe(pairing: Pairing) -> dict[str, Any]:
    """Return the document that ``tcpwin pair --json`` writes."""
    clock = _clock(pairing.clock)
    names = (pairing.name_a, pairing.name_b)
    a, b = (
        {"name": name, "segments": segments, "missed": missed}
        for name, segments, missed in zip(names, pairing.segments, pairing.missed, strict=True)
    )
    return {
        "schema": SCHEMA,
        "a": a,
        "b": b,
        "clock": clock,
        "connections": [_connection(each, clock, pairing.judge(each.number)) for each in pairing.connections],
        "unpaired": [_unpaired(each) for each in pairing.unpaired],
        "proxies": [{"a": _unpaired(each.in_a), "b": _unpaired(each.in_b)} for each in pairing.proxies],
        "warnings": list(pairing.warnings),
    }


def _clock(clock: Clock | None) -> dict[str, Any] | None:
    if clock is None:
        return None
    return {
        "offset_ns": clock.offset_ns,
        "drift_ppm": clock.drift_ppm,
        "uncertainty_ns": clock.uncertainty_ns,
        "steps_ns": list(clock.steps_ns),
        "pieces": [
            {
                "from_ns": piece.from_ns,
                "until_ns": piece.until_ns,
                "offset_ns": piece.offset_ns,
                "drift_ppm": piece.drift_ppm,
                "uncertainty_ns": piece.uncertainty_ns,
                "drift_uncertainty_ppm": piece.drift_uncertainty_ppm,
            }
            for piece in clock.pieces
        ],
    }


def _connection(
    connection: PairedConnection, clock: dict[str, Any] | None, judged: JudgedConnection | None
) -> dict[str, Any]:
    return {
        "number": connection.number,
        "first_frame": {"a": connection.first_frame_a, "b": connection.first_frame_b},
        "clock": clock,
        "verdict": None if judged is None else describe_verdict(judged.verdict),
        "directions": [
            {**_direction(each), **_judged(None if judged is None else judged.directions[each.index])}
            for each in connection.directions
        ],
    }


def _judged(direction: JudgedDirection | None) -> dict[str, Any]:
    if direction is None:
        return dict.fromkeys(("verdict", "judged_in", "budget", "alone", "at_sender", "at_receiver"))
    return {
        "verdict": describe_verdict(direction.verdict),
        "judged_in": direction.judged_in,
        "budget": describe_budget(direction.budget),
        "alone": {letter: describe_verdict(each) for letter, each in sorted(direction.alone.items())},
        "at_sender": asdict(direction.sender_view),
        "at_receiver": asdict(direction.receiver_view),
    }


def _direction(direction: PairedDirection) -> dict[str, Any]:
    delay = direction.delay
    return {
        "from": str(direction.source),
        "to": str(direction.target),
        "from_in_b": str(direction.source_in_b),
        "to_in_b": str(direction.target_in_b),
        "leaves_at": direction.leaves_at,
        "unit": direction.unit,
        **{name: getattr(direction, name) for name in _COUNTS},
        "lost_frames": list(direction.lost_frames),
        "resent": asdict(direction.resent),
        "hops": None if direction.hops is None else list(direction.hops),
        "delay_ns": None
        if delay is None
        else {
            "least": delay.least_ns,
            "mean": delay.mean_ns,
            "most": delay.most_ns,
            "before_loss": delay.before_loss_ns,
        },
        "changes": [_change(each) for each in direction.changes],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "field": change.field,
        "rule": change.rule,
        "packets": change.packets,
        "frame": {"a": change.frame_a or None, "b": change.frame_b or None},
        "left_as": change.left_as,
        "came_as": change.came_as,
    }


def _unpaired(each: UnpairedConnection) -> dict[str, Any]:
    return {
        "capture": each.capture,
        "from": str(each.source),
        "to": str(each.target),
        "first_frame": each.first_frame,
        "packets": list(each.packets),
        "bytes": list(each.bytes),
    }
