"""`tcpwin analyze --json` matches the packaged schema."""

import dataclasses
import io
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from analysis.bundled import READABLE, WHOLE, analyze, name_of
from cli.command import CAPTURES, KEEP_ALIVE, MANY_SHORT, SLOW_READER, refused, tcpwin
from spread import some_by_day

from tcpwin.limits import verdict_document

SCHEMA = json.loads(files("tcpwin.analysis").joinpath("schema.json").read_text(encoding="utf8"))


@pytest.mark.parametrize("path", some_by_day(READABLE, of=12, first=1), ids=name_of)
def test_document_keeps_to_the_schema(path: Path) -> None:
    document = json.loads(tcpwin("analyze", "--json", path).stdout, parse_constant=pytest.fail)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    assert document["name"] == str(path)


def test_document_of_several_files_and_of_one_connection() -> None:
    for arguments in (["--merge", KEEP_ALIVE, SLOW_READER], ["--connection", 3, MANY_SHORT]):
        document = json.loads(tcpwin("analyze", "--json", *arguments).stdout)
        jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)


LOSS = CAPTURES / "lab" / "loss-1-percent.pcap.gz"


@pytest.mark.parametrize("path", some_by_day(WHOLE, of=12, first=2), ids=name_of)
def test_one_connection_comes_with_its_events(path: Path) -> None:
    document = json.loads(tcpwin("analyze", "--json", "--connection", 0, path).stdout, parse_constant=pytest.fail)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    [connection] = document["connections"]
    expected = [dataclasses.asdict(event) for event in analyze(path).connections[0].events]
    assert connection["events"] == [{**event, "names": list(event["names"])} for event in expected]
    assert connection["events_omitted"] == 0
    # Without its events it equals the connection in the complete document.
    [whole] = [other for other in json.loads(analyze(path).to_json(fields=["all"]))["connections"] if other["id"] == 0]
    assert {**connection, **whole} == connection
    assert set(connection) - set(whole) == {"events", "events_omitted"}


def test_events_give_the_cause_of_a_retransmission() -> None:
    """Frame 127 repeats frame 60; SACK in frame 119 reports more than two segments above it."""
    document = json.loads(tcpwin("analyze", "--json", "--connection", 0, LOSS).stdout)
    events = document["connections"][0]["events"]
    resent = [event for event in events if event["cause"] is not None]
    assert len(resent) == document["connections"][0]["b_to_a"]["retransmissions"] == 59
    first = resent[0]
    assert (first["frame"], first["original_frame"], first["trigger_frame"]) == (127, 60, 119)
    assert (first["direction"], first["names"], first["cause"]) == ("b", ["fast_retransmission"], "fast")
    assert first["confidence"] == "certain"
    assert "SACK" in first["reason"]


def test_events_come_from_standard_input_too() -> None:
    """It can be read only once, so the events must be kept in the first pass."""
    from_file, from_stdin = (
        json.loads(tcpwin("analyze", "--json", "--connection", 0, name, **more).stdout)["connections"]
        for name, more in ((LOSS, {}), ("-", {"input": LOSS.read_bytes()}))
    )
    assert from_file == from_stdin
    assert from_file[0]["events"]


def test_invalid_selections_write_nothing() -> None:
    file = io.StringIO()
    with pytest.raises(IndexError):
        analyze(KEEP_ALIVE).write_json(file, connection=1)
    with pytest.raises(ValueError, match="pass its number"):
        analyze(KEEP_ALIVE).write_json(file, events=True)
    assert not file.getvalue()


def test_document_is_the_same_each_time_and_ends_in_a_newline() -> None:
    first, second = (tcpwin("analyze", "--json", MANY_SHORT).stdout for _ in range(2))
    assert first == second
    assert first.endswith(b"]}\n")
    assert first.isascii()


def test_command_lists_the_fields_and_groups_of_the_schema() -> None:
    listing = json.loads(tcpwin("fields", "--json").stdout)
    assert listing.pop("schema") == SCHEMA["properties"]["schema"]["const"]
    groups = listing.pop("groups")
    for kind, fields in listing.items():
        names = [field["name"] for field in fields]
        assert set(names) <= set(SCHEMA["$defs"][kind]["properties"])
        assert [name for each in groups if each["of"] == kind for name in each["fields"]] == names
    assert set(listing) == {"connection", "direction"}


def absent(kind: str, name: str) -> object:
    """The value of a member that a document omits."""
    schema = SCHEMA["$defs"][kind]["properties"][name]
    kinds = schema.get("type", "")
    if "null" in kinds or None in schema.get("enum", ()):
        return None
    if name == "algorithm":
        return {"a_to_b": None, "b_to_a": None}
    return {"array": [], "boolean": False}.get(kinds, 0)


@pytest.mark.parametrize("path", some_by_day(WHOLE, of=12, first=1), ids=name_of)
def test_what_is_omitted_did_not_occur(path: Path) -> None:
    analysis = analyze(path)
    compact, whole = (json.loads(analysis.to_json(fields=fields))["connections"] for fields in (None, ["all"]))
    for few, every in zip(compact, whole, strict=True):
        for side in ("a_to_b", "b_to_a"):
            own, rest = few.pop(side), every.pop(side)
            assert {**{name: absent("direction", name) for name in rest if name not in own}, **own} == rest
        assert {**{name: absent("connection", name) for name in every if name not in few}, **few} == every
    jsonschema.validate(json.loads(analysis.to_json(fields=["all"])), SCHEMA, jsonschema.Draft202012Validator)


def test_lines_are_the_connections_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the engine judges them together, as it does many."""
    connections = json.loads(tcpwin("analyze", "--format", "json", MANY_SHORT).stdout)["connections"]
    assert len(connections) == 65
    for few in (verdict_document.FEW, 0):
        monkeypatch.setattr(verdict_document, "FEW", few)
        lines = tcpwin("analyze", "--format", "jsonl", MANY_SHORT).stdout.splitlines()
        assert [json.loads(line) for line in lines] == connections


def test_only_chosen_fields_are_written() -> None:
    arguments = ("--format", "jsonl", "--fields", "close, retransmissions,keep_alive,verdict")
    for line in map(json.loads, tcpwin("analyze", *arguments, MANY_SHORT).stdout.splitlines()):
        assert list(line) == ["id", "close", "a_to_b", "b_to_a", "verdict"]
        assert list(line["a_to_b"]) == ["keep_alives", "retransmissions"]
    document = json.loads(tcpwin("analyze", "--json", "--fields", "budget", KEEP_ALIVE).stdout)
    assert list(document["connections"][0]) == ["id", "a_to_b", "b_to_a", "budget"]
    with pytest.raises(ValueError, match="nonsense: `tcpwin fields`"):
        analyze(KEEP_ALIVE).to_json(fields=["nonsense"])


def test_fields_that_do_not_exist_and_formats_that_exclude_each_other_are_refused() -> None:
    assert "did you mean loss?" in refused("analyze", "--json", "--fields", "los", KEEP_ALIVE, status=2)
    assert "names no field" in refused("analyze", "--json", "--fields", ",", KEEP_ALIVE, status=2)
    assert "goes with --json" in refused("analyze", "--fields", "loss", KEEP_ALIVE, status=2)
    assert "exclude each other" in refused("analyze", "--json", "--format", "jsonl", KEEP_ALIVE, status=2)
    assert "for one capture" in refused("analyze", "--format", "jsonl", KEEP_ALIVE, SLOW_READER, status=2)
    assert "one object" in refused("analyze", "--format", "jsonl", "--connection", 0, KEEP_ALIVE, status=2)


def test_document_of_a_capture_without_tcp() -> None:
    document = json.loads(tcpwin("analyze", "--json", CAPTURES / "broken" / "only-a-header.pcap").stdout)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    assert document["connections"] == []
