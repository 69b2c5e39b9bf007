"""Random sockets, printed like each iproute2, are read back; random text and broken lines cause no error."""

from __future__ import annotations

import string
from dataclasses import fields
from typing import Any

import pytest
from cases import all_cases
from hosts.ss_truth import cases, read_lines, read_text
from hosts.ss_writer import END_ORDER, LAST_ORDER, PLAIN_ORDER, WINDOW_ORDER, Info, Options, State, send_rate, write
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tcpwin.hosts import SocketSample, SocketTimer, SocketUser, UlpInfo
from tcpwin.hosts.formats.ss import FORMAT, read
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.ss.columns import read_header
from tcpwin.hosts.times import Stamp, Stamps

VERSIONS = [(3, 10), (3, 19), (4, 4), (4, 20), (5, 6), (5, 7), (6, 1), (6, 10), (6, 11), (7, 1)]
STATES = "ESTAB SYN-SENT SYN-RECV FIN-WAIT-1 FIN-WAIT-2 TIME-WAIT CLOSE-WAIT LAST-ACK LISTEN CLOSING".split()  # noqa: SIM905
OTHERS = "nl p_raw p_dgr u_str u_dgr u_seq icmp6 udp raw sctp dccp v_str v_dgr xdp unknown ???".split()  # noqa: SIM905
FIELDS = {
    "mss": "mss_bytes",
    "pmtu": "pmtu_bytes",
    "rcv_mss": "rcvmss_bytes",
    "advmss": "advmss_bytes",
    "snd_cwnd": "cwnd_segments",
    "snd_ssthresh": "ssthresh_segments",
    "rcv_space": "rcv_space_bytes",
    "rcv_ssthresh": "rcv_ssthresh_bytes",
    "snd_wnd": "snd_wnd_bytes",
    "rcv_wnd": "rcv_wnd_bytes",
}
"""Fields whose names differ from the kernel's."""
FLAGS = {
    "ts": "timestamps",
    "usec_ts": "usec_timestamps",
    "sack": "sack",
    "ecn": "ecn",
    "ecnseen": "ecn_seen",
    "fastopen": "fast_open",
}
MEMORY = ("rmem_alloc", "rcvbuf", "wmem_alloc", "sndbuf", "fwd_alloc", "wmem_queued", "optmem", "backlog")
TAILS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    ((), {}),
    (
        (" tcp-ulp-tls", " version: 1.3", " cipher: aes-gcm-256", " rxconf: none", " txconf: hw", " zc_ro_tx"),
        {
            "ulp": UlpInfo(
                "tls", {"version": "1.3", "cipher": "aes-gcm-256", "rxconf": "none", "txconf": "hw", "zc_ro_tx": ""}
            )
        },
    ),
    (
        (" tcp-ulp-mptcp", " flags:Jjec", " token:0000(id:1)/1f(id:0)", " seq:ff", " maplen:5a8"),
        {
            "ulp": UlpInfo("mptcp", {}),
            "mptcp": {"flags": "Jjec", "token": "0000(id:1)/1f(id:0)", "seq": "ff", "maplen": "5a8"},
        },
    ),
    ((" md5keys:192.0.2.1/32=k1,fd00::/8=k2",), {"md5_keys": ("192.0.2.1/32=k1", "fd00::/8=k2")}),
]

u8 = st.integers(0, (1 << 8) - 1)
u16 = st.integers(0, (1 << 16) - 1)
u32 = st.integers(0, (1 << 32) - 1) | st.integers(0, 5000)
u64 = st.integers(0, (1 << 64) - 1) | st.integers(0, 100_000)
names = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=15).filter(
    lambda name: '",' not in name
)
endpoints = st.tuples(
    st.sampled_from(["10.0.0.1", "0.0.0.0", "*", "::1", "::", "fe80::1", "::ffff:127.0.0.1", "2001:db8::abcd"]),
    st.sampled_from(["", "", "eth0", "br-1.100", "veth@x"]),
    u16,
)
paths = st.text(string.ascii_lowercase + string.digits + "/.-_@:\\", max_size=40).map(lambda path: f"/{path}")
memories = (
    st.tuples(u32, u32, st.integers(-(1 << 31), (1 << 31) - 1), u32)
    | st.tuples(u32, u32, u32, u32, st.integers(-(1 << 31), (1 << 31) - 1), u32, u32)
    | st.tuples(u32, u32, u32, u32, st.integers(-4096, 4096), u32, u32, u32)
    | st.tuples(u32, u32, u32, u32, st.integers(-4096, 4096), u32, u32, u32, u32)
)
ORDERS = (*PLAIN_ORDER, *LAST_ORDER, *END_ORDER, *WINDOW_ORDER)
LONG = ("bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received")
infos: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"cong_alg": st.sampled_from(["cubic", "bbr", "reno", "dctcp"])},
    optional={
        **{source: u64 if source in LONG else u32 for _, source, _ in ORDERS},
        **dict.fromkeys(("rto", "rtt", "rttvar", "ato", "rcv_rtt", "min_rtt", "delivered", "delivered_ce"), u32),
        **dict.fromkeys(("unacked", "retrans", "total_retrans", "lost", "sacked", "dsack_dups", "fackets"), u32),
        "reordering": st.integers(0, 300),
        "reord_seen": u32,
        "backoff": u8,
        "options": st.lists(st.sampled_from(sorted(FLAGS)), unique=True),
        "wscale": st.tuples(st.integers(0, 14), st.integers(0, 14)),
        "dctcp": st.none() | st.tuples(u16, u32, u32, u32),
        "bbr": st.tuples(st.integers(0, 1 << 60), u32, st.integers(0, 1 << 12), st.integers(0, 1 << 12)),
        "pacing_rate": u64,
        "max_pacing_rate": u64,
        "delivery_rate": u64,
        "app_limited": st.booleans(),
        "busy_time": st.integers(0, 1 << 45),
        "rwnd_limited": st.integers(0, 1 << 45),
        "sndbuf_limited": st.integers(0, 1 << 45),
        "tail": st.sampled_from([tail for tail, _ in TAILS]),
    },
)
states = st.builds(
    State,
    state=st.sampled_from(STATES),
    queues=st.tuples(st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 31) - 1)),
    local=endpoints,
    peer=endpoints,
    users=st.lists(st.tuples(names, u16, u16), max_size=3).map(tuple),
    timer=st.tuples(st.integers(0, 6), st.integers(0, 20_000) | st.integers(0, 1 << 30), u8),
    uid=u32,
    inode=u32,
    cookie=u64,
    mark=u32,
    cgroup=st.none() | paths,
    v6only=st.none() | st.integers(0, 1),
    shutdown=st.none() | st.integers(0, 3),
    tos=st.none() | u8,
    tclass=st.none() | u8,
    class_id=st.none() | u32,
    sockopts=st.none()
    | st.lists(st.sampled_from(["recverr", "is_icsk", "mc_loop", "defer_connect"]), unique=True).map(tuple),
    memory=memories,
    info=infos,
)
options = st.builds(
    Options,
    version=st.sampled_from(VERSIONS),
    **{each.name: st.booleans() for each in fields(Options) if each.name != "version"},
).filter(lambda each: each.state or each.queues or each.header)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(states, max_size=3), options)
def test_output_of_any_version_is_read_back(sockets: list[State], how: Options) -> None:
    found, unknown = read_lines(write(sockets, how))
    assert unknown.count == 0
    assert len(found) == len(sockets)
    for sample, socket in zip(found, sockets, strict=True):
        _compare(sample, socket, how)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(states, max_size=2), min_size=1, max_size=4), options)
def test_every_run_with_a_header_has_its_own_index(runs: list[list[State]], how: Options) -> None:
    assume(how.header)
    found, _ = read_lines([line for sockets in runs for line in write(sockets, how)])
    assert [sample.index for sample in found] == [index for index, sockets in enumerate(runs) for _ in sockets]


def _compare(sample: SocketSample, socket: State, how: Options) -> None:
    exact: dict[str, Any] = {name: None for name in SocketSample.__dataclass_fields__ if name not in _ROUGH}
    exact |= {"line": sample.line, "index": 0, "extra": {}, "users": (), "state": ""}
    exact |= _columns(socket, how) | _details(socket, how)
    if how.memory:
        exact |= _memory(socket.memory)
    if how.info:
        exact |= _information(socket, how)
    assert {name: getattr(sample, name) for name in exact} == exact
    _compare_rough(sample, socket, how)


def _columns(socket: State, how: Options) -> dict[str, Any]:
    found: dict[str, Any] = {"netid": "tcp" if how.netid else None, "state": socket.state if how.state else ""}
    if how.queues:
        listens = how.state and socket.state == "LISTEN"
        kept = ("accept_queue", "accept_queue_max") if listens else ("recv_q_bytes", "send_q_bytes")
        found |= dict(zip(kept, socket.queues, strict=True))
    for side, (address, scope, port) in (("local", socket.local), ("peer", socket.peer)):
        found |= {f"{side}_address": address, f"{side}_scope": scope or None, f"{side}_port": port or None}
    return found


def _details(socket: State, how: Options) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if how.processes:
        found["users"] = tuple(SocketUser(*user) for user in socket.users)
    if (how.timer or how.details) and socket.timer[0]:
        found["timer"] = _timer(socket.timer, how)
    if how.details:
        found |= {"uid": socket.uid or None, "inode": socket.inode, "cookie": socket.cookie, "cgroup": socket.cgroup}
        found |= {"fwmark": socket.mark or None, "v6only": None if socket.v6only is None else socket.v6only == 1}
        found["shutdown"] = None if socket.shutdown is None else ("<->", "-->", "<--", "---")[socket.shutdown]
    if how.tos:
        found |= {"tos": socket.tos, "tclass": socket.tclass, "class_id": socket.class_id}
    if how.cgroup:
        found["cgroup"] = socket.cgroup
    if how.sockopts and how.version >= (5, 10):
        found["inet_sockopts"] = socket.sockopts
    return found


def _timer(timer: tuple[int, int, int], how: Options) -> SocketTimer:
    number, left_ms, retransmissions = timer
    names = ("", "on", "keepalive", "timewait", "persist", "delack" if how.version >= (7, 1) else "unknown", "unknown")
    # ss omits milliseconds from ten seconds on and seconds from ten minutes on.
    kept_ms = 60_000 if left_ms >= 600_000 else 1000 if left_ms >= 10_000 else 1
    return SocketTimer(names[number], (left_ms - left_ms % kept_ms) * 1_000_000, retransmissions)


def _memory(memory: tuple[int, ...]) -> dict[str, int]:
    if len(memory) == 4:
        order = ("rmem_alloc_bytes", "wmem_queued_bytes", "fwd_alloc_bytes", "wmem_alloc_bytes")
        return dict(zip(order, memory, strict=True))
    return dict(zip([*(f"{name}_bytes" for name in MEMORY), "drops"], memory, strict=False))


def _information(socket: State, how: Options) -> dict[str, Any]:
    info = socket.info
    found: dict[str, Any] = {"congestion_control": info["cong_alg"]}
    for _, source, version in (*PLAIN_ORDER, *END_ORDER, *WINDOW_ORDER):
        found[FIELDS.get(source, source)] = (info.get(source) or None) if how.version >= version else None
    for source, name in (("last_data_sent", "lastsnd"), ("last_data_recv", "lastrcv"), ("last_ack_recv", "lastack")):
        ago_ms = info.get(source, 0) if how.version >= (3, 17) else 0
        found[f"{name}_ns"] = ago_ms * 1_000_000 if 0 < ago_ms < 1 << 31 else None
    for name in ("delivered", "delivered_ce", "dsack_dups", "reord_seen"):
        found[name] = (info.get(name) or None) if how.version >= (4, 20) else None
    found["fackets"] = info.get("fackets") or None
    found |= {f"{name}_segments": info.get(name) or None for name in ("unacked", "lost")}
    found["sacked_segments"] = (info.get("sacked") or None) if socket.state != "LISTEN" else None
    found["reordering"] = None if info.get("reordering", 3) == 3 else info["reordering"]
    if info.get("retrans") or info.get("total_retrans"):
        found |= {"retrans_segments": info.get("retrans", 0), "retrans_total": info.get("total_retrans", 0)}
    found["backoff"] = (info.get("backoff") or None) if how.version >= (3, 17) else None
    if "wscale" in info:
        found |= {"snd_wscale": info["wscale"][0], "rcv_wscale": info["wscale"][1]}
    if how.timer or how.details:
        shown = [name for name in info.get("options", ()) if name != "usec_ts" or how.version >= (6, 8)]
        found |= {FLAGS[name]: True for name in shown}
    if "dctcp" in info:
        order = ("ce_state", "alpha", "ab_ecn_bytes", "ab_tot_bytes")
        dctcp = info["dctcp"]
        found["dctcp"] = dict(zip(order, dctcp, strict=True)) if dctcp else {"mode": "fallback_mode"}
    if how.version >= (4, 10):
        found["app_limited"] = info.get("app_limited") or None
        found |= _chronograph(info)
    return found | dict(TAILS)[info.get("tail", ())]


def _chronograph(info: Info) -> dict[str, Any]:
    busy = info.get("busy_time", 0)
    found = {"busy_ns": busy // 1000 * 1_000_000 if busy else None}
    for name in ("rwnd_limited", "sndbuf_limited"):
        found[f"{name}_ns"] = info[name] // 1000 * 1_000_000 if busy and info.get(name) else None
    return found


_TIMES = {"rto_ns": "rto", "ato_ns": "ato", "rcv_rtt_ns": "rcv_rtt", "rtt_ns": "rtt", "minrtt_ns": "min_rtt"}
_ROUGH = {
    *_TIMES,
    *("rttvar_ns", "send_bps", "pacing_rate_bps", "max_pacing_rate_bps", "delivery_rate_bps", "bbr"),
    *("rwnd_limited_share", "sndbuf_limited_share"),
}


def _compare_rough(sample: SocketSample, socket: State, how: Options) -> None:
    info = socket.info if how.info else {}
    shown = dict(info)
    if info.get("rto") == 3_000_000:
        shown["rto"] = 0
    if how.version < (4, 6):
        shown["min_rtt"] = 0
    for field, source in _TIMES.items():
        # %g prints six digits.
        _near(getattr(sample, field), shown.get(source, 0) * 1000, relative=5.1e-6)
    if info.get("rtt"):
        assert sample.rttvar_ns == pytest.approx(info.get("rttvar", 0) * 1000, rel=5.1e-6)
    else:
        assert sample.rttvar_ns is None
    _near_rate(sample.send_bps, send_rate(info), how)
    pacing = info.get("pacing_rate", 0) if how.version >= (3, 15) else 0
    _near_rate(sample.pacing_rate_bps, pacing * 8.0, how)
    _near_rate(sample.max_pacing_rate_bps, info.get("max_pacing_rate", 0) * 8.0 if pacing else 0, how)
    _near_rate(sample.delivery_rate_bps, info.get("delivery_rate", 0) * 8.0 if how.version >= (4, 10) else 0, how)
    busy = info.get("busy_time", 0) if how.version >= (4, 10) else 0
    for name in ("rwnd_limited", "sndbuf_limited"):
        share = getattr(sample, f"{name}_share")
        if busy and info.get(name) and info[name] < busy * 90:
            assert abs(share - info[name] / busy) <= 0.000_501
    _compare_bbr(sample, info if how.version >= (4, 9) else {}, how)


def _compare_bbr(sample: SocketSample, info: Info, how: Options) -> None:
    if "bbr" not in info:
        assert sample.bbr is None
        return
    rate, min_rtt, *gains = info["bbr"]
    kept = [name for name, gain in zip(("pacing_gain", "cwnd_gain"), gains, strict=True) if gain]
    assert list(sample.bbr) == ["bw_bps", "mrtt_ns", *kept]
    assert sample.bbr["mrtt_ns"] == pytest.approx(min_rtt * 1000, rel=5.1e-6)
    for name, gain in zip(("pacing_gain", "cwnd_gain"), gains, strict=True):
        assert sample.bbr.get(name, 0) == pytest.approx(gain / 256, rel=5.1e-6)
    _near_rate(sample.bbr["bw_bps"] or None, rate * 8.0, how)


def _near(value: float | None, raw: float, *, relative: float = 0.0, absolute: float = 0.0) -> None:
    if not raw:
        assert value is None
    else:
        assert value is not None
        assert abs(value - raw) <= max(relative * raw, absolute)


def _near_rate(value: float | None, raw: float, how: Options) -> None:
    if how.numeric and how.version >= (5, 2):
        _near(value if value or not raw else 0.0, raw, absolute=0.501, relative=1e-15)
    elif how.version >= (5, 7):
        _near(value, raw, relative=0.005_01)
    else:
        step = 50_100.0 if raw > 1e6 else 50.1 if raw > 1e3 else 0.01
        _near(value, raw, absolute=step, relative=1e-15)


REAL_LINES = [line for case in cases() for line in case.text.split("\n")]
PIECES = [*sorted({word for line in REAL_LINES for word in line.split()}), *["\t", "  ", '"', "(", ")", "%", ":", "-"]]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join), max_size=8))
def test_any_text_is_read_or_given_back(text: list[str]) -> None:
    _no_harm(text)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_broken_lines_are_read_or_given_back(data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(REAL_LINES) - 1))
    text = REAL_LINES[first : first + 6]
    for _ in range(data.draw(st.integers(1, 4))):
        number = data.draw(st.integers(0, len(text) - 1))
        line = text[number]
        place = data.draw(st.integers(0, len(line)))
        end = data.draw(st.integers(place, min(len(line), place + 10)))
        text[number] = line[:place] + data.draw(st.text(max_size=5) | st.sampled_from(PIECES)) + line[end:]
    _no_harm(text)


def _no_harm(text: list[str]) -> None:
    whole = [line for each in text for line in each.split("\n")]
    assert 0 <= FORMAT.recognise(whole[:200]) <= 95
    for line in whole:
        _is_accounted_for(line)
    lines = Lines(iter(whole))
    sockets = list(read(lines))
    assert lines.number == len(whole)
    assert len({socket.line for socket in sockets}) == len(sockets)
    assert lines.unknown.count + len(sockets) <= len(whole)
    rejected = {each.number for each in lines.unknown.first}
    assert not rejected & {socket.line for socket in sockets}
    for socket in sockets:
        assert socket.local_address
        assert socket.peer_address
        assert len(socket.extra) <= 200
        for name, value in vars(socket).items():
            assert value is not None, name
            assert not isinstance(value, float) or 0 <= value < float("inf"), name
            assert not isinstance(value, int) or abs(value) < 1 << 64, name


class NoStamps(Stamps):
    """Takes no line for a timestamp."""

    def take(self, line: str) -> Stamp | None:
        del line
        return None


def _is_accounted_for(line: str) -> None:
    words = line.split()
    lines = Lines([line], stamps=NoStamps())
    sockets, unknown = list(read(lines)), lines.unknown
    if not words or words[0] in OTHERS or ("*" in words and not sockets):
        assert len(sockets) + unknown.count <= 1
    elif not read_header(line, words):
        assert len(sockets) + unknown.count == 1


LONG_CHARACTERS = 1 << 20
ROW = "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2 "


@all_cases(
    "line",
    [
        "x" * LONG_CHARACTERS,
        " " * LONG_CHARACTERS,
        "9" * LONG_CHARACTERS,
        "ESTAB 0 0 " + "1" * LONG_CHARACTERS + ":1 2:2",
        "ESTAB " + "1" * 100_000 + " 0 1:1 2:2",
        ROW + "cwnd:" + "9" * LONG_CHARACTERS,
        ROW + "rto:" + "9" * LONG_CHARACTERS,
        ROW + "send " + "9" * LONG_CHARACTERS + "Mbps",
        ROW + "sk:" + "f" * LONG_CHARACTERS,
        ROW + "skmem:(" + "r1," * (LONG_CHARACTERS // 3),
        ROW + "bbr:(" + "a:1," * (LONG_CHARACTERS // 4) + ")",
        ROW + "dctcp:(" + "a:1," * (LONG_CHARACTERS // 4) + ")",
        ROW + "timer:(on," + "1" * LONG_CHARACTERS + ",0)",
        ROW + "users:(" + '("a",pid=1,fd=2),' * (LONG_CHARACTERS // 17),
        ROW + "users:(" + '("' * (LONG_CHARACTERS // 2),
        ROW + 'users:(("' + '",pid=1,' * (LONG_CHARACTERS // 8),
        ROW + "inet-sockopt: ( " * (LONG_CHARACTERS // 16),
        ROW + "tcp-ulp-tls " + "version: 1.3 " * (LONG_CHARACTERS // 13),
        ROW + "cgroup:/ " + "a.b " * (LONG_CHARACTERS // 4),
        ROW + " ".join(f"name{number}" for number in range(LONG_CHARACTERS // 10)),
        ROW + " ".join(f"name{number}:1" for number in range(LONG_CHARACTERS // 12)),
        ROW + "dctcp:(a:" + "9" * 4000 + ") busy:99999999999999999999ms rto:9e12",
        ROW + "rwnd_limited:99999999999999999999ms(1.0%) bbr:(bw:1e999bps,mrtt:1e300) retrans:" + "9" * 4000 + "/1",
        ROW + "send " * (LONG_CHARACTERS // 5),
        "State " + " " * LONG_CHARACTERS + "Recv-Q",
        "Local Address:Port" + " " * LONG_CHARACTERS + "Peer",
        "u_str " * (LONG_CHARACTERS // 6),
    ],
    ids=lambda line: line[:60].strip(),
    of=3,
)
def test_a_line_of_a_mebibyte_is_read_in_linear_time(line: str) -> None:
    _no_harm([line])
    half, _ = read_text(line)
    assert len(half) <= 1


def test_a_socket_with_endless_details_stays_small() -> None:
    (socket,), unknown = read_lines([ROW, *(f"\t cwnd:1 new{number}:1 more{number}" for number in range(5000))])
    assert len(socket.extra) == 200
    assert unknown.count == 0
