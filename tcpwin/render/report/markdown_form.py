"""A report as Markdown for a ticket: summary, findings, connections and tables; no pictures.

In: a Report. Out: lines. Whatever names and texts hold is written so that Markdown and HTML in it are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tcpwin.render.report.finding import FindingView, tell_findings, tell_groups
from tcpwin.render.report.method import capture_facts, file_rows, host_views, method_text, unread
from tcpwin.render.report.references import FarView, LikeView, tell_likeness
from tcpwin.render.text.analysis import WHOLE, quality_remarks
from tcpwin.render.text.findings import counts_line
from tcpwin.units import begin, count_text, date_text, name_text, short_name

if TYPE_CHECKING:
    from tcpwin.render.report.connection_facts import ConnectionView, DirectionView
    from tcpwin.render.report.report import Report

_ACTING = re.compile(r"([\\`*_{}\[\]<>#|!~&$@])")
"""Characters that act in Markdown, in HTML, or as a mention."""
_LISTING = re.compile(r"^(\s*)([-+=]|\d+[.)])(\s|$)")


def render_markdown(report: Report) -> Iterator[str]:
    """Lines of the report."""
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
        yield from _connection(each, tell_findings(report, each.findings))
    yield from _beside(*tell_likeness(zip(report.connections, report.comparisons, strict=True)))
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
    yield from ("## Findings", "", plain(counts_line(report.analysis, report.findings, asked=len(report.rules))), "")
    found = tell_groups(report)
    if found:
        rows = [
            (
                each.code,
                each.name,
                f"{each.count:,}",
                each.severity,
                (each.total if each.count > 1 else each.cost) or each.lost,
                _place(each),
                each.confidence,
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


def _finding(finding: FindingView) -> Iterator[str]:
    yield f"### {finding.code} {plain(finding.name)}, {_place(finding)}"
    yield ""
    yield plain(begin(finding.text))
    yield ""
    weight = [
        finding.severity,
        *(f"time lost {finding.cost} {finding.whole}".rstrip() for _ in finding.cost[:1]),
        *(f"lost {finding.lost}" for _ in finding.lost[:1]),
    ]
    yield f"- **weight:** {', '.join(weight)}, confidence {finding.confidence}"
    if finding.count > 1:
        others = ", ".join(f"connection {id} {cost}".strip() for id, cost in finding.others if id is not None)
        yield (
            f"- **of its kind:** {finding.count:,}"
            + (f", {finding.total} in all" if finding.total else "")
            + (f"; next {others}" if others else "")
        )
    if finding.ends:
        yield f"- **ends:** {plain(finding.ends)}"
    yield f"- **owner:** {plain(finding.owner)}"
    if finding.frames:
        yield f"- **frames:** {', '.join(map(str, finding.frames))} (`{finding.filter}`)"
    if finding.when:
        yield f"- **when:** {plain(finding.when)}"
    if finding.values:
        yield "- **values:** " + plain(", ".join(f"{words} {value}" for words, value in finding.values))
    if finding.ruled_out:
        yield f"- **{finding.ruling.lower()}:** {plain(finding.ruled_out)}"
    if finding.remedy is not None:
        yield f"- **change:** {plain(finding.remedy.text)}"
        if finding.remedy.side_effects:
            yield f"- **beware:** {plain(finding.remedy.side_effects)}"
        if finding.remedy.settings:
            yield from ("", *_fenced(finding.remedy.settings))
    yield ""


def _place(finding: FindingView) -> str:
    if finding.connection is None:
        return "the capture"
    return f"connection {finding.connection} {finding.direction}".rstrip()


def _connection(told: ConnectionView, findings: Sequence[FindingView]) -> Iterator[str]:
    yield f"## Connection {told.connection.id}: {plain(told.ends)}"
    yield ""
    yield plain(f"{told.duration}, {told.close}, first frame {told.connection.first_frame}.")
    yield ""
    words = told.words
    yield f"**{plain(words.answer)}** {plain(begin(words.why))}."
    yield ""
    yield from (f"- **{name}:** {plain(text)}" for name, text in words.advice)
    yield from ("",) if words.advice else ()
    yield from (f"- {each.code} {plain(each.name)} {each.direction} {each.cost}".rstrip() for each in findings)
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
        heads = ("frame", "at", "by", "cause", "original", "ACK", "age", "length")
        yield from (*_table(heads, told.resent, "rrllrrrr"), "")
        if told.resent_left:
            yield from (f"{told.resent_left:,} more sent again or late.", "")


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
    """Lines as they are, in a fence longer than any run of backticks in them."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *lines, fence)


def plain(text: str) -> str:
    """A text of one line that shows as it is: Markdown in it does not act."""
    escaped = _ACTING.sub(r"\\\1", text).replace("://", ":\u200b//")
    return _LISTING.sub(r"\1\\\2\3", escaped)
