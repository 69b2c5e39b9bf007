"""Print sockets like each version of iproute2's `ss`, written from its misc/ss.c rather than the reader.

Takes raw kernel values (microseconds, bytes, packets) and the options of `ss`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Version = tuple[int, int]
Info = Mapping[str, Any]

PLAIN_ORDER: tuple[tuple[str, str, Version], ...] = (
    ("mss", "mss", (3, 10)),
    ("pmtu", "pmtu", (4, 15)),
    ("rcvmss", "rcv_mss", (4, 10)),
    ("advmss", "advmss", (4, 10)),
    ("cwnd", "snd_cwnd", (3, 10)),
    ("ssthresh", "snd_ssthresh", (3, 10)),
    ("bytes_sent", "bytes_sent", (4, 20)),
    ("bytes_retrans", "bytes_retrans", (4, 20)),
    ("bytes_acked", "bytes_acked", (4, 2)),
    ("bytes_received", "bytes_received", (4, 2)),
    ("segs_out", "segs_out", (4, 2)),
    ("segs_in", "segs_in", (4, 2)),
    ("data_segs_out", "data_segs_out", (4, 7)),
    ("data_segs_in", "data_segs_in", (4, 7)),
)
LAST_ORDER: tuple[tuple[str, str, Version], ...] = (
    ("lastsnd", "last_data_sent", (3, 17)),
    ("lastrcv", "last_data_recv", (3, 17)),
    ("lastack", "last_ack_recv", (3, 17)),
)
END_ORDER: tuple[tuple[str, str, Version], ...] = (
    ("rcv_space", "rcv_space", (3, 10)),
    ("rcv_ssthresh", "rcv_ssthresh", (4, 15)),
    ("notsent", "notsent_bytes", (4, 6)),
)
WINDOW_ORDER: tuple[tuple[str, str, Version], ...] = (
    ("rcv_ooopack", "rcv_ooopack", (5, 18)),
    ("snd_wnd", "snd_wnd", (5, 18)),
    ("rcv_wnd", "rcv_wnd", (6, 6)),
    ("rehash", "rehash", (6, 6)),
)


@dataclass(frozen=True)
class Options:
    """Options and version of `ss`."""

    version: Version
    numeric: bool = False
    oneline: bool = False
    header: bool = True
    netid: bool = False
    state: bool = True
    queues: bool = True
    timer: bool = False
    details: bool = False
    processes: bool = False
    memory: bool = False
    info: bool = False
    tos: bool = False
    cgroup: bool = False
    sockopts: bool = False

    @property
    def show_options(self) -> bool:
        """-e includes the output of -o."""
        return self.timer or self.details


@dataclass(frozen=True)
class State:
    """A kernel socket; `info` has the non-zero fields of tcp_info."""

    state: str
    queues: tuple[int, int]
    local: tuple[str, str, int]
    peer: tuple[str, str, int]
    users: tuple[tuple[str, int, int], ...] = ()
    timer: tuple[int, int, int] = (0, 0, 0)
    uid: int = 0
    inode: int = 0
    cookie: int = 0
    mark: int = 0
    cgroup: str | None = None
    v6only: int | None = None
    shutdown: int | None = None
    tos: int | None = None
    tclass: int | None = None
    class_id: int | None = None
    sockopts: tuple[str, ...] | None = None
    memory: tuple[int, ...] = ()
    info: Info = field(default_factory=dict)


def write(sockets: list[State], options: Options) -> list[str]:
    """Print one run of `ss`."""
    lines = [_header(options)] if options.header else []
    for socket in sockets:
        lines.extend(_socket(socket, options))
    return lines


def _header(options: Options) -> str:
    names = ["Netid"] if options.netid else []
    names += ["State     "] if options.state else []
    names += ["Recv-Q", "Send-Q"] if options.queues else []
    process = "" if options.version < (5, 0) else "Process" if options.version < (6, 2) else " Process"
    return " ".join([*names, "      Local Address:Port", "     Peer Address:Port"]) + process


def _socket(socket: State, options: Options) -> list[str]:
    columns = ["tcp  "] if options.netid else []
    columns += [f"{socket.state:10}"] if options.state else []
    columns += [f"{socket.queues[0]:<6}", f"{socket.queues[1]:<6}"] if options.queues else []
    columns += [f"{_endpoint(socket.local, options):>24}", f"{_endpoint(socket.peer, options):>24}"]
    row = " ".join(columns) + "".join(_row_tokens(socket, options))
    parts = [row]
    if options.sockopts and options.version >= (5, 10) and socket.sockopts is not None:
        parts.append("inet-sockopt: (" + "".join(f" {name}" for name in socket.sockopts) + ")")
    if options.memory or options.info:
        parts.append("".join(_detail_tokens(socket, options)))
    blanks = options.version < (7, 1)
    if options.oneline:
        return [_trimmed(" ".join(parts), blanks)]
    return [_trimmed(parts[0], blanks), *(_trimmed(f"\t{part}", blanks) for part in parts[1:])]


def _trimmed(line: str, blanks: bool) -> str:
    return f"{line} " if blanks else line.rstrip(" ")


def _endpoint(endpoint: tuple[str, str, int], options: Options) -> str:
    address, scope, port = endpoint
    shown = f"[{address}]" if ":" in address and options.version >= (4, 0) else address
    return f"{shown}{'%' if scope else ''}{scope}:{port or '*'}"


def _row_tokens(socket: State, options: Options) -> Iterator[str]:
    if options.processes and socket.users:
        form = '("%s",%d,%d)' if options.version < (4, 0) else '("%s",pid=%d,fd=%d)'
        yield " users:(" + ",".join(form % user for user in socket.users) + ")"
    if options.show_options and socket.timer[0]:
        yield _timer(socket.timer, options.version)
    if options.details:
        yield from _details(socket)
    if options.tos:
        for name, value in (("tos", socket.tos), ("tclass", socket.tclass), ("class_id", socket.class_id)):
            if value is not None:
                yield f" {name}:{value:#x}" if value else f" {name}:0"
    if options.cgroup and socket.cgroup is not None:
        yield f" cgroup:{socket.cgroup}"


def _details(socket: State) -> Iterator[str]:
    if socket.uid:
        yield f" uid:{socket.uid}"
    yield f" ino:{socket.inode} sk:{socket.cookie:x}"
    if socket.mark:
        yield f" fwmark:0x{socket.mark:x}"
    if socket.cgroup is not None:
        yield f" cgroup:{socket.cgroup}"
    if socket.v6only is not None:
        yield f" v6only:{socket.v6only}"
    if socket.shutdown is not None:
        yield f" {'-' if socket.shutdown & 1 else '<'}-{'-' if socket.shutdown & 2 else '>'}"


def _timer(timer: tuple[int, int, int], version: Version) -> str:
    names = ["off", "on", "keepalive", "timewait", "persist"] + (["delack"] if version >= (7, 1) else [])
    name = names[timer[0]] if timer[0] < len(names) else "unknown"
    return f" timer:({name},{_ms_timer(timer[1], version)},{timer[2]})"


def _ms_timer(timeout_ms: int, version: Version) -> str:
    seconds, milliseconds = divmod(timeout_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    text = ""
    if minutes:
        milliseconds = 0
        text += f"{minutes}min"
        if minutes > 9:
            seconds = 0
    if seconds:
        if seconds > 9:
            milliseconds = 0
        text += f"{seconds}{'.' if milliseconds else 'sec'}"
    if milliseconds:
        text += f"{milliseconds:03}{'sec' if seconds and version >= (6, 11) else 'ms'}"
    return text


def _bandwidth(bits: float, options: Options) -> str:
    if options.numeric and options.version >= (5, 2):
        return "%.0f" % bits  # noqa: UP031
    if options.version < (5, 7):
        if bits > 1e6:
            return f"{bits / 1e6:.1f}M"
        return f"{bits / 1e3:.1f}K" if bits > 1e3 else f"{bits:g}"
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bits >= unit:
            return f"{bits / unit:.3g}{name}"
    return f"{bits:g}"


def _detail_tokens(socket: State, options: Options) -> Iterator[str]:
    if options.memory:
        yield _memory(socket.memory)
    if options.info and socket.info:
        yield from _options_tokens(socket.info, options)
        yield from _plain(socket.info, PLAIN_ORDER, options)
        yield from _algorithm_tokens(socket.info, options)
        yield from _rate_tokens(socket.info, options)
        yield from _chronograph(socket.info, options)
        yield from _loss_tokens(socket, options)
        if socket.info.get("rcv_rtt"):
            yield f" rcv_rtt:{socket.info['rcv_rtt'] / 1000:g}"
        yield from _plain(socket.info, END_ORDER, options)
        if socket.info.get("min_rtt") and options.version >= (4, 6):
            yield f" minrtt:{socket.info['min_rtt'] / 1000:g}"
        yield from _plain(socket.info, WINDOW_ORDER, options)
        yield from socket.info.get("tail", ())


def _memory(memory: tuple[int, ...]) -> str:
    if len(memory) == 4:
        read, write, forward, transmit = memory
        return f" mem:(r{read},w{write},f{forward % (1 << 32)},t{transmit})"
    letters = ("r", "rb", "t", "tb", "f", "w", "o", "bl", "d")
    return " skmem:(" + ",".join(f"{name}{each % (1 << 32)}" for name, each in zip(letters, memory, strict=False)) + ")"


def _plain(info: Info, order: tuple[tuple[str, str, Version], ...], options: Options) -> Iterator[str]:
    for name, source, version in order:
        if info.get(source) and options.version >= version:
            yield f" {name}:{info[source]}"


def _options_tokens(info: Info, options: Options) -> Iterator[str]:
    if options.show_options:
        for name in info.get("options", ()):
            if name != "usec_ts" or options.version >= (6, 8):
                yield f" {name}"
    yield f" {info['cong_alg']}"
    if "wscale" in info:
        yield f" wscale:{info['wscale'][0]},{info['wscale'][1]}"
    if info.get("rto") and info["rto"] != 3_000_000:
        yield f" rto:{info['rto'] / 1000:g}"
    if info.get("backoff") and options.version >= (3, 17):
        yield f" backoff:{info['backoff']}"
    if info.get("rtt"):
        yield f" rtt:{info['rtt'] / 1000:g}/{info.get('rttvar', 0) / 1000:g}"
    if info.get("ato"):
        yield f" ato:{info['ato'] / 1000:g}"


def _algorithm_tokens(info: Info, options: Options) -> Iterator[str]:
    if "dctcp" in info:
        names = ("ce_state", "alpha", "ab_ecn", "ab_tot")
        values = ",".join(f"{name}:{each}" for name, each in zip(names, info["dctcp"] or (), strict=False))
        yield f" dctcp:({values})" if info["dctcp"] else " dctcp:fallback_mode"
    if "bbr" in info and options.version >= (4, 9):
        bytes_a_second, min_rtt, pacing_gain, cwnd_gain = info["bbr"]
        text = f" bbr:(bw:{_bandwidth(bytes_a_second * 8.0, options)}bps,mrtt:{min_rtt / 1000:g}"
        text += f",pacing_gain:{pacing_gain / 256:g}" if pacing_gain else ""
        yield text + (f",cwnd_gain:{cwnd_gain / 256:g}" if cwnd_gain else "") + ")"


def send_rate(info: Info) -> float:
    """Return cwnd × MSS ÷ round trip in bits per second, 0 if `ss` omits it."""
    if not (info.get("rtt") and info.get("mss") and info.get("snd_cwnd")):
        return 0
    rate: float = info["snd_cwnd"] * float(info["mss"]) * 8_000_000.0 / info["rtt"]
    return rate


def _rate_tokens(info: Info, options: Options) -> Iterator[str]:
    if send_rate(info):
        yield f" send {_bandwidth(send_rate(info), options)}bps"
    yield from _plain(info, LAST_ORDER, options)
    if info.get("pacing_rate") and options.version >= (3, 15):
        text = f" pacing_rate {_bandwidth(info['pacing_rate'] * 8.0, options)}bps"
        bound = info.get("max_pacing_rate")
        yield text + (f"/{_bandwidth(bound * 8.0, options)}bps" if bound else "")
    if info.get("delivery_rate") and options.version >= (4, 10):
        yield f" delivery_rate {_bandwidth(info['delivery_rate'] * 8.0, options)}bps"
    yield from _plain(info, (("delivered", "delivered", (4, 20)), ("delivered_ce", "delivered_ce", (4, 20))), options)
    if info.get("app_limited") and options.version >= (4, 10):
        yield " app_limited"


def _chronograph(info: Info, options: Options) -> Iterator[str]:
    busy = info.get("busy_time", 0)
    if not busy or options.version < (4, 10):
        return
    yield f" busy:{busy // 1000}ms"
    for name in ("rwnd_limited", "sndbuf_limited"):
        if info.get(name):
            yield f" {name}:{info[name] // 1000}ms({100.0 * info[name] / busy:.1f}%)"


def _loss_tokens(socket: State, options: Options) -> Iterator[str]:
    info = socket.info
    if info.get("unacked"):
        yield f" unacked:{info['unacked']}"
    if info.get("retrans") or info.get("total_retrans"):
        yield f" retrans:{info.get('retrans', 0)}/{info.get('total_retrans', 0)}"
    if info.get("lost"):
        yield f" lost:{info['lost']}"
    if info.get("sacked") and socket.state != "LISTEN":
        yield f" sacked:{info['sacked']}"
    yield from _plain(info, (("dsack_dups", "dsack_dups", (4, 20)), ("fackets", "fackets", (3, 10))), options)
    if info.get("reordering", 3) != 3:
        yield f" reordering:{info['reordering']}"
    yield from _plain(info, (("reord_seen", "reord_seen", (4, 20)),), options)
