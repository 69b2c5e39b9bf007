"""Summary, verdicts, time budgets and silences in a report: their numbers and fields, tables by complete lines."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from analysis.bundled import CAPTURES, WHOLE, name_of
from cases import all_cases
from report.made_findings import NASTY, NASTY_SHOWN, NASTY_TEXT, bundled, found

import tcpwin
from tcpwin.limits import GROUP_NAMES, GROUPS, ITEM_NAMES, ITEMS, LIMIT_NAMES, Finding, summarize
from tcpwin.limits.tables import WINDOW_ITEMS
from tcpwin.limits.verdict import judge_connection
from tcpwin.render import render, render_connection
from tcpwin.render.text.findings import render_findings
from tcpwin.render.text.summary import BAR, render_budgets, render_stalls, render_summary
from tcpwin.render.view.verdict import view_verdict
from tcpwin.units import share_text, time_text

ROW = re.compile(r"(?P<item>\D.*?) +(?P<time>[\d.]+ (?:µs|ms|s|min)) +(?P<share>[\d.]+) %(?:   (?P<bar>#+))?")


def test_every_item_has_words() -> None:
    assert tuple(ITEM_NAMES) == ITEMS
    assert tuple(GROUP_NAMES) == tuple(GROUPS)
    assert all(len(words) <= 18 for words in (*ITEM_NAMES.values(), *GROUP_NAMES.values()))


def test_report_of_a_lossy_capture() -> None:
    """The lab sent 8,000,000 bytes, and its kernel counted 59 retransmissions."""
    analysis = bundled("loss-1-percent.pcap.gz")
    verdict = analysis.connections[0].verdict
    assert (verdict.limit, verdict.owner) == ("path_loss", "network")
    lines = render(analysis).splitlines()
    paragraph = " ".join(lines[: lines.index("")])
    assert paragraph.startswith("8 MB in 24 s. ")
    for words in (verdict.text, time_text(verdict.named_ns), f"Fix: {verdict.fix}"):
        assert words in paragraph
    assert verdict.reason in paragraph
    assert "\n".join(lines).count(verdict.headline) == 1
    assert {"59", "5,584", "21.1"} <= set(verdict.reason.split())


def test_each_connection_shown_has_its_verdict() -> None:
    analysis = bundled("many-short.pcap.gz")
    lines = render(analysis).splitlines()
    start = next(place for place, line in enumerate(lines) if line.split()[:1] == ["id"])
    for row, connection in zip(lines[start + 1 : start + 11], analysis.worst(10), strict=True):
        assert row.split()[0] == str(connection.id)
        assert f"  {LIMIT_NAMES[connection.verdict.limit]} " in row
        assert f" {share_text(connection.verdict.share)} " in row
    heads = [place for place, line in enumerate(lines) if line.startswith("#")]
    assert len(heads) == 3
    for place, connection in zip(heads, analysis.worst(3), strict=True):
        assert lines[place].startswith(f"#{connection.id} ")
        assert lines[place + 1].startswith(f"    {connection.verdict.headline}. ")


def test_report_without_connections_has_no_paragraph() -> None:
    assert render(bundled("only-a-header.pcap")).splitlines()[:2] == ["No TCP connection in this capture.", ""]


def test_budget_of_a_stall() -> None:
    """The window was closed for 4.14 s of 6.74 s; a sends nothing, and has no table."""
    lines = list(render_budgets(bundled("zero-window-stall.pcap.gz").connections[0]))
    assert lines[:3] == [
        "",
        "where the server's time went          time   share",
        "window closed                       4.14 s  61.5 %   #########################",
    ]
    assert len([line for line in lines if line.startswith("where")]) == 1


@all_cases("path", WHOLE, ids=name_of)
def test_shares_of_a_budget_add_up(path: object) -> None:
    for connection in tcpwin.analyze(str(path)).connections[:5]:
        rows = [match for line in render_budgets(connection) if (match := ROW.fullmatch(line))]
        tables = [line for line in render_budgets(connection) if line.startswith("where")]
        assert sum(float(row["share"]) for row in rows) == pytest.approx(100 * len(tables), abs=0.05 * 16 * len(tables))
        assert all(len(row["bar"] or "") == round(float(row["share"]) / 100 * BAR) for row in rows)


def test_budget_says_what_the_kernel_counted() -> None:
    """The last sample of the sender: busy:27260ms rwnd_limited:26710ms, in three digits."""
    lines = list(render_budgets(tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip").connections[0]))
    assert lines[-2] == (
        "its kernel was busy for 27.3 s, waiting for the window for 26.7 s, for the send buffer for 0 s"
    )
    assert "packets" in lines[-1]
    assert re.search(r" 0\.\d % of the duration", lines[-1])


def test_silences_of_a_stall() -> None:
    """Frame 13,657 announces zero, frame 13,664 the update (test_words), with the probes in between."""
    lines = list(render_stalls(bundled("zero-window-stall.pcap.gz").connections[0]))
    assert lines == [
        "",
        " silent at       for  host      cause                in flight   frames",
        "    1.57 s    290 ms  server    window full                0 B   13655 to 13656",
        "     1.9 s    280 ms  server    zero window                0 B   13657 to 13658",
        "    2.22 s    550 ms  server    zero window                0 B   13659 to 13660",
        "    2.81 s    1.16 s  server    zero window                0 B   13661 to 13662",
        "    4.01 s    2.03 s  server    zero window                0 B   13663 to 13664",
    ]


def test_most_silences_are_left_out() -> None:
    """20 messages, followed by 20 pauses; the capture has no other silence."""
    connection = bundled("idle-restart.pcap.gz").connections[0]
    lines = list(render_stalls(connection))
    assert len(connection.stalls) == 20
    assert len(lines) == 2 + 10 + 1
    assert lines[-1] == "10 more silences not shown"
    starts = [float(line.split()[0]) * (1e-3 if line.split()[1] == "ms" else 1) for line in lines[2:-1]]
    assert starts == sorted(starts)


def test_connection_in_full_has_all_of_it() -> None:
    connection = bundled("zero-window-stall.pcap.gz").connections[0]
    lines = render_connection(connection).splitlines()
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner) == ("receiver_application", "client_application")
    assert lines[1] == f"  {verdict.text}"
    assert lines[2] == f"  Fix: {verdict.fix}"
    assert lines[3].startswith(f"  Cost: about {time_text(verdict.named_ns)} ")
    assert lines[3].endswith(f" instead of {time_text(connection.duration_ns)}")
    assert lines[4] == f"  When: {verdict.when_text}"
    assert lines[5].startswith(f"  Evidence: {verdict.reason}; frame.number in {{")
    assert "  where the server's time went          time   share" in lines
    assert "   silent at       for  host      cause                in flight   frames" in lines


def nasty_claim() -> tuple[tcpwin.Analysis, Finding]:
    """Return a capture, and a finding with all special characters that claims all the time of the capture's limit."""
    analysis = bundled("slow-reader.pcap.gz")
    items_ns = {item: analysis.connections[0].budget["b_to_a"].items_ns[item] for item in WINDOW_ITEMS}
    limits = ("receiver_application",)
    cost_ns = sum(items_ns.values())
    return analysis, replace(NASTY, items_ns=items_ns, cost_ns=cost_ns, limits=limits, owner="network")


def test_paragraph_is_harmless() -> None:
    analysis, finding = nasty_claim()
    lines = render_summary(summarize(analysis, found(finding)), analysis)
    assert "".join(lines).isprintable()
    assert f"Fix: {NASTY_SHOWN}" in " ".join(lines)


def test_words_of_a_verdict_are_harmless() -> None:
    """The finding's remedy is the fix, its text the reason, because it blames another limit."""
    analysis, finding = nasty_claim()
    connection = analysis.connections[0]
    verdict = judge_connection(connection, [finding])
    assert (verdict.fix, verdict.reason, verdict.code) == (NASTY_TEXT, NASTY_TEXT, finding.code)
    words = view_verdict(verdict)
    assert (words.fix, words.why) == (NASTY_SHOWN, NASTY_SHOWN)
    assert all(text.isprintable() for text in (words.answer, words.cost, words.evidence))


def test_findings_are_harmless() -> None:
    analysis, finding = nasty_claim()
    lines = list(render_findings(analysis, found(finding), checked=1))
    assert all(line.isprintable() for line in lines)
    assert sum(NASTY_SHOWN in line for line in lines) >= 4
