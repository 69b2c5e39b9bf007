"""Findings as GitHub workflow commands: a line each, which the runner shows as an annotation.

Escapes are those of the runner (actions/toolkit, packages/core/src/command.ts): percent sign, CR and LF everywhere,
colon and comma in properties too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tcpwin.limits import Analysis, Finding, Findings, Severity
from tcpwin.render.text.findings import details, heading
from tcpwin.render.view.finding import FindingViews
from tcpwin.render.view.verdict import closing_line, connection_line
from tcpwin.units import name_text

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_github(analysis: Analysis, found: Findings, findings: Iterable[Finding]) -> Iterator[str]:
    """Render findings as workflow commands, then the limit of the worst connection.

    Each finding carries the verdict on its connection, and its file if the analysis is of one file.

    Args:
        findings: those of `found` to write.
    """
    files = analysis.capture.files
    file = f"file={_property(files[0].file)}," if len(files) == 1 else ""
    view = FindingViews(analysis, found)
    for finding in findings:
        shown = view(finding)
        lines = [heading(analysis, shown), *details(shown)]
        if finding.connection is not None:
            lines.insert(1, connection_line(analysis, finding.connection, found))
        message = _message("\n".join(lines))
        yield f"::{_COMMANDS[finding.severity]} {file}title={_property(shown.title)}::{message}"
    closing = closing_line(analysis, found)
    if closing is not None:
        yield closing


def render_unreadable(failures: Mapping[str, str]) -> Iterator[str]:
    """Render workflow commands for captures that could not be read."""
    for file, why in failures.items():
        yield f"::error file={_property(file)},title=unreadable::{_message(name_text(why))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(name_text(text)).replace(":", "%3A").replace(",", "%2C")
