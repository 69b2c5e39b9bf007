"""Alerts in the newest packets: a costly finding raises one alert for as long as it continues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tcpwin.limits import Analysis, Finding, Severity

MOST_KNOWN = 10_000
"""Ongoing alerts to remember; beyond this the oldest are forgotten and may be raised again."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A new finding.

    Attributes:
        client, server: address:port of the end that (probably) opened the connection, and of the other.
        finding: finding with its rule, cost and frames, numbered within the judged packets.
        limit: the verdict's limit of the connection.
        text: the verdict in one line.
    """

    client: str
    server: str
    finding: Finding
    limit: str
    text: str

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        finding = self.finding
        return {
            "rule": finding.code,
            "name": finding.name,
            "severity": str(finding.severity),
            "client": self.client,
            "server": self.server,
            "limit": self.limit,
            "cost_ns": finding.cost_ns,
            "confidence": finding.confidence,
            "owner": finding.owner,
            "text": finding.text,
            "fix": None if finding.remedy is None else finding.remedy.text,
            "verdict": self.text,
        }


class OngoingAlerts:
    """Recent alerts, so that each is raised only once.

    Args:
        forget_ns: an alert not seen for this long, by the packets' clock, is over.
    """

    def __init__(self, forget_ns: int) -> None:
        self._forget_ns = forget_ns
        self._seen_ns: dict[tuple[str, str, str], int] = {}

    def strikes(self, analysis: Analysis, findings: Iterable[Finding], now_ns: int) -> list[Alert]:
        """Return alerts for the new findings."""
        new = []
        for finding in findings:
            if finding.connection is None:
                continue
            connection = analysis.connections[finding.connection]
            key = (str(connection.a), str(connection.b), finding.code)
            is_known = key in self._seen_ns
            self._seen_ns[key] = now_ns
            if not is_known:
                verdict = connection.verdict
                new.append(Alert(str(connection.a), str(connection.b), finding, verdict.limit, verdict.headline))
        self._forget(now_ns)
        return new

    def _forget(self, now_ns: int) -> None:
        over = [key for key, seen_ns in self._seen_ns.items() if now_ns - seen_ns > self._forget_ns]
        over += list(self._seen_ns)[: max(0, len(self._seen_ns) - len(over) - MOST_KNOWN)]
        for key in over:
            self._seen_ns.pop(key, None)


def costly(findings: Iterable[Finding], least_ns: int) -> list[Finding]:
    """Return connection findings that are at least a warning and cost at least this much."""
    return [
        each
        for each in findings
        if each.connection is not None and each.severity >= Severity.WARNING and each.cost_ns >= least_ns
    ]
