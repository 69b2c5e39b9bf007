"""`slice`: selected packets mean the same as in the whole capture, to tcpwin and to the real tshark."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import CAPTURES, WHOLE, analyze, name_of, rows_of
from craft.broken import conversation, pcap
from craft.odd import odd_capture
from report.slicing.through_tshark import FLAGS, SEGMENTS, TIMED, comments, rows
from scapy.layers.inet import IP, TCP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap
from spread import some_by_day

import tcpwin
from tcpwin.render.wireshark.slicing import AROUND

MANY_SHORT = CAPTURES / "wild" / "many-short.pcap.gz"
SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
LOSSY = CAPTURES / "wild" / "lossy-path.pcapng.gz"
FRAME_FIELDS = re.compile(r"(^|_)frames?$")
ELSEWHERE = {"id", "epoch"}
"""Fields that locate a connection in the capture."""


def numbers_of(connection: tcpwin.Connection) -> dict[str, Any]:
    """Return the measurements of a connection, without its location in the capture."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: without(each)
                for name, each in value.items()
                if name not in ELSEWHERE and not FRAME_FIELDS.search(name)
            }
        return [without(each) for each in value] if isinstance(value, list) else value

    return without(connection.to_dict())  # type: ignore[no-any-return]


def said_of(connection: tcpwin.Connection) -> Any:
    verdict = connection.verdict
    return verdict.text, verdict.share, verdict.cost_ns, verdict.fix, verdict.code


def frames_of(path: Path, connection: int) -> list[int]:
    return [row["frame"] for row in rows_of(path) if row["connection"] == connection]


@pytest.mark.parametrize("path", some_by_day(WHOLE, of=6), ids=name_of)
def test_a_connection_alone_has_the_same_answer(path: Path, tmp_path: Path) -> None:
    analysis = analyze(path)
    for connection in list(analysis.worst(2)):
        out = tmp_path / f"{connection.id}.pcapng"
        written = analysis.slice(out, connections=[connection.id])
        frames = frames_of(path, connection.id)
        assert written.packets == len(frames)
        [alone] = tcpwin.analyze(out)
        assert numbers_of(alone) == numbers_of(connection)
        assert said_of(alone) == said_of(connection)
        assert {each.code for each in alone.findings} == {each.code for each in connection.findings}
        # Each has the content of its original frame.
        assert [frames[event.frame - 1] for event in alone.events] == [event.frame for event in connection.events]


@pytest.mark.parametrize("path", some_by_day(WHOLE, of=12, first=5), ids=name_of)
def test_tshark_agrees_frame_for_frame(path: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tshark, out = tool("tshark"), tmp_path / "out.pcapng"
    analysis = analyze(path)
    [connection] = analysis.worst(1)
    plain = tmp_path / "all.pcapng"
    # Builds of tshark support different compressed files.
    analysis.annotate(plain)
    analysis.slice(out, connections=[connection.id])
    frames = set(frames_of(path, connection.id))
    fields = (*TIMED[1:], *SEGMENTS, *FLAGS)
    whole = [row[1:] for row in rows(tshark, plain, ("frame.number", *fields)) if int(row[0]) in frames]
    assert rows(tshark, out, fields) == whole


@pytest.mark.parametrize("path", some_by_day([LOSSY, SLOW_READER], of=2), ids=name_of)
def test_frames_in_comments_are_those_of_the_slice(path: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    out = tmp_path / "out.pcapng"
    analysis = analyze(path)
    analysis.slice(out, connections=[0], start_ns=analysis.connections[0].start_ns + 10**8)
    found = comments(tool("tshark"), out)
    places = {
        int(match[1]): frame
        for frame, text in found.items()
        if (match := re.search(r"\[frame (\d+) of the capture\]", text))
    }
    assert len(places) == len(found)
    kept = [int(row[0]) for row in rows(tool("tshark"), out, ("frame.number",))]
    assert kept == list(range(1, len(kept) + 1))
    resent = [event for event in analysis.connections[0].events if event.original_frame and event.frame in places]
    originals = {event.frame: event.original_frame for event in resent}
    start_ns = analysis.connections[0].start_ns + 10**8
    copied = [row["frame"] for row in rows_of(path) if row["time_ns"] >= start_ns or row["frame"] <= 3]
    assert len(copied) == len(kept)
    in_slice = {frame: place for place, frame in enumerate(copied, 1)}
    assert {capture: in_slice[capture] for capture in places} == places
    for frame, original in originals.items():
        text = found[places[frame]]
        told = re.search(r"(?:sent before in|overtaken by) (frame \d+(?: of the capture)?)", text)
        now = in_slice.get(original)
        assert told[1] == (f"frame {original} of the capture" if now is None else f"frame {now}")
    assert path != LOSSY or originals


def test_a_span_of_a_connection_keeps_its_handshake(tmp_path: Path) -> None:
    analysis = analyze(SLOW_READER)
    [connection] = analysis
    start_ns, end_ns = connection.start_ns + 10 * 10**9, connection.start_ns + 12 * 10**9
    out = tmp_path / "out.pcapng"
    analysis.slice(out, connections=[0], start_ns=start_ns, end_ns=end_ns)
    wanted = [
        row["time_ns"] for row in rows_of(SLOW_READER) if start_ns <= row["time_ns"] <= end_ns or row["frame"] <= 3
    ]
    alone = tcpwin.analyze(out)
    assert [row["time_ns"] for row in alone.segments().rows()] == wanted
    assert alone.connections[0].a_to_b.window_scale.shift == connection.a_to_b.window_scale.shift


@pytest.mark.nightly
def test_a_span_of_the_capture_has_every_packet(tmp_path: Path) -> None:
    capture = tmp_path / "odd.pcapng"
    capture.write_bytes(odd_capture(1))
    analysis = tcpwin.analyze(capture)
    first_ns = analysis.capture.first_time_ns
    assert first_ns is not None
    start_ns, end_ns = first_ns + 10**6, first_ns + 2 * 10**8
    out = tmp_path / "out.pcapng"
    written = analysis.slice(out, start_ns=start_ns, end_ns=end_ns)
    again = tcpwin.analyze(out).capture
    assert again.not_tcp > 0
    assert written.packets == again.packets < analysis.capture.packets
    assert again.first_time_ns >= start_ns  # type: ignore[operator]
    assert all(file.last_time_ns <= end_ns for file in again.files)  # type: ignore[operator]


def test_fragments_come_with_their_segments(tmp_path: Path) -> None:
    """Two interleaved connections, each with data in three fragments, the last of which arrives first."""
    packets = []
    for number in range(40):
        for port in (1111, 2222):
            head = IP(src="10.0.0.1", dst="10.0.0.2", id=number + port)
            data = head / TCP(sport=port, dport=80, flags="A", seq=1 + 600 * number, ack=1) / Raw(bytes(600))
            pieces = fragment(data, 256)
            assert len(pieces) == 3
            packets += [pieces[2], pieces[0], pieces[1]]
            packets.append(
                IP(src="10.0.0.2", dst="10.0.0.1", id=number + port)
                / TCP(sport=80, dport=port, flags="A", seq=1, ack=601 + 600 * number)
            )
    for place, packet in enumerate(packets):
        packet.time = 1_600_000_000 + place / 1000
    capture, out = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    wrpcap(str(capture), [Ether() / packet for packet in packets])
    analysis = tcpwin.analyze(capture)
    for connection in analysis:
        assert analysis.slice(out, connections=[connection.id]).packets == 40 * 4
        again = tcpwin.analyze(out)
        assert numbers_of(again.connections[0]) == numbers_of(connection)
        assert (again.capture.fragments_pending, again.capture.datagrams_incomplete) == (80, 0)


@pytest.mark.parametrize("around", [0, 3, AROUND])
def test_the_frames_of_a_finding_with_what_is_around_them(
    around: int, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    analysis = analyze(SLOW_READER)
    finding = next(each for each in analysis.findings if each.code == "TW201")
    out = tmp_path / "out.pcapng"
    written = analysis.slice(out, findings=[finding], around=around)
    wanted = {1, 2}
    for frame in finding.evidence.frames:
        wanted |= set(range(frame - around, frame + around + 1))
    assert written.packets == len(wanted)
    found = comments(tool("tshark"), out)
    proofs = sorted(
        int(match[1]) for text in found.values() if (match := re.search(r"TW201.*\[frame (\d+) of the capture\]", text))
    )
    assert proofs == sorted(finding.evidence.frames)


def test_only_headers(tmp_path: Path) -> None:
    payload = bytes(range(100))
    capture = tmp_path / "in.pcap"
    capture.write_bytes(pcap(conversation()))
    analysis = tcpwin.analyze(capture)
    whole, cut = tmp_path / "whole.pcapng", tmp_path / "cut.pcapng"
    assert analysis.slice(whole, connections=[0]).packets_cut == 0
    assert payload in whole.read_bytes()
    assert analysis.slice(cut, connections=[0], headers_only=True).packets_cut == 1
    assert payload[:8] not in cut.read_bytes()
    assert numbers_of(tcpwin.analyze(cut).connections[0]) == numbers_of(analysis.connections[0])


def test_without_comments_the_packets_are_as_they_were(tmp_path: Path, tool: Callable[[str], str]) -> None:
    analysis = analyze(MANY_SHORT)
    out = tmp_path / "out.pcapng"
    assert analysis.slice(out, connections=[3, 1], comments=False).packets_commented == 0
    assert comments(tool("tshark"), out) == {}
    assert len(tcpwin.analyze(out)) == 2


def test_open_files_are_read_from_where_they_stood(tmp_path: Path) -> None:
    data = b"before" + (CAPTURES / "wild" / "keep-alive.pcap").read_bytes()
    file = io.BytesIO(data)
    file.seek(6)
    analysis = tcpwin.analyze(file)
    written = analysis.annotate(tmp_path / "out.pcapng")
    assert written.packets == analysis.capture.packets
    assert list(tcpwin.analyze(tmp_path / "out.pcapng").segments().rows()) == list(analysis.segments().rows())


def test_nothing_is_written_where_nothing_is_chosen(tmp_path: Path) -> None:
    analysis = analyze(SLOW_READER)
    out = tmp_path / "out.pcapng"
    with pytest.raises(tcpwin.OutputError, match="no packet"):
        analysis.slice(out, start_ns=0, end_ns=1)
    with pytest.raises(IndexError):
        analysis.slice(out, connections=[1])
    with pytest.raises(ValueError, match="before it begins"):
        analysis.slice(out, start_ns=1, end_ns=0)
    with pytest.raises(ValueError, match="cannot be combined"):
        analysis.slice(out, findings=list(analysis.findings), start_ns=1)
    assert not out.exists()
