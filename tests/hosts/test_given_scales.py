"""A window scale set by hand for a host whose SYN the capture lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.command import tcpwin as run
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import tcpwin
from tcpwin.errors import SourceError

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
ETHERNET = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
SHIFT = 7
SCALED = [("WScale", SHIFT)]


def packet(source: str, flags: str, seq: int, ack: int, *, length: int = 0, window: int = 500, **tcp: object) -> Packet:
    target, ports = (SERVER, (40000, 80)) if source == CLIENT else (CLIENT, (80, 40000))
    header = TCP(sport=ports[0], dport=ports[1], flags=flags, seq=seq, ack=ack, window=window, **tcp)
    return ETHERNET / IP(src=source, dst=target, id=seq % 60_000 + 1) / header / Raw(bytes(length))


SYNS = [packet(CLIENT, "S", 999, 0, options=SCALED), packet(SERVER, "SA", 4999, 1000, options=SCALED)]
TRANSFER = [
    packet(CLIENT, "A", 1000, 5000),
    *(packet(SERVER, "A", 5000 + 1000 * number, 1000, length=1000) for number in range(5)),
    packet(CLIENT, "A", 1000, 10_000),
]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write(TRANSFER, tmp_path / "joined.pcap")


def write(packets: list[Packet], path: Path) -> Path:
    for number, each in enumerate(packets):
        each.time = 1000 + number / 100
    wrpcap(str(path), packets)
    return path


def test_it_counts_for_its_host_alone_and_says_where_it_comes_from(capture: Path) -> None:
    [connection] = tcpwin.analyze(capture, window_scales={CLIENT: SHIFT})
    of_client = connection.b_to_a.window_scale
    assert (of_client.state, of_client.shift, of_client.evidence) == ("given", SHIFT, ("given by hand",))
    assert connection.b_to_a.receive_window_max_bytes == 500 << SHIFT
    assert connection.a_to_b.window_scale.state == "unknown"


def test_a_second_reading_has_it_too(capture: Path) -> None:
    analysis = tcpwin.analyze(capture, window_scales={CLIENT: SHIFT})
    windows = [row["window"] for row in analysis.segments().rows() if row["src"] == CLIENT]
    assert windows == [500 << SHIFT] * 2


def test_without_it_the_window_is_unknown(capture: Path) -> None:
    [connection] = tcpwin.analyze(capture)
    assert connection.b_to_a.window_scale.state == "unknown"


def test_a_handshake_that_says_otherwise_refuses_it(tmp_path: Path) -> None:
    path = write(SYNS + TRANSFER, tmp_path / "whole.pcap")
    with pytest.raises(SourceError, match=f"{CLIENT}: 5 was given, but the handshake of connection 0 says {SHIFT}"):
        tcpwin.analyze(path, window_scales={CLIENT: 5})
    [connection] = tcpwin.analyze(path, window_scales={CLIENT: SHIFT})
    assert connection.b_to_a.window_scale.state == "known"


def test_a_handshake_without_scaling_refuses_it(tmp_path: Path) -> None:
    syns = [packet(CLIENT, "S", 999, 0), packet(SERVER, "SA", 4999, 1000)]
    with pytest.raises(SourceError, match="none agreed on scaling"):
        tcpwin.analyze(write(syns + TRANSFER, tmp_path / "plain.pcap"), window_scales={CLIENT: SHIFT})


@pytest.mark.parametrize(("scales", "message"), [({CLIENT: 15}, "0 to 14"), ({"server": 7}, "not an IP address")])
def test_rejected_scales(capture: Path, scales: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tcpwin.analyze(capture, window_scales=scales)


def test_a_host_that_is_not_there_is_a_warning(capture: Path) -> None:
    analysis = tcpwin.analyze(capture, window_scales={"192.0.2.9": 7})
    assert analysis.notes == ("window scale of 192.0.2.9: the capture has no such host",)


def test_a_window_below_the_flight_is_a_warning(tmp_path: Path) -> None:
    small = [packet(CLIENT, "A", 1000, 5000, window=10), *TRANSFER[1:-1], packet(CLIENT, "A", 1000, 10_000, window=10)]
    analysis = tcpwin.analyze(write(small, tmp_path / "small.pcap"), window_scales={CLIENT: 0})
    [note] = analysis.notes
    assert "more was in flight" in note


def test_on_the_command_line(capture: Path) -> None:
    options = ["--window-scale", f"{CLIENT}={SHIFT}"]
    told = run("analyze", "--json", capture, *options)
    [connection] = json.loads(told.stdout)["connections"]
    assert connection["b_to_a"]["window_scale_shift"] == SHIFT
    rows = run("packets", capture, "--format", "jsonl", *options).stdout.splitlines()
    assert json.loads(rows[0])["window"] == 500 << SHIFT


@pytest.mark.parametrize("text", ["10.0.0.1=15", "10.0.0.1", "client=7", "=7", "10.0.0.1=x"])
def test_rejected_scales_on_the_command_line(capture: Path, text: str) -> None:
    assert run("check", capture, "--window-scale", text).returncode == 2


def test_both_of_two_shifts_of_a_host_are_refused(capture: Path) -> None:
    options = ["--window-scale", f"{CLIENT}=7", "--window-scale", f"{CLIENT}=8"]
    assert run("report", capture, *options).returncode == 2
