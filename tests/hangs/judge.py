"""Whether a sender stalls when a capture ends: an independent judge that reads header fields with dpkt.

For a capture that ends with packet k, the rule for each sender is:

- Its receiver's window is closed: the last accepted one is zero (RFC 9293 §3.10.7.4: not older than an earlier one),
  and the sender waits for it, as a probe (§3.8.6.1) or unacknowledged data shows. It stalls since the first zero
  window after a non-zero one, once that is 200 ms ago, Linux's shortest timer. Without a probe this is uncertain,
  until a timer would have sent one: then nobody waits.
- Data is unacknowledged for longer than a retransmission timeout: SRTT + max(200 ms, 4·RTTVAR), or 1 s without a
  sample (RFC 6298 §2), with round trips measured at the capture point and never less than the handshake's. It stalls
  since that data was sent, or since the last acknowledgment of something new, which restarts the timer.
- At least three retransmissions, probes or keep-alives 200 ms apart were sent since anything arrived from the peer:
  it is silent.

Only clear cases are judged: times between two thirds and three halves of a bound are uncertain, because a sender's
estimate differs from one made elsewhere.
"""

from __future__ import annotations

import gzip
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dpkt

MS = 1_000_000
LEAST_NS = 200 * MS
INITIAL_NS = 1000 * MS
MOST_NS = 120_000 * MS
"""No timer waits longer (TCP_RTO_MAX): a sender silent for this long is no longer waiting."""
MOST_STEPS = 20
SILENT = 3
UNITS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Nanoseconds per unit of a pcap's fraction of a second, by its magic number."""
SIZES = {1: 14, 113: 16, 276: 20}
"""Bytes of the link header: Ethernet, Linux cooked, Linux cooked v2."""
UNSURE = "unsure"
End = tuple[bytes, int]
"""Address and port."""
Way = tuple[End, End]
"""From a sender to its receiver."""


@dataclass(frozen=True, slots=True)
class Packet:
    """Header fields of a TCP segment."""

    time_ns: int
    side: End
    peer: End
    seq: int
    ack: int
    length: int
    flags: int
    window: int
    shift: int | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """The reason why a sender waits; `kind` is UNSURE near a limit."""

    kind: str
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(slots=True)
class Sender:
    """One side's data, and the other's acknowledgments and windows; sequence numbers are unwrapped."""

    base: int | None = None
    una: int = 0
    nxt: int = 0
    fin: int | None = None
    advanced_ns: int = 0
    window: int | None = None
    wl1: int = -1
    closed_ns: int | None = None
    probed: bool = False
    tries: list[int] = field(default_factory=list)
    sent: deque[list[int]] = field(default_factory=deque)
    """Start, end, time first sent, and whether it was retransmitted."""
    srtt_ns: float | None = None
    rttvar_ns: float = 0.0
    acked: bool = False
    shift: int | None = None
    data_ns: int = 0

    def unwrap(self, number: int, near: int) -> int:
        """Return the number with these low 32 bits nearest to another."""
        assert self.base is not None
        return near + ((number - self.base - near + 2**31) % 2**32) - 2**31

    def timeout_ns(self, handshake_ns: int | None) -> float:
        if self.srtt_ns is None and handshake_ns is None:
            return INITIAL_NS
        smoothed_ns = max(self.srtt_ns or 0, handshake_ns or 0)
        variation_ns = self.rttvar_ns if self.srtt_ns else smoothed_ns / 2
        return smoothed_ns + max(LEAST_NS, 4 * variation_ns)


class Judge:
    """Follow one connection packet by packet."""

    def __init__(self) -> None:
        self.senders: dict[End, Sender] = {}
        self.syn_ns: int | None = None
        self.handshake_ns: int | None = None
        self.resetter: End | None = None
        self.now_ns = 0

    def take(self, packet: Packet) -> None:
        if self.resetter is not None:
            return
        self.now_ns = max(self.now_ns, packet.time_ns)
        if packet.flags & dpkt.tcp.TH_RST:
            self.resetter = packet.side
            return
        sent = self.senders.setdefault(packet.side, Sender())
        acked = self.senders.setdefault(packet.peer, Sender())
        is_syn = bool(packet.flags & dpkt.tcp.TH_SYN)
        if is_syn:
            self.syn_ns = self.syn_ns or packet.time_ns
            sent.shift = packet.shift
        elif self.handshake_ns is None and self.syn_ns is not None and packet.flags & dpkt.tcp.TH_ACK:
            self.handshake_ns = packet.time_ns - self.syn_ns
        if sent.base is None:
            sent.base = packet.seq
        acked.tries.clear()
        if packet.flags & dpkt.tcp.TH_ACK:
            self._acknowledge(sent, acked, packet)
        self._send(sent, packet)

    def _acknowledge(self, sent: Sender, acked: Sender, packet: Packet) -> None:
        if acked.base is None:
            acked.base = packet.ack
        ack = acked.unwrap(packet.ack, acked.una)
        if not acked.acked:
            acked.acked = True
            acked.una = min(ack, acked.una)
        if ack > acked.una:
            covered = []
            while acked.sent and acked.sent[0][1] <= ack:
                covered.append(acked.sent.popleft())
            if covered and not any(again for _, _, _, again in covered):
                acked_ns = packet.time_ns - covered[0][2]
                if acked.srtt_ns is None:
                    acked.srtt_ns, acked.rttvar_ns = acked_ns, acked_ns / 2
                else:
                    acked.rttvar_ns += (abs(acked.srtt_ns - acked_ns) - acked.rttvar_ns) / 4
                    acked.srtt_ns += (acked_ns - acked.srtt_ns) / 8
            acked.una, acked.advanced_ns = ack, packet.time_ns
            acked.nxt = max(acked.nxt, ack)
        seq = sent.unwrap(packet.seq, sent.nxt)
        if ack < acked.una or seq < acked.wl1 or packet.flags & dpkt.tcp.TH_FIN:
            return
        acked.window, acked.wl1 = packet.window, seq
        if packet.window:
            acked.closed_ns, acked.probed = None, False
        elif acked.closed_ns is None:
            acked.closed_ns = packet.time_ns

    def _send(self, sent: Sender, packet: Packet) -> None:
        seq = sent.unwrap(packet.seq, sent.nxt)
        is_syn, is_fin = packet.flags & dpkt.tcp.TH_SYN != 0, packet.flags & dpkt.tcp.TH_FIN != 0
        start = seq + is_syn
        end = start + packet.length
        is_ask = sent.acked and packet.length <= 1 and seq == sent.nxt - 1 and not is_fin and not is_syn
        is_again = packet.length > 0 and start < sent.nxt
        if (is_ask and (sent.nxt == sent.una or sent.closed_ns is not None)) or is_again:
            if not sent.tries or packet.time_ns - sent.tries[-1] >= LEAST_NS:
                sent.tries.append(packet.time_ns)
            sent.probed |= sent.closed_ns is not None
        elif packet.length:
            sent.tries.clear()
            sent.data_ns = packet.time_ns
        for each in sent.sent if is_again else ():
            if each[0] < end and start < each[1]:
                each[3] = 1
        if end > max(sent.nxt, start):
            sent.sent.append([max(start, sent.nxt), end, packet.time_ns, 0])
        if is_fin:
            sent.fin = end
        sent.nxt = max(sent.nxt, end + is_fin)
        if is_syn:
            sent.una = sent.una if sent.acked else seq

    def stalls(self, end_ns: int) -> Iterator[tuple[Way, Stall]]:
        """Return what each side waits for at the end of the capture, or at a reset."""
        # A longer capture would contain the segments of the next timers.
        next_ns = max(map(self._next_timer_ns, self.senders.values()), default=0)
        until_ns = self.now_ns if self.resetter else min(end_ns, self.now_ns + next_ns)
        for side in self.senders:
            stall = self._stall(side, until_ns)
            if stall is not None:
                yield (side, next(other for other in self.senders if other != side)), stall

    def _next_timer_ns(self, sent: Sender) -> int:
        lasted_ns = sent.tries[-1] - sent.data_ns if sent.tries else 0
        return min(2 * max(round(sent.timeout_ns(self.handshake_ns)), INITIAL_NS, lasted_ns), MOST_NS)

    def _stall(self, side: End, end_ns: int) -> Stall | None:
        sent = self.senders[side]
        if sent.base is None or not sent.acked:
            return None
        bound_ns = sent.timeout_ns(self.handshake_ns)
        is_silent = len(sent.tries) >= SILENT
        out = sent.sent
        if sent.closed_ns is not None:
            if is_silent:
                return Stall("peer_silent", sent.tries[0], end_ns)
            waits = sent.probed or bool(out)
            return _told("zero_window" if waits else UNSURE, sent.closed_ns, end_ns, LEAST_NS)
        if out:
            start_ns = max(out[0][2], sent.advanced_ns)
            return _told("peer_silent" if is_silent else "unacknowledged", start_ns, end_ns, bound_ns)
        if is_silent and sent.nxt == sent.una:
            return Stall("peer_silent", sent.tries[0], end_ns)
        return None


def _told(kind: str, start_ns: int, end_ns: int, bound_ns: float) -> Stall | None:
    elapsed_ns = end_ns - start_ns
    if elapsed_ns < bound_ns / 1.5:
        return None
    return Stall(kind if elapsed_ns > bound_ns * 1.5 else UNSURE, start_ns, end_ns)


def read(path: Path) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return the header of a pcap file, and its records with their times in nanoseconds."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    unit = UNITS[int.from_bytes(data[:4], "little")]
    records, at = [], 24
    while at < len(data):
        seconds, fraction, size = (int.from_bytes(data[at + n : at + n + 4], "little") for n in (0, 4, 8))
        records.append((seconds * 10**9 + fraction * unit, data[at : at + 16 + size]))
        at += 16 + size
    return data[:24], records


def packets(header: bytes, records: Iterable[tuple[int, bytes]]) -> Iterator[Packet | None]:
    """Return the TCP segment of each record, or None."""
    link = int.from_bytes(header[20:24], "little")
    for time_ns, record in records:
        frame = record[16:]
        body = frame[SIZES[link] :]
        if not body or body[0] >> 4 != 4 or body[9] != 6:
            yield None
            continue
        size = (body[0] & 15) * 4
        segment = body[size:]
        offset = (segment[12] >> 4) * 4
        shift = None
        if segment[13] & dpkt.tcp.TH_SYN:
            options = dict(dpkt.tcp.parse_opts(segment[20:offset]))
            shift = options[dpkt.tcp.TCP_OPT_WSCALE][0] if dpkt.tcp.TCP_OPT_WSCALE in options else None
        ports = [int.from_bytes(segment[n : n + 2], "big") for n in (0, 2)]
        yield Packet(
            time_ns,
            (body[12:16], ports[0]),
            (body[16:20], ports[1]),
            int.from_bytes(segment[4:8], "big"),
            int.from_bytes(segment[8:12], "big"),
            int.from_bytes(body[2:4], "big") - size - offset,
            segment[13],
            int.from_bytes(segment[14:16], "big"),
            shift,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A time at which the capture may be cut, and each sender's stall then."""

    packets: int
    end_ns: int
    stalls: tuple[tuple[Way, Stall], ...]

    @property
    def is_sure(self) -> bool:
        return all(stall.kind != UNSURE for _, stall in self.stalls)


def places(header: bytes, records: Sequence[tuple[int, bytes]]) -> list[Place]:
    """Return the state after each packet, and just before a packet that comes at least 100 ms later."""
    judges: dict[frozenset[End], Judge] = {}
    found = []
    for number, packet in enumerate(packets(header, records), start=1):
        if packet is not None:
            judges.setdefault(frozenset((packet.side, packet.peer)), Judge()).take(packet)
        now_ns = records[number - 1][0]
        next_ns = records[number][0] if number < len(records) else now_ns
        steps = min((next_ns - now_ns) // (100 * MS), MOST_STEPS)
        for step in range(steps + 1):
            end_ns = now_ns + step * (next_ns - now_ns) // (steps + 1)
            stalls = (each for judge in judges.values() for each in judge.stalls(end_ns))
            found.append(Place(number, end_ns, tuple(stalls)))
    return found
