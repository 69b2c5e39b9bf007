"""The paragraph, verdicts, time budgets and silences in a report: whole lines."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from analysis.bundled import CAPTURES, WHOLE, name_of
from report.made_findings import NASTY, bundled, found

import tcpwin
from tcpwin.limits import GROUPS, ITEMS, summarize
from tcpwin.report import render, render_connection
from tcpwin.report.budget_words import GROUP_WORDS, ITEM_WORDS
from tcpwin.report.summary import BAR, WIDTH, render_budgets, render_stalls, render_summary

ROW = re.compile(r"(?P<item>\D.*?) +(?P<time>[\d.]+ (?:µs|ms|s|min)) +(?P<share>[\d.]+)%(?:   (?P<bar>#+))?")


def test_every_item_has_words() -> None:
    assert tuple(ITEM_WORDS) == ITEMS
    assert tuple(GROUP_WORDS) == tuple(GROUPS)
    assert all(len(words) <= 18 for words in (*ITEM_WORDS.values(), *GROUP_WORDS.values()))


def test_report_of_a_lossy_capture() -> None:
    lines = render(bundled("loss-1-percent.pcap.gz")).splitlines()
    assert lines[3:6] == [
        "",
        "1 connection carried 8 MB of data in 24 s. It was limited by b's congestion window, cut by losses: 89% of its "
        "time",
        "(likely). That is to be changed in the network.",
    ]
    place = next(place for place, line in enumerate(lines) if line.startswith("#0 "))
    assert lines[place + 1] == (
        "    limited by b's congestion window, cut by losses: 89% of its time (likely): 59 segments of 5,584 sent again"
    )


def test_each_connection_shown_has_its_verdict() -> None:
    lines = render(bundled("many-short.pcap.gz")).splitlines()
    heads = [place for place, line in enumerate(lines) if line.startswith("#")]
    assert len(heads) == 10
    assert all(lines[place + 1].startswith(("    limited by ", "    carried no data: ")) for place in heads)


def test_report_without_connections_has_no_paragraph() -> None:
    assert render(bundled("only-a-header.pcap")).splitlines()[-2:] == ["", "No TCP connection in this capture."]


def test_budget_of_a_stall() -> None:
    """The window was closed for 4.14 s of 6.74 s; a sends nothing, and has no table."""
    lines = list(render_budgets(bundled("zero-window-stall.pcap.gz").connections[0]))
    assert lines[:3] == [
        "",
        "where the time of b went              time   share",
        "window closed                       4.14 s   61.5%   #########################",
    ]
    assert len([line for line in lines if line.startswith("where")]) == 1


@pytest.mark.parametrize("path", WHOLE, ids=name_of)
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
    assert re.fullmatch(r"the window's time by the packets alone is 0\.\d% of the duration off the kernel's", lines[-1])


def test_silences_of_a_stall() -> None:
    """Frame 13,657 announces zero, frame 13,664 the update (test_words); the probes lie between."""
    lines = list(render_stalls(bundled("zero-window-stall.pcap.gz").connections[0]))
    assert lines == [
        "",
        " silent at       for  of  because of           in flight   frames",
        "    1.57 s    290 ms  b   window full                0 B   13655 to 13656",
        "     1.9 s    280 ms  b   zero window                0 B   13657 to 13658",
        "    2.22 s    550 ms  b   zero window                0 B   13659 to 13660",
        "    2.81 s    1.16 s  b   zero window                0 B   13661 to 13662",
        "    4.01 s    2.03 s  b   zero window                0 B   13663 to 13664",
    ]


def test_most_silences_are_left_out() -> None:
    """20 messages, of which 20 pauses follow; the capture holds no other silence."""
    connection = bundled("idle-restart.pcap.gz").connections[0]
    lines = list(render_stalls(connection))
    assert len(connection.stalls) == 20
    assert len(lines) == 2 + 10 + 1
    assert lines[-1] == "10 more silences not shown"
    starts = [float(line.split()[0]) * (1e-3 if line.split()[1] == "ms" else 1) for line in lines[2:-1]]
    assert starts == sorted(starts)


def test_connection_in_full_has_all_of_it() -> None:
    lines = render_connection(bundled("zero-window-stall.pcap.gz").connections[0]).splitlines()
    assert lines[1].startswith("  limited by a's receive window: 69% of its time (sure): ")
    assert "  where the time of b went              time   share" in lines
    assert "   silent at       for  of  because of           in flight   frames" in lines


def test_paragraph_is_wrapped_and_harmless() -> None:
    lines = render_summary(summarize(bundled("keep-alive.pcap"), found(replace(NASTY, cost_ns=10**9))))
    assert max(map(len, lines)) <= WIDTH
    assert "".join(lines).isprintable()
    assert "\\x1b[31m" in " ".join(lines)
