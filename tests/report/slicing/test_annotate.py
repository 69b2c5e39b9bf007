"""`annotate`: the complete capture, with findings as packet comments, read back by the real tshark."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from analysis.bundled import CAPTURES, READABLE, WHOLE, name_of, rows_of
from craft.broken import SECOND, block, conversation, enhanced, interface, pcap, section
from report.slicing.through_tshark import TIMED, comments, rows
from spread import some_by_day

import tcpwin
from tcpwin.render.wireshark.slicing import QUIET

UNDEFINED = CAPTURES / "broken" / "undefined-interface.pcapng"
COMMENT, IF_NAME, RESOLUTION, OFFSET = 1, 2, 9, 14


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def skipped(analysis: tcpwin.Analysis) -> int:
    return sum(file.packets_skipped for file in analysis.capture.files)


def expected_frames(analysis: tcpwin.Analysis) -> set[int]:
    """Return the frames that get a comment, as computed in Python."""
    frames = {frame for finding in analysis.findings for frame in finding.evidence.frames}
    for connection in analysis:
        frames.add(connection.first_frame)
        frames |= {event.frame for event in connection.events if set(event.names) - set(QUIET)}
        frames |= {stall.after_frame for stall in connection.stalls}
    return frames


@pytest.mark.parametrize("path", some_by_day(READABLE, of=4), ids=name_of)
def test_every_packet_is_there_and_means_the_same(path: Path, tmp_path: Path) -> None:
    analysis = tcpwin.analyze(path)
    written = analysis.annotate(tmp_path / "out.pcapng")
    again = tcpwin.analyze(tmp_path / "out.pcapng")
    assert written.packets == again.capture.packets == analysis.capture.packets
    assert (written.packets_cut, written.packets_skipped) == (0, skipped(analysis))
    assert not again.capture.warnings
    if not written.packets_skipped:
        assert list(again.segments().rows()) == rows_of(path)
        assert [each.verdict for each in again] == [each.verdict for each in analysis]
        # Only the original file is damaged; the copy is not.
        assert list(again.findings) == [each for each in analysis.findings if each.code != "TW605"]


@pytest.mark.parametrize("path", some_by_day(WHOLE, of=12, first=1), ids=name_of)
def test_tshark_reads_comments_at_the_right_frames(path: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tshark, out = tool("tshark"), tmp_path / "out.pcapng"
    analysis = tcpwin.analyze(path)
    written = analysis.annotate(out)
    found = comments(tshark, out)
    ours = {frame for frame, text in found.items() if "tcpwin: " in text}
    assert ours == expected_frames(analysis)
    assert len(ours) == written.packets_commented
    for finding in analysis.findings:
        for frame in finding.evidence.frames:
            assert f"tcpwin: {finding.code} {finding.name}" in found[frame]
    for connection in analysis.connections[:10]:
        verdict = connection.verdict
        assert f"tcpwin: connection {connection.id}, " in found[connection.first_frame]
        assert verdict.answer in found[connection.first_frame]
        for event in connection.events:
            if event.original_frame and event.cause not in ("out_of_order", "capture_reordered"):
                assert (
                    f"({event.confidence}): {event.reason}; sent before in frame {event.original_frame}"
                    in found[event.frame]
                )
    if path.suffix not in (".zst", ".lz4"):
        assert rows(tshark, out, TIMED) == rows(tshark, path, TIMED)


@pytest.mark.parametrize("order", some_by_day(["<", ">"], of=2), ids=lambda order: {"<": "little", ">": "big"}[order])
def test_what_the_file_says_itself_is_kept(order: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Two interfaces with different resolution and offset, comments on the file and on packets, names, keys."""
    packets = conversation()
    end = option(0, b"", order)
    first = interface(order, option(IF_NAME, b"one", order) + option(RESOLUTION, b"\x06", order) + end)
    second = interface(
        order, option(RESOLUTION, b"\x0c", order) + option(OFFSET, struct.pack(order + "q", SECOND - 10), order) + end
    )
    commented = block(
        0x0A0D0D0A,
        struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + option(COMMENT, b"of the file", order) + end,
        order,
    )
    # Ten seconds and some picoseconds after the interface's offset.
    ticks = (10 * 10**6 + packets[3][0]) * 10**6 + 123_456
    own = enhanced(packets[3], order, ticks=ticks, interface_id=1)
    # The block's options precede its last four bytes.
    body = own[8:-4] + option(COMMENT, b"of an engineer", order) + option(2, struct.pack(order + "I", 1), order) + end
    names = block(4, struct.pack(order + "HH4s", 1, 4 + 7, bytes((192, 0, 2, 1))) + b"client\0" + bytes(1 + 4), order)
    keys = block(10, struct.pack(order + "II4s", 0x544C534B, 4, b"key\n"), order)
    capture = tmp_path / "in.pcapng"
    plain = [enhanced(packet, order, interface_id=0) for packet in packets]
    capture.write_bytes(
        commented + first + second + names + keys + b"".join([*plain[:3], block(6, body, order), *plain[4:]])
    )
    before = capture.read_bytes()
    out = tmp_path / "out.pcapng"
    analysis = tcpwin.analyze(capture)
    analysis.annotate(out)
    assert capture.read_bytes() == before
    tshark = tool("tshark")
    fields = (
        *TIMED,
        "frame.interface_id",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "eth.src",
        "tcp.payload",
    )
    assert rows(tshark, out, fields) == rows(tshark, capture, fields)
    assert comments(tshark, out)[4].startswith("of an engineer,tcpwin: window full")
    data = out.read_bytes()
    for each in (b"of the file", b"What tcpwin found in in.pcapng", names, keys):
        assert each in data
    # A slice keeps names and comments, but not the keys, which belong to all connections.
    analysis.slice(tmp_path / "slice.pcapng", connections=[0])
    data = (tmp_path / "slice.pcapng").read_bytes()
    for each in (b"of the file", b"of an engineer", names):
        assert each in data
    assert keys not in data


def test_a_packet_of_an_unknown_interface_is_left_out(tmp_path: Path) -> None:
    analysis = tcpwin.analyze(UNDEFINED)
    written = analysis.annotate(tmp_path / "out.pcapng")
    assert written.packets_skipped == skipped(analysis) > 0
    assert (
        written.packets + written.packets_skipped == analysis.capture.frames
        if hasattr(analysis.capture, "frames")
        else True
    )


def test_files_of_both_byte_orders_become_one(tmp_path: Path, tool: Callable[[str], str]) -> None:
    packets = conversation()
    end_big = option(0, b"", ">")
    big = tmp_path / "big.pcapng"
    body = enhanced(packets[1], ">", ticks=(SECOND * 10**6 + packets[1][0]) * 1000)[8:-4]
    big.write_bytes(
        section(">")
        + interface(">", option(RESOLUTION, b"\x09", ">") + end_big)
        + block(6, body + option(COMMENT, b"of an engineer", ">") + end_big, ">")
    )
    little = tmp_path / "little.pcapng"
    little.write_bytes(section() + interface() + b"".join(enhanced(packet) for packet in packets[2:4]))
    old = tmp_path / "old.pcap"
    old.write_bytes(pcap([packets[0], *packets[4:]], order=">"))
    files = [big, little, old]
    analysis = tcpwin.analyze(files)
    out = tmp_path / "out.pcapng"
    assert analysis.annotate(out).packets == len(packets)
    again = tcpwin.analyze(out)
    assert list(again.segments().rows()) == list(analysis.segments().rows())
    assert "of an engineer" in comments(tool("tshark"), out)[2]
    assert len(rows(tool("tshark"), out, TIMED)) == len(packets)


def test_a_file_cut_short_gives_what_is_before_the_cut(tmp_path: Path) -> None:
    capture = tmp_path / "cut.pcap"
    capture.write_bytes(pcap(conversation())[:-20])
    assert tcpwin.analyze(capture).annotate(tmp_path / "out.pcapng").packets == 5


def test_the_file_must_still_be_the_one_analysed(tmp_path: Path) -> None:
    capture = tmp_path / "in.pcap"
    shutil.copy(CAPTURES / "wild" / "keep-alive.pcap", capture)
    analysis = tcpwin.analyze(capture)
    assert analysis.findings is not None
    list(analysis)
    capture.write_bytes(pcap(conversation()))
    with pytest.raises(tcpwin.TcpwinError, match="changed since"):
        analysis.annotate(tmp_path / "out.pcapng")
    assert not (tmp_path / "out.pcapng").exists()
