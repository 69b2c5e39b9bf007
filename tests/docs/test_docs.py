"""The pages of tcpwin/docs explain every engine name, use only existing names, and quote real output."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from cases import all_cases
from cli import command

import tcpwin
from tcpwin import _engine
from tcpwin.agents import Folder
from tcpwin.agents.server import make_server
from tcpwin.analysis import EXCHANGE_COLUMNS
from tcpwin.lab.twin import Twin, TwinRun
from tcpwin.limits import LIMITS, OWNERS, VERDICT_FIELDS
from tcpwin.paths import Path as CapturedPath
from tcpwin.paths import Prediction
from tcpwin.watch import Round

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "tcpwin" / "docs"
ENGINE = ROOT / "tcpwin" / "engine" / "src"
PAGES = {path.name: path.read_text(encoding="utf8") for path in sorted(DOCS.glob("*.md"))}
FIELDS = {group: {name for name, _, _ in _engine.fields(group)} for group in ("connection", "direction")}
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
CONSOLE = re.compile(r"```console\n\$ tcpwin ([^\n]+)\n(.*?)```", re.DOTALL)
# Names of Linux and shells: functions, members, a sysctl without its prefix, an attribute of a route.
LINUX = {
    "bash_source",
    "cong_control",
    "rto_min",
    "rwnd_limited",
    "sndbuf_limited",
    "sack_rtt_us",
    "tcp_ack_update_rtt",
    "tcp_rtt_tsopt_us",
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
# Names in the document of two captures, and in the table of their packets.
SCHEMA = json.loads((ROOT / "tcpwin" / "pairing" / "schema.json").read_text(encoding="utf8"))
CLOCK = {"uncertainty_ns", "steps_ns", "offset_ns", "drift_ppm"}
CHANGES = {"window_scale", "sack_permitted", "sack_blocks", "congestion_mark", "ip_id"}
COLUMNS = {"frame_a", "frame_b", "time_a_ns", "time_b_ns", "delay_ns", "is_resend", "lost_frame"}
PAIR_NAMES = COLUMNS | CLOCK | CHANGES | {"ack_lost", "draw_ladder", "start_ns", "end_ns"}
# Values of fields.
VALUES = {"probe_answer", "syn_confirmed", "syn_only"}
# A lab run, by which its numbers can be found.
RUNS = {"reorder_only_cubic"}


def codes(page: str) -> set[str]:
    """Return the words in backticks in the prose and the tables of a page."""
    return set(CODE.findall(re.sub(r"```.*?```", "", page, flags=re.DOTALL)))


def fields_of(source: str) -> list[str]:
    """Return the fields of a direction that one file of the engine defines."""
    text = (ENGINE / "output" / source).read_text(encoding="utf8")
    return re.findall(r'^    (\w+) (?:Int|Real|Text|Flag)\b[^"\n]*"', text, re.MULTILINE)


def tools_of_agents() -> set[str]:
    """Return the tools that `tcpwin mcp` serves."""
    server = make_server(Folder(DOCS), Folder(DOCS))
    return {tool.name for tool in asyncio.run(server.list_tools())}


def known_names() -> set[str]:
    """Return every name that tcpwin defines."""
    events = {
        field.name
        for kind in (tcpwin.Capture, tcpwin.Event, tcpwin.Series, tcpwin.BudgetSeries)
        for field in fields(kind)
    }
    series = {
        name
        for kind in (tcpwin.Connection, tcpwin.View, tcpwin.Pairing)
        for name in dir(kind)
        if not name.startswith("_")
    }
    columns = {*_engine.ROW_COLUMNS, *_engine.VIEW_COLUMNS, *_engine.EVENT_NAMES, *_engine.SERIES_NAMES}
    listed = {field.name for field in fields(tcpwin.ZeroWindowEpisode)} | VALUES | {*EXCHANGE_COLUMNS}
    listed |= {name for part in SCHEMA["$defs"].values() for name in part.get("properties", {})} | PAIR_NAMES
    listed |= {field.name for kind in (CapturedPath, Prediction) for field in fields(kind)} | {"gain_ns"}
    listed |= {field.name for kind in (Twin, TwinRun) for field in fields(kind)} | {"captured_bps"}
    listed |= {field.name for field in fields(Round)}
    listed |= {*VERDICT_FIELDS, *LIMITS, *OWNERS, "items_ns", *dir(tcpwin)} | tools_of_agents()
    return FIELDS["connection"] | FIELDS["direction"] | columns | events | series | listed | set(_engine.CAUSES)


def test_the_engines_fields_are_found() -> None:
    """Guards the pattern above."""
    loss, time = fields_of("loss_fields.rs"), fields_of("time_fields.rs")
    assert len(loss) >= 30
    assert len(time) >= 30
    assert {*loss, *time} <= FIELDS["direction"]


@all_cases("name", [*fields_of("loss_fields.rs"), *fields_of("time_fields.rs")])
def test_every_field_of_loss_and_time_is_explained(name: str) -> None:
    assert any(name in codes(page) for page in PAGES.values())


@all_cases("name", _engine.EVENT_NAMES)
def test_every_event_is_explained(name: str) -> None:
    assert name in codes(PAGES["retransmissions.md"])


@all_cases("name", _engine.SERIES_NAMES)
def test_every_series_has_its_row(name: str) -> None:
    table = PAGES["library.md"].partition("## Series")[2].partition("\n## ")[0]
    assert f"`{name}`" in table


@all_cases("cause", _engine.CAUSES)
def test_every_cause_has_its_row(cause: str) -> None:
    table = PAGES["retransmissions.md"].partition("## The causes")[2].partition("\n## ")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert any(cause in CODE.findall(cell) for cell in first_cells)


@all_cases("page", PAGES)
def test_names_in_backticks_exist(page: str) -> None:
    said = {word for code in codes(PAGES[page]) for word in NAME.findall(code) if not code.startswith("captures/")}
    sysctls = {word for word in said if f"net.ipv4.{word}" in PAGES[page]}
    assert said - known_names() - LINUX - RUNS - sysctls == set()


@all_cases("page", PAGES)
def test_captures_and_links_exist(page: str) -> None:
    captures = re.findall(r"captures/[\w./-]+\w", PAGES[page])
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", PAGES[page]) if "://" not in link]
    assert [capture for capture in captures if not (ROOT / capture).is_file()] == []
    assert [link for link in links if not (DOCS / link).is_file()] == []


def quotations() -> list[tuple[str, str, str]]:
    """Return page, arguments and quoted lines of every command."""
    readme = (ROOT / "README.md").read_text(encoding="utf8").replace("$ .venv/bin/tcpwin ", "$ tcpwin ")
    return [(page, *found) for page, text in {**PAGES, "README.md": readme}.items() for found in CONSOLE.findall(text)]


def test_pages_quote_commands() -> None:
    assert len({page for page, _, _ in quotations()}) >= 3


@all_cases(("page", "arguments", "quoted"), quotations())
def test_quoted_output_is_what_the_command_prints(
    page: str, arguments: str, quoted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page quotes complete lines in order, and may omit lines in between."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    done = command.tcpwin(*arguments.split())
    assert done.returncode == 0, done.stderr
    printed = iter(done.stdout.decode().splitlines())
    missing = [line for line in quoted.splitlines() if line not in printed]
    assert missing == [], page


def test_the_readme_leads_to_the_index_and_that_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    assert "(tcpwin/docs/index.md)" in readme
    assert [page for page in PAGES if page != "index.md" and f"({page})" not in PAGES["index.md"]] == []


def test_the_articles_line_of_ss_says_what_the_page_makes_of_it() -> None:
    """misc/ss.c: send = cwnd · mss · 8 / rtt; tcp_set_rto: the round trip and 200 ms, in ticks of 4 ms."""
    page = PAGES["idle-restart.md"]
    found = re.search(r"rto:(\d+) rtt:([\d.]+)/([\d.]+) .*mss:(\d+) .*cwnd:(\d+) .*send ([\d.]+)Mbps", page)
    rto, smoothed, deviation, mss, window, rate = (float(text) for text in found.groups())
    assert round(window * mss * 8 / (smoothed * 1e-3) / 1e6, 1) == rate
    assert rto == -(-(smoothed + max(200, 4 * deviation)) // 4) * 4
    assert f"{window * mss:,.0f} bytes" in page


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the table that begins with this row."""
    lines = PAGES[page].partition(heading)[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")][1:]


def test_the_connection_at_both_ends_has_the_numbers_of_the_table() -> None:
    names = ("lossy-path.pcapng.gz", "lossy-path-receiver.pcap.gz")
    ends = [tcpwin.analyze(ROOT / "captures" / "wild" / name).connections[0].a_to_b for name in names]
    rows = rows_of("round-trips.md", "| field | at the sender | at the receiver |")
    assert len(rows) >= 8
    for field, *said in rows:
        values = [getattr(end, field.strip("`")) for end in ends]
        shown = ["–" if value is None else f"{value:,}" if isinstance(value, int) else value for value in values]
        assert said == shown, field


def test_the_worked_timeout_is_the_engines() -> None:
    """Compares the series `rto` at the end of each round; ss rounds up to its tick of 10 ms."""
    connection = tcpwin.analyze(ROOT / "captures" / "lab" / "idle-restart.pcap.gz").connections[0]
    series = connection.series("rto", direction="b_to_a")
    steps = dict.fromkeys(f"{rto_ns / 1e6:.1f}" for rto_ns in series.last.tolist())
    rows = rows_of("round-trips.md", "| round ends at | RTTVAR, ms | `rto_ns`, ms | `ss` |")
    said = [timeout for _, _, timeout, _ in rows]
    assert list(dict.fromkeys(said[:-1])) == list(steps)[:4]
    assert said[-1] == f"{(connection.b_to_a.rto_ns or 0) / 1e6:.1f}"
    for _, _, timeout, line in rows[:-1]:
        kernel = re.match(r"`rto:(\d+) ", line)
        assert 0 <= int(kernel[1]) - float(timeout) <= 10


def test_the_restart_described_frame_by_frame_is_in_the_capture() -> None:
    page = " ".join(PAGES["idle-restart.md"].split())
    told = re.search(r"frames (\d+) to (\d+) are ten segments, ([\d,]+) bytes; frame (\d+) is the first ACK", page)
    first, last, sent, ack = (int(number.replace(",", "")) for number in told.groups())
    connection = tcpwin.analyze(ROOT / "captures" / "lab" / "idle-restart.pcap.gz").connections[0]
    rows = dict(connection.segments().items())
    frames = rows["frame"].tolist()
    burst = slice(frames.index(first), frames.index(last) + 1)
    assert rows["direction"][burst].tolist() == ["b"] * 10
    assert sum(rows["length"][burst].tolist()) == sent
    assert rows["direction"][frames.index(ack)] == "a"
    events = [event.frame for event in connection.events if "idle_restart" in event.names]
    assert events[0] == ack + 1
    silence_ms = round((rows["time_ns"][burst.start] - rows["time_ns"][frames.index(35)]) / 1e6)
    assert f"The silence before was {silence_ms:,} ms" in page


def test_bytes_sent_again_are_those_of_the_page() -> None:
    page = " ".join(PAGES["retransmissions.md"].split())
    told = re.search(
        r"`(captures/[^`]+)` has (\d+) retransmissions and (\d+) resent bytes, "
        r"the sender's capture of the same connection (\d+) and ([\d,]+)",
        page,
    )
    receiver = ROOT / told[1]
    sender = receiver.with_name("lossy-path.pcapng.gz")
    for capture, count, again in ((receiver, told[2], told[3]), (sender, told[4], told[5])):
        data = tcpwin.analyze(capture).connections[0].a_to_b
        assert (str(data.retransmissions), f"{data.resent_bytes:,}") == (count, again)


def test_the_largest_flight_and_pipe_are_those_of_the_page() -> None:
    page = " ".join(PAGES["messages.md"].split())
    told = re.search(r"the field has (\d+) segments, while `pipe`, which excludes SACKed data, has (\d+)", page)
    assert told is not None
    connection = tcpwin.analyze(ROOT / "captures" / "lab" / "loss-1-percent.pcap.gz").connections[0]
    data = connection.b_to_a
    pipe = max(each for each in dict(connection.segments().items())["pipe"].tolist() if each is not None)
    assert data.mss_bytes is not None
    assert data.cwnd_estimate_max_bytes == int(told[1]) * data.mss_bytes
    assert pipe == int(told[2]) * data.mss_bytes
