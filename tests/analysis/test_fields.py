"""The engine's field list, the typed classes, columns and JSON have the same names and types."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from analysis.bundled import READABLE, TRUTHS, analyze, name_of
from cases import all_cases
from live import HANG_S

import tcpwin
from tcpwin import _engine
from tcpwin.analysis import Direction, WindowScale
from tcpwin.limits import ITEMS

KINDS = {"bool": bool, "int": int, "float": float, "str": str}
SCALE_FIELDS = {
    "window_scale_state": "state",
    "window_scale_shift": "shift",
    "window_scale_min": "shift_min",
    "window_scale_max": "shift_max",
    "window_scale_disabled_by": "disabled_by",
}


def plain_kind(hint: Any) -> type:
    """Return the type in a hint without None."""
    kinds = [kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None)]
    assert len(kinds) == 1
    return kinds[0]


def test_direction_has_every_field_of_the_engine() -> None:
    hints, scale_hints = get_type_hints(Direction), get_type_hints(WindowScale)
    told = {name: KINDS[kind] for name, kind, _ in _engine.fields("direction")}
    typed = {
        name: plain_kind(hint) for name, hint in hints.items() if name not in ("window_scale", "zero_window_episodes")
    }
    assert {name for name in told if name.startswith("window_scale_")} == set(SCALE_FIELDS)
    for name, attribute in SCALE_FIELDS.items():
        assert told.pop(name) is plain_kind(scale_hints[attribute])
    assert told == typed
    assert list(told) == [field.name for field in dataclasses.fields(Direction) if field.name in told]


def test_connection_has_every_field_of_the_engine() -> None:
    connection = analyze(READABLE[-1]).connections[0]
    told = [name for name, _, _ in _engine.fields("connection")]
    assert list(connection.fields) == told
    ends = {
        "a_address": connection.a.address,
        "a_port": connection.a.port,
        "b_address": connection.b.address,
        "b_port": connection.b.port,
    }
    for name in told:
        assert connection.fields[name] == (ends[name] if name in ends else getattr(connection, name)), name


@all_cases("path", READABLE, ids=name_of)
def test_values_have_the_declared_type(path: Path) -> None:
    kinds = {
        group: {name: KINDS[kind] for name, kind, _ in _engine.fields(group)} for group in ("connection", "direction")
    }
    for connection in analyze(path):
        for name, value in connection.fields.items():
            assert value is None or type(value) is kinds["connection"][name], name
        for direction in (connection.a_to_b, connection.b_to_a):
            for name, kind in kinds["direction"].items():
                value = direction_value(direction, name)
                assert value is None or type(value) is kind, name


def direction_value(direction: Direction, name: str) -> Any:
    if name in SCALE_FIELDS:
        return getattr(direction.window_scale, SCALE_FIELDS[name])
    return getattr(direction, name)


def test_fields_are_documented_in_a_sentence() -> None:
    for group in ("connection", "direction"):
        fields = _engine.fields(group)
        assert len({name for name, _, _ in fields}) == len(fields)
        for name, _, meaning in fields:
            assert meaning.endswith("."), name


def test_command_lists_the_same_fields() -> None:
    command = [Path(sys.executable).with_name("tcpwin"), "fields"]
    listing = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True, timeout=HANG_S).stdout)
    assert listing.pop("schema") == "tcpwin/analysis/2"
    assert listing.pop("groups")
    for group, fields in listing.items():
        assert [(field["name"], field["type"], field["meaning"]) for field in fields] == _engine.fields(group)
    assert set(listing) == {"connection", "direction"}
    text = subprocess.run(command, capture_output=True, check=True, timeout=HANG_S, text=True).stdout
    for group in listing:
        for name, kind, meaning in _engine.fields(group):
            assert any(line.split() == [name, kind, *meaning.split()] for line in text.splitlines()), name


@all_cases("path", READABLE, ids=name_of, of=6, first=1)
def test_columns_equal_the_attributes_and_are_masked_where_none(path: Path) -> None:
    analysis = analyze(path)
    connections = analysis.connections
    for name in connections.column_names:
        column = connections.column(name)
        assert column.shape == (len(connections),)
        group, dot, field = name.partition(".")
        expected = [
            direction_value(getattr(connection, group), field) if dot else connection.fields[name]
            for connection in connections
        ]
        assert column.tolist() == expected, name


def test_unknown_columns_are_refused() -> None:
    connections = analyze(READABLE[0]).connections
    for name in ("nonsense", "a_to_b.nonsense", "c_to_d.segments", "a_to_b.", "a_to_b.id", ""):
        with pytest.raises(KeyError):
            connections.column(name)


def test_bundled_captures_are_there() -> None:
    assert len(TRUTHS) > 40
    assert tcpwin.__version__


@all_cases("path", READABLE, ids=name_of)
def test_budgets_are_those_of_the_fields(path: Path) -> None:
    analysis = analyze(path)
    engine = analysis._engine
    carried = 0
    for connection in analysis.connections:
        for data, spent in zip((connection.a_to_b, connection.b_to_a), engine.budget(connection.id), strict=True):
            assert spent == [getattr(data, f"budget_{item}_ns") for item in ITEMS]
            carried += max(data.unique_bytes, data.acked_bytes)
    assert engine.carried_bytes() == carried
