"""`tcpwin mcp` used by an agent: the SDK's client over the command's standard input and output."""

import asyncio
import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.command import CAPTURES, KEEP_ALIVE, SLOW_READER, TCPWIN, TEXT, refused, tcpwin
from live import HANG_S

import tcpwin as library
from tcpwin.agents import Folder

SLOW, LOSSY, ITS_RECEIVER = "lab/slow-reader.pcap.gz", "wild/lossy-path.pcapng.gz", "wild/lossy-path-receiver.pcap.gz"
READING = [
    "list_captures",
    "analyze_capture",
    "show_connection",
    "show_evidence",
    "show_exchanges",
    "draw_figure",
    "pair_captures",
    "what_if",
    "explain_rule",
]
MOST_CHARACTERS = 16_000
"""Maximum size of an answer without its picture or data."""
Call = tuple[str, dict[str, Any]]
Answers = tuple[list[Any], list[Any]]


def talk(folder: Path, calls: list[Call], *, write: Path | None = None, starts: bool = False) -> Answers:
    """List the tools of a server, call some, and return both.

    Args:
        write: the folder for slices.
        starts: use the command in its own process, which takes seconds to import the SDK.
    """
    # The SDK takes longer to import than most tests take to run.
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    from tcpwin.agents.server import make_server

    if starts:
        options = [] if write is None else ["--write", str(write)]
        server: Any = StdioServerParameters(command=str(TCPWIN), args=["mcp", str(folder), *options])
    else:
        server = make_server(Folder(folder), None if write is None else Folder(write))

    async def run() -> Answers:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asyncio.wait_for(run(), HANG_S))


def ask(folder: Path, *calls: Call, **options: Any) -> list[dict[str, Any]]:
    """Return the tools' answers."""
    answers = talk(folder, list(calls), **options)[1]
    assert not any(answer.is_error for answer in answers), answers
    return [answer.structured_content for answer in answers]


def refusals(folder: Path, *calls: Call, **options: Any) -> list[str]:
    """Return the tools' error messages: one sentence each."""
    answers = talk(folder, list(calls), **options)[1]
    assert all(answer.is_error for answer in answers), answers
    texts = [answer.content[0].text for answer in answers]
    assert not any("Traceback" in text or "\n" in text for text in texts), texts
    return [text.partition(": ")[2] for text in texts]


def test_tools_say_what_they_do_and_that_they_only_read() -> None:
    tools, _ = talk(CAPTURES, [])
    assert [tool.name for tool in tools] == READING
    for tool in tools:
        assert tool.description
        assert tool.annotations.read_only_hint is True
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), (tool.name, name)


def test_answers_are_the_librarys() -> None:
    listed, capture, connection, evidence = ask(
        CAPTURES,
        ("list_captures", {}),
        ("analyze_capture", {"capture": SLOW}),
        ("show_connection", {"capture": SLOW, "connection": 0}),
        ("show_evidence", {"capture": SLOW, "connection": 0}),
        starts=True,
    )
    names = [each["name"] for each in listed["captures"]]
    assert {SLOW, LOSSY, "bundles/slow-reader.zip"} <= {*names} or not listed["is_all"]
    analysis = library.analyze(SLOW_READER)
    [only] = analysis
    assert capture["summary"] == analysis.summary.text
    assert (capture["connections_in_all"], capture["packets"]) == (1, analysis.capture.packets)
    assert capture["connections"][0]["verdict"] == only.verdict.text
    assert connection["verdict"]["cost_ns"] == only.verdict.cost_ns
    assert connection["b_to_a"]["acked_bytes"] == only.b_to_a.acked_bytes
    assert connection["b_to_a"]["window_scale_shift"] == 7
    assert connection["b_to_a"]["time_ns"] == {item: ns for item, ns in only.budget["b_to_a"].items_ns.items() if ns}
    assert connection["a_to_b"] == {"data_segments": 0}
    assert [each["rule"] for each in evidence["findings"]] == [each.code for each in only.findings]
    for entry, finding in zip(evidence["findings"], only.findings, strict=True):
        assert entry["frames"] == list(finding.evidence.frames)
        assert entry["text"] == finding.text


def test_exchanges_are_the_librarys() -> None:
    name = "wild/http-download.pcapng"
    [answer] = ask(CAPTURES, ("show_exchanges", {"capture": name, "by": "path"}))
    [group] = library.analyze(CAPTURES / name).exchanges("path").groups
    assert [each["text"] for each in answer["groups"]] == [group.text]
    assert (answer["groups"][0]["target"], answer["groups_in_all"]) == (group.target, 1)
    assert len(json.dumps(answer)) < MOST_CHARACTERS


def test_every_verdict_is_sourced_and_every_answer_small() -> None:
    names = sorted(str(path.relative_to(CAPTURES)) for path in (CAPTURES / "wild").glob("*.pcap*"))
    calls: list[Call] = []
    for name in names:
        calls += [(tool, {"capture": name}) for tool in ("analyze_capture", "show_evidence")]
        calls.append(("show_connection", {"capture": name, "connection": 0}))
    answers = ask(CAPTURES, *calls)
    proved = 0
    for (_, arguments), answer in zip(calls, answers, strict=True):
        assert len(json.dumps(answer)) < MOST_CHARACTERS, arguments
        packets = library.analyze(CAPTURES / arguments["capture"]).capture.packets
        for entry in (*answer.get("connections", ()), *answer.get("findings", ()), answer):
            if isinstance(entry, dict):
                frames = entry.get("frames", [])
                proved += bool(frames)
                assert all(1 <= frame <= packets for frame in frames)
                # A problem needs proof.
                assert frames or not entry.get("is_problem")
    assert proved > len(names)


def test_some_packets_only() -> None:
    arguments = {"capture": SLOW, "filter": "src host 10.9.2.2", "start": "10", "end": "12s"}
    [answer] = ask(CAPTURES, ("analyze_capture", arguments))
    expected = library.analyze(SLOW_READER, filter="src host 10.9.2.2", start=10, end=12)
    assert answer["packets_left_out"] == expected.capture.packets_left_out > 0
    assert answer["selection"] == {"filter": "src host 10.9.2.2", "start": "10", "end": "12s"}


def test_a_pair() -> None:
    [answer] = ask(CAPTURES, ("pair_captures", {"a": LOSSY, "b": ITS_RECEIVER}))
    way = answer["connections"][0]["directions"][0]
    assert (way["sent"], way["lost"], len(way["lost_frames"])) == (1052, 12, 12)
    assert "12 of 1,052 packets" in answer["summary"][0]
    assert answer["connections"][0]["verdict"].startswith("Limited by loss on the path")


def test_what_would_come_of_a_change() -> None:
    arguments = {"capture": SLOW, "connection": 0}
    asked = {**arguments, "lift": ["receiver_application"], "rate_mbps": 100}
    shown, answer = ask(CAPTURES, ("what_if", arguments), ("what_if", asked))
    chosen = library.analyze(SLOW_READER).connections[0]
    found = library.whatif(chosen, lift=["receiver_application"], rate_bps=100e6).prediction
    assert answer["prediction"]["duration_ns"]["likely"] == found.duration_ns.likely
    assert (shown["prediction"], shown["unsaid"]) == (None, [])
    [reader] = [each for each in shown["each"] if each["changes"] == ["lift receiver_application"]]
    assert reader["confidence"] == "possible"
    assert "only that it carries 1.76 Mbit/s: give it with --rate" in " ".join(reader["doubts"])
    said = refusals(CAPTURES, ("what_if", {**arguments, "settings": {"sender.tcp_rmem": "1M"}}))
    assert "bounds nothing here" in said[0]


def test_a_figure_as_picture_and_as_data() -> None:
    arguments = {"capture": SLOW, "connection": 0, "figure": "window"}
    _, (picture, data) = talk(CAPTURES, [("draw_figure", arguments), ("draw_figure", {**arguments, "form": "spec"})])
    [content] = picture.content
    assert (content.type, content.mime_type) == ("image", "image/png")
    assert base64.b64decode(content.data).startswith(b"\x89PNG\r\n\x1a\n")
    drawn = json.loads(data.content[0].text)["plotly"]
    assert drawn["data"]
    assert len(json.dumps(drawn)) < 4 * MOST_CHARACTERS
    [said] = refusals(CAPTURES, ("draw_figure", {**arguments, "figure": "nonsense"}))
    assert said.startswith("unknown figure 'nonsense': choose one of window, budget, path, ")


def test_a_rules_page() -> None:
    _, [answer] = talk(CAPTURES, [("explain_rule", {"rule": "tw201"})])
    assert answer.content[0].text.startswith("# TW201 zero-window-stall: ")
    assert "## When it is wrong" in answer.content[0].text
    assert refusals(CAPTURES, ("explain_rule", {"rule": "TW999"})) == [
        "no rule is called 'TW999': findings name theirs"
    ]


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    shutil.copy(KEEP_ALIVE, tmp_path / "outside.pcap")
    shutil.copy(KEEP_ALIVE, folder / "inside.pcap")
    shutil.copy(TEXT, folder / "notes.txt")
    (folder / "link.pcap").symlink_to(tmp_path / "outside.pcap")
    (folder / "up").symlink_to(tmp_path)
    [listed] = ask(folder, ("list_captures", {}))
    assert [each["name"] for each in listed["captures"]] == ["inside.pcap"]
    outside = [
        "../outside.pcap",
        str(tmp_path / "outside.pcap"),
        "link.pcap",
        "up/outside.pcap",
        "notes.txt",
        ".",
        "",
        "\0",
    ]
    said = refusals(folder, *(("analyze_capture", {"capture": name}) for name in outside))
    assert said == [f"no capture {name!r} in this folder: list_captures lists the available ones" for name in outside]
    pairs = [{"a": "inside.pcap", "b": "link.pcap"}, {"a": "../outside.pcap", "b": "inside.pcap"}]
    assert all(
        text.startswith("no capture ") for text in refusals(folder, *(("pair_captures", each) for each in pairs))
    )


@pytest.mark.nightly
def test_names_in_filters_are_not_looked_up() -> None:
    words = ("host example.invalid", "host (a.b)", "src x.y.z", "host secretdata", "port 80 or dst secretdata")
    texts = refusals(CAPTURES, *(("analyze_capture", {"capture": SLOW, "filter": word}) for word in words), starts=True)
    assert all("unknown host" in said and "names are not looked up" in said for said in texts), texts
    [answer] = ask(
        CAPTURES, ("analyze_capture", {"capture": SLOW, "filter": "host 10.9.2.2 or net fe80::/10"}), starts=True
    )
    assert answer["packets_left_out"] == 0


def test_failures_are_sentences() -> None:
    calls: list[Call] = [
        ("analyze_capture", {"capture": "broken/text.pcap"}),
        ("analyze_capture", {"capture": SLOW, "filter": "prt 443"}),
        ("analyze_capture", {"capture": SLOW, "start": "soon"}),
        ("analyze_capture", {"capture": SLOW, "start": "9", "end": "8"}),
        ("show_connection", {"capture": SLOW, "connection": 1}),
        ("pair_captures", {"a": SLOW, "b": "broken/empty.pcap"}),
    ]
    texts = refusals(CAPTURES, *calls)
    words = ["not a pcap", "syntax error", "invalid time ", "before it begins", "no connection 1", "empty file"]
    assert all(word in text for word, text in zip(words, texts, strict=True)), texts


def test_nothing_is_written_without_being_asked_for(tmp_path: Path) -> None:
    shutil.copy(SLOW_READER, tmp_path / "slow.pcap.gz")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    arguments = {"capture": "slow.pcap.gz", "connection": 0}
    ask(tmp_path, ("show_connection", arguments), ("show_evidence", arguments))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    [said] = refusals(tmp_path, ("slice_capture", {**arguments, "name": "new.pcapng"}))
    assert not said or "slice" in said


def test_a_slice_goes_to_its_folder_and_over_nothing(tmp_path: Path) -> None:
    arguments = {"capture": SLOW, "connection": 0, "name": "stall.pcapng", "headers_only": True}
    tools, [answer] = talk(CAPTURES, [("slice_capture", arguments)], write=tmp_path, starts=True)
    assert [tool.name for tool in tools] == [*READING, "slice_capture"]
    assert tools[-1].annotations.read_only_hint is False
    assert answer.structured_content["file"] == str(tmp_path / "stall.pcapng")
    analysis = library.analyze(tmp_path / "stall.pcapng")
    assert answer.structured_content["packets"] == analysis.capture.packets
    assert analysis.connections[0].verdict.text == library.analyze(SLOW_READER).connections[0].verdict.text
    (tmp_path / "link.pcapng").symlink_to(tmp_path / "elsewhere.pcapng")
    names = ["stall.pcapng", "link.pcapng", "../up.pcapng", "/tmp/up.pcapng", ".hidden.pcapng", "a.txt", ""]
    texts = refusals(CAPTURES, *(("slice_capture", {**arguments, "name": name}) for name in names), write=tmp_path)
    assert ["already exists" in text for text in texts] == [True, True, *[False] * 5]
    assert all("is not a valid file name" in text for text in texts[2:])
    assert {path.name for path in tmp_path.iterdir()} == {"stall.pcapng", "link.pcapng"}


def test_it_ends_with_its_client() -> None:
    done = tcpwin("mcp", CAPTURES, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, b"")


def test_wrong_usage() -> None:
    assert "does not exist" in refused("mcp", CAPTURES / "nowhere", status=2)
    assert "is a file" in refused("mcp", KEEP_ALIVE, status=2)


def test_without_the_sdk_the_error_names_it() -> None:
    code = "import sys; sys.modules['mcp'] = None; from tcpwin.cli import main; main()"
    command = [sys.executable, "-c", code, "mcp", str(CAPTURES)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_S, check=False)
    assert done.returncode == 3
    assert done.stderr == b"tcpwin: a server for agents needs mcp: pip install 'tcpwin[mcp]'\n"


def test_hostile_names_are_shown_escaped_and_can_be_read(tmp_path: Path) -> None:
    names = {"new\nline.pcap": "new\\nline.pcap", "-dash.pcap": "-dash.pcap", "red\x1b[31m.pcap": "red\\x1b[31m.pcap"}
    for name in names:
        shutil.copy(KEEP_ALIVE, tmp_path / name)
    calls = [("analyze_capture", {"capture": shown}) for shown in names.values()]
    listed, *answers = ask(tmp_path, ("list_captures", {}), *calls)
    assert {each["name"] for each in listed["captures"]} == set(names.values())
    assert [answer["capture"] for answer in answers] == list(names.values())


def test_wrong_arguments_get_a_sentence(tmp_path: Path) -> None:
    shutil.copy(KEEP_ALIVE, tmp_path / "a.pcap")
    written = {"capture": "a.pcap", "connection": 0}
    said = refusals(
        tmp_path,
        ("analyze_capture", {"capture": "a.pcap", "filters": "port 1"}),
        ("show_connection", {"capture": "a.pcap", "connection": -1}),
        ("show_connection", {"capture": "a.pcap"}),
        ("slice_capture", {**written, "name": "-x.pcapng"}),
        ("slice_capture", {**written, "name": "a\nb.pcapng"}),
        write=tmp_path,
    )
    assert said[0].endswith("filters: did you mean filter?"), said
    assert said[1] == "connection: input should be greater than or equal to 0"
    assert said[2] == "connection: field required"
    assert all(text.endswith("is not a valid file name such as stall.pcapng") for text in said[3:]), said


def test_a_figures_data_is_structured() -> None:
    [drawn] = ask(CAPTURES, ("draw_figure", {"capture": SLOW, "connection": 0, "form": "spec"}))
    assert drawn["plotly"]["data"]
