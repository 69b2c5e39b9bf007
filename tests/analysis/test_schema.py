"""The JSON Schema of the document is complete, accepts every bundled capture, and rejects broken documents."""

import copy
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from analysis.bundled import READABLE, WHOLE, analyze, name_of
from cases import all_cases

from tcpwin import _engine
from tcpwin.analysis import Capture, CaptureFile, CaptureWarning, Event, Interface, ZeroWindowEpisode
from tcpwin.hosts import Disagreement, JoinedSample, Limits, Seen, SnapshotFacts, Translated, UnknownLine
from tcpwin.limits import ITEMS, LIMITS, VERDICT_FIELDS

SCHEMA = json.loads(files("tcpwin.analysis").joinpath("schema.json").read_text(encoding="utf8"))
MODEL = Path(__file__).parents[2] / ".ci" / "model.py"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SLOW_READER = next(path for path in WHOLE if path.name == "slow-reader.pcap.gz")


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["title"] == SCHEMA["properties"]["schema"]["const"] == "tcpwin/analysis/2"


@all_cases(
    ("group", "kind"),
    [
        ("capture", Capture),
        ("file", CaptureFile),
        ("interface", Interface),
        ("warning", CaptureWarning),
        ("zero_window_episode", ZeroWindowEpisode),
        ("event", Event),
        ("snapshot_file", SnapshotFacts),
        ("unknown_line", UnknownLine),
        ("translated", Translated),
        ("joined", JoinedSample),
        ("seen", Seen),
        ("limits", Limits),
        ("disagreement", Disagreement),
    ],
)
def test_schema_lists_every_attribute(group: str, kind: Any) -> None:
    names = [field.name for field in dataclasses.fields(kind)]
    assert list(SCHEMA["$defs"][group]["properties"]) == SCHEMA["$defs"][group]["required"] == names


def test_schema_lists_every_limit_item_and_field_of_a_verdict() -> None:
    verdict, spending = SCHEMA["$defs"]["verdict"], SCHEMA["$defs"]["spending"]
    assert verdict["required"] == list(verdict["properties"]) == list(VERDICT_FIELDS)
    assert verdict["properties"]["limit"]["enum"] == list(LIMITS)
    assert list(spending["properties"]["items_ns"]["properties"]) == list(ITEMS)


def test_generated_files_follow_the_engines_tables() -> None:
    """If they differ, run `just model`."""
    check = subprocess.run([sys.executable, MODEL, "--check"], capture_output=True, text=True, check=False)
    assert (check.returncode, check.stdout) == (0, ""), check.stderr


def test_schema_lists_every_event_and_cause() -> None:
    event = SCHEMA["$defs"]["event"]
    assert event["properties"]["names"]["items"]["enum"] == _engine.EVENT_NAMES
    assert event["properties"]["cause"]["enum"] == [*_engine.CAUSES, None]
    assert tuple(event["required"]) == _engine.EVENT_FIELDS


@all_cases("path", READABLE, ids=name_of, of=6, first=2)
def test_schema_accepts_every_bundled_capture(path: Path) -> None:
    problems = [problem.message for problem in VALIDATOR.iter_errors(json.loads(analyze(path).to_json()))]
    assert not problems


def delete(*keys: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


def put(value: Any, *keys: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        assert keys[-1] in document
        document[keys[-1]] = value

    return change


@all_cases(
    "change",
    [
        delete("schema"),
        delete("capture"),
        delete("connections"),
        delete("capture", "segments"),
        delete("capture", "files", 0, "warnings"),
        delete("connections", 0, "id"),
        delete("verdict"),
        delete("summary"),
        delete("connections", 0, "b_to_a"),
        delete("connections", 0, "verdict"),
        delete("connections", 0, "verdict", "fix"),
        delete("connections", 0, "budget", "b_to_a"),
        delete("connections", 0, "b_to_a", "zero_window_ns"),
        delete("connections", 0, "b_to_a", "zero_window_episodes", 3, "ended_by"),
        put("tcpwin/analysis/3", "schema"),
        put("0", "connections", 0, "id"),
        put(-1, "connections", 0, "id"),
        put(1.5, "connections", 0, "duration_ns"),
        put(None, "connections", 0, "start_ns"),
        put(65_536, "connections", 0, "a_port"),
        put(5, "connections", 0, "ip_version"),
        put("c", "connections", 0, "reset_by"),
        put("aborted", "connections", 0, "close"),
        put(1, "connections", 0, "initiator_known"),
        put(15, "connections", 0, "b_to_a", "window_scale_shift"),
        put("guessed", "connections", 0, "b_to_a", "window_scale_state"),
        put("NaN", "connections", 0, "b_to_a", "flight_mean_bytes"),
        put("none", "connections", 0, "b_to_a", "window_scale_evidence"),
        put("timeout", "connections", 0, "b_to_a", "zero_window_episodes", 0, "ended_by"),
        put([[1, 2, 3]], "capture", "unknown_link_types"),
        put({}, "connections"),
        put("window", "connections", 0, "verdict", "limit"),
        put(1.5, "connections", 0, "verdict", "share"),
        put("high", "connections", 0, "verdict", "confidence"),
        put("client", "connections", 0, "verdict", "owner"),
        put(-1, "connections", 0, "budget", "b_to_a", "items_ns", "handshake"),
    ],
)
def test_schema_rejects_a_broken_document(change: Callable[[Any], None]) -> None:
    document = json.loads(analyze(SLOW_READER).to_json())
    assert VALIDATOR.is_valid(document)
    broken = copy.deepcopy(document)
    change(broken)
    assert not VALIDATOR.is_valid(broken)


def test_schema_lets_names_be_added() -> None:
    """Within a version, fields may be added: a reader must accept them."""
    document = json.loads(analyze(SLOW_READER).to_json())
    document["connections"][0]["b_to_a"]["something_new"] = 1
    assert VALIDATOR.is_valid(document)
