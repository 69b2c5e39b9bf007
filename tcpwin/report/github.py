"""Findings as GitHub workflow commands: a line each, which the runner shows as an annotation.

Escapes are those of the runner (actions/toolkit, packages/core/src/command.ts): percent sign, CR and LF everywhere,
colon and comma in properties too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tcpwin.analysis import Analysis
from tcpwin.limits import Finding, Severity
from tcpwin.report.findings import details, heading, title
from tcpwin.units import name_text

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render_github(analysis: Analysis, findings: Iterable[Finding]) -> Iterator[str]:
    """Workflow commands. A finding's file is said where the analysis is of one file."""
    files = analysis.capture.files
    file = f"file={_property(files[0].file)}," if len(files) == 1 else ""
    for finding in findings:
        message = "\n".join([heading(analysis, finding), *details(analysis, finding)])
        yield f"::{_COMMANDS[finding.severity]} {file}title={_property(title(finding))}::{_message(message)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(name_text(text)).replace(":", "%3A").replace(",", "%2C")
