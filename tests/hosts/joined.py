"""Captures and `ss` texts made for joining: lab runs with changed clocks, addresses and SYNs; and Transfer, whose
capture and kernel are known to the nanosecond.

Works on bytes of a pcap or text of `ss`, independently of tcpwin.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path

from lab.runs import Run
from lab.selection import COPIES

LAB_TRUTH = Path(__file__).parents[1] / "lab" / "truth"
LAB_CAPTURES = Path(__file__).parents[2] / "captures" / "lab"
SECOND_NS = 1_000_000_000
MS_NS = 1_000_000
MARK = "### "
FILE_HEADER = struct.Struct("<IHHiIII")
RECORD_HEADER = struct.Struct("<IIII")
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
# NOP and a shift of 7.
SCALE = bytes([1, 3, 3, 7])


def copied_run(name: str) -> Run:
    """Return the run from which a bundled capture was copied."""
    [(scenario, end)] = [(scenario, end) for scenario, end, copy in COPIES if copy == name]
    return Run(scenario, end, LAB_TRUTH / scenario, LAB_CAPTURES / f"{name}.pcap.gz")


def ss_text(run: Run, end: str) -> str:
    """Return the `ss` text at one end of a run."""
    return (run.truth / f"ss_{end}.txt").read_text(encoding="ascii")


def write_stamp(time_ns: int) -> str:
    """Return the timestamp line of a sample."""
    return f"{MARK}{time_ns // SECOND_NS}.{time_ns % SECOND_NS:09}\n"


def moved(text: str, by_ns: int, *, drift_ppm: int = 0) -> str:
    """Return the text as written by a host whose clock is ahead and runs fast."""
    lines, first_ns = [], None
    for line in text.splitlines(keepends=True):
        if line.startswith(MARK):
            time_ns = int(Decimal(line.removeprefix(MARK)).scaleb(9))
            first_ns = time_ns if first_ns is None else first_ns
            line = write_stamp(time_ns + by_ns + (time_ns - first_ns) * drift_ppm // 1_000_000)
        lines.append(line)
    return "".join(lines)


def records(capture: Path) -> tuple[bytes, list[bytes]]:
    """Return the header and the records of a little-endian pcap."""
    content = gzip.decompress(capture.read_bytes())
    found = []
    offset = FILE_HEADER.size
    while offset < len(content):
        end = offset + RECORD_HEADER.size + RECORD_HEADER.unpack_from(content, offset)[2]
        found.append(content[offset:end])
        offset = end
    return content[: FILE_HEADER.size], found


def without_start(capture: Path, tmp_path: Path, packets: int = 3) -> Path:
    """Write a capture without its first packets, by default the handshake."""
    header, found = records(capture)
    path = tmp_path / "without-start.pcap"
    path.write_bytes(header + b"".join(found[packets:]))
    return path


@dataclass(frozen=True)
class Packet:
    """A segment as it passed the capture point."""

    time_ns: int
    from_client: bool
    flags: int
    seq: int
    ack: int
    window: int
    length: int = 0
    options: bytes = b""


@dataclass(frozen=True)
class Transfer:
    """A server sends segments of 1000 bytes every 10 ms from 100 ms on; each is acknowledged separately.

    The path takes a constant 10 ms each way. Both windows are always 512 × 128 = 65,536 bytes. The capture was made at
    the server, or at the client.
    """

    start_ns: int = 1_700_000_000 * SECOND_NS
    client: tuple[str, int] = ("10.0.0.1", 40000)
    server: tuple[str, int] = ("10.0.0.2", 5201)
    segments: int = 100
    isn: tuple[int, int] = (1000, 5000)
    at_client: bool = False

    FIRST_NS = 100 * MS_NS
    EVERY_NS = 10 * MS_NS
    WAY_NS = 10 * MS_NS
    LENGTH = 1000
    WINDOW_BYTES = 65_536

    @property
    def end_ns(self) -> int:
        """Return when the server sends its FIN: 50 ms after the next segment would be due."""
        return self.start_ns + self.FIRST_NS + self.segments * self.EVERY_NS + 50 * MS_NS

    def packets(self) -> list[Packet]:
        """Return all packets, in the order in which they passed the capture point."""
        client_isn, server_isn = self.isn
        # Times at the server; the client's packets leave one path delay earlier, and its received packets arrive one
        # later.
        sent = [
            Packet(0, True, SYN, client_isn, 0, 65_535, 0, SCALE),
            Packet(0, False, SYN | ACK, server_isn, client_isn + 1, 65_535, 0, SCALE),
            Packet(2 * self.WAY_NS, True, ACK, client_isn + 1, server_isn + 1, 512),
        ]
        for number in range(self.segments):
            left_ns = self.FIRST_NS + number * self.EVERY_NS
            end = server_isn + 1 + (number + 1) * self.LENGTH
            sent.append(Packet(left_ns, False, PSH | ACK, end - self.LENGTH, client_isn + 1, 512, self.LENGTH))
            sent.append(Packet(left_ns + 2 * self.WAY_NS, True, ACK, client_isn + 1, end, 512))
        last = server_isn + 1 + self.segments * self.LENGTH
        end_ns = self.end_ns - self.start_ns
        sent += [
            Packet(end_ns, False, FIN | ACK, last, client_isn + 1, 512),
            Packet(end_ns + 2 * self.WAY_NS, True, FIN | ACK, client_isn + 1, last + 1, 512),
            Packet(end_ns + 2 * self.WAY_NS, False, ACK, last + 1, client_isn + 2, 512),
        ]
        away_ns = self.WAY_NS if self.at_client else 0
        seen = [
            (self.start_ns + each.time_ns + (-away_ns if each.from_client else away_ns), order, each)
            for order, each in enumerate(sent)
        ]
        return [
            Packet(time_ns, each.from_client, each.flags, each.seq, each.ack, each.window, each.length, each.options)
            for time_ns, _, each in sorted(seen, key=lambda each: each[:2])
        ]

    def acked_bytes(self, time_ns: int) -> int:
        """Return the bytes acknowledged according to the server's kernel."""
        return self.LENGTH * self._count(time_ns - 2 * self.WAY_NS)

    def sent_bytes(self, time_ns: int) -> int:
        """Return the bytes sent according to the server's kernel."""
        return self.LENGTH * self._count(time_ns)

    def received_bytes(self, time_ns: int) -> int:
        """Return the bytes received according to the client's kernel."""
        return self.LENGTH * self._count(time_ns - self.WAY_NS)

    def _count(self, time_ns: int) -> int:
        return min(max((time_ns - self.start_ns - self.FIRST_NS) // self.EVERY_NS + 1, 0), self.segments)

    def sample_times(self, every_ns: int = 50 * MS_NS) -> list[int]:
        """Return times 3 ms after a packet and 7 ms before the next, while data flows."""
        first_ns = self.start_ns + self.FIRST_NS + 43 * MS_NS
        return list(range(first_ns, self.start_ns + self.FIRST_NS + self.segments * self.EVERY_NS, every_ns))

    def server_ss(self, times: Iterable[int] | None = None, *, offset_ns: int = 0, extra: str = "") -> str:
        """Return the server's sockets at these times, by a clock that is ahead of the capture's."""
        return "".join(
            write_stamp(time_ns + offset_ns)
            + socket_text(
                self.server,
                self.client,
                f"wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:10 bytes_sent:{self.sent_bytes(time_ns)} "
                f"bytes_acked:{self.acked_bytes(time_ns)} snd_wnd:{self.WINDOW_BYTES}{extra}",
                send_q=self.sent_bytes(time_ns) - self.acked_bytes(time_ns),
            )
            for time_ns in (self.sample_times() if times is None else times)
        )

    def client_ss(self, times: Iterable[int] | None = None, *, offset_ns: int = 0) -> str:
        """Return the client's sockets at these times. The client connected: its bytes_acked counts the SYN."""
        return "".join(
            write_stamp(time_ns + offset_ns)
            + socket_text(
                self.client,
                self.server,
                f"wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:10 bytes_acked:1 "
                f"bytes_received:{self.received_bytes(time_ns)} snd_wnd:{self.WINDOW_BYTES}",
            )
            for time_ns in (self.sample_times() if times is None else times)
        )


def socket_text(
    local: tuple[str, int], peer: tuple[str, int], tokens: str, *, state: str = "ESTAB", send_q: int = 0
) -> str:
    """Return the two lines of a socket as `ss -tin` prints them."""
    ends = [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address, port in (local, peer)]
    return f"{state} 0 {send_q} {ends[0]} {ends[1]}\n\t cubic {tokens}\n"


def write_pcap(path: Path, *transfers: Transfer) -> Path:
    """Write captures of consecutive transfers as a pcap with nanoseconds."""
    content = [FILE_HEADER.pack(0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)]
    for transfer in transfers:
        for packet in transfer.packets():
            frame = _frame(transfer, packet)
            seconds, rest_ns = divmod(packet.time_ns, SECOND_NS)
            content += [RECORD_HEADER.pack(seconds, rest_ns, len(frame), len(frame)), frame]
    path.write_bytes(b"".join(content))
    return path


def _frame(transfer: Transfer, packet: Packet) -> bytes:
    ends = (transfer.client, transfer.server)
    (source, source_port), (target, target_port) = ends if packet.from_client else ends[::-1]
    addresses = ip_address(source).packed + ip_address(target).packed
    tcp = struct.pack(
        ">HHIIBBHHH",
        source_port,
        target_port,
        packet.seq,
        packet.ack,
        (20 + len(packet.options)) << 2,
        packet.flags,
        packet.window,
        0,
        0,
    )
    data = tcp + packet.options + bytes(packet.length)
    if len(addresses) == 8:
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, 6, 0)
        return bytes(12) + b"\x08\x00" + ip + addresses + data
    ip = struct.pack(">IHBB", 0x60000000, len(data), 6, 64)
    return bytes(12) + b"\x86\xdd" + ip + addresses + data
