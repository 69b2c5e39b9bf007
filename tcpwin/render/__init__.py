"""Analyses as text, documents and files for other programs: every surface but the figures.

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.render.comparing.comparison import NAMES, headline, render_comparison, seen_twice, value_text
    from tcpwin.render.comparing.likeness import render_against, render_likeness
    from tcpwin.render.comparing.pairing import (
        change_on_the_way,
        most_lost_first,
        render_pairing,
        summarize_pairing,
        verdict_lines,
        view_lines,
    )
    from tcpwin.render.comparing.reference import (
        rates_text,
        render_nearest,
        render_reference,
        render_references,
        run_facts,
    )
    from tcpwin.render.kernel.counters import render_sample, render_step, render_steps_end, render_total
    from tcpwin.render.kernel.sockets import render_distributions, render_sockets, span_text
    from tcpwin.render.machine.github import render_github, render_unreadable
    from tcpwin.render.machine.junit import join_junit, junit_document
    from tcpwin.render.machine.sarif import join_sarif, sarif_document
    from tcpwin.render.text.analysis import WHOLE, quality_remarks, render, render_blocks
    from tcpwin.render.text.captures import CaptureRow, capture_row, render_captures
    from tcpwin.render.text.connection import render_connection
    from tcpwin.render.text.connections import ConnectionTable, render_table, tabulate_connections
    from tcpwin.render.text.findings import Weight, counts_line, render_findings, verdicts_on, weigh
    from tcpwin.render.text.rules import render_page, render_rules, threshold_text
    from tcpwin.render.text.summary import render_summary
    from tcpwin.render.text.whatif import render_whatif
    from tcpwin.render.verdict_words import frames_filter
    from tcpwin.render.wireshark.slicing import AROUND, Slice, annotate, slice_packets

_HOMES = {
    "comparing.comparison": (
        "NAMES",
        "headline",
        "render_comparison",
        "seen_twice",
        "value_text",
    ),
    "comparing.likeness": (
        "render_against",
        "render_likeness",
    ),
    "comparing.pairing": (
        "change_on_the_way",
        "most_lost_first",
        "render_pairing",
        "summarize_pairing",
        "verdict_lines",
        "view_lines",
    ),
    "comparing.reference": (
        "rates_text",
        "render_nearest",
        "render_reference",
        "render_references",
        "run_facts",
    ),
    "kernel.counters": (
        "render_sample",
        "render_step",
        "render_steps_end",
        "render_total",
    ),
    "kernel.sockets": (
        "render_distributions",
        "render_sockets",
        "span_text",
    ),
    "machine.github": (
        "render_github",
        "render_unreadable",
    ),
    "machine.junit": (
        "join_junit",
        "junit_document",
    ),
    "machine.sarif": (
        "join_sarif",
        "sarif_document",
    ),
    "text.analysis": (
        "WHOLE",
        "quality_remarks",
        "render",
        "render_blocks",
    ),
    "text.captures": (
        "CaptureRow",
        "capture_row",
        "render_captures",
    ),
    "text.connection": ("render_connection",),
    "text.connections": (
        "ConnectionTable",
        "render_table",
        "tabulate_connections",
    ),
    "text.findings": (
        "Weight",
        "counts_line",
        "render_findings",
        "verdicts_on",
        "weigh",
    ),
    "text.rules": (
        "render_page",
        "render_rules",
        "threshold_text",
    ),
    "text.summary": ("render_summary",),
    "text.whatif": ("render_whatif",),
    "verdict_words": ("frames_filter",),
    "wireshark.slicing": (
        "AROUND",
        "Slice",
        "annotate",
        "slice_packets",
    ),
}

__all__ = [
    "AROUND",
    "NAMES",
    "WHOLE",
    "CaptureRow",
    "ConnectionTable",
    "Slice",
    "Weight",
    "annotate",
    "capture_row",
    "change_on_the_way",
    "counts_line",
    "frames_filter",
    "headline",
    "join_junit",
    "join_sarif",
    "junit_document",
    "most_lost_first",
    "quality_remarks",
    "rates_text",
    "render",
    "render_against",
    "render_blocks",
    "render_captures",
    "render_comparison",
    "render_connection",
    "render_distributions",
    "render_findings",
    "render_github",
    "render_likeness",
    "render_nearest",
    "render_page",
    "render_pairing",
    "render_reference",
    "render_references",
    "render_rules",
    "render_sample",
    "render_sockets",
    "render_step",
    "render_steps_end",
    "render_summary",
    "render_table",
    "render_total",
    "render_unreadable",
    "render_whatif",
    "run_facts",
    "sarif_document",
    "seen_twice",
    "slice_packets",
    "span_text",
    "summarize_pairing",
    "tabulate_connections",
    "threshold_text",
    "value_text",
    "verdict_lines",
    "verdicts_on",
    "view_lines",
    "weigh",
]

__getattr__ = loader(__name__, _HOMES)
