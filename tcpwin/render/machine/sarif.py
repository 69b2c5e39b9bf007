"""Findings as SARIF 2.1.0 (OASIS, sarif-v2.1.0-os), which code scanning services read.

In: an analysis, its findings, the rules checked. Out: one object with one run. A frame is not a line of a text file, so
frames are in a result's properties.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tcpwin.limits import (
    HEADINGS,
    Analysis,
    Finding,
    Findings,
    Rule,
    Severity,
    describe_capture,
    describe_finding,
    describe_rule,
    describe_verdict,
    plain,
    sections,
)
from tcpwin.render.view.finding import FindingView, FindingViews, frames_text
from tcpwin.units import name_text

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_document(
    analysis: Analysis, found: Findings, findings: Iterable[Finding], *, rules: Sequence[Rule], version: str
) -> dict[str, Any]:
    """Return a log of one run, whose properties hold the verdict on the worst connection and the summary.

    Args:
        findings: those of `found` to write, each with the verdict on its connection.
        rules: the rules checked, including those of the findings.
        version: tcpwin's version.
    """
    places = {rule.code: place for place, rule in enumerate(rules)}
    uris = [_uri(file.file) for file in analysis.capture.files]
    view = FindingViews(analysis, found)
    seen: dict[str, int] = {}
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "tcpwin", "version": version, "rules": [_rule(rule) for rule in rules]}},
                "artifacts": [{"location": {"uri": uri}} for uri in uris],
                "results": [_result(analysis, view, each, places[each.code], uris, seen) for each in findings],
                "properties": plain(describe_capture(analysis, found)),
            }
        ],
    }


def join_sarif(documents: Iterable[Mapping[str, Any]], failures: Iterable[str]) -> dict[str, Any]:
    """Join the logs of several captures, made by the same rules, into one run: services accept one run per tool.

    Args:
        documents: results of `sarif_document`, at least one.
        failures: why captures could not be read; they become notifications of the run.
    """
    joined: dict[str, Any] = {}
    for document in documents:
        (run,) = document["runs"]
        if not joined:
            joined = {**run, "artifacts": [], "results": [], "properties": {"captures": []}}
        before = len(joined["artifacts"])
        for result in run["results"]:
            for location in result["locations"]:
                if "physicalLocation" in location:
                    location["physicalLocation"]["artifactLocation"]["index"] += before
        uris = [each["location"]["uri"] for each in run["artifacts"]]
        joined["artifacts"] += run["artifacts"]
        joined["results"] += run["results"]
        joined["properties"]["captures"].append({"files": uris, **run["properties"]})
    notifications = [{"level": "error", "message": {"text": name_text(text)}} for text in failures]
    joined["invocations"] = [{"executionSuccessful": not notifications, "toolExecutionNotifications": notifications}]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [joined]}


def _rule(rule: Rule) -> dict[str, Any]:
    described = describe_rule(rule)
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": sections(rule.page).get(HEADINGS[0]) or rule.title},
        "help": {"text": rule.page.strip() or rule.title, "markdown": rule.page.strip() or rule.title},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"scope": rule.scope, "thresholds": described["thresholds"]},
    }


def _result(
    analysis: Analysis, view: FindingViews, finding: Finding, rule: int, uris: Sequence[str], seen: dict[str, int]
) -> dict[str, Any]:
    shown, verdict = view(finding), view.verdict(finding)
    described = describe_finding(finding, analysis, verdict)
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        # A level other than "none" requires the kind "fail" (section 3.27.10).
        "kind": "fail",
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(shown)},
        "locations": [_location(shown, described, uris)],
        "partialFingerprints": {"finding/v1": _fingerprint(described, seen)},
        "properties": {
            **{name: value for name, value in described.items() if name not in ("code", "name", "severity", "text")},
            "verdict": None if verdict is None else describe_verdict(verdict),
        },
    }


def _message(finding: FindingView) -> str:
    text = f"{finding.text} ({', '.join(finding.weight)})."
    if finding.frames:
        text += f" See {frames_text(finding.frames)}."
    if finding.remedy is not None:
        text += f" {finding.remedy.text}"
    return text


def _location(finding: FindingView, described: dict[str, Any], uris: Sequence[str]) -> dict[str, Any]:
    """Return the location of a finding: its connection, and the capture if it is one file (several share their frame
    numbers).
    """
    location: dict[str, Any] = {}
    if len(uris) == 1:
        location["physicalLocation"] = {"artifactLocation": {"uri": uris[0], "index": 0}}
    if described["connection"] is not None:
        name = f"#{described['connection']}"
        ends = f"{described['a']}→{described['b']}"
        arrow = finding.direction.replace(" ", "")
        location["logicalLocations"] = [
            {
                "name": f"{name} {arrow}" if arrow else name,
                "fullyQualifiedName": f"{ends}/{name} {arrow}" if arrow else f"{ends}/{name}",
                "kind": "connection",
            }
        ]
    if not location:
        location["message"] = {"text": "the whole capture"}
    return location


def _fingerprint(described: dict[str, Any], seen: dict[str, int]) -> str:
    """Return a fingerprint that is equal for the same finding of the same connection in every run over the capture."""
    key = "\n".join(str(described[name]) for name in ("code", "a", "b", "connection", "direction"))
    seen[key] = seen.get(key, 0) + 1
    return hashlib.sha256(f"{key}\n{seen[key]}".encode(errors="replace")).hexdigest()


def _uri(name: str) -> str:
    """Encode a path as a URI reference (RFC 3986); a relative path stays relative."""
    path = Path(name)
    if re.match(r"[a-z][a-z0-9]*://", name):
        return quote(name, safe=":/%")
    return path.as_uri() if path.is_absolute() else quote(name)
