"""A report as one HTML file that needs no network: text, styles, scripts and figures.

In: a Report. Out: HTML. Text is escaped by jinja2; data for the script is packed (gzip, base64), so nothing from a
capture is markup in the page. The page's policy allows only the scripts whose hash it names.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tcpwin.errors import ArgumentError
from tcpwin.limits import role_of
from tcpwin.render.report.digest import seal
from tcpwin.render.report.findings import view_findings, view_groups
from tcpwin.render.report.method import capture_facts, file_rows, host_views, method_text, rule_views, unread
from tcpwin.render.report.references import describe_lab, describe_likeness, describe_twins
from tcpwin.render.report.report import THEMES, Report
from tcpwin.render.report.shell import fill, require
from tcpwin.render.report.table import ConnectionTable, make_table
from tcpwin.render.view.capture import WHOLE, quality_remarks
from tcpwin.render.view.connection import RESENT_HEADINGS
from tcpwin.render.view.finding import counts_line
from tcpwin.units import count_text, name_text, short_name


def render_page(report: Report, *, theme: str = "auto", made_at: datetime | None = None) -> str:
    """Render the report as HTML; a printed report is light and draws everything at once.

    Args:
        theme: ``auto`` follows the system; readers can switch.
        made_at: time of creation; now if None.

    Raises:
        ArgumentError: the theme is unknown.
        OutputError: jinja2 or tsdownsample is not installed.
    """
    if theme not in THEMES:
        raise ArgumentError(f"unknown theme {theme}: choose one of {', '.join(THEMES)}")
    require("tsdownsample")
    from tcpwin.render.report.figures import draw_beside, draw_connections, draw_lab_runs, draw_overview

    drawn = draw_connections(report)
    overview = draw_overview(report)
    beside = {} if report.is_printed else draw_beside(report)
    lab_drawn = {} if report.is_printed else draw_lab_runs(report)
    table = make_table(report)
    page = fill(
        "report.html.j2",
        resent_headings=RESENT_HEADINGS,
        theme="light" if report.is_printed else theme,
        is_printed=report.is_printed,
        has_figures=bool(overview or beside or lab_drawn or any(each.packed for each in drawn)),
        overview=overview,
        drawn=drawn,
        beside=beside,
        lab_drawn=lab_drawn,
        table=table,
        table_words=table_words(table),
        made_at=made_at,
        **_words(report),
    )
    return seal(f"{page}<!-- ".encode(), " -->").decode()


def _words(report: Report) -> dict[str, Any]:
    """Return the text of the page, except that of its connections."""
    from tcpwin.version import __version__

    analysis = report.analysis
    titles = {rule.code: rule.title for rule in report.rules}
    left = [(code, name_text(titles.get(code, "")), f"{count:,}") for code, count in report.findings_left.items()]
    hosts = host_views(analysis)
    compared = list(zip(report.connections, report.comparisons, strict=True))
    like, far = describe_likeness(compared)
    only = analysis.connections[0] if len(analysis) == 1 else None
    return {
        "name": short_name(analysis.name),
        "facts": capture_facts(analysis),
        "summary": name_text(report.summary.text),
        "ends": [] if only is None else [(role_of(only, "a"), str(only.a)), (role_of(only, "b"), str(only.b))],
        "worst": view_findings(report, report.summary.worst),
        "remarks": quality_remarks(analysis.capture),
        "notes": report.notes,
        "whole": WHOLE,
        "counted": counts_line(analysis, report.findings, checked=len(report.rules)),
        "findings": view_groups(report),
        "left": left,
        "left_words": f"{count_text(sum(report.findings_left.values()), 'more finding')}, less costly, of these rules:",
        "connections": [
            {"told": each, "findings": view_findings(report, each.findings)} for each in report.connections
        ],
        "connections_words": "The connection" if len(analysis) == 1 else "The worst connections",
        "lab": describe_lab(compared),
        "twins": describe_twins(report.connections, report.twins),
        "like": like,
        "far": far,
        "hosts": hosts,
        "method": method_text(report, __version__),
        "unread": unread(analysis),
        "files": file_rows(analysis),
        "rules": rule_views(report),
        "contents": _contents(report, has_hosts=bool(hosts)),
    }


def _contents(report: Report, *, has_hosts: bool) -> list[tuple[str, str, str]]:
    total = len(report.analysis)
    entries = [
        ("summary", "Summary", "", True),
        ("notes", "Notes", f"{len(report.notes):,}", bool(report.notes)),
        ("findings", "Findings", f"{sum(report.findings.counts.values()):,}", True),
        ("connections", "Worst connections" if total > 1 else "The connection", "", bool(report.shown_ids)),
        ("lab-runs", "The lab's runs", "", any(each.lab is not None and each.lab.found for each in report.comparisons)),
        ("twins", "Twins", "", bool(report.twins)),
        ("references", "References", "", bool(report.shown_ids)),
        ("all", "All connections", f"{total:,}", bool(total)),
        ("hosts", "Hosts and settings", "", has_hosts),
        ("method", "Method", "", True),
    ]
    return [(id, words, count) for id, words, count, is_there in entries if is_there]


def table_words(table: ConnectionTable) -> str:
    """Describe the rows that the table has, and those left out."""
    if table.rows == table.total:
        return f"{count_text(table.total, 'connection')}."
    return (
        f"{table.rows:,} of {count_text(table.total, 'connection')}: those that lost most time to "
        "fixable limits, then those with most data. The other "
        f"{table.total - table.rows:,} do not fit into this file; tcpwin analyze --json has them all."
    )
