"""Facts for trusting or repeating a report: files, hosts, rules, and input that was not read.

In: a Report. Out: lines and rows of text, the same for each form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from tcpwin.render.kernel.hosts import render_hosts
from tcpwin.render.kernel.sockets import span_text
from tcpwin.render.view.capture import unread_text
from tcpwin.units import bytes_text, clock_text, count_text, name_text, rate_text, share_text, time_text

if TYPE_CHECKING:
    from tcpwin.hosts import Host
    from tcpwin.limits import Analysis, Rule, Threshold
    from tcpwin.render.report.report import Report

FILES_SHOWN = 100
UNKNOWN_SHOWN = 3
"""Maximum number of unparsed lines quoted from each snapshot file."""


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule that was checked, with its thresholds in words and its number of findings."""

    code: str
    name: str
    title: str
    thresholds: str
    found: str


@dataclass(frozen=True, slots=True)
class HostView:
    """A host: its files, its settings as lines of sysctl, and the counters that grew."""

    label: str
    lines: Sequence[str]
    settings: Sequence[str]
    counters: Sequence[tuple[str, str, str]]
    counters_words: str


def capture_facts(analysis: Analysis) -> list[str]:
    """Return the capture's facts, a few words each: format, packets, connections, time."""
    capture = analysis.capture
    forms = sorted({" ".join((*file.compression, file.format)) for file in capture.files})
    facts = [
        ", ".join(forms),
        count_text(capture.packets, "packet"),
        count_text(capture.segments, "TCP segment"),
        count_text(len(analysis), "connection"),
    ]
    if capture.first_time_ns is not None:
        facts.append(span_text(capture.first_time_ns, capture.last_time_ns))
    if analysis.selection is not None:
        left = capture.packets - capture.packets_left_out
        facts.append(f"{count_text(left, 'packet')} selected: {name_text(str(analysis.selection))}")
    return [fact for fact in facts if fact]


def file_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return a row for each capture file: name, format, packets, size, first and last time."""
    rows: list[tuple[str, ...]] = [
        (
            name_text(file.file),
            " ".join((*file.compression, file.format)),
            f"{file.packets:,}",
            bytes_text(file.bytes),
            clock_text(file.first_time_ns, with_date=True),
            clock_text(file.last_time_ns, with_date=True),
        )
        for file in analysis.capture.files
    ]
    left = len(rows) - FILES_SHOWN
    if left > 0:
        rows[FILES_SHOWN:] = [(f"{left:,} more files", "", "", "", "", "")]
    return rows


def rule_views(report: Report) -> list[RuleView]:
    """Return the rules that were checked, by code."""
    counts = report.findings.counts
    return [
        RuleView(rule.code, rule.name, name_text(rule.title), _thresholds(rule), f"{counts.get(rule.code, 0):,}")
        for rule in report.rules
    ]


def _thresholds(rule: Rule) -> str:
    return ", ".join(f"{name} {_threshold_text(each)}" for name, each in rule.thresholds.items())


def _threshold_text(threshold: Threshold) -> str:
    value = threshold.default
    if threshold.unit == "ns":
        return time_text(round(value))
    if threshold.unit == "bytes":
        return bytes_text(value)
    if threshold.unit == "bps":
        return rate_text(value)
    return share_text(value) if threshold.unit == "share" else f"{value:,.4g}"


def host_views(analysis: Analysis) -> list[HostView]:
    """Return the hosts of the snapshots."""
    blocks: list[list[str]] = []
    for line in render_hosts(analysis):
        if line.startswith("host "):
            blocks.append([])
        blocks[-1].append(name_text(line[9:]))
    return [_host(host, lines) for host, lines in zip(analysis.hosts, blocks, strict=True)]


def _host(host: Host, lines: Sequence[str]) -> HostView:
    settings: Mapping[str, str] = {} if host.settings is None else host.settings.values
    label, _, first = lines[0].partition(": ")
    counters, words = _counters(host)
    return HostView(
        label=label,
        lines=[first, *lines[1:], *map(name_text, host.notes)],
        settings=[name_text(f"{name} = {value}") for name, value in sorted(settings.items())],
        counters=counters,
        counters_words=words,
    )


def _counters(host: Host) -> tuple[list[tuple[str, str, str]], str]:
    """Return the growth between the first and the last sample of the host's best source."""
    from tcpwin.hosts import CounterSteps, counter_rows

    steps = CounterSteps(host.counters, name=host.label)
    for _ in steps:
        pass
    total = steps.total
    if total is None:
        return [], ""
    rows = [
        (name_text(row.name), f"{row.increase or 0:,}{' at least' if row.is_reset else ''}", row.meaning or "")
        for row in counter_rows(total)
    ]
    return rows, f"{count_text(steps.samples, 'sample')}, {span_text(total.start_ns, total.end_ns)}"


def unread(analysis: Analysis) -> list[str]:
    """Describe the input that no number of the report includes."""
    capture = analysis.capture
    counted = [
        (capture.not_tcp, "frame", "without TCP"),
        (capture.quoted_in_icmp, "TCP header", "quoted in ICMP errors"),
        (capture.unknown_link, "frame", "of an unsupported link type"),
        (capture.header_cut, "TCP header", "truncated by the snapshot length"),
        (capture.malformed, "frame", "with malformed headers"),
        (capture.datagrams_incomplete, "fragmented datagram", "incomplete"),
        (capture.capture_duplicates, "segment", "captured twice, counted once"),
    ]
    lines = [f"{count_text(count, noun)} {what}" for count, noun, what in counted if count]
    if capture.unread:
        lines.append(f"not understood: {unread_text(capture)}")
    lines += [f"{name_text(str(warning))}: nothing after it was read" for warning in capture.warnings]
    lines += [name_text(note) for note in analysis.notes]
    for file in chain.from_iterable(host.files for host in analysis.hosts):
        if file.unknown_lines:
            numbers = ", ".join(str(line.number) for line in file.first_unknown[:UNKNOWN_SHOWN])
            count = count_text(file.unknown_lines, "line")
            lines.append(f"{name_text(file.name)}: {count} not understood, from line {numbers}")
    return lines


def method_text(report: Report, version: str) -> str:
    """Explain in a paragraph how the numbers were made."""
    shown = report.analysis.capture
    duplicates = " Segments that the capture holds twice are counted once." if shown.capture_duplicates else ""
    return (
        f"tcpwin {version} read every packet once and followed each connection as its sender's kernel would: windows "
        "as the sender accepts them (RFC 9293), scaled by both SYNs (RFC 7323), bytes in flight on data and on ACKs. "
        f"{count_text(len(report.rules), 'rule')} judged the connections. Times are the capture's; the client is the "
        f"side that opened a connection.{duplicates} Bytes and rates have decimal prefixes. "
        f"What a finding means: tcpwin explain CODE. {report.digest} They are compared by "
        "tcpwin report CAPTURE --verify REPORT."
    )
