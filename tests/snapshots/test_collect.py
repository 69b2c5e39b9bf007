"""The collector on this kernel: its samples against `ss`, getsockopt and pyroute2; its filters, files and pace."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tcpwin.errors import OutputError, SnapshotError
from tcpwin.snapshots import CounterSample, MemorySample, SnapshotFile, SocketSample
from tcpwin.snapshots.collect import Filter, FilterError, record
from tcpwin.snapshots.collect._host import Host, read_kernel, read_settings
from tcpwin.snapshots.collect._message import read_socket
from tcpwin.snapshots.collect._sockets import SocketDump, Sockets
from tcpwin.snapshots.collect._tcp_info import decode_tcp_info, zero_fields
from tcpwin.snapshots.collect._writer import sample_lines

MS = 1_000_000
PAYLOAD = b"x" * 300_000


class Pairs:
    """Connections over loopback in many states, all at rest."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.listener = self._keep(socket.create_server(("127.0.0.1", 0)))
        self.port: int = self.listener.getsockname()[1]
        self.both = self._keep(socket.create_server(("::", self.port), family=socket.AF_INET6, dualstack_ipv6=False))
        self.read = self.connect()
        self.unread = self.connect()
        self.read[0].sendall(PAYLOAD)
        left = len(PAYLOAD)
        while left:
            left -= len(self.read[1].recv(left))
        self.read[1].sendall(b"answer")
        self.unread[0].sendall(b"y" * 1000)
        # The receiver's window closes on this one: the sender waits with its persist timer.
        self.full = self.connect(receive_bytes=4096)
        self.full[0].setblocking(False)
        for _ in range(100):
            try:
                self.full[0].send(PAYLOAD)
            except BlockingIOError:
                break
        self.closed = self.connect()
        self.closed[0].shutdown(socket.SHUT_WR)
        self.version_6 = self.connect(address="::1", listener=self.both)
        # Nobody accepts this one.
        self.waiting = self._keep(socket.create_connection(("127.0.0.1", self.port)))
        time.sleep(0.6)

    def _keep(self, each: socket.socket) -> socket.socket:
        return self._stack.enter_context(each)

    def connect(
        self, *, address: str = "127.0.0.1", listener: socket.socket | None = None, receive_bytes: int | None = None
    ) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a new connection."""
        listener = listener or self.listener
        if receive_bytes is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client = self._keep(socket.create_connection((address, self.port)))
        return client, self._keep(listener.accept()[0])

    @property
    def filter(self) -> Filter:
        """Return a filter of these sockets."""
        return Filter(f"sport = :{self.port} or dport = :{self.port}")


@pytest.fixture(scope="module")
def pairs() -> Iterator[Pairs]:
    """Make the connections."""
    with ExitStack() as stack:
        yield Pairs(stack)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Make one connection; no call on it waits for ever."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=10) as client,
        listener.accept()[0] as server,
    ):
        server.settimeout(10)
        yield client, server


def receive(end: socket.socket, count: int) -> None:
    """Read as many bytes."""
    while count:
        count -= len(end.recv(count))


def look(wanted: Filter) -> list[dict[str, Any]]:
    """Return the whole records of wanted sockets."""
    with SocketDump(wanted=wanted.matches) as dump:
        return dump.look(everything=True).whole


def samples_of(path: Path) -> list[SocketSample]:
    """Return the socket samples of a recording, of which every line must be understood."""
    file = SnapshotFile(path)
    samples = [sample for sample in file if isinstance(sample, SocketSample)]
    assert (file.format, file.unknown.count) == ("snap", 0)
    return samples


RUNNING = ("lastsnd_ns", "lastrcv_ns", "lastack_ns")
# What `ss` leaves out; and what iproute2 6.1 does not know.
LEFT_OUT_BY_SS = {"reordering": 3, "uid": 0, "accept_queue": 0}
NEW_TO_SS = ("rcv_wnd_bytes", "rehash")
# Of the file, of options that are not asked for, or of another precision.
NOT_COMPARED = {"time_ns", "line", "index", "extra", "users", "netid", "cgroup", "inet_sockopts", "v6only", "timer"}
# `ss` rounds: rates to bit/s, chronographs to milliseconds.
ROUNDED = {"busy_ns": MS, "rwnd_limited_ns": MS, "sndbuf_limited_ns": MS}


def sample_now(pairs: Pairs, path: Path) -> dict[int | None, SocketSample]:
    """Return a sample of every socket by its cookie."""
    record(path, duration_ns=1, every_ns=10**9, filter=pairs.filter)
    return {sample.cookie: sample for sample in samples_of(path)}


def test_a_sample_is_what_ss_says_of_the_moment(pairs: Pairs, tool: Callable[[str], str], tmp_path: Path) -> None:
    """All fields of all sockets, both ways: `ss` between two samples, as a probe may come between any two."""
    before = sample_now(pairs, tmp_path / "before.jsonl")
    text = subprocess.run(
        [tool("ss"), "-tanemio", f"sport = :{pairs.port} or dport = :{pairs.port}"], capture_output=True, check=True
    ).stdout
    after = sample_now(pairs, tmp_path / "after.jsonl")
    theirs = {sample.cookie: sample for sample in SnapshotFile(text, format="ss") if isinstance(sample, SocketSample)}
    assert len(before) >= 13
    assert before.keys() == theirs.keys() == after.keys()
    assert {sample.state for sample in before.values()} == {"ESTAB", "LISTEN", "CLOSE-WAIT", "FIN-WAIT-2"}
    for cookie, first in before.items():
        other, last = theirs[cookie], after[cookie]
        for name in (first.__dict__.keys() | other.__dict__.keys()) - NOT_COMPARED:
            said, expected, later = getattr(first, name), getattr(other, name), getattr(last, name)
            if first.state == "LISTEN" and name == "unacked_segments":
                # `ss` shows connections that wait to be accepted as segments.
                assert (said, expected) == (None, first.accept_queue or None)
            elif name in RUNNING and expected is not None:
                # A probe's answer sets these clocks back.
                assert said <= expected <= later or later < said, name
            elif name.endswith("_bps") and expected is not None:
                assert min(said, later) - 1 <= expected <= max(said, later) + 1, name
            elif name == "bbr" and expected is not None:
                assert said == pytest.approx(expected, rel=1e-5)
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
    # Nothing moves on most of them, or this would compare little.
    at_rest = [cookie for cookie, first in before.items() if rest_of(first) == rest_of(after[cookie])]
    assert len(at_rest) >= len(before) - 2


def rest_of(sample: SocketSample) -> dict[str, Any]:
    """Return what time alone does not change."""
    return {name: value for name, value in sample.__dict__.items() if name not in {*RUNNING, *NOT_COMPARED, *ROUNDED}}


def test_the_timer_is_that_of_ss(pairs: Pairs, tool: Callable[[str], str]) -> None:
    port = pairs.full[0].getsockname()[1]
    own = next(each for each in look(Filter(f"sport = :{port}")))
    text = subprocess.run([tool("ss"), "-tnoe", f"sport = :{port}"], capture_output=True, check=True).stdout
    other = next(iter(SnapshotFile(text, format="ss")))
    assert own["timer"]["name"] == other.timer.name == "persist"
    assert abs(own["timer"]["expires_ns"] - other.timer.expires_ns) <= 5000 * MS


def test_a_sample_is_what_getsockopt_gives(pairs: Pairs) -> None:
    records = {(each["local_port"], each.get("peer_port")): each for each in look(pairs.filter)}
    for end in (*pairs.read, *pairs.unread, *pairs.version_6, *pairs.closed):
        direct = decode_tcp_info(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1024))
        said = records[end.getsockname()[1], end.getpeername()[1]]
        assert {name: said.get(name) for name in direct if name not in RUNNING} == {
            name: value for name, value in direct.items() if name not in RUNNING
        }
        assert all(0 <= direct[name] - said[name] <= 5000 * MS for name in RUNNING)


def test_the_bytes_that_were_sent_are_counted(pairs: Pairs) -> None:
    records = {each["local_port"]: each for each in look(Filter(f"dport = :{pairs.port}"))}
    sender = records[pairs.read[0].getsockname()[1]]
    # The SYN counts as one byte that was acknowledged (RFC 4898).
    assert (sender["bytes_sent"], sender["bytes_acked"]) == (300_000, 300_001)
    assert sender["bytes_received"] == 6
    unread = next(
        each for each in look(Filter(f"sport = :{pairs.port} and state established")) if each["recv_q_bytes"] == 1000
    )
    assert unread["rmem_alloc_bytes"] >= 1000
    listener = next(each for each in look(Filter(f"sport = :{pairs.port} and state listen and src 127.0.0.1")))
    assert (listener["accept_queue"], listener["accept_queue_max"]) == (1, 128)
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
    """An independent reader of the messages. Its windows' shifts are known to be wrong."""
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
    assert compared >= 11


def test_changes_lead_to_what_is_there(pair: tuple[socket.socket, socket.socket]) -> None:
    client, server = pair
    wanted = Filter(f"sport = :{client.getsockname()[1]} or dport = :{client.getsockname()[1]}")
    with SocketDump(wanted=wanted.matches) as dump:
        first = {each["cookie"]: each for each in dump.look().whole}
        assert len(first) == 2
        quiet = dump.look()
        assert (quiet.count, quiet.whole, quiet.changes, quiet.gone) == (2, [], [], [])
        client.sendall(b"z" * 5000)
        receive(server, 5000)
        time.sleep(0.1)
        busy = dump.look()
        assert (busy.count, busy.whole, busy.gone) == (2, [], [])
        zeros = zero_fields(1024)
        assert len(busy.changes) == 2
        for change in map(json.loads, busy.changes):
            first[change["cookie"]] = {**zeros, **first[change["cookie"]], **change}
        now = {each["cookie"]: {**zeros, **each} for each in dump.look(everything=True).whole}
        for cookie, expected in now.items():
            said = {name: value for name, value in first[cookie].items() if value is not None}
            assert {name: value for name, value in said.items() if name not in RUNNING} == {
                name: value for name, value in expected.items() if name not in RUNNING
            }
        assert sorted(each["bytes_received"] for each in now.values()) == [0, 5000]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        server.close()
        over = dump.look()
        assert (over.count, over.whole, over.changes) == (0, [], [])
        assert sorted(over.gone) == sorted(now)


def message(state: int, local: tuple[str, int], peer: tuple[str, int]) -> bytes:
    """Return an inet_diag_msg."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    addresses = [socket.inet_pton(family, address).ljust(16, b"\0") for address, _ in (local, peer)]
    ports = [struct.pack(">H", port) for _, port in (local, peer)]
    return struct.pack("=4B2s2s16s16s32x", family, state, 0, 0, *ports, *addresses)


WEB = message(1, ("192.0.2.1", 50_000), ("10.1.2.3", 443))
MAPPED = message(1, ("::ffff:192.0.2.1", 443), ("::ffff:10.9.9.9", 60_000))
SIX = message(8, ("2001:db8::1", 22), ("2001:db8::2", 50_001))
LISTENER = message(10, ("0.0.0.0", 80), ("0.0.0.0", 0))
CLOSED = message(6, ("192.0.2.1", 50_002), ("198.51.100.7", 80))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dport = :443 and dst 10.0.0.0/8", [WEB]),
        ("dport = 443", [WEB]),
        ("dport == :https", [WEB]),
        ("dst 10.0.0.0/8", [WEB, MAPPED]),
        ("src = 192.0.2.1", [WEB, MAPPED, CLOSED]),
        ("src != 192.0.2.1", [SIX, LISTENER]),
        ("dst 10.1.2.3:443", [WEB]),
        ("dst :80", [CLOSED]),
        ("dst [2001:db8::]/64", [SIX]),
        ("dst [2001:db8::2]:50001", [SIX]),
        ("dst 2001:db8::2", [SIX]),
        ("dst 2001:db8::2/127 or dport ge :60000", [MAPPED, SIX]),
        ("sport < :443 and sport >= 22", [SIX, LISTENER]),
        ("sport gt 443 && dport lt 443", [CLOSED]),
        ("not dport = :443", [MAPPED, SIX, LISTENER, CLOSED]),
        ("! ( dport = :443 or sport = :443 )", [SIX, LISTENER, CLOSED]),
        ("state established", [WEB, MAPPED]),
        ("STATE ESTAB", [WEB, MAPPED]),
        ("exclude established exclude listen", [SIX, CLOSED]),
        ("state connected", [WEB, MAPPED, SIX, CLOSED]),
        ("state time-wait or state close-wait", [SIX, CLOSED]),
        ("state bucket", [CLOSED]),
        ("state all", [WEB, MAPPED, SIX, LISTENER, CLOSED]),
        # `and` binds tighter than `or`, also where it is left out.
        ("sport = :80 or dport = :80 state established", [LISTENER]),
        ("dst * and sport = :80", None),
    ],
)
def test_a_filter_takes_what_it_says(text: str, wanted: list[bytes] | None) -> None:
    if wanted is None:
        with pytest.raises(FilterError, match=r"^expected an address, a network or a :port, at character 5$"):
            Filter(text)
    else:
        wish = Filter(text)
        assert [each for each in (WEB, MAPPED, SIX, LISTENER, CLOSED) if wish.matches(each)] == wanted


STATE_WORDS = (
    "all, big, bucket, close-wait, closed, closing, connected, estab, established, fin-wait-1, fin-wait-2, last-ack, "
    "listen, syn-recv, syn-sent, synchronized, time-wait, unconn"
)
BEGINNINGS = "dport, sport, dst, src, state, exclude, not or ("


@pytest.mark.parametrize(
    ("text", "said", "position"),
    [
        ("", f"expected {BEGINNINGS}", 1),
        ("port = :443", f"expected {BEGINNINGS}, found 'port'", 1),
        ("dport = :foo", "expected a port, as :443 or :https, found 'foo'", 9),
        ("dport = :65536", "expected a port, as :443 or :https, found '65536'", 9),
        ("dport", "expected a port, as :443 or :https", 6),
        ("dport = ", "expected a port, as :443 or :https", 8),
        ("dst 10.0.0", "expected an address or a network, found '10.0.0'", 5),
        ("dst < 10.0.0.1", "an address can be = or != only", 5),
        ("dst 10.0.0.1:x", "expected a port, as :443 or :https, found 'x'", 14),
        ("(dport = :1", "expected a )", 12),
        ("dport = :1)", "expected and or or, found ')'", 11),
        ("dport = :1 xor dport = :2", "expected and or or, found 'xor'", 12),
        ("dport = :1 and", f"expected {BEGINNINGS}", 15),
        ("state closing-time", f"expected a state ({STATE_WORDS}), found 'closing-time'", 7),
        ("not " * 60 + "dport = :1", "deeper than 50 levels", 201),
        ("(" * 4097, "longer than 4096 characters", 4097),
        ("dport = :\0\u0661", "expected a port, as :443 or :https, found '\\x00\u0661'", 9),
    ],
)
def test_a_filter_that_is_wrong_is_told_where(text: str, said: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        Filter(text)
    assert str(caught.value) == f"{said}, at character {position}"
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "packets"),
    [
        ("state established", "tcp"),
        ("dport = :443", "tcp and ((dst port 443) or (src port 443))"),
        ("sport != :22", "tcp and ((not src port 22) or (not dst port 22))"),
        (
            "dst 10.0.0.0/8 and not sport < :1024",
            "tcp and (((dst net 10.0.0.0/8) and (src portrange 1024-65535)) or "
            "((src net 10.0.0.0/8) and (dst portrange 1024-65535)))",
        ),
        # A packet does not tell the state: what depends on it lets all pass.
        ("dport = :443 and state established", "tcp and (((dst port 443)) or ((src port 443)))"),
        ("dport = :443 or not state established", "tcp"),
        ("not (dport = :443 or state established)", "tcp and (((not dst port 443)) or ((not src port 443)))"),
        ("not (dport = :443 and state established)", "tcp"),
        ("dst 2001:db8::/32", "tcp and ((dst net 2001:db8::/32) or (src net 2001:db8::/32))"),
        ("dport < :0", "tcp and ((less 0) or (less 0))"),
    ],
)
def test_the_packets_of_a_filter(text: str, packets: str, tool: Callable[[str], str]) -> None:
    assert Filter(text).packets() == packets
    subprocess.run([tool("tcpdump"), "-y", "EN10MB", "-d", packets], capture_output=True, check=True)


def attribute(kind: int, data: bytes) -> bytes:
    """Return a netlink attribute, padded."""
    return (struct.pack("=HH", 4 + len(data), kind) + data).ljust(4 + len(data) + 3 & ~3, b"\0")


def test_a_message_with_every_attribute() -> None:
    """Layouts of include/uapi/linux/inet_diag.h and tls.h."""
    head = bytearray(message(1, ("2001:db8::1", 22), ("2001:db8::2", 50_001)))
    head[2:4] = bytes((4, 2))
    struct.pack_into("=2I5I", head, 44, 9, 1, 1500, 11, 12, 1000, 77)
    tls = attribute(1, struct.pack("=H", 0x0304)) + attribute(2, struct.pack("=H", 52))
    tls += (
        attribute(3, struct.pack("=H", 2)) + attribute(4, struct.pack("=H", 3)) + attribute(5, b"") + attribute(6, b"")
    )
    parts = (
        attribute(8, b"\x02"),
        attribute(11, b"\x01"),
        attribute(7, struct.pack("=9I", *range(1, 10))),
        attribute(4, b"dctcp\0"),
        attribute(9, struct.pack("=2H3I", 1, 1, 512, 100, 2000)),
        attribute(16, struct.pack("=5I", 5, 1, 7000, 320, 512)),
        attribute(19 | 0x8000, attribute(1, b"tls\0") + attribute(2, tls)),
        attribute(60, b"later"),
    )
    record, _ = read_socket(bytes(head) + b"".join(parts))
    assert record == {
        "cookie": (1 << 32) + 9,
        "state": "ESTAB",
        "recv_q_bytes": 11,
        "send_q_bytes": 12,
        "local_address": "2001:db8::1",
        "local_port": 22,
        "peer_address": "2001:db8::2",
        "peer_port": 50_001,
        "uid": 1000,
        "inode": 77,
        "timer": {"name": "persist", "expires_ns": 1500 * MS, "retransmissions": 2},
        "v6only": True,
        "shutdown": "<--",
        "rmem_alloc_bytes": 1,
        "rcvbuf_bytes": 2,
        "wmem_alloc_bytes": 3,
        "sndbuf_bytes": 4,
        "fwd_alloc_bytes": 5,
        "wmem_queued_bytes": 6,
        "optmem_bytes": 7,
        "backlog_bytes": 8,
        "drops": 9,
        "congestion_control": "dctcp",
        "dctcp": {"ce_state": 1, "alpha": 512, "ab_ecn_bytes": 100, "ab_tot_bytes": 2000},
        "bbr": {"bw_bps": 8 * (5 + (1 << 32)), "mrtt_ns": 7 * MS, "pacing_gain": 1.25, "cwnd_gain": 2.0},
        "ulp": {
            "name": "tls",
            "values": {
                "version": "1.3",
                "cipher": "aes-gcm-256",
                "rxconf": "hw",
                "txconf": "sw",
                "zc_ro_tx": "",
                "no_pad_rx": "",
            },
        },
    }


def test_many_sockets_take_several_lines(tmp_path: Path) -> None:
    """No line is longer than readers take as one, and all parts are one sample."""
    records = [{"cookie": number, "state": "TIME-WAIT", "local_address": "x" * 1000} for number in range(1000)]
    start = {"type": "start", "schema": "tcpwin/snap/1", "time_ns": 1}
    whole = sample_lines({"type": "sample", "time_ns": 2, "whole": True}, Sockets(whole=records))
    changes = [f'{{"cookie":{number},"uid":7}}' for number in range(401)]
    later = sample_lines({"type": "sample", "time_ns": 3}, Sockets(changes=changes, gone=list(range(401, 30_401))))
    assert [len(whole), len(later)] == [3, 2]
    assert all(len(line) < 1 << 20 for line in (*whole, *later))
    path = tmp_path / "snap.jsonl"
    path.write_bytes(b"".join([json.dumps(start, separators=(",", ":")).encode() + b"\n", *whole, *later]))
    samples = samples_of(path)
    assert [(sample.index, sample.time_ns) for sample in samples] == [(0, 2)] * 1000 + [(1, 3)] * 401
    assert [sample.cookie for sample in samples] == [*range(1000), *range(401)]
    assert {sample.uid for sample in samples[1000:]} == {7}


def test_counters_are_nstats_and_only_what_changed(tmp_path: Path) -> None:
    (tmp_path / "netstat").write_text("TcpExt: PruneCalled RcvPruned\nTcpExt: 1 2\nIpExt: InOctets\nIpExt: 3\n")
    (tmp_path / "snmp").write_text("Tcp: MaxConn RetransSegs\nTcp: -1 7\n")
    (tmp_path / "sockstat").write_text("sockets: used 9\nTCP: inuse 1 mem 33\n")
    host = Host(proc_net=tmp_path)
    first = {"TcpExtPruneCalled": 1, "TcpExtRcvPruned": 2, "IpExtInOctets": 3, "TcpMaxConn": -1, "TcpRetransSegs": 7}
    assert host.counters() == first
    assert host.counters() == {}
    assert host.memory() == {"sockets": {"used": 9}, "TCP": {"inuse": 1, "mem": 33}}
    assert host.memory() == {}
    (tmp_path / "netstat").write_text("TcpExt: PruneCalled RcvPruned\nTcpExt: 1 5\nIpExt: InOctets\nIpExt: 3\n")
    (tmp_path / "sockstat").write_text("sockets: used 9\nTCP: inuse 2 mem 33\n")
    assert host.counters() == {"TcpExtRcvPruned": 5}
    assert host.memory() == {"sockets": {"used": 9}, "TCP": {"inuse": 2, "mem": 33}}
    assert host.counters(everything=True) == {**first, "TcpExtRcvPruned": 5}
    assert host.memory(everything=True) == {"sockets": {"used": 9}, "TCP": {"inuse": 2, "mem": 33}}
    host.close()


def test_without_files_there_are_no_counters(tmp_path: Path) -> None:
    host = Host(proc_net=tmp_path)
    assert (host.counters(), host.memory()) == ({}, {})


def test_this_hosts_counters_are_those_of_the_other_reader() -> None:
    host = Host()
    own = host.counters(everything=True)
    text = b"".join(Path("/proc/net", name).read_bytes() for name in ("netstat", "snmp"))
    (other,) = SnapshotFile(text, format="proc_net")
    assert own.keys() == other.values.keys()
    assert own["TcpRtoMin"] == other.values["TcpRtoMin"]
    assert own["TcpExtTCPHPHits"] <= other.values["TcpExtTCPHPHits"]
    host.close()


def test_settings_have_single_spaces_and_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "net" / "ipv4"
    folder.mkdir(parents=True)
    for name, text in (
        ("tcp_rmem", "4096\t131072\t6291456\n"),
        ("tcp_fastopen_key", "00-11-22-33\n"),
        ("tcp_sack", "1\n"),
        ("icmp_ratelimit", "1000\n"),
    ):
        (folder / name).write_text(text)
    assert read_settings(proc_sys=tmp_path) == {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_sack": "1"}


def test_this_host_has_settings_and_a_kernel() -> None:
    settings = read_settings()
    assert settings["net.ipv4.tcp_rmem"] == " ".join(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split())
    assert {"net.core.rmem_max", "net.ipv4.tcp_slow_start_after_idle"} <= settings.keys()
    assert not any("fastopen_key" in name for name in settings)
    kernel = read_kernel()
    assert kernel["release"] == subprocess.check_output(["uname", "-r"], text=True).strip()
    assert kernel["page_size_bytes"] == int(subprocess.check_output(["getconf", "PAGESIZE"]))


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_files_are_bounded_and_each_stands_alone(pairs: Pairs, tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    most = 1 << 16
    done = record(path, every_ns=10 * MS, duration_ns=700 * MS, filter=pairs.filter, max_bytes=most, keep=3)
    assert done.files == 1
    path.unlink()
    # Every sample is larger than what is left of the file.
    done = record(path, every_ns=20 * MS, duration_ns=1500 * MS, filter=pairs.filter, max_bytes=1, keep=3)
    names = [path, tmp_path / "snap.jsonl.1", tmp_path / "snap.jsonl.2"]
    assert sorted(tmp_path.iterdir()) == names
    assert done.files == done.samples >= 4
    times = []
    for each in names:
        records = lines_of(each)
        assert [record["type"] for record in records] == ["start", "sample"] + ["end"] * (each == path)
        assert records[1]["whole"] is True
        assert len(records[1]["counters"]) > 100
        assert len({sample.cookie for sample in samples_of(each)}) >= 13
        times.append(records[0]["time_ns"])
    assert times == sorted(times, reverse=True)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    (tmp_path / "snap.jsonl.2").write_text("older")
    with pytest.raises(OutputError, match=r"snap\.jsonl\.2 is there already: name another file$"):
        record(path, duration_ns=1)
    assert [each.name for each in tmp_path.iterdir()] == ["snap.jsonl.2"]


@pytest.mark.parametrize("every_ms", [10, 25, 70])
def test_each_slot_is_sampled_or_skipped(every_ms: int, tmp_path: Path) -> None:
    """Ten slots after the first; where one takes longer than a slot, the next are left out."""
    path = tmp_path / "snap.jsonl"
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        time.sleep(seconds + (0.1 if len(waits) == 3 else 0))
        return False

    done = record(path, every_ns=every_ms * MS, duration_ns=10 * every_ms * MS, wait=wait)
    assert done.samples + done.skipped == 11
    assert done.skipped >= {10: 7, 25: 4, 70: 1}[every_ms]
    records = lines_of(path)
    assert [records[0]["type"], records[-1]["type"]] == ["start", "end"]
    assert (records[-1]["samples"], records[-1]["skipped"]) == (done.samples, done.skipped)
    assert records[-1]["reason"] == "time"
    assert max(waits) <= every_ms / 1000


def test_it_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    answers = iter((False, False, True))
    done = record(path, every_ns=10 * MS, wait=lambda _: next(answers))
    assert done.samples == 3
    assert lines_of(path)[-1]["reason"] == "asked"


def test_a_recording_is_read_back(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    """Data flows between samples: counters, windows and queues of each sample are of its time."""
    path = tmp_path / "snap.jsonl"
    client, server = pair
    port = client.getsockname()[1]

    def wait(_: float) -> bool:
        client.sendall(b"q" * 1000)
        receive(server, 1000)
        time.sleep(0.05)
        return False

    record(path, every_ns=60 * MS, duration_ns=240 * MS, filter=Filter(f"sport = :{port}"), wait=wait)
    file = SnapshotFile(path)
    everything = list(file)
    sockets = [sample for sample in everything if isinstance(sample, SocketSample)]
    assert [sample.bytes_sent for sample in sockets] == [1000 * n for n in range(len(sockets))]
    assert [sample.index for sample in sockets] == list(range(len(sockets)))
    assert len(sockets) >= 3
    counters = [sample for sample in everything if isinstance(sample, CounterSample)]
    segments = [sample.values["TcpOutSegs"] for sample in counters]
    assert len(counters) == len(sockets)
    assert segments == sorted(segments)
    assert segments[0] < segments[-1]
    assert all(sample.values.keys() == counters[0].values.keys() for sample in counters)
    memory = [sample for sample in everything if isinstance(sample, MemorySample)]
    assert len(memory) == len(sockets)
    assert all((sample.tcp_inuse or 0) >= 3 for sample in memory)


def test_no_netlink_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(SnapshotError, match=r"^snap: this system gives no netlink socket \(Protocol not supported\)$"):
        SocketDump()


def test_elsewhere_than_on_linux_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SnapshotError, match=r"^snap: sockets can be sampled on Linux only$"):
        SocketDump()
