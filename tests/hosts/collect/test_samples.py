"""The collector's samples on this kernel, compared with `ss`, getsockopt and pyroute2."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts.collect.connections import RUNNING, Pairs, look, samples_of

from tcpwin.hosts import SnapshotFile, SocketSample
from tcpwin.hosts.collect import Filter, record
from tcpwin.hosts.collect.message import read_socket
from tcpwin.hosts.collect.sockets import SocketDump
from tcpwin.hosts.collect.tcp_info import decode_tcp_info

MS = 1_000_000
# Fields that `ss` omits, and those unknown to iproute2 6.1.
LEFT_OUT_BY_SS = {"reordering": 3, "uid": 0, "accept_queue": 0}
NEW_TO_SS = ("rcv_wnd_bytes", "rehash")
# Position in the file, options that were not requested, or values of different precision.
NOT_COMPARED = {"time_ns", "line", "index", "extra", "users", "netid", "cgroup", "inet_sockopts", "v6only", "timer"}
# `ss` rounds: rates to bit/s, chronographs to milliseconds.
ROUNDED = {"busy_ns": MS, "rwnd_limited_ns": MS, "sndbuf_limited_ns": MS}


# The kernel advances a socket's clocks by its tick, at most 10 ms (HZ=100).
TICK_NS = 20 * MS


def sample_now(pairs: Pairs, path: Path) -> dict[int | None, SocketSample]:
    """Return a sample of every socket by its cookie."""
    record(path, duration_ns=1, every_ns=10**9, filter=pairs.filter)
    return {sample.cookie: sample for sample in samples_of(path)}


def test_a_sample_is_what_ss_says_of_the_moment(pairs: Pairs, tool: Callable[[str], str], tmp_path: Path) -> None:
    """All fields of all sockets match in both directions: `ss` runs between two samples, because a probe may occur
    at any time.
    """
    begun_ns = time.monotonic_ns()
    before = sample_now(pairs, tmp_path / "before.jsonl")
    text = subprocess.run(
        [tool("ss"), "-tanemio", f"sport = :{pairs.port} or dport = :{pairs.port}"], capture_output=True, check=True
    ).stdout
    after = sample_now(pairs, tmp_path / "after.jsonl")
    took_ns = time.monotonic_ns() - begun_ns
    theirs = {sample.cookie: sample for sample in SnapshotFile(text, format="ss") if isinstance(sample, SocketSample)}
    assert len(before) == pairs.count
    assert before.keys() == theirs.keys() == after.keys()
    assert {sample.state for sample in before.values()} == {"ESTAB", "LISTEN", "CLOSE-WAIT", "FIN-WAIT-2"}
    # Most sockets are idle; otherwise this would compare little.
    at_rest = {cookie for cookie, first in before.items() if rest_of(first) == rest_of(after[cookie])}
    assert len(at_rest) >= len(before) - 2
    for cookie, first in before.items():
        other, last = theirs[cookie], after[cookie]
        for name in (first.__dict__.keys() | other.__dict__.keys()) - NOT_COMPARED:
            said, expected, later = getattr(first, name), getattr(other, name), getattr(last, name)
            if first.state == "LISTEN" and name == "unacked_segments":
                # `ss` shows connections waiting to be accepted as segments.
                assert (said, expected) == (None, first.accept_queue or None)
            elif name in RUNNING and expected is not None:
                # An answer to a probe resets these clocks.
                least, most = (said, later) if cookie in at_rest else (0, said + took_ns + TICK_NS)
                assert least <= expected <= most, name
            elif name.endswith("_bps") and expected is not None:
                assert min(said, later) - 1 <= expected <= max(said, later) + 1, name
            elif name == "bbr" and expected is not None:
                assert pytest.approx(expected, rel=1e-5) in (said, later)
            elif name.endswith("_share") and expected is not None:
                assert min(said, later) - 0.06 <= expected <= max(said, later) + 0.06, name
            elif expected is None:
                assert not said or name in NEW_TO_SS or LEFT_OUT_BY_SS.get(name) == said, (name, said)
            elif said != later and not isinstance(said, int | float):
                assert expected in (said, later), name
            elif said != later:
                assert min(said, later) - ROUNDED.get(name, 0) <= expected <= max(said, later), name
            else:
                assert -ROUNDED.get(name, 0) <= expected - said <= 0 if name in ROUNDED else said == expected, name


def rest_of(sample: SocketSample) -> dict[str, Any]:
    """Return the fields that do not change with time alone."""
    return {name: value for name, value in sample.__dict__.items() if name not in {*RUNNING, *NOT_COMPARED, *ROUNDED}}


def test_the_timer_is_that_of_ss(pairs: Pairs, tool: Callable[[str], str]) -> None:
    """The timer decreases from sample to sample; if it expires in between, sample again."""
    client = pairs.full[0]
    own = Filter(f"sport = :{client.getsockname()[1]} and dport = :{pairs.port}")

    def sample() -> dict[str, Any]:
        (one,) = look(own)
        return one

    while True:
        before = sample()
        text = subprocess.run([tool("ss"), "-tnoe", own.text], capture_output=True, check=True).stdout
        after = sample()
        (other,) = SnapshotFile(text, format="ss")
        if before["segs_out"] == after["segs_out"]:
            break
    assert before["timer"]["name"] == other.timer.name == after["timer"]["name"] == "persist"
    # `ss` prints tenths of a second from 1 s on, and milliseconds below.
    most, least = before["timer"]["expires_ns"], after["timer"]["expires_ns"]
    assert least - 100 * MS <= other.timer.expires_ns <= most + 100 * MS


def test_a_sample_is_what_getsockopt_gives(pairs: Pairs) -> None:
    begun_ns = time.monotonic_ns()
    records = {(each["local_port"], each.get("peer_port")): each for each in look(pairs.filter)}
    for end in (*pairs.read, *pairs.unread, *pairs.version_6, *pairs.closed):
        direct = decode_tcp_info(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1024))
        most_ns = time.monotonic_ns() - begun_ns + TICK_NS
        said = records[end.getsockname()[1], end.getpeername()[1]]
        assert {name: said.get(name) for name in direct if name not in RUNNING} == {
            name: value for name, value in direct.items() if name not in RUNNING
        }
        assert all(0 <= direct[name] - said[name] <= most_ns for name in RUNNING)


def test_the_bytes_that_were_sent_are_counted(pairs: Pairs) -> None:
    records = {each["local_port"]: each for each in look(Filter(f"dport = :{pairs.port}"))}
    sender = records[pairs.read[0].getsockname()[1]]
    # The kernel counts retransmitted bytes as sent too: on a busy machine even loopback retransmits.
    assert sender["bytes_sent"] - sender.get("bytes_retrans", 0) == 300_000
    # The SYN counts as one acknowledged byte (RFC 4898).
    assert sender["bytes_acked"] == 300_001
    assert sender["bytes_received"] == 6
    unread = next(
        each for each in look(Filter(f"sport = :{pairs.port} and state established")) if each["recv_q_bytes"] == 1000
    )
    assert unread["rmem_alloc_bytes"] >= 1000
    listener = next(each for each in look(Filter(f"sport = :{pairs.port} and state listen and src 127.0.0.1")))
    # Python asks for at most 128; the kernel for as many as it allows.
    most = min(128, int(Path("/proc/sys/net/core/somaxconn").read_text()))
    assert (listener["accept_queue"], listener["accept_queue_max"]) == (1, most)
    assert "recv_q_bytes" not in listener


PYROUTE2 = {
    "tcpi_backoff": ("backoff", 1),
    "tcpi_rto": ("rto_ns", 1000),
    "tcpi_ato": ("ato_ns", 1000),
    "tcpi_snd_mss": ("mss_bytes", 1),
    "tcpi_rcv_mss": ("rcvmss_bytes", 1),
    "tcpi_unacked": ("unacked_segments", 1),
    "tcpi_lost": ("lost_segments", 1),
    "tcpi_retrans": ("retrans_segments", 1),
    "tcpi_pmtu": ("pmtu_bytes", 1),
    "tcpi_rcv_ssthresh": ("rcv_ssthresh_bytes", 1),
    "tcpi_rtt": ("rtt_ns", 1000),
    "tcpi_snd_cwnd": ("cwnd_segments", 1),
    "tcpi_advmss": ("advmss_bytes", 1),
    "tcpi_reordering": ("reordering", 1),
    "tcpi_rcv_rtt": ("rcv_rtt_ns", 1000),
    "tcpi_rcv_space": ("rcv_space_bytes", 1),
    "tcpi_total_retrans": ("retrans_total", 1),
    "tcpi_pacing_rate": ("pacing_rate_bps", 8),
    "tcpi_bytes_acked": ("bytes_acked", 1),
    "tcpi_bytes_received": ("bytes_received", 1),
    "tcpi_segs_out": ("segs_out", 1),
    "tcpi_segs_in": ("segs_in", 1),
    "tcpi_notsent_bytes": ("notsent_bytes", 1),
    "tcpi_min_rtt": ("minrtt_ns", 1000),
    "tcpi_data_segs_in": ("data_segs_in", 1),
    "tcpi_data_segs_out": ("data_segs_out", 1),
    "tcpi_delivery_rate": ("delivery_rate_bps", 8),
    "tcpi_busy_time": ("busy_ns", 1000),
    "tcpi_rwnd_limited": ("rwnd_limited_ns", 1000),
    "tcpi_sndbuf_limited": ("sndbuf_limited_ns", 1000),
    "tcpi_delivered": ("delivered", 1),
    "tcpi_bytes_sent": ("bytes_sent", 1),
    "tcpi_snd_wnd": ("snd_wnd_bytes", 1),
}


def test_pyroute2_decodes_the_same_bytes_to_the_same_values(pairs: Pairs) -> None:
    """pyroute2 is an independent reader of the messages, except for window shifts, which it decodes wrongly."""
    from pyroute2.netlink.diag import inet_diag_msg

    compared = 0
    with SocketDump() as dump:
        for message in dump._dump():
            if not pairs.filter.matches(message):
                continue
            header = struct.pack("=IHHII", 16 + len(message), 20, 0, 0, 0)
            theirs = inet_diag_msg(header + message)
            theirs.decode()
            own, _ = read_socket(message)
            assert own["inode"] == theirs["idiag_inode"]
            assert own.get("local_port", 0) == theirs["idiag_sport"]
            assert own["congestion_control"] == theirs.get_attr("INET_DIAG_CONG")
            if own["state"] == "LISTEN":
                continue
            assert own["local_address"] == theirs["idiag_src"]
            info = theirs.get_attr("INET_DIAG_INFO")
            for kernel, (name, factor) in PYROUTE2.items():
                assert own.get(name, 0) == info[kernel] * factor, kernel
            compared += 1
    assert compared == pairs.count - (2 if pairs.version_6 else 1)
