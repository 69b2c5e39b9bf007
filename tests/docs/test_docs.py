"""The pages of tcpwin/docs: what the engine can say is named there, what they name exists, what they quote is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import tcpwin
from tcpwin import _engine

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "tcpwin" / "docs"
ENGINE = ROOT / "tcpwin" / "engine" / "src"
PAGES = {path.name: path.read_text(encoding="utf8") for path in sorted(DOCS.glob("*.md"))}
FIELDS = {group: {name for name, _, _ in _engine.fields(group)} for group in ("connection", "direction")}
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
CONSOLE = re.compile(r"```console\n\$ tcpwin ([^\n]+)\n(.*?)```", re.DOTALL)
# Names of Linux and of its tools: functions, members, a sysctl without its prefix, an attribute of a route.
LINUX = {
    "cong_control",
    "rto_min",
    "sack_rtt_us",
    "sch_fq",
    "seq_rtt_us",
    "tcp_clean_rtx_queue",
    "tcp_cwnd_application_limited",
    "tcp_cwnd_restart",
    "tcp_enter_loss",
    "tcp_is_cwnd_limited",
    "tcp_nagle_check",
    "tcp_retransmit_timer",
    "tcp_rtt_estimator",
    "tcp_schedule_loss_probe",
    "tcp_set_rto",
    "tcp_slow_start_after_idle",
    "tcp_slow_start_after_idle_check",
    "tcp_try_undo_dsack",
    "tcp_try_undo_loss",
    "tcp_try_undo_partial",
}
# A run of the lab, by which its numbers can be looked up.
RUNS = {"reorder_only_cubic"}


def codes(page: str) -> set[str]:
    """Return what stands in backticks in the prose and the tables of a page."""
    return set(CODE.findall(re.sub(r"```.*?```", "", page, flags=re.DOTALL)))


def fields_of(source: str) -> list[str]:
    """Return the fields of a direction that one file of the engine defines."""
    text = (ENGINE / "output" / source).read_text(encoding="utf8")
    return re.findall(r'^    (\w+) (?:Int|Real|Text|Flag) "', text, re.MULTILINE)


def causes() -> list[str]:
    """Return the names of the engine's causes."""
    return re.findall(r'Cause::\w+ => "(\w+)"', (ENGINE / "recovery" / "cause.rs").read_text(encoding="utf8"))


def known_names() -> set[str]:
    """Return every name that tcpwin gives to something."""
    events = {field.name for field in fields(tcpwin.Event)}
    series = {name for name in dir(tcpwin.Connection) if not name.startswith("_")}
    columns = {*_engine.ROW_COLUMNS, *_engine.EVENT_NAMES, *_engine.SERIES_NAMES}
    return FIELDS["connection"] | FIELDS["direction"] | columns | events | series | set(causes())


def test_the_engines_fields_and_causes_are_found() -> None:
    """Guards the two patterns above."""
    loss, time = fields_of("loss_fields.rs"), fields_of("time_fields.rs")
    assert len(loss) >= 30
    assert len(time) >= 30
    assert {*loss, *time} <= FIELDS["direction"]
    assert {"fast", "syn_ack", "unknown", "capture_reordered"} <= set(causes())


@pytest.mark.parametrize("name", [*fields_of("loss_fields.rs"), *fields_of("time_fields.rs")])
def test_every_field_of_loss_and_time_is_explained(name: str) -> None:
    assert any(name in codes(page) for page in PAGES.values())


@pytest.mark.parametrize("name", _engine.EVENT_NAMES)
def test_every_event_is_explained(name: str) -> None:
    assert name in codes(PAGES["retransmissions.md"])


@pytest.mark.parametrize("cause", causes())
def test_every_cause_has_its_row(cause: str) -> None:
    table = PAGES["retransmissions.md"].partition("## The causes")[2].partition("\n## ")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert any(cause in CODE.findall(cell) for cell in first_cells)


@pytest.mark.parametrize("page", PAGES)
def test_names_in_backticks_exist(page: str) -> None:
    said = {word for code in codes(PAGES[page]) for word in NAME.findall(code) if not code.startswith("captures/")}
    sysctls = {word for word in said if f"net.ipv4.{word}" in PAGES[page]}
    assert said - known_names() - LINUX - RUNS - sysctls == set()


@pytest.mark.parametrize("page", PAGES)
def test_captures_and_links_exist(page: str) -> None:
    captures = re.findall(r"captures/[\w./-]+\w", PAGES[page])
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", PAGES[page]) if "://" not in link]
    assert [capture for capture in captures if not (ROOT / capture).is_file()] == []
    assert [link for link in links if not (DOCS / link).is_file()] == []


def quotations() -> list[tuple[str, str, str]]:
    """Return page, arguments and quoted lines of every command."""
    return [(page, *found) for page, text in PAGES.items() for found in CONSOLE.findall(text)]


def test_pages_quote_commands() -> None:
    assert len({page for page, _, _ in quotations()}) >= 3


@pytest.mark.parametrize(("page", "arguments", "quoted"), quotations())
def test_quoted_output_is_what_the_command_prints(page: str, arguments: str, quoted: str) -> None:
    """Whole lines, in their order; what stands between them may be left out."""
    done = subprocess.run(
        [Path(sys.executable).parent / "tcpwin", *arguments.split()],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        text=True,
        capture_output=True,
        check=True,
    )
    printed = iter(done.stdout.splitlines())
    missing = [line for line in quoted.splitlines() if line not in printed]
    assert missing == [], page


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    assert [page for page in PAGES if f"(tcpwin/docs/{page})" not in readme] == []


def test_the_articles_line_of_ss_says_what_the_page_makes_of_it() -> None:
    """misc/ss.c: send = cwnd · mss · 8 / rtt; tcp_set_rto: the round trip and 200 ms, in ticks of 4 ms."""
    page = PAGES["idle-restart.md"]
    found = re.search(r"rto:(\d+) rtt:([\d.]+)/([\d.]+) .*mss:(\d+) .*cwnd:(\d+) .*send ([\d.]+)Mbps", page)
    assert found is not None
    rto, smoothed, deviation, mss, window, rate = (float(text) for text in found.groups())
    assert round(window * mss * 8 / (smoothed * 1e-3) / 1e6, 1) == rate
    assert rto == -(-(smoothed + max(200, 4 * deviation)) // 4) * 4
    assert f"{window * mss:,.0f} bytes" in page
