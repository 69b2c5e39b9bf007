"""Findings as JUnit XML: a test case for each rule checked, a failure for each finding that counts.

Form: the schema that Jenkins publishes (junit-10.xsd). Characters that XML 1.0 does not allow are written as escapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, SubElement, fromstring, indent, tostring

from tcpwin.limits import Analysis, Finding, Findings, Rule, Severity, describe_capture
from tcpwin.render.text.findings import details, heading
from tcpwin.render.view.finding import FindingViews, counts_line
from tcpwin.render.view.verdict import connection_line
from tcpwin.units import name_text


def junit_document(
    analysis: Analysis,
    found: Findings,
    findings: Iterable[Finding],
    *,
    rules: Iterable[Rule],
    fail_on: Severity | None = Severity.WARNING,
) -> str:
    """Return a document of one suite, whose properties are the verdict on the worst connection.

    Args:
        findings: those of `found` to write.
        rules: the rules checked, including those of the findings.
        fail_on: findings of at least this severity are failures; the others (all with None) go to the
            case's output.
    """
    checked = list(rules)
    by_code: dict[str, list[Finding]] = {rule.code: [] for rule in checked}
    for finding in findings:
        by_code[finding.code].append(finding)
    root = Element("testsuites", name="tcpwin check")
    suite = SubElement(
        root, "testsuite", name=name_text(analysis.name), tests=str(len(checked)), errors="0", skipped="0"
    )
    verdict = describe_capture(analysis, found)["verdict"]
    if verdict is not None:
        properties = SubElement(suite, "properties")
        for name, value in verdict.items():
            text = value if isinstance(value, str) else json.dumps(value)
            SubElement(properties, "property", name=f"verdict.{name}", value=name_text(text))
    view = FindingViews(analysis, found)
    failed = 0
    for rule in checked:
        case = SubElement(suite, "testcase", classname="tcpwin", name=name_text(f"{rule.code} {rule.name}"))
        failures: list[Finding] = []
        others: list[Finding] = []
        for each in by_code[rule.code]:
            (failures if fail_on is not None and each.severity >= fail_on else others).append(each)
        failed += bool(failures)
        for each in failures:
            failure = SubElement(case, "failure", type=str(each.severity), message=name_text(each.text))
            failure.text = _body(analysis, found, view, each)
        if others:
            SubElement(case, "system-out").text = "\n\n".join(_body(analysis, found, view, each) for each in others)
    suite.set("failures", str(failed))
    SubElement(suite, "system-out").text = name_text(counts_line(analysis, found, checked=len(checked)))
    return _text(root)


def join_junit(documents: Iterable[str], failures: Mapping[str, str]) -> str:
    """Join the documents of several captures, one suite each; an unreadable capture is an error."""
    root = Element("testsuites", name="tcpwin check")
    for document in documents:
        root.extend(fromstring(document))
    for file, why in failures.items():
        suite = SubElement(root, "testsuite", name=name_text(file), tests="1", errors="1", failures="0", skipped="0")
        case = SubElement(suite, "testcase", classname="tcpwin", name="readable")
        SubElement(case, "error", message=name_text(why))
    return _text(root)


def _text(root: Element) -> str:
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _body(analysis: Analysis, found: Findings, view: FindingViews, finding: Finding) -> str:
    shown = view(finding)
    lines = [heading(analysis, shown), *details(shown)]
    if finding.connection is not None:
        lines.insert(1, connection_line(analysis, finding.connection, found))
    return "\n".join(lines)
