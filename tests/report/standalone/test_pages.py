"""Findings by kind in a report, and the number of printed pages."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfReader
from spread import some_by_day
from web.test_capture_page import STALLS, many_stalls

import tcpwin

CAPTURES = Path(__file__).parents[3] / "captures"
MOST_PAGES = 12


def test_findings_of_a_kind_are_shown_once() -> None:
    analysis = tcpwin.analyze(many_stalls())
    report = analysis.report()
    [group] = [each for each in report.finding_groups if each.worst.code == "TW201"]
    own = [each for each in analysis.findings if each.code == "TW201"]
    assert (group.count, group.cost_ns) == (STALLS, sum(each.cost_ns or 0 for each in own))
    assert group.findings == own
    assert report.findings_left == {}
    text = report.markdown()
    assert text.count("### TW201") == 1
    assert f"- **of its kind:** {STALLS}, 19.6 s in all; next connection {STALLS - 2} 3 s," in text
    page = report.html()
    assert page.count('<article class="finding ') == 1
    assert f"<b>×{STALLS}</b>, 19.6 s in all" in page


@pytest.mark.parametrize("name", some_by_day(["", "bundles/slow-reader.zip", "wild/many-short.pcap.gz"]))
def test_a_pdf_has_at_most_twelve_pages(tool: Callable[[str], str], name: str) -> None:
    tool("chromium")
    report = tcpwin.analyze(CAPTURES / name if name else many_stalls()).report()
    pages = PdfReader(BytesIO(report.pdf())).pages
    assert 4 < len(pages) <= MOST_PAGES
    printed = report.printed
    assert len(printed.shown_ids) == min(3, len(report.shown_ids))
    # One figure over time for each connection described in full. The rest of its title contains a ligature.
    text = " ".join("".join(page.extract_text() for page in pages).split())
    assert text.count("Window and bytes in") >= len(printed.shown_ids)
