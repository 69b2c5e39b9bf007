"""`tcpwin analyze --json` keeps to the schema that comes with the package."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from analysis.bundled import READABLE, name_of
from cli.command import CAPTURES, KEEP_ALIVE, MANY_SHORT, SLOW_READER, tcpwin

SCHEMA = json.loads(files("tcpwin.analysis").joinpath("schema.json").read_text(encoding="utf8"))


@pytest.mark.parametrize("path", READABLE, ids=name_of)
def test_document_keeps_to_the_schema(path: Path) -> None:
    document = json.loads(tcpwin("analyze", "--json", path).stdout, parse_constant=pytest.fail)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    assert document["name"] == str(path)


def test_document_of_several_files_and_of_one_connection() -> None:
    for arguments in ([KEEP_ALIVE, SLOW_READER], ["--connection", 3, MANY_SHORT]):
        document = json.loads(tcpwin("analyze", "--json", *arguments).stdout)
        jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)


def test_document_is_the_same_each_time_and_ends_in_a_newline() -> None:
    first, second = (tcpwin("analyze", "--json", MANY_SHORT).stdout for _ in range(2))
    assert first == second
    assert first.endswith(b"]}\n")
    assert first.isascii()


def test_command_lists_the_fields_of_the_schema() -> None:
    listing = json.loads(tcpwin("fields", "--json").stdout)
    assert listing.pop("schema") == SCHEMA["properties"]["schema"]["const"]
    for group, fields in listing.items():
        assert {field["name"] for field in fields} <= set(SCHEMA["$defs"][group]["required"])
    assert set(listing) == {"connection", "direction"}


def test_document_of_a_capture_without_tcp() -> None:
    document = json.loads(tcpwin("analyze", "--json", CAPTURES / "broken" / "only-a-header.pcap").stdout)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    assert document["connections"] == []
