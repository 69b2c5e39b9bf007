"""Findings for programs: JSON by its schema, SARIF by the standard's, JUnit as XML, GitHub's commands unescaped."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from analysis.bundled import READABLE, name_of
from cases import all_cases
from report.made_findings import NASTY, NASTY_SHOWN, NASTY_TEXT, NOTE, PAGE, RULES, STALL, bundled, found

import tcpwin
from tcpwin.limits import CONFIDENCES, OWNERS, Evidence, Finding, Remedy, Severity, Threshold, Verdicts, check
from tcpwin.limits.document import SCHEMA, describe_finding, describe_page, describe_rule
from tcpwin.limits.rule import SCOPES
from tcpwin.render.machine.github import render_github
from tcpwin.render.machine.junit import junit_document
from tcpwin.render.machine.sarif import sarif_document

DOCUMENT = json.loads(files("tcpwin.limits").joinpath("schema.json").read_text(encoding="utf8"))
ENDS = {"a": "127.0.0.1:42942", "b": "127.0.0.1:9002"}


@pytest.fixture(scope="module")
def analysis() -> tcpwin.Analysis:
    return bundled("keep-alive.pcap")


def names(kind: type) -> list[str]:
    return [each.name for each in dataclasses.fields(kind)]


def test_finding_as_an_object(analysis: tcpwin.Analysis) -> None:
    assert describe_finding(STALL, analysis, analysis.verdict) == {
        "code": "TW901",
        "name": "made-stall",
        "severity": "warning",
        "text": "a waited 100% of the time, 3 times",
        "connection": 0,
        "direction": "b_to_a",
        "owner": "client_host",
        "side": "client",
        "cost_ns": 6_100_000_000,
        "lost_bps": None,
        "confidence": "certain",
        "limits": [],
        "items_ns": {},
        "cost_confidence": "certain",
        "evidence": {
            "frames": [4, 9],
            "start_ns": None,
            "end_ns": None,
            "values": {"window_bytes": 65_535, "rtt_ns": 85_000_000, "rate_bps": 6_170_000.0, "share": 0.2, "times": 3},
            "ruled_out": "Loss: nothing was sent again.",
            "frames_of": None,
            "span_of": None,
        },
        "remedy": {
            "text": "Set a larger buffer on a.",
            "settings": [
                "sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'",
                "sysctl -w net.ipv4.tcp_window_scaling=1",
            ],
            "side_effects": "More memory.",
        },
        **ENDS,
    }


def test_schema_names_every_attribute_and_no_other() -> None:
    defs = DOCUMENT["$defs"]
    for name, kind, more in (
        ("finding", Finding, ["cost_confidence", "a", "b"]),
        ("evidence", Evidence, []),
        ("remedy", Remedy, []),
        ("threshold", Threshold, []),
    ):
        expected = [*names(kind), *more]
        assert list(defs[name]["properties"]) == expected, name
        assert defs[name]["required"] == expected, name
        assert defs[name]["additionalProperties"] is False, name
    assert list(defs["rule"]["properties"]) == defs["rule"]["required"] == list(describe_rule(RULES[0]))
    assert DOCUMENT["properties"]["schema"]["const"] == SCHEMA
    assert defs["severity"]["enum"] == [str(each) for each in Severity]
    assert defs["finding"]["properties"]["owner"]["enum"] == list(OWNERS)
    assert defs["finding"]["properties"]["confidence"]["enum"] == list(CONFIDENCES)
    assert defs["rule"]["properties"]["scope"]["enum"] == list(SCOPES)


def test_values_that_are_not_finite_become_null(analysis: tcpwin.Analysis) -> None:
    odd = dataclasses.replace(
        STALL, lost_bps=float("inf"), evidence=Evidence(values={"rate_bps": float("nan"), "who": NASTY_TEXT})
    )
    described = describe_finding(odd, analysis, None)
    assert (described["lost_bps"], described["evidence"]["values"]["rate_bps"]) == (None, None)
    text = json.dumps(described, allow_nan=False)
    assert json.loads(text)["evidence"]["values"]["who"] == NASTY_TEXT.replace("\ud800", "\\ud800")
    jsonschema.Draft202012Validator({"$ref": "#/$defs/finding", "$defs": DOCUMENT["$defs"]}).validate(described)


@all_cases("path", READABLE, ids=name_of)
def test_findings_of_every_capture_keep_to_the_schema(path: Path) -> None:
    analysis = tcpwin.analyze(path)
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/finding", "$defs": DOCUMENT["$defs"]})
    found = check(analysis)
    verdicts = Verdicts(analysis, found)
    for finding in found:
        described = describe_finding(finding, analysis, verdicts.of(finding))
        validator.validate(described)
        json.dumps(described, allow_nan=False)


def test_page_as_an_object() -> None:
    assert describe_page(RULES[0]) == {
        "code": "TW901",
        "name": "made-stall",
        "title": "title of TW901",
        "severity": "warning",
        "scope": "capture",
        "thresholds": {"limit_ns": {"default": 200_000_000, "unit": "ns", "reason": "A made reason."}},
        "when": [],
        "yields_to": [],
        "page": PAGE,
        "sections": {
            "What it finds": "A made pattern.",
            "Why it matters": "It does not.",
            "How it is judged": "By `limit_ns`.",
            "When it is wrong": "Never.",
            "What to do": "Nothing.",
        },
    }


# From the schema published by OASIS (sarif-schema-2.1.0.json): for each object the properties that tcpwin writes, the
# required ones, and that no others are allowed.
TEXT = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {}, "markdown": {}},
}
BAG = {"type": "object"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """Return the schema of an object without other properties."""
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def listed(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


ARTIFACT_LOCATION = closed([], uri={"type": "string", "format": "uri-reference"}, index={"minimum": -1})
SARIF = closed(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"enum": ["2.1.0"]},
    runs=listed(
        closed(
            ["tool"],
            properties=BAG,
            tool=closed(
                ["driver"],
                driver=closed(
                    ["name"],
                    name={"type": "string"},
                    version={"type": "string"},
                    rules=listed(
                        closed(
                            ["id"],
                            id={"type": "string"},
                            name={"type": "string"},
                            shortDescription=TEXT,
                            fullDescription=TEXT,
                            help=TEXT,
                            defaultConfiguration=closed([], level=LEVEL),
                            properties=BAG,
                        ),
                        uniqueItems=True,
                    ),
                ),
            ),
            artifacts=listed(closed([], location=ARTIFACT_LOCATION), uniqueItems=True),
            results=listed(
                closed(
                    ["message"],
                    ruleId={"type": "string"},
                    ruleIndex={"type": "integer", "minimum": -1},
                    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
                    level=LEVEL,
                    message={**TEXT, "anyOf": [{"required": ["text"]}, {"required": ["id"]}]},
                    locations=listed(
                        closed(
                            [],
                            physicalLocation=closed(["artifactLocation"], artifactLocation=ARTIFACT_LOCATION),
                            logicalLocations=listed(
                                closed([], name={}, fullyQualifiedName={}, kind={"type": "string"}), uniqueItems=True
                            ),
                            message=TEXT,
                        )
                    ),
                    partialFingerprints={"type": "object", "additionalProperties": {"type": "string"}},
                    properties=BAG,
                )
            ),
        ),
        minItems=0,
    ),
)


def sarif(analysis: tcpwin.Analysis, *findings: Finding) -> dict[str, Any]:
    document = sarif_document(analysis, found(*findings), findings, rules=RULES, version="1.2.3")
    jsonschema.Draft202012Validator(SARIF).validate(document)
    read: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return read


def test_sarif_rules(analysis: tcpwin.Analysis) -> None:
    document = sarif(analysis)
    [run] = document["runs"]
    assert document["version"] == "2.1.0"
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"], run["results"]) == ("tcpwin", "1.2.3", [])
    assert [each["id"] for each in driver["rules"]] == ["TW901", "TW902", "TW903"]
    assert [each["defaultConfiguration"]["level"] for each in driver["rules"]] == ["warning", "note", "warning"]
    assert driver["rules"][0] == {
        "id": "TW901",
        "name": "made-stall",
        "shortDescription": {"text": "title of TW901"},
        "fullDescription": {"text": "A made pattern."},
        "help": {"text": PAGE.strip(), "markdown": PAGE.strip()},
        "defaultConfiguration": {"level": "warning"},
        "properties": {
            "scope": "capture",
            "thresholds": {"limit_ns": {"default": 200_000_000, "unit": "ns", "reason": "A made reason."}},
        },
    }


def test_sarif_results(analysis: tcpwin.Analysis) -> None:
    first, second, third = sarif(analysis, STALL, NOTE, NASTY)["runs"][0]["results"]
    properties = first.pop("properties")
    verdict = properties.pop("verdict")
    assert (verdict["limit"], verdict["direction"]) == ("sender_application", "b_to_a")
    assert third["properties"]["verdict"] == verdict
    assert second["properties"]["verdict"] is None
    fingerprint = first.pop("partialFingerprints")["finding/v1"]
    [location] = first.pop("locations")
    uri = location["physicalLocation"]["artifactLocation"].pop("uri")
    assert uri.startswith("file:///")
    assert uri.endswith("/captures/wild/keep-alive.pcap")
    assert location == {
        "physicalLocation": {"artifactLocation": {"index": 0}},
        "logicalLocations": [
            {
                "name": "#0 server→client",
                "fullyQualifiedName": "127.0.0.1:42942→127.0.0.1:9002/#0 server→client",
                "kind": "connection",
            }
        ],
    }
    assert first == {
        "ruleId": "TW901",
        "ruleIndex": 0,
        "kind": "fail",
        "level": "warning",
        "message": {
            "text": (
                "a waited 100% of the time, 3 times (time lost 6.1 s, certain). See frames 4, 9. "
                "Set a larger buffer on a."
            )
        },
    }
    assert properties["evidence"]["frames"] == [4, 9]
    assert set(properties) == {*names(Finding), "cost_confidence", "a", "b"} - {"code", "name", "severity", "text"}
    assert (second["ruleIndex"], second["level"]) == (1, "note")
    assert "logicalLocations" not in second["locations"][0]
    assert (third["ruleIndex"], third["level"]) == (0, "error")
    assert third["message"]["text"].startswith(NASTY_SHOWN)
    # The third has the same rule, connection and direction as the first: a viewer must not merge them.
    assert third["partialFingerprints"]["finding/v1"] != fingerprint


def test_sarif_fingerprints_stay(analysis: tcpwin.Analysis) -> None:
    one, other = (
        sarif(analysis, dataclasses.replace(STALL, cost_ns=cost_ns, text=text))["runs"][0]["results"][0]
        for cost_ns, text in ((1, "one"), (2, "other"))
    )
    assert one["partialFingerprints"] == other["partialFingerprints"]


def test_sarif_of_several_files_names_no_wrong_one() -> None:
    """Frames are counted over all files, so the file of a finding is unknown."""
    several = tcpwin.analyze([bundled("keep-alive.pcap").name, bundled("slow-reader.pcap.gz").name])
    [run] = sarif(several, STALL, NOTE)["runs"]
    assert len(run["artifacts"]) == 2
    assert [set(each["locations"][0]) for each in run["results"]] == [{"logicalLocations"}, {"message"}]


def test_sarif_uri_of_a_relative_path_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a b#%:ü.pcap"
    (tmp_path / name).write_bytes(Path(bundled("keep-alive.pcap").name).read_bytes())
    monkeypatch.chdir(tmp_path)
    [run] = sarif(tcpwin.analyze(name), NOTE)["runs"]
    assert run["artifacts"] == [{"location": {"uri": "a%20b%23%25%3A%C3%BC.pcap"}}]


def junit(analysis: tcpwin.Analysis, *findings: Finding, fail_on: Severity | None = Severity.WARNING) -> Any:
    text = junit_document(analysis, found(*findings), findings, rules=RULES, fail_on=fail_on)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="tcpwin check">\n')
    root = ElementTree.fromstring(text.encode())
    [suite] = root
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("3", "0", "0")
    assert suite.get("name") == analysis.name
    assert [each.get("name") for each in suite.iter("testcase")] == [
        "TW901 made-stall",
        "TW902 made-note",
        "TW903 made-quiet",
    ]
    return suite


def test_junit(analysis: tcpwin.Analysis) -> None:
    suite = junit(analysis, STALL, NOTE, NASTY)
    stall, note, quiet = suite.iter("testcase")
    assert suite.get("failures") == "1"
    assert [(each.tag, each.get("type"), each.get("message")) for each in stall] == [
        ("failure", "warning", "a waited 100% of the time, 3 times"),
        ("failure", "error", NASTY_SHOWN),
    ]
    body = stall[0].text.splitlines()
    assert (
        body[0]
        == f"{analysis.name}:#0 server→client TW901 made-stall (warning, time lost 6.1 s, certain): {STALL.text}"
    )
    assert body[-1] == "beware     More memory."
    assert body[1].startswith("Other problems found; limited by ")
    assert len(body) == 11
    assert stall[1].text.splitlines()[-1] == f"beware     {NASTY_SHOWN}"
    # A finding below the failing severity passes as a test case, but is printed.
    assert [each.tag for each in note] == ["system-out"]
    assert note[0].text.startswith(f"{analysis.name} TW902 made-note (info, rate lost 93.5 Mbit/s, possible): ")
    assert len(quiet) == 0
    assert suite.find("system-out").text == (
        "3 findings (1 error, 1 warning, 1 info); 3 rules checked on 1 connection."
    )


@pytest.mark.parametrize(
    ("fail_on", "failing"), [(Severity.INFO, "2"), (Severity.WARNING, "1"), (Severity.ERROR, "0"), (None, "0")]
)
def test_junit_fails_what_the_check_fails(analysis: tcpwin.Analysis, fail_on: Severity | None, failing: str) -> None:
    suite = junit(analysis, STALL, NOTE, fail_on=fail_on)
    assert suite.get("failures") == failing
    assert len(list(suite.iter("failure"))) == int(failing)


def unescaped(text: str) -> str:
    """Undo the runner's escapes (actions/runner, ActionCommand.cs), the percent sign last."""
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_github(analysis: tcpwin.Analysis) -> None:
    *lines, closing = render_github(analysis, found(STALL, NOTE, NASTY), [STALL, NOTE, NASTY])
    assert closing.startswith("Connection 0: Other problems found; limited by ")
    assert [line.split(" ")[0] for line in lines] == ["::warning", "::notice", "::error"]
    for line, finding in zip(lines, (STALL, NOTE, NASTY), strict=True):
        assert line.isprintable()
        # The runner ends the properties at the first "::" and splits them at commas.
        properties, message = line[2:].split("::", 1)
        pairs = dict(each.split("=", 1) for each in properties.partition(" ")[2].split(","))
        assert set(pairs) == {"file", "title"}
        assert unescaped(pairs["file"]) == analysis.name
        assert unescaped(pairs["title"]) == f"{finding.code} {finding.name}"
        shown = NASTY_SHOWN if finding is NASTY else finding.text
        assert unescaped(message).splitlines()[0].endswith(f"): {shown}")
    assert "100%25 of the time" in lines[0]
    assert lines[0].endswith(
        "%0Aremedy     Set a larger buffer on a.%0A           sysctl -w net.ipv4.tcp_rmem='4096 "
        "131072 8388608'%0A           sysctl -w net.ipv4.tcp_window_scaling=1%0Abeware     More "
        "memory."
    )


def test_github_of_several_files_names_none() -> None:
    several = tcpwin.analyze([bundled("keep-alive.pcap").name, bundled("slow-reader.pcap.gz").name])
    line, _ = render_github(several, found(NOTE), [NOTE])
    assert line.startswith("::notice title=TW902 made-note::2 files TW902 made-note (info, ")


def test_github_escapes_a_files_name(tmp_path: Path) -> None:
    path = tmp_path / "50%,a:b.pcap"
    path.write_bytes(Path(bundled("keep-alive.pcap").name).read_bytes())
    line, _ = render_github(tcpwin.analyze(path), found(NOTE), [NOTE])
    assert f"file={tmp_path}/50%25%2Ca%3Ab.pcap,title=TW902 made-note::" in line
