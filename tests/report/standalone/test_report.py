"""Reports in Markdown, JSON and HTML show measurements and findings; their size is bounded."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import tomllib
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import CAPTURES
from cases import all_cases
from craft.broken import ACK, PSH, segment
from report.standalone.made import MARKUP, handshake, hostile, of_a_week, of_many, one_packet, one_way, write_pcap

import tcpwin
from tcpwin.analysis import EVENT_FIELDS
from tcpwin.errors import OutputError
from tcpwin.figures.assets import PLOTLY, read_asset, read_plotly
from tcpwin.limits import LIMIT_NAMES
from tcpwin.render.report import form_of
from tcpwin.render.report import table as table_module
from tcpwin.render.report.json_form import script_json
from tcpwin.render.report.markdown_form import plain
from tcpwin.render.report.pdf import VARIABLE, find_browser
from tcpwin.render.report.table import make_table
from tcpwin.units import begin

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"
LOSSY = CAPTURES / "wild" / "lossy-path.pcapng.gz"
MANY = CAPTURES / "wild" / "many-short.pcap.gz"
EMPTY = CAPTURES / "broken" / "only-a-header.pcap"
CUT = CAPTURES / "broken" / "cut-block.pcapng"


def unpacked(packed: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def structure(value: Any) -> Any:
    """Return names and the kinds of their values; for a list, those of its first element."""
    if isinstance(value, dict):
        return {name: structure(each) for name, each in value.items()}
    if isinstance(value, list):
        return [structure(value[0])] if value else []
    return type(value).__name__


def test_the_json_document_keeps_its_structure() -> None:
    """A change here needs a new schema version, unless fields were only added."""
    document = json.loads(tcpwin.analyze(BUNDLE).report().json())
    assert document["schema"] == "tcpwin/report/2"
    document["analysis"] = {"schema": document["analysis"]["schema"]}
    for each in document["rules"]:
        each["thresholds"] = {}
    document["counts"] = {}
    told = document["worst"][0]
    told["comparison"]["measured"]["settings"] = {}
    assert {tuple(event) for event in told["events"]} == {EVENT_FIELDS}
    told["events"] = []
    for budget in told["budget"].values():
        budget["items_ns"] = budget["packets_ns"] = {}
    for each in [*document["findings"], *document["summary"]["worst"]]:
        each["evidence"]["values"] = {}
    kept = json.loads(Path(__file__).with_name("report.json").read_text(encoding="utf8"))
    assert structure(document) == kept


@all_cases("capture", [BUNDLE, LOSSY, MANY, EMPTY, CUT], ids=lambda path: path.name)
def test_the_json_document_holds_analysis_findings_and_budgets(capture: Path) -> None:
    analysis = tcpwin.analyze(capture)
    report = analysis.report(limit=2)
    document = json.loads(report.json())
    assert document["analysis"] == json.loads(analysis.to_json())
    assert [each["code"] for each in document["findings"]] == [each.code for each in analysis.findings]
    assert [each["id"] for each in document["worst"]] == list(report.shown_ids)
    for each in document["worst"]:
        connection = analysis.connections[each["id"]]
        assert each["verdict"]["headline"] == connection.verdict.headline
        assert sum(each["budget"]["a_to_b"]["items_ns"].values()) == connection.duration_ns
        assert len(each["events"]) == len(connection.events)


def test_connections_shown_in_full_have_the_costliest_findings() -> None:
    analysis = tcpwin.analyze(LOSSY)
    assert list(analysis.report().shown_ids) == [0]
    assert list(analysis.report(limit=0).shown_ids) == []
    many = tcpwin.analyze(MANY)
    sizes = sorted(((each.a_to_b.unique_bytes + each.b_to_a.unique_bytes, -each.id) for each in many), reverse=True)
    assert list(many.report().shown_ids) == [-id for _, id in sizes[:3]]


@pytest.mark.parametrize("capture", [LOSSY, MANY], ids=lambda path: path.name)
def test_the_table_says_of_each_connection_what_was_measured(capture: Path) -> None:
    analysis = tcpwin.analyze(capture)
    table = make_table(analysis.report())
    columns = {each["key"]: each for each in unpacked(table.packed)["columns"]}
    assert table.rows == table.total == len(analysis)
    for row, connection in enumerate(analysis):
        there, back = connection.a_to_b, connection.b_to_a
        main = there if there.unique_bytes >= back.unique_bytes else back

        def cell(key: str, row: int = row) -> Any:
            value = columns[key]["values"][row]
            return columns[key]["names"][value] if columns[key]["kind"] == "name" else value

        assert cell("id") == connection.id
        assert (cell("a"), cell("b")) == (str(connection.a), str(connection.b))
        assert (cell("a_to_b"), cell("b_to_a")) == (there.unique_bytes, back.unique_bytes)
        assert cell("duration") == pytest.approx(connection.duration_ns / 1000, rel=1e-4, abs=0.51)
        assert cell("rtt") == (
            connection.path_rtt_ns and pytest.approx(connection.path_rtt_ns / 1000, rel=1e-4, abs=0.51)
        )
        # 14,600 bytes in ten segments are one burst, which has no rate (RFC 6928).
        is_burst = main.acked_bytes <= 14_600 and main.data_segments <= 10
        rate_bps = None if is_burst else main.goodput_bps
        assert cell("goodput") == (rate_bps and pytest.approx(rate_bps, rel=1e-4, abs=0.51))
        assert cell("resent") == there.retransmissions + back.retransmissions
        assert cell("findings") == len(connection.findings)
        verdict = connection.verdict
        assert cell("limit") == LIMIT_NAMES[verdict.limit]
        assert (cell("share"), cell("confidence")) == (round(100 * verdict.share), verdict.confidence)
        cost = pytest.approx(verdict.named_ns / 1000, rel=1e-4, abs=0.51) if verdict.is_problem else None
        assert cell("cost") == cost
        assert cell("close") == connection.close.replace("_", " ")
    assert [column.key for column in table.columns] == list(columns)


def test_where_a_connections_time_went_is_named_in_the_table() -> None:
    analysis = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz")
    (limit,) = (each for each in make_table(analysis.report()).columns if each.key == "limit")
    assert [limit.names[int(each or 0)] for each in limit.values] == ["slow reader"]


def test_a_table_that_does_not_fit_keeps_what_lost_most(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    analysis = tcpwin.analyze(of_many(tmp_path / "many.pcap", 3000))
    monkeypatch.setattr(table_module, "MAX_ROWS", 1000)
    whole = make_table(analysis.report())
    assert (whole.rows, whole.total) == (1000, 3000)
    monkeypatch.setattr(table_module, "MAX_PACKED_BYTES", 5000)
    cut = make_table(analysis.report())
    assert len(cut.packed) <= 5000
    assert 100 < cut.rows < 1000
    page = analysis.report().html()
    assert f"{cut.rows:,} of 3,000 connections" in page
    assert f"{3000 - cut.rows:,} do not fit" in page


def test_markdown_has_the_answer_the_evidence_and_the_remedy() -> None:
    analysis = tcpwin.analyze(BUNDLE)
    text = analysis.report().markdown()
    first = analysis.findings.found[0]
    assert plain(analysis.summary.text) in text
    assert f"### {first.code} {first.name}, connection 0 server → client" in text
    assert ", ".join(map(str, first.evidence.frames)) in text
    assert "| window full | 13.8 s | 46.0 % |" in text
    assert "net.ipv4.tcp_rmem = 4096 131072 6291456" in text
    assert "\n\n\n" not in text


def test_markdown_shows_markup_as_text(tmp_path: Path) -> None:
    capture, snapshots = hostile(tmp_path)
    text = tcpwin.analyze(capture, snapshots=snapshots).report().markdown()
    outside = "".join(part for place, part in enumerate(text.split("```")) if place % 2 == 0)
    assert "\\<script\\>" in outside
    assert "<script" not in outside.replace("\\<", "")


@all_cases(
    ("text", "shown"),
    [
        ("a_b*c*", "a\\_b\\*c\\*"),
        ("- no list", "\\- no list"),
        ("1. no list", "\\1. no list"),
        ("[x](http://y)", "\\[x\\](http:\u200b//y)"),
        ("`code` | @user #1", "\\`code\\` \\| \\@user \\#1"),
    ],
)
def test_plain_text_does_not_act_in_markdown(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_json_in_a_script_ends_no_script() -> None:
    nasty = {"a": "</script><!--&\u2028\u2029"}
    text = script_json(nasty)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == nasty


def test_a_page_holds_no_markup_of_a_capture(tmp_path: Path) -> None:
    capture, snapshots = hostile(tmp_path)
    page = tcpwin.analyze(capture, snapshots=snapshots).report().html()
    assert MARKUP not in page
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>")


@pytest.mark.parametrize("make", [one_packet, one_way, of_a_week], ids=lambda make: make.__name__)
def test_odd_captures_give_every_text_form(tmp_path: Path, make: Any) -> None:
    report = tcpwin.analyze(make(tmp_path / "made.pcap")).report()
    assert report.markdown().startswith("# ")
    assert json.loads(report.json())["analysis"]["connections"][0]["id"] == 0
    assert "1 connection" in report.html()


def test_markdown_shows_hostile_names_as_text(tmp_path: Path) -> None:
    """Outside of code nothing remains that a Markdown renderer would interpret as a tag."""
    capture, snapshots = hostile(tmp_path)
    text = tcpwin.analyze(capture, snapshots=snapshots).report().markdown()
    assert "onerror" in text
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert re.findall(r"(?<!\\)<\w", prose) == []


def test_the_table_knows_no_goodput_where_no_ack_was_captured(tmp_path: Path) -> None:
    analysis = tcpwin.analyze(one_way(tmp_path / "made.pcap"))
    columns = {each["key"]: each for each in unpacked(make_table(analysis.report()).packed)["columns"]}
    assert columns["a_to_b"]["values"] == [20_000]
    assert columns["goodput"]["values"] == [None]


def test_a_connection_without_data_says_why(tmp_path: Path) -> None:
    text = tcpwin.analyze(one_packet(tmp_path / "made.pcap")).report().markdown()
    assert "Too short to judge" in text


def test_a_week_is_shown_in_days(tmp_path: Path) -> None:
    assert "7 d" in tcpwin.analyze(of_a_week(tmp_path / "made.pcap")).report().markdown()


def test_a_damaged_capture_says_what_was_not_read() -> None:
    text = tcpwin.analyze(CUT).report().markdown()
    assert "nothing after it was read" in text
    assert "**Capture quality:** damaged: " in text


def test_the_page_is_small_and_names_its_scripts() -> None:
    page = tcpwin.analyze(BUNDLE).report().html()
    assert len(page.encode()) < 1_500_000
    policy = unescape(page.partition("Content-Security-Policy")[2].partition(">")[0])
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    for each in (script.encode(), read_plotly()):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(each).digest()).decode()}'" in policy


def test_vendored_files_are_those_that_their_facts_name() -> None:
    folder = files("tcpwin.figures.assets")
    facts = [tomllib.loads(path.read_text("utf8")) for path in folder.iterdir() if path.name.endswith(".toml")]
    assert [each["file"] for each in facts] == [PLOTLY]
    for each in facts:
        assert hashlib.sha256(read_asset(each["file"])).hexdigest() == each["sha256"]
        assert each["version"] in read_asset(each["file"])[:200].decode()
        assert read_asset(each["licence_file"]).decode().startswith(f"{each['licence']} License")


def test_the_plotly_of_the_page_is_that_of_the_figures() -> None:
    from plotly.offline import get_plotlyjs_version

    assert tomllib.loads(read_asset("plotly-basic.toml").decode())["version"] == get_plotlyjs_version()


@all_cases(
    ("path", "form"),
    [("r.html", "html"), ("r.HTM", "html"), ("r.pdf", "pdf"), ("r.json", "json"), ("r.md", "md"), ("r", "html")],
)
def test_the_name_of_the_file_gives_the_format(path: str, form: str) -> None:
    assert form_of(path) == form


@pytest.mark.parametrize("name", ["r.foo", "capture.pcap.gz", "2026.11"])
def test_a_name_without_a_known_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no known extension: use one of html, "):
        tcpwin.analyze(LOSSY).report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_title_is_the_files_name_and_the_method_gives_its_path() -> None:
    report = tcpwin.analyze(LOSSY).report()
    page, text = report.html(), report.markdown()
    assert f"<h1>{LOSSY.name}</h1>" in page
    assert f"<title>{LOSSY.name} – tcpwin report</title>" in page
    assert str(LOSSY) in page
    assert text.startswith(f"# {plain(LOSSY.name)}\n")
    assert plain(str(LOSSY)) in text


def test_a_side_keeps_its_name_where_a_sentence_begins() -> None:
    assert begin("a closed it") == "a closed it"
    assert begin("b's window") == "b's window"
    assert begin("closed it") == "Closed it"


def test_without_a_browser_there_is_no_pdf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(OutputError, match="neither is on the PATH"):
        find_browser()
    monkeypatch.setenv(VARIABLE, "no-such-browser")
    out = tmp_path / "r.pdf"
    out.write_text("what was there")
    with pytest.raises(OutputError, match="BROWSER_PATH names no-such-browser, which is not a program"):
        tcpwin.analyze(LOSSY).report(out)
    assert out.read_text() == "what was there"


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    report = tcpwin.analyze(LOSSY).report()
    with pytest.raises(ValueError, match="unknown form odt"):
        report.write(tmp_path / "r", form="odt")
    with pytest.raises(ValueError, match="unknown theme blue"):
        report.write(tmp_path / "r.html", theme="blue")
    with pytest.raises(OutputError, match="Is a directory"):
        report.write(tmp_path, form="md")


def test_copies_of_a_merged_capture_are_nobodys_losses(tmp_path: Path) -> None:
    """Two points 19 ms apart on a path, merged: nothing was lost, and the network has nothing to change."""
    packets = handshake()
    for place in range(20):
        at, seq = 0.1 + place / 20, 1000 + 1000 * place
        data = segment(from_client=True, seq=seq, ack=5000, flags=PSH | ACK, window=512, payload=bytes(1000))
        packets += [
            (at, data),
            (at + 0.04, segment(from_client=False, seq=5000, ack=seq + 1000, flags=ACK, window=512)),
        ]
    client = (packets[0][1], packets[2][1], *(frame for _, frame in packets[3::2]))
    copies = [(at + (0.019 if frame in client else -0.019), frame) for at, frame in packets]
    merged = sorted([*packets, *copies], key=lambda each: each[0])
    text = tcpwin.analyze(write_pcap(tmp_path / "merged.pcap", merged)).report().markdown()
    assert "TW610" in text
    assert "changed in the network" not in text


def test_the_page_shows_commands_as_code_and_no_backtick() -> None:
    """The fix of a slow reader names a command."""
    page = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz").report().html()
    told = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "<code>ss -tmi</code>" in told
    assert "`" not in told
