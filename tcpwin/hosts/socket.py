"""One TCP socket as its kernel saw it at one time.

In: values by field name, from `ss` text or netlink. Out: SocketSample, with None for values that were not reported.
Fields are named after the kernel's (`struct tcp_info`, `sk_meminfo`), with units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

ZERO_IS_LEFT_OUT = frozenset(
    (
        "unacked_segments",
        "retrans_segments",
        "retrans_total",
        "lost_segments",
        "sacked_segments",
        "notsent_bytes",
        "bytes_sent",
        "bytes_retrans",
        "bytes_acked",
        "bytes_received",
        "segs_out",
        "segs_in",
        "data_segs_out",
        "data_segs_in",
        "delivered",
        "delivered_ce",
        "busy_ns",
        "rwnd_limited_ns",
        "sndbuf_limited_ns",
        "dsack_dups",
        "reord_seen",
        "rcv_ooopack",
        "snd_wnd_bytes",
        "rcv_wnd_bytes",
        "backoff",
    )
)
"""Fields that `ss` omits when they are zero (misc/ss.c, tcp_stats_print) or the kernel lacks them."""


@dataclass(frozen=True, slots=True)
class SocketUser:
    """A process that holds the socket open."""

    name: str
    pid: int
    fd: int


@dataclass(frozen=True, slots=True)
class SocketTimer:
    """The timer of a socket.

    Attributes:
        name: on (retransmission), keepalive, timewait, persist (zero-window probe), delack or unknown.
        expires_ns: time until it fires.
        retransmissions: number of times that it fired without an answer.
    """

    name: str
    expires_ns: int | None
    retransmissions: int


@dataclass(frozen=True, slots=True)
class UlpInfo:
    """The upper layer protocol of a socket, such as `tls` with its `version`, `cipher`, `rxconf` and `txconf`."""

    name: str
    values: Mapping[str, str]


@dataclass(frozen=True, eq=True)
class SocketSample:
    """One TCP socket at one time. None means that a value was not reported; see also `ZERO_IS_LEFT_OUT`.

    Attributes:
        time_ns: nanoseconds since the epoch by the host's clock; None if the file has no times.
        line: number of the socket's first line in its file, from 1.
        index: number of its sample in the file, from 0; the sockets of one run of `ss` share it.
        netid: tcp or mptcp; None if the column is absent.
        state: as `ss` writes it: ESTAB, SYN-SENT, FIN-WAIT-1, LISTEN, ...
        recv_q_bytes: received but not yet read by the application.
        send_q_bytes: written by the application but not yet acknowledged.
        accept_queue, accept_queue_max: connections in the queue of a LISTEN socket, and its limit.
        local_address, peer_address: without brackets and scope; ``*`` is any.
        local_port, peer_port: None for ``*``, and for a service name unknown to this machine.
        local_service, peer_service: the port's name, if it was printed as a name.
        local_scope, peer_scope: the interface after ``%``.
        cookie: the kernel's identifier of the socket (``sk:``), unique during its life.
        shutdown: ``<->`` if both directions are open; ``-`` instead of an arrow head marks a closed direction.
        rmem_alloc_bytes, rcvbuf_bytes, wmem_alloc_bytes, sndbuf_bytes, fwd_alloc_bytes, wmem_queued_bytes,
            optmem_bytes, backlog_bytes, drops: ``skmem:(r,rb,t,tb,f,w,o,bl,d)``.
        timestamps, sack, ...: options of the connection; None if unknown, because `ss` shows them only with -o or -e.
        snd_wscale, rcv_wscale: the shift of the peer's windows, and of this socket's (``wscale:snd,rcv``).
        cwnd_segments: the congestion window in segments of `mss_bytes`; window scaling does not apply to it.
        send_bps: ``send``: cwnd × mss ÷ smoothed round trip.
        rwnd_limited_share, sndbuf_limited_share: share of `busy_ns`, 0 to 1.
        retrans_segments, retrans_total: retransmissions outstanding now, and in the connection's life.
        bbr, dctcp: values of the congestion control by name, in the units that the names state.
        mptcp: values of an MPTCP socket or subflow by name.
        extra: unknown tokens by name; a bare word has the value "".
    """

    time_ns: int | None = None
    line: int = 0
    index: int = 0
    netid: str | None = None
    state: str = ""
    recv_q_bytes: int | None = None
    send_q_bytes: int | None = None
    accept_queue: int | None = None
    accept_queue_max: int | None = None
    local_address: str = ""
    local_port: int | None = None
    local_service: str | None = None
    local_scope: str | None = None
    peer_address: str = ""
    peer_port: int | None = None
    peer_service: str | None = None
    peer_scope: str | None = None
    users: tuple[SocketUser, ...] = ()
    timer: SocketTimer | None = None
    uid: int | None = None
    inode: int | None = None
    cookie: int | None = None
    fwmark: int | None = None
    cgroup: str | None = None
    v6only: bool | None = None
    shutdown: str | None = None
    tos: int | None = None
    tclass: int | None = None
    class_id: int | None = None
    inet_sockopts: tuple[str, ...] | None = None
    rmem_alloc_bytes: int | None = None
    rcvbuf_bytes: int | None = None
    wmem_alloc_bytes: int | None = None
    sndbuf_bytes: int | None = None
    fwd_alloc_bytes: int | None = None
    wmem_queued_bytes: int | None = None
    optmem_bytes: int | None = None
    backlog_bytes: int | None = None
    drops: int | None = None
    timestamps: bool | None = None
    usec_timestamps: bool | None = None
    sack: bool | None = None
    ecn: bool | None = None
    ecn_seen: bool | None = None
    fast_open: bool | None = None
    congestion_control: str | None = None
    snd_wscale: int | None = None
    rcv_wscale: int | None = None
    rto_ns: int | None = None
    backoff: int | None = None
    rtt_ns: int | None = None
    rttvar_ns: int | None = None
    ato_ns: int | None = None
    qack: int | None = None
    bidir: bool | None = None
    mss_bytes: int | None = None
    pmtu_bytes: int | None = None
    rcvmss_bytes: int | None = None
    advmss_bytes: int | None = None
    cwnd_segments: int | None = None
    ssthresh_segments: int | None = None
    bytes_sent: int | None = None
    bytes_retrans: int | None = None
    bytes_acked: int | None = None
    bytes_received: int | None = None
    segs_out: int | None = None
    segs_in: int | None = None
    data_segs_out: int | None = None
    data_segs_in: int | None = None
    send_bps: float | None = None
    lastsnd_ns: int | None = None
    lastrcv_ns: int | None = None
    lastack_ns: int | None = None
    pacing_rate_bps: float | None = None
    max_pacing_rate_bps: float | None = None
    delivery_rate_bps: float | None = None
    delivered: int | None = None
    delivered_ce: int | None = None
    app_limited: bool | None = None
    busy_ns: int | None = None
    rwnd_limited_ns: int | None = None
    rwnd_limited_share: float | None = None
    sndbuf_limited_ns: int | None = None
    sndbuf_limited_share: float | None = None
    unacked_segments: int | None = None
    retrans_segments: int | None = None
    retrans_total: int | None = None
    lost_segments: int | None = None
    sacked_segments: int | None = None
    dsack_dups: int | None = None
    fackets: int | None = None
    reordering: int | None = None
    reord_seen: int | None = None
    rcv_rtt_ns: int | None = None
    rcv_space_bytes: int | None = None
    rcv_ssthresh_bytes: int | None = None
    notsent_bytes: int | None = None
    minrtt_ns: int | None = None
    rcv_ooopack: int | None = None
    snd_wnd_bytes: int | None = None
    rcv_wnd_bytes: int | None = None
    rehash: int | None = None
    md5_keys: tuple[str, ...] | None = None
    ulp: UlpInfo | None = None
    bbr: Mapping[str, float] | None = None
    dctcp: Mapping[str, float | str] | None = None
    mptcp: Mapping[str, str] | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> SocketSample:
        """Create a sample that keeps `values`, twenty times as fast as the constructor."""
        sample = object.__new__(cls)
        values.setdefault("extra", {})
        sample.__dict__.update(values)
        return sample

    @property
    def cwnd_bytes(self) -> int | None:
        """The congestion window in bytes: segments × MSS, as in the kernel's ``send`` rate."""
        if self.cwnd_segments is None or self.mss_bytes is None:
            return None
        return self.cwnd_segments * self.mss_bytes

    def count(self, name: str) -> int | None:
        """Return a counter, 0 if `ss` omitted it as zero; None if the socket has no TCP information at all."""
        value: int | None = getattr(self, name)
        if value is None and name in ZERO_IS_LEFT_OUT and self.congestion_control is not None:
            return 0
        return value


NUMBERS = tuple(each.name for each in fields(SocketSample) if str(each.type).startswith(("int", "float")))
"""Names of the numeric fields."""
