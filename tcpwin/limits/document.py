"""Findings and rules as objects of the JSON document `tcpwin/findings/3`, described by schema.json.

In: findings, rules. Out: dictionaries that `json` can write, with finite numbers and every attribute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tcpwin.limits.analysis import Analysis
from tcpwin.limits.claims import cost_confidence
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule

if TYPE_CHECKING:
    from tcpwin.limits.verdict import Verdict

SCHEMA = "tcpwin/findings/3"
"""The number increases when a name is removed or changes its meaning, but not for additions."""

HEADINGS = ("What it finds", "Why it matters", "How it is judged", "When it is wrong", "What to do")
"""Headings of every rule's page, in order."""


def describe_finding(finding: Finding, analysis: Analysis, verdict: Verdict | None) -> dict[str, Any]:
    """Return all attributes of a finding, the confidence of its cost, and the ends of its connection.

    Args:
        verdict: the verdict on its connection; None for a finding of the capture.
    """
    return {**_attributes(finding), "cost_confidence": cost_confidence(finding, verdict), **ends_of(finding, analysis)}


def read_finding(document: Mapping[str, Any]) -> Finding:
    """Restore a finding from the object of `describe_finding`."""
    values = {each.name: document[each.name] for each in fields(Finding)}
    evidence, remedy = document["evidence"], document["remedy"]
    values["severity"] = Severity[document["severity"].upper()]
    values["evidence"] = Evidence(**{**evidence, "frames": tuple(evidence["frames"])})
    values["limits"] = tuple(document["limits"])
    values["remedy"] = None if remedy is None else Remedy(**{**remedy, "settings": tuple(remedy["settings"])})
    return Finding(**values)


def describe_rule(rule: Rule) -> dict[str, Any]:
    """Return a rule as `tcpwin rules` and the document list it."""
    return {
        "code": rule.code,
        "name": rule.name,
        "title": rule.title,
        "severity": str(rule.severity),
        "scope": rule.scope,
        "thresholds": {name: _attributes(threshold) for name, threshold in rule.thresholds.items()},
    }


def describe_page(rule: Rule) -> dict[str, Any]:
    """Return a rule with its conditions, the rules it yields to, and its page, also divided by heading."""
    return {
        **describe_rule(rule),
        "when": [[name, operator, plain(value)] for name, operator, value in rule.when],
        "yields_to": list(rule.yields_to),
        "page": rule.page,
        "sections": sections(rule.page),
    }


def ends_of(finding: Finding, analysis: Analysis) -> dict[str, str | None]:
    """Return the ends of a finding's connection by side; None without a connection."""
    if finding.connection is None:
        return {"a": None, "b": None}
    connection = analysis.connections[finding.connection]
    return {"a": str(connection.a), "b": str(connection.b)}


def sections(page: str) -> dict[str, str]:
    """Split a page into sections by heading, in order."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in page.strip().splitlines():
        if line.startswith("## "):
            lines = found.setdefault(line[3:].strip(), [])
        else:
            lines.append(line)
    return {heading: "\n".join(body).strip() for heading, body in found.items()}


def plain(value: Any) -> Any:
    """Convert a value for JSON: a severity to its name, a non-finite number to null.

    An unpaired surrogate, which strict readers reject (RFC 8259 section 8.2), is written as its escape.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Severity):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {plain(str(name)): plain(each) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _attributes(value)
    return [plain(each) for each in value] if isinstance(value, Iterable) else str(value)


def _attributes(value: Any) -> dict[str, Any]:
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
