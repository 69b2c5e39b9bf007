"""Segments and bytes equal those of the programs and the kernels' counters.

IpExt.InOctets counts every received byte of IP; all headers of a data direction are 52 bytes (IP 20, TCP 20, timestamps
12), a SYN's 60 with the window scale option and 56 without. Ip.InReceives counts packets, and super-segments with
receive offload.
"""

from __future__ import annotations

import numpy as np
from lab.agreement import samples_inside
from lab.runs import ACK, RST, SECOND_NS, SYN, Run, modulo_difference
from lab.selection import ABORTED, CLOSED, LATE, on

import tcpwin

HEADER_BYTES = 52
SYN_HEADER_BYTES = {"1": 60, "0": 56}
FULL_SEGMENT_BYTES = 1448
# iperf3 sends its cookie and a NUL before the data (iperf_api.h COOKIE_SIZE).
IPERF3_COOKIE_BYTES = 37


def to_the_receiver(run: Run) -> list[tcpwin.Direction]:
    """Return the direction towards the data's receiver of every connection; iperf3 has a control connection."""
    receiver = str((run.connection.b if run.sender == "a" else run.connection.a).address)
    return [
        connection.a_to_b if str(connection.b.address) == receiver else connection.b_to_a
        for connection in run.analysis.connections
    ]


def to_the_sender(run: Run) -> list[tcpwin.Direction]:
    both = [each for pair in run.analysis.connections for each in (pair.a_to_b, pair.b_to_a)]
    return [each for each in both if each not in to_the_receiver(run)]


def delivered_payload_bytes(run: Run) -> int:
    """Return the payload received by the receiver's IP, including retransmissions and iperf3's control connection."""
    headers = HEADER_BYTES * run.counter("rcv", "Ip.InReceives")
    syn_bytes = SYN_HEADER_BYTES[run.meta["sysctls"]["snd"]["net.ipv4.tcp_window_scaling"]]
    syns = len(run.analysis.connections) * (syn_bytes - HEADER_BYTES)
    return run.counter("rcv", "IpExt.InOctets") - headers - syns


def dropped_packets(run: Run) -> int:
    return sum(sum(drops) for drops in run.meta["tc_dropped"].values())


@on(without=LATE)
def test_segments_are_the_packets_that_the_kernels_received(run: Run) -> None:
    dropped = dropped_packets(run) if run.end == "snd" else 0
    merged = run.meta["scenario"].get("offload") and run.end == "snd"
    if not merged:
        sent = sum(direction.segments for direction in to_the_receiver(run))
        assert sent - dropped == run.counter("rcv", "Ip.InReceives")
    assert sum(direction.segments for direction in to_the_sender(run)) == run.counter("snd", "Ip.InReceives")


@on(without=LATE)
def test_payload_matches_the_count_of_the_receivers_ip(run: Run) -> None:
    """At the sender, add the full segments that the network dropped."""
    dropped = dropped_packets(run) * FULL_SEGMENT_BYTES if run.end == "snd" else 0
    sent = sum(direction.payload_bytes for direction in to_the_receiver(run))
    assert sent == delivered_payload_bytes(run) + dropped
    assert run.back.payload_bytes == 0


@on(CLOSED, without=LATE)
def test_everything_written_was_sent_and_read(run: Run) -> None:
    """If the reader read to the end, every byte was sent once and acknowledged, according to both programs."""
    sent = int(run.meta["ground_truth"]["sender"]["sent"])
    assert sent == run.read_bytes
    assert (run.data.unique_bytes, run.data.acked_bytes, run.data.missed_bytes) == (sent, sent, 0)
    assert (run.connection.close, run.connection.closed_first) == ("closed", run.sender)


@on(ABORTED)
def test_an_aborting_reader_leaves_bytes_acknowledged_and_unread(run: Run) -> None:
    """If the reader closed first, its kernel had acknowledged more than the program read, and sent RST.

    Acknowledged is the last sample's bytes_received plus what the path's rate can add until the close.
    """
    last = run.samples("rcv")[-1]
    acked = run.data.acked_bytes
    if run.is_iperf3:
        assert run.counter("rcv", "TcpExt.TCPAbortOnData")
        assert acked == run.read_bytes + IPERF3_COOKIE_BYTES
        written = int(run.reader["end"]["sum_sent"]["bytes"]) + IPERF3_COOKIE_BYTES
    else:
        closed_ns = int((float(run.reader["t_connect"]) + run.read_seconds) * SECOND_NS)
        rate_bytes = run.meta["scenario"]["rate_mbit"] * 125_000
        received = last.number("bytes_received") - (last.state == "CLOSE-WAIT")
        assert received <= acked <= received + rate_bytes * (closed_ns - last.time_ns) / SECOND_NS
        assert run.read_bytes < acked
        written = int(run.meta["ground_truth"]["sender"]["sent"])
    assert acked <= run.data.unique_bytes <= written
    assert run.connection.reset_by != run.sender


@on(ABORTED, ends=["rcv"])
def test_what_arrives_after_the_close_is_answered_by_rst_and_never_acknowledged(run: Run) -> None:
    """A close with unread data sends a RST (TCPAbortOnClose); every later segment triggers another.

    iperf3 had read everything: its first RST also answers a segment, the preceding one (TCPAbortOnData). The sender's
    kernel never counts data that only the first RST acknowledges: the reset is processed first (tcp_validate_incoming).
    """
    columns = run.columns
    rst = np.flatnonzero(~run.from_sender & (columns["flags"] & RST > 0))
    assert len(rst) == run.counter("rcv", "Tcp.OutRsts")
    answers = run.counter("rcv", "TcpExt.TCPAbortOnData")
    first = int(rst[0]) - answers
    after = columns["length"][first:][run.from_sender[first:]]
    acks = ~run.from_sender & (columns["flags"] & (ACK | RST) == ACK)
    held = int(modulo_difference(columns["ack"][[rst[0]]], int(columns["ack"][acks][-1]))[0])
    late_bytes = run.data.unique_bytes - run.data.acked_bytes
    assert late_bytes == int(after.sum()) + (0 if answers else held)
    assert len(after) == len(rst) - 1 + answers


@on(LATE, cut=False)
def test_a_late_capture_counts_from_its_first_ack(run: Run) -> None:
    """ss shows how much had been acknowledged before; the rest of all sent data is in the capture.

    At the sender, payload sent before the capture is acknowledged in it without being captured or counted; at the
    receiver, the first ACK acknowledges payload in the capture.
    """
    half_ns = 0 if run.end == "snd" else run.rtt_ns // 2
    samples = samples_inside(run, "snd", early_ns=half_ns)
    assert len(samples) >= 10
    rows = [run.track.at(sample.time_ns - half_ns) for sample in samples]
    [before] = {run.acked_bytes(sample) - int(run.track.una[row]) for sample, row in zip(samples, rows, strict=True)}
    columns = run.columns
    ours = run.from_sender
    first_ack = int(columns["ack"][~ours & (columns["flags"] & (ACK | SYN) == ACK)][0])
    starts = modulo_difference(columns["seq"], first_ack)[ours & (columns["length"] > 0)]
    assert run.data.unique_bytes == run.read_bytes - before - int(starts.min())
    assert run.data.acked_bytes == run.data.unique_bytes
