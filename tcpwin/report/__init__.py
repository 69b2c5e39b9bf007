"""The answer: in words, in figures.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.report.budget_words import ITEM_WORDS
    from tcpwin.report.capture_table import CaptureRow, capture_row, render_captures
    from tcpwin.report.comparison import NAMES, headline, render_comparison, seen_twice, value_text
    from tcpwin.report.connection_table import ConnectionTable, render_table, tabulate_connections
    from tcpwin.report.connection_text import render_connection
    from tcpwin.report.counters import render_sample, render_step, render_steps_end, render_total
    from tcpwin.report.findings import Weight, counts_line, render_findings, verdicts_on, weigh
    from tcpwin.report.github import render_github, render_unreadable
    from tcpwin.report.junit import join_junit, junit_document
    from tcpwin.report.ladder import draw_ladder
    from tcpwin.report.likeness import render_against, render_likeness
    from tcpwin.report.pairing import (
        change_on_the_way,
        most_lost_first,
        render_pairing,
        summarize_pairing,
        verdict_lines,
        view_lines,
    )
    from tcpwin.report.progress import Progress, plain_progress
    from tcpwin.report.reference import rates_text, render_nearest, render_reference, render_references, run_facts
    from tcpwin.report.rules import render_page, render_rules, threshold_text
    from tcpwin.report.sarif import join_sarif, sarif_document
    from tcpwin.report.sketch import (
        LIFE_COLUMNS,
        SKETCH_BUCKETS,
        BarPart,
        Life,
        Sketch,
        budget_bar,
        colours_css,
        draw_blocks,
        draw_life,
        draw_sketch,
    )
    from tcpwin.report.slicing import AROUND, Slice, annotate, slice_packets
    from tcpwin.report.sockets import render_distributions, render_sockets, span_text
    from tcpwin.report.summary import render_summary
    from tcpwin.report.text import WHOLE, quality_remarks, render, render_blocks
    from tcpwin.report.verdict_words import frames_filter
    from tcpwin.report.whatif import render_whatif

_HOMES = {
    "budget_words": ("ITEM_WORDS",),
    "capture_table": (
        "CaptureRow",
        "capture_row",
        "render_captures",
    ),
    "comparison": (
        "NAMES",
        "headline",
        "render_comparison",
        "seen_twice",
        "value_text",
    ),
    "connection_table": (
        "ConnectionTable",
        "tabulate_connections",
        "render_table",
    ),
    "connection_text": ("render_connection",),
    "counters": (
        "render_sample",
        "render_step",
        "render_steps_end",
        "render_total",
    ),
    "findings": (
        "Weight",
        "counts_line",
        "render_findings",
        "verdicts_on",
        "weigh",
    ),
    "github": (
        "render_github",
        "render_unreadable",
    ),
    "junit": (
        "join_junit",
        "junit_document",
    ),
    "ladder": ("draw_ladder",),
    "likeness": (
        "render_against",
        "render_likeness",
    ),
    "pairing": (
        "change_on_the_way",
        "most_lost_first",
        "render_pairing",
        "summarize_pairing",
        "verdict_lines",
        "view_lines",
    ),
    "progress": ("Progress", "plain_progress"),
    "reference": (
        "rates_text",
        "render_nearest",
        "render_reference",
        "render_references",
        "run_facts",
    ),
    "rules": (
        "render_page",
        "render_rules",
        "threshold_text",
    ),
    "sarif": (
        "join_sarif",
        "sarif_document",
    ),
    "sketch": (
        "BarPart",
        "LIFE_COLUMNS",
        "Life",
        "SKETCH_BUCKETS",
        "Sketch",
        "budget_bar",
        "colours_css",
        "draw_blocks",
        "draw_life",
        "draw_sketch",
    ),
    "slicing": (
        "AROUND",
        "Slice",
        "annotate",
        "slice_packets",
    ),
    "sockets": (
        "render_distributions",
        "render_sockets",
        "span_text",
    ),
    "summary": ("render_summary",),
    "text": (
        "WHOLE",
        "quality_remarks",
        "render",
        "render_blocks",
    ),
    "verdict_words": ("frames_filter",),
    "whatif": ("render_whatif",),
}

__all__ = [
    "AROUND",
    "ITEM_WORDS",
    "LIFE_COLUMNS",
    "NAMES",
    "SKETCH_BUCKETS",
    "WHOLE",
    "BarPart",
    "CaptureRow",
    "ConnectionTable",
    "Life",
    "Progress",
    "Sketch",
    "Slice",
    "Weight",
    "annotate",
    "budget_bar",
    "capture_row",
    "change_on_the_way",
    "colours_css",
    "counts_line",
    "draw_blocks",
    "draw_ladder",
    "draw_life",
    "draw_sketch",
    "frames_filter",
    "headline",
    "join_junit",
    "join_sarif",
    "junit_document",
    "most_lost_first",
    "plain_progress",
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
