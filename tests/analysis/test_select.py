"""Connections selected by fields agree with their fields, which are read on demand."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from operator import eq, ge, gt, le, lt
from typing import Any

import pytest
from analysis.bundled import READABLE, analyze, name_of
from cases import all_cases

from tcpwin import _engine
from tcpwin.analysis import Direction

SIGNS: dict[str, Callable[[Any, Any], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt, "==": eq}
WAYS = ("a_to_b", "b_to_a")
QUESTIONS: list[tuple[str, list[tuple[str, str, Any]]]] = [
    ("direction", [("unique_bytes", ">=", 1000), ("connection.duration_ns", ">", 0)]),
    ("direction", [("window_scale_shift", "==", None)]),
    ("direction", [("flight_max_bytes", "<", 20_000), ("view", "==", "sender")]),
    ("direction", [("syn_seen", "==", True), ("rtt_min_ns", "<=", 1_000_000)]),
    ("connection", [("close", "==", "refused")]),
    ("connection", [("handshake_rtt_ns", "==", None)]),
    ("connection", []),
]


@all_cases("path", READABLE, ids=name_of)
def test_one_walk_answers_all_questions_as_each_alone_and_as_the_fields_say(path: Any) -> None:
    analysis = analyze(path)
    found = analysis.select_all(QUESTIONS)
    for (scope, conditions), picked in zip(QUESTIONS, found, strict=True):
        assert list(picked) == list(analysis.select(scope, conditions)) == expected(analysis, scope, conditions)
        assert len(picked) == len(list(picked))


def expected(analysis: Any, scope: str, conditions: list[tuple[str, str, Any]]) -> list[tuple[int, str | None]]:
    return [
        (connection.id, way)
        for connection in analysis.connections
        for way in (("a_to_b", "b_to_a") if scope == "direction" else (None,))
        if all(holds(connection, way, *condition) for condition in conditions)
    ]


def holds(connection: Any, way: str | None, name: str, sign: str, wanted: Any) -> bool:
    if way is None or name.startswith("connection."):
        value = connection.fields[name.removeprefix("connection.")]
    elif name.startswith("window_scale_"):
        value = getattr(getattr(connection, way).window_scale, name.removeprefix("window_scale_"))
    else:
        value = getattr(getattr(connection, way), name)
    return (value is None) == (wanted is None) and (wanted is None or SIGNS[sign](value, wanted))


@all_cases("path", READABLE, ids=name_of)
def test_each_field_can_be_selected(path: Any) -> None:
    """Searching a rare field only where it may occur misses no connection."""
    analysis = analyze(path)
    asked = [
        [(name, sign, 0.5)] for name, kind, _ in _engine.fields("direction") if kind == "int" for sign in (">", "<")
    ]
    found = analysis.select_all(("direction", conditions) for conditions in asked)
    ways = [
        (each.id, way, analysis._engine.direction(each.id, way == "a_to_b"))
        for each in analysis.connections
        for way in WAYS
    ]
    for ((name, sign, _),), picked in zip(asked, found, strict=True):
        told = [(id, way, fields[name]) for id, way, fields in ways]
        assert list(picked) == [(id, way) for id, way, value in told if value is not None and SIGNS[sign](value, 0.5)]


def test_a_wrong_question_is_refused() -> None:
    analysis = analyze(READABLE[0])
    with pytest.raises(KeyError, match="unknown field nonsense"):
        analysis.select_all([QUESTIONS[0], ("direction", [("nonsense", ">", 0)])])
    with pytest.raises(ValueError, match="unknown operator !="):
        analysis.select("direction", [("unique_bytes", "!=", 0)])


@all_cases("path", READABLE, ids=name_of)
def test_responders_are_counted_by_address_and_port(path: Any) -> None:
    analysis = analyze(path)
    established = [connection for connection in analysis.connections if connection.fields["established_ns"]]
    ends = Counter((connection.b.address, connection.b.port) for connection in established)
    assert analysis.responders("connection", [("established_ns", ">", 0)]) == ends
    known = [connection for connection in analysis.connections if connection.a_to_b.window_scale.state == "known"]
    ends = Counter((connection.b.address, connection.b.port) for connection in known)
    assert analysis.responders("direction", [("window_scale_state", "==", "known")]) == ends


def test_a_direction_compares_shows_and_travels_as_if_all_were_read() -> None:
    analysis = analyze(next(path for path in READABLE if "zero-window-stall" in str(path)))
    connection = analysis.connections[0]
    direction, again = connection.b_to_a, analysis.connections[0].b_to_a
    assert direction is not again
    assert direction == again
    assert direction != connection.a_to_b
    assert hash(direction) == hash(again)
    assert repr(direction).count("=") >= len(fields(Direction))
    assert pickle.loads(pickle.dumps(analysis.connections[0].b_to_a)) == direction
    with pytest.raises(AttributeError, match="no attribute 'window_scale_state'"):
        _ = direction.window_scale_state  # type: ignore[attr-defined]
