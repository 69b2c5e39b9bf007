"""A report as Markdown for a ticket: summary, findings, connections and tables, without pictures.

In: a Report. Out: lines. Names and texts are escaped, so Markdown and HTML in them show as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tcpwin.render.report.findings import ReportFinding, view_findings, view_groups
from tcpwin.render.report.method import capture_facts, file_rows, host_views, method_text, unread
from tcpwin.render.report.references import (
    FarView,
    LabView,
    LikeView,
    TwinView,
    describe_lab,
    describe_likeness,
    describe_twins,
)
from tcpwin.render.view.capture import WHOLE, quality_remarks
from tcpwin.render.view.connection import RESENT_HEADINGS
from tcpwin.render.view.finding import counts_line
from tcpwin.units import begin, count_text, date_text, name_text, short_name

if TYPE_CHECKING:
    from tcpwin.render.report.report import Report
    from tcpwin.render.view.connection import ConnectionView, DirectionView

_ACTING = re.compile(r"([\\`*_{}\[\]<>#|!~&$@])")
"""Characters that are special in Markdown, in HTML, or in a mention."""
_LISTING = re.compile(r"^(\s*)([-+=]|\d+[.)])(\s|$)")


def render_markdown(report: Report) -> Iterator[str]:
    """Render the report, line by line."""
    from tcpwin.version import __version__

    analysis = report.analysis
    yield f"# {plain(short_name(analysis.name))}"
    yield ""
    yield " · ".join(plain(fact) for fact in capture_facts(analysis))
    yield ""
    yield plain(name_text(report.summary.text))
    yield ""
    yield "**Capture quality:** " + "; ".join(plain(each) for each in quality_remarks(analysis.capture) or [WHOLE])
    yield ""
    yield from _notes(report)
    yield from _findings(report)
    for each in report.connections:
        yield from _connection(each, view_findings(report, each.findings))
    compared = list(zip(report.connections, report.comparisons, strict=True))
    yield from _lab_runs(describe_lab(compared))
    yield from _twins(describe_twins(report.connections, report.twins))
    yield from _beside(*describe_likeness(compared))
    for host in host_views(analysis):
        yield from ("## Host " + plain(host.label), "")
        yield from (f"- {plain(line)}" for line in host.lines)
        if host.settings:
            yield from ("", *_fenced(host.settings))
        if host.counters:
            yield from ("", *_table(("counter", "increase", "what it counts"), host.counters, "lrl"))
        yield ""
    yield from ("## Method", "", plain(method_text(report, __version__)), "")
    for name, form, packets, *_ in file_rows(analysis):
        yield f"- {plain(name)}" + (f", {plain(form)}, {packets} packets" if form else "")
    yield ""
    lacks = unread(analysis)
    if lacks:
        yield from ("Not read:", "", *(f"- {plain(line)}" for line in lacks), "")


def _notes(report: Report) -> Iterator[str]:
    if not report.notes:
        return
    yield from ("## Notes", "")
    for note in report.notes:
        told = [plain(each) for each in (note.about, note.by, date_text(note.time_ns) if note.time_ns else "") if each]
        lines = [plain(line) for line in note.text.splitlines()]
        yield "- " + "  \n  ".join([*lines, f"*{' · '.join(told)}*" if told else ""]).rstrip()
    yield ""


def _findings(report: Report) -> Iterator[str]:
    yield from ("## Findings", "", plain(counts_line(report.analysis, report.findings, checked=len(report.rules))), "")
    found = view_groups(report)
    if found:
        rows = [
            (
                each.view.code,
                each.view.name,
                f"{each.count:,}",
                each.view.severity,
                (each.total if each.count > 1 else each.view.lost) or each.view.rate,
                each.view.place,
                each.view.confidence,
            )
            for each in found
        ]
        yield from (*_table(("rule", "name", "count", "severity", "cost", "worst", "confidence"), rows, "llrlrll"), "")
    for each in found:
        yield from _finding(each)
    left = report.findings_left
    if left:
        rest = ", ".join(f"{code} {count:,}" for code, count in left.items())
        yield from (f"{count_text(sum(left.values()), 'more finding')}: {rest}.", "")


def _finding(entry: ReportFinding) -> Iterator[str]:
    finding = entry.view
    yield f"### {finding.code} {plain(finding.name)}, {finding.place}"
    yield ""
    yield plain(begin(finding.text))
    yield ""
    lost = (f"time lost {finding.cost}" if finding.lost else "", f"lost {finding.rate}" if finding.rate else "")
    yield f"- **weight:** {', '.join(filter(None, (finding.severity, *lost)))}, confidence {finding.confidence}"
    if entry.count > 1:
        others = ", ".join(f"connection {id} {cost}".strip() for id, cost in entry.others if id is not None)
        total, others = entry.total and f", {entry.total} in all", others and f"; next {others}"
        yield f"- **of its kind:** {entry.count:,}{total}{others}"
    frames = f"{', '.join(map(str, finding.frames))} (`{finding.filter}`)" if finding.frames else ""
    values = ", ".join(map(" ".join, finding.values))
    remedy, beware = (finding.remedy.text, finding.remedy.side_effects or "") if finding.remedy else ("", "")
    for name, text in (
        ("ends", plain(finding.ends)),
        ("owner", plain(finding.owner)),
        ("frames", frames),
        ("when", plain(finding.when)),
        ("values", plain(values)),
        (finding.ruling.lower(), plain(finding.ruled_out)),
        ("change", plain(remedy)),
        ("beware", plain(beware)),
    ):
        if text:
            yield f"- **{name}:** {text}"
    if finding.remedy is not None and finding.remedy.settings:
        yield from ("", *_fenced(finding.remedy.settings))
    yield ""


def _connection(told: ConnectionView, findings: Sequence[ReportFinding]) -> Iterator[str]:
    yield f"## Connection {told.connection.id}: {plain(told.ends)}"
    yield ""
    yield plain(f"{told.duration}, {told.close}, first frame {told.connection.first_frame}.")
    yield ""
    words = told.words
    yield f"**{plain(words.answer)}** {plain(begin(words.why))}."
    yield ""
    yield from (f"- **{name}:** {plain(text)}" for name, text in words.advice)
    yield from ("",) if words.advice else ()
    yield from (
        f"- {each.code} {plain(each.name)} {each.direction} {each.lost}".rstrip()
        for each in (one.view for one in findings)
    )
    yield from ("",) if findings else ()
    for direction in told.directions:
        yield from _direction(direction)
    if told.sockets:
        yield from (*(f"- {plain(line.strip())}" for line in told.sockets), "")
    if told.stalls:
        silences = ("silent at", "for", "of", "because of", "in flight", "frames")
        yield from (*_table(silences, told.stalls, "rrllrl"), "")
        if told.stalls_left:
            yield from (f"{count_text(told.stalls_left, 'more silence')} not shown.", "")
    if told.resent:
        yield from (*_table(RESENT_HEADINGS, told.resent, "rrll".ljust(len(RESENT_HEADINGS), "r")), "")
        if told.resent_left:
            yield from (f"{told.resent_left:,} more retransmitted or late.", "")


def _lab_runs(told: Sequence[LabView]) -> Iterator[str]:
    if told:
        yield from ("## Next to the lab's runs", "")
    for each in told:
        yield from (f"### Connection {each.connection}: {plain(each.ends)}", "", plain(each.text), "")
        heads = tuple(map(plain, each.heads))
        yield from (*_table(heads, each.rows, "l" + "r" * (len(heads) - 1)), "")
        yield from (*(f"- {plain(line)}" for line in each.says), "")
        if each.why_not:
            yield from (plain(each.why_not), "")


def _twins(told: Sequence[TwinView]) -> Iterator[str]:
    if told:
        yield from ("## Twins in the lab's kernel", "")
    for each in told:
        yield from (f"### Connection {each.connection}: {plain(each.ends)}", "", plain(each.text), "")
        if each.rows:
            heads = tuple(map(plain, each.heads))
            rows = [[plain(cell) for cell in row] for row in each.rows]
            yield from (*_table(heads, rows, "l" + "r" * (len(heads) - 1)), "")
        yield from (f"- {plain(begin(doubt))}." for doubt in each.doubts)
        if each.doubts:
            yield ""


def _beside(told: Sequence[LikeView], far: Sequence[FarView]) -> Iterator[str]:
    if told or far:
        yield from ("## Compared with references", "")
    for each in told:
        yield from (f"### Connection {each.connection}: {plain(each.ends)}", "", plain(each.verdict), "")
        if each.agreement:
            yield from (plain(begin(each.agreement)), "")
        heads = ("quantity", "this connection", *map(plain, each.references))
        yield from (*_table(heads, each.rows, "l" + "r" * (len(heads) - 1)), "")
        yield from ("Nearest runs:", "")
        yield from (f"- {plain(f'{name}, distance {distance}: {why}')}" for name, distance, why in each.nearest)
        yield ""
        if each.prediction:
            yield from (f"**Prediction by the memory model:** {plain(each.prediction)}", "")
        if each.lines:
            yield from (*_fenced(each.lines), "")
        if each.assumptions:
            yield from ("If:", "", *(f"- {plain(line)}" for line in each.assumptions), "")
    if far:
        yield from (f"- {', '.join(f'connection {id}' for id in each.connections)}: {plain(each.why)}" for each in far)
        yield ""


def _direction(direction: DirectionView) -> Iterator[str]:
    yield f"**{direction.name}** {plain(direction.carried)}"
    yield ""
    yield from (f"- {plain(f'{words}: {text}' if words else text)}" for words, text in direction.facts)
    if direction.budget:
        yield ""
        yield from _table(
            (f"where the {direction.sender}'s time went", "time", "share"),
            [(share.words, share.time, share.share) for share in direction.budget],
            "lrr",
        )
    yield ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join({'l': ' --- ', 'r': ' ---: '}[side] for side in sides)}|"
    yield from (f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows)


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    """Put lines into a fence that is longer than any run of backticks in them."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)


def plain(text: str) -> str:
    """Escape a line of text for Markdown."""
    escaped = _ACTING.sub(r"\\\1", text).replace("://", ":\u200b//")
    return _LISTING.sub(r"\1\\\2\3", escaped)
