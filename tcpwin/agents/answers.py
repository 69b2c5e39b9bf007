"""Answers small enough for an agent's context: verdicts, findings and numbers, with the frames that prove them."""

from __future__ import annotations

from typing import Any

from tcpwin.analysis import Direction, GroupName, group_exchanges, list_exchanges
from tcpwin.errors import SourceError
from tcpwin.limits import (
    Analysis,
    Budget,
    Connection,
    Finding,
    Verdict,
    Verdicts,
    cost_confidence,
    describe_verdict,
    plain,
    role_of,
)
from tcpwin.model import marked_fields
from tcpwin.pairing import Pairing
from tcpwin.render import frames_filter, most_lost_first, quality_remarks, summarize_pairing
from tcpwin.units import name_text

MOST_CONNECTIONS = 50
MOST_FINDINGS = 50
MOST_GROUPS = 10
DIRECTION_FIELDS = marked_fields("direction", "brief")
CONNECTION_FIELDS = marked_fields("connection", "brief")


def connection_of(analysis: Analysis, number: int) -> Connection:
    """Return a connection by its number.

    Raises:
        SourceError: unknown connection number.
    """
    if not 0 <= number < len(analysis):
        raise SourceError(f"no connection {number}: the capture has {len(analysis)}, numbered from 0")
    return analysis.connections[number]


def tell_capture(name: str, analysis: Analysis, limit: int) -> dict[str, Any]:
    """Describe a capture: summary, quality, and the worst connections."""
    capture = analysis.capture
    worst = analysis.worst(min(limit, MOST_CONNECTIONS))
    return {
        "capture": name_text(name),
        "selection": None if analysis.selection is None else analysis.selection.to_dict(),
        "summary": analysis.summary.text,
        "quality": quality_remarks(capture),
        "packets": capture.packets,
        "packets_left_out": capture.packets_left_out,
        "segments": capture.segments,
        "duration_ns": capture.duration_ns,
        "connections_in_all": len(analysis),
        "connections": [_line(each) for each in worst],
    }


def _ends(connection: Connection) -> dict[str, Any]:
    return {
        "connection": connection.id,
        "a": f"{connection.a} ({role_of(connection, 'a')})",
        "b": f"{connection.b} ({role_of(connection, 'b')})",
    }


def _line(connection: Connection) -> dict[str, Any]:
    verdict = connection.verdict
    told = {"verdict": verdict.text, "limit": verdict.limit, "is_problem": verdict.is_problem}
    frames = _proof(connection)
    return {
        **_ends(connection),
        "duration_ns": connection.duration_ns,
        **told,
        "cost_ns": verdict.cost_ns,
        "frames": list(frames),
    }


def _proof(connection: Connection) -> tuple[int, ...]:
    """Return the frames of the costliest finding about the verdict's limit, or of the costliest finding."""
    found = connection.findings
    limit = connection.verdict.limit
    about = [each for each in found if limit in each.limits] or list(found)
    return next((each.evidence.frames for each in about if each.evidence.frames), ())


def tell_connection(name: str, analysis: Analysis, number: int) -> dict[str, Any]:
    """Return a connection's verdict, time budget and main numbers."""
    connection = connection_of(analysis, number)
    verdict = connection.verdict
    frames = _proof(connection)
    return plain(  # type: ignore[no-any-return]
        {
            "capture": name_text(name),
            **_ends(connection),
            "verdict": describe_verdict(verdict),
            "frames": list(frames),
            "display_filter": frames_filter(frames) or None,
            "findings": [f"{each.code} {each.name}: {each.text}" for each in connection.findings[:MOST_FINDINGS]],
            "numbers": {name: connection.fields[name] for name in CONNECTION_FIELDS},
            "a_to_b": _numbers(connection.a_to_b, connection.budget["a_to_b"]),
            "b_to_a": _numbers(connection.b_to_a, connection.budget["b_to_a"]),
        }
    )


def _numbers(direction: Direction, budget: Budget) -> dict[str, Any]:
    """Return a direction's main numbers and its sender's time budget; empty if it carried no data."""
    if not direction.data_segments:
        return {"data_segments": 0}
    time_ns = {item: ns for item, ns in budget.items_ns.items() if ns}
    scale = direction.window_scale
    told = {"window_scale_state": scale.state, "window_scale_shift": scale.shift}
    return {**{name: getattr(direction, name) for name in DIRECTION_FIELDS}, **told, "time_ns": time_ns}


def tell_evidence(name: str, analysis: Analysis, number: int | None, code: str | None) -> dict[str, Any]:
    """Return the findings of one connection or of all, with their frames."""
    found: list[Finding] = list(analysis.findings if number is None else connection_of(analysis, number).findings)
    verdict = Verdicts(analysis, analysis.findings).of
    chosen = [each for each in found if code is None or each.code == code.upper()]
    return plain(  # type: ignore[no-any-return]
        {
            "capture": name_text(name),
            "findings_in_all": len(chosen),
            "findings": [_finding(each, verdict(each)) for each in chosen[:MOST_FINDINGS]],
        }
    )


def tell_exchanges(name: str, analysis: Analysis, by: GroupName, number: int | None) -> dict[str, Any]:
    """Group the exchanges of one connection or of all; the groups with the most time come first."""
    chosen = None if number is None else [connection_of(analysis, number).id]
    summary = group_exchanges(analysis, list_exchanges(analysis, chosen, targets=by == "path"), by)
    shown = summary.groups[:MOST_GROUPS]
    return plain(  # type: ignore[no-any-return]
        {
            "capture": name_text(name),
            "by": by,
            "exchanges": summary.exchanges,
            "connections": summary.connections,
            "connections_omitted": summary.connections_omitted,
            "exchanges_omitted": summary.exchanges_omitted,
            "groups_in_all": len(summary.groups) + summary.groups_omitted,
            "groups": [group.to_dict() for group in shown],
        }
    )


def _finding(finding: Finding, verdict: Verdict | None) -> dict[str, Any]:
    evidence = finding.evidence
    return {
        "rule": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "connection": finding.connection,
        "text": finding.text,
        "cost_ns": finding.cost_ns,
        "confidence": finding.confidence,
        "cost_confidence": cost_confidence(finding, verdict),
        "owner": finding.owner,
        "frames": evidence.frames,
        "frames_of": evidence.frames_of,
        "display_filter": frames_filter(evidence.frames) or None,
        "values": evidence.values,
        "ruled_out": evidence.ruled_out,
        "fix": None if finding.remedy is None else finding.remedy.text,
        "settings": [] if finding.remedy is None else finding.remedy.settings,
    }


def tell_pair(names: tuple[str, str], pairing: Pairing, limit: int) -> dict[str, Any]:
    """Report where packets were lost between two captures: in words, and for each connection."""
    worst = most_lost_first(pairing)
    return plain(  # type: ignore[no-any-return]
        {
            "a": name_text(names[0]),
            "b": name_text(names[1]),
            "summary": list(summarize_pairing(pairing)),
            "warnings": list(pairing.warnings),
            "connections_in_all": len(pairing),
            "connections": [
                {
                    "connection": each.number,
                    "verdict": None if (judged := pairing.judge(each.number)) is None else judged.verdict.text,
                    "directions": [
                        {
                            "from": str(way.source),
                            "to": str(way.target),
                            "sent": way.sent,
                            "lost": way.lost,
                            "late": way.late,
                            "duplicated": way.duplicated,
                            "lost_frames": way.lost_frames[:20],
                        }
                        for way in each.directions
                    ],
                }
                for each in worst[: min(limit, MOST_CONNECTIONS)]
            ],
        }
    )
