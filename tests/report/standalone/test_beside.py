"""A report compares its worst connections with the references in each format, or says why it cannot."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from analysis.bundled import CAPTURES

import tcpwin
from tcpwin.reference import Comparison, compare
from tcpwin.reference.document import describe_comparison
from tcpwin.render.report.markdown_form import plain
from tcpwin.render.report.report import Report

SMALL_WINDOW = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
MANY = CAPTURES / "wild" / "many-short.pcap.gz"
EMPTY = CAPTURES / "broken" / "only-a-header.pcap"


@pytest.fixture(scope="module")
def report() -> Report:
    return tcpwin.analyze(SMALL_WINDOW, capture="sender.pcap.gz").report()


@pytest.fixture(scope="module")
def comparison(report: Report) -> Comparison:
    return compare(report.analysis.connections[0])


def section(page: str) -> str:
    """Return the text of the page's section, without markup."""
    found = re.search(r'<section id="references".*?</section>', page, re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", found[0])))


def test_the_page_holds_verdict_table_runs_and_prediction(report: Report, comparison: Comparison) -> None:
    page = report.html()
    assert '<a href="#references">' in page
    told = section(page)
    assert comparison.verdict is not None
    # The run's settings give 128 MiB, these 1 MiB: 4 MiB at -2.
    assert "602 Mbit/s on average, over 300 ms. Yours reached 20.3 Mbit/s" in comparison.verdict
    assert comparison.verdict in told
    assert "emory model: 4 MiB at -2 gives 1 MiB" in told
    for row in comparison.rows:
        assert f" {row.name} {row.yours or '–'} {row.reference or '–'} {row.best or '–'} " in told
    assert "this connection cloudflare-production/melbourne-old lab-bulk-300ms/512m2-stock" in told
    for near in comparison.nearest:
        assert f"{near.run.reference}/{near.run.name}, distance {near.distance:.2f}: {near.why[0]}" in told
    assert comparison.prediction.text in told
    assert 'sysctl -w net.ipv4.tcp_rmem="8192 262144 536870912"' in told
    for each in comparison.prediction.assumptions:
        assert each.rstrip(";") in told


def test_markdown_and_json_say_the_same(report: Report, comparison: Comparison) -> None:
    text = report.markdown().partition("## Compared with references")[2].partition("\n## ")[0]
    assert plain(comparison.verdict or "") in text
    assert "| round trip | 300 ms | 282 ms |" in text
    assert "sysctl -w net.ipv4.tcp_adv_win_scale=-2" in text
    (told,) = json.loads(report.json())["worst"]
    assert told["comparison"] == json.loads(json.dumps(describe_comparison(comparison)))


def test_connections_that_no_reference_is_like_say_why_once() -> None:
    report = tcpwin.analyze(MANY).report()
    ids = list(report.shown_ids)
    (why,) = {compare(report.analysis.connections[id]).why_not for id in ids}
    told = section(report.html())
    assert told.count("No published run is near enough to compare with: ") == 1
    assert f"{' '.join(f'#{id}' for id in ids)} {why}" in told
    named = ", ".join(f"connection {id}" for id in ids)
    assert f"- {named}: {plain(why or '')}\n" in report.markdown()
    assert [each["comparison"]["why_not"] for each in json.loads(report.json())["worst"]] == [why] * len(ids)


def test_without_connections_there_is_no_such_section() -> None:
    report = tcpwin.analyze(EMPTY).report()
    assert 'id="references"' not in report.html()
    assert "Compared with references" not in report.markdown()
