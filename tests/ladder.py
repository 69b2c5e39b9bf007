"""Packet ladders: a TCP scenario written as text becomes packets, which tcpwin must judge as the text says.

A ladder has prose flush left, and indented steps, settings and claims; it becomes packets, a pcap and a verdict.
Building the packets here takes a tenth of scapy's time; tests/scenarios checks that scapy builds the same. This
module knows only TCP's header fields: the ladder states the truth. `python tests/ladder.py FILE.ladder OUT.pcap`
writes the packets for other tools.

A step      0.080 a > b PA seq 1 ack 1 len 1460 win 502 <ts 5 9>   => flight 1460 window 64256 +window_full
            0.081 a > b copy ttl 63           a copy of the sender's previous packet
            0.090 b > a icmp                  an ICMP error that quotes a's previous packet
A setting   isn a 4294960000                  applies from there on; also `port a 40001`, `ip 6`
A claim     expect: from_a.window_full == 1   evaluated after the last packet

`seq`, `ack` and SACK edges count from the ISN of the side whose bytes they number. `win` is the raw field; its
default is that of this side's last segment without SYN. After `=>` come `flight pipe window shift rtt_ns connection
direction length window_raw` with a value or `none`; `events x|y` (all of them, in order; `-` for none); `+x` and
`-x` for one event present or absent; and `cause confidence original trigger age_ns rto_ns` and other fields of the
typed event (`original` and `trigger` are frames, counted from 1). A number may have a unit: `40ms`, `250us`. A line
that begins with `=>` extends the previous step.
"""

from __future__ import annotations

import ast
import re
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin import _engine

if TYPE_CHECKING:
    from scapy.packet import Packet

START_NS = 1_600_000_000_000_000_000
ADDRESSES = {4: {"a": "10.0.0.1", "b": "10.0.0.2"}, 6: {"a": "2001:db8::1", "b": "2001:db8::2"}}
MACS = {"a": "02:00:00:00:00:0a", "b": "02:00:00:00:00:0b"}
ROW_KEYS = {"flight": "bytes_in_flight"} | {
    key: key for key in ("pipe", "window", "shift", "rtt_ns", "connection", "direction", "length", "window_raw")
}
EVENT_KEYS = {name.removesuffix("_frame"): name for name in _engine.EVENT_FIELDS if name not in ROW_KEYS.values()}
FLAGS = {letter: 1 << place for place, letter in enumerate("FSRPAUEC")}
FIELDS = {"seq", "ack", "win", "len", "ttl", "ipid"}
PATTERN = bytes(range(251))
ICMP, TCP, ICMPV6 = 1, 6, 58
UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "": 1}
DIRECTION_FACTS = [
    "segments",
    "data_segments",
    "payload_bytes",
    "unique_bytes",
    "acked_bytes",
    "receive_window_min_bytes",
    "receive_window_max_bytes",
    "flight_max_bytes",
    "zero_window_segments",
    "zero_window_ns",
    "window_full",
    "window_near_full",
    "window_overrun",
    "window_updates",
    "window_shrinks",
    "sub_mss_windows",
]


class LadderError(ValueError):
    """The ladder itself is invalid."""


class LadderMismatchError(AssertionError):
    """tcpwin disagrees with the ladder."""


@dataclass
class Step:
    line: int
    text: str
    time_ns: int
    packet: bytes
    is_segment: bool
    expected: list[tuple[str, Any]]


@dataclass
class Ladder:
    name: str
    lines: list[str]
    version: int = 4
    isn: dict[str, int] = field(default_factory=lambda: {"a": 1_000_000, "b": 5_000_000})
    port: dict[str, int] = field(default_factory=lambda: {"a": 40000, "b": 9000})
    next_ip_id: dict[str, int] = field(default_factory=lambda: {"a": 1000, "b": 7000})
    steps: list[Step] = field(default_factory=list)
    claims: list[tuple[int, str]] = field(default_factory=list)
    last_packet: dict[str, bytes] = field(default_factory=dict)
    last_window: dict[str, int] = field(default_factory=dict)

    def packets(self) -> list[Packet]:
        """Return the packets as `rdpcap` would."""
        from scapy.layers.l2 import Ether
        from scapy.utils import EDecimal

        packets = []
        for step in self.steps:
            packet = Ether(step.packet)
            packet.time = EDecimal(Decimal(step.time_ns).scaleb(-9))
            packets.append(packet)
        return packets

    def write_pcap(self, path: Path, *, offset_ns: int = 0) -> None:
        """Write the packets as a nanosecond pcap."""
        with path.open("wb") as out:
            out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
            for step in self.steps:
                seconds, nanoseconds = divmod(step.time_ns + offset_ns, 1_000_000_000)
                length = len(step.packet)
                out.write(struct.pack("<IIII", seconds, nanoseconds, length, length) + step.packet)


STEP = re.compile(r"\s+(?P<time>\d+\.\d{1,9})\s+(?P<src>[ab])\s*>\s*(?P<dst>[ab])\s+(?P<what>.*)")
OPTIONS = re.compile(r"<([^>]*)>")
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(s|ms|us|)")


def parse(text: str, name: str = "ladder") -> Ladder:
    """Read a ladder and build its packets."""
    ladder = Ladder(name=name, lines=text.splitlines())
    for number, line in enumerate(ladder.lines, 1):
        if not line.strip() or not line[0].isspace():
            continue
        try:
            _parse_line(ladder, number, line)
        except (ValueError, KeyError, IndexError) as error:
            raise LadderError(f"{name}, line {number}: {error}\n  {line.strip()}") from error
    if not ladder.steps:
        raise LadderError(f"{name}: no steps")
    return ladder


def _parse_line(ladder: Ladder, number: int, line: str) -> None:
    words = line.split()
    if line.strip().startswith("expect:"):
        claim = line.split("expect:", 1)[1].strip()
        ast.parse(claim, mode="eval")
        ladder.claims.append((number, claim))
    elif words[0] == "=>":
        ladder.steps[-1].expected += _parse_expected(line.split("=>", 1)[1])
    elif words[0] in ("isn", "port") and len(words) == 3 and words[1] in "ab":
        getattr(ladder, words[0])[words[1]] = int(words[2])
    elif words[0] == "ip" and words[1:] in (["4"], ["6"]):
        ladder.version = int(words[1])
    elif match := STEP.fullmatch(line.rstrip()):
        what, _, expected = match["what"].partition("=>")
        seconds, _, fraction = match["time"].partition(".")
        time_ns = START_NS + int(seconds + fraction.ljust(9, "0"))
        packet, is_segment = _build(ladder, match["src"], match["dst"], what)
        ladder.last_packet[match["src"]] = packet
        parsed = _parse_expected(expected)
        ladder.steps.append(Step(number, line.strip(), time_ns, packet, is_segment, parsed))
    else:
        raise ValueError("not a step, a setting, `expect:` or `=>`")


def _parse_expected(text: str) -> list[tuple[str, Any]]:
    words = iter(text.split())
    expected: list[tuple[str, Any]] = []
    for word in words:
        if word[0] in "+-" and len(word) > 1:
            expected.append((word, None))
        elif word == "events":
            expected.append((word, "" if (value := next(words)) == "-" else value))
        elif word in ROW_KEYS or word in EVENT_KEYS:
            expected.append((word, _value(next(words))))
        else:
            raise ValueError(f"unknown expectation {word!r}")
    return expected


def _value(word: str) -> int | str | None:
    if word == "none":
        return None
    number = NUMBER.fullmatch(word)
    return int(Decimal(number[1]) * UNITS_NS[number[2]]) if number else word


def _build(ladder: Ladder, src: str, dst: str, what: str) -> tuple[bytes, bool]:
    if src == dst:
        raise ValueError("a segment from a host to itself")
    listed = OPTIONS.findall(what) if "<" in what else []
    words = (OPTIONS.sub(" ", what) if listed else what).split()
    kind, fields = words[0], dict(zip(words[1::2], words[2::2], strict=True))
    if kind == "copy":
        return _copy(ladder.last_packet[src], fields), True
    if kind == "icmp":
        return _icmp(ladder, src, dst), False
    if not FLAGS.keys() >= set(kind) or not fields.keys() <= FIELDS:
        raise ValueError("unknown flags or field")
    if ("A" in kind) != ("ack" in fields):
        raise ValueError("`ack` and the A flag go together")
    if "win" not in fields and "R" not in kind and src not in ladder.last_window:
        raise ValueError("no `win` yet on this side")
    window = int(fields.get("win", 0 if "R" in kind else ladder.last_window.get(src, 0)))
    if "S" not in kind and "R" not in kind:
        ladder.last_window[src] = window
    modulo = 1 << 32
    first, length = int(fields["seq"]), int(fields.get("len", 0))
    options = b"".join(_options(text, ladder.isn[dst]) for text in listed)
    options += bytes(-len(options) % 4)
    ports = ladder.port[src], ladder.port[dst]
    seq = (ladder.isn[src] + first) % modulo
    ack = (ladder.isn[dst] + int(fields["ack"])) % modulo if "ack" in fields else 0
    bits = sum({FLAGS[letter] for letter in kind})
    header = struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) // 4 << 4, bits, window, 0, 0) + options
    payload, payload_sum = _payload(first % len(PATTERN), length)
    ip_id = int(fields.get("ipid", ladder.next_ip_id[src]))
    ladder.next_ip_id[src] += 1
    ends = _ends(ladder.version, src, dst)
    size = len(header) + length
    pseudo = ends + struct.pack(">II" if ladder.version == 6 else ">HH", *_order(ladder.version, TCP, size))
    segment = _summed(header, 16, pseudo, payload_sum) + payload
    return _framed(ladder, src, dst, TCP, segment, ttl=int(fields.get("ttl", 64)), ip_id=ip_id), True


@lru_cache(4096)
def _payload(start: int, length: int) -> tuple[bytes, int]:
    """Return bytes whose values encode their position in the stream, from this place in the pattern, and their sum."""
    payload = (PATTERN * ((start + length) // len(PATTERN) + 1))[start : start + length]
    return payload, _sum(payload)


@cache
def _ends(version: int, src: str, dst: str) -> bytes:
    return b"".join(ip_address(ADDRESSES[version][each]).packed for each in (src, dst))


def _order(version: int, protocol: int, length: int) -> tuple[int, int]:
    """Order the last two numbers of a pseudo header: RFC 9293 §3.1 has the protocol first, RFC 8200 §8.1 the length."""
    return (length, protocol) if version == 6 else (protocol, length)


def _sum(data: bytes) -> int:
    """Return the sum of 16-bit words modulo 65535."""
    return int.from_bytes(data + bytes(len(data) % 2)) % 0xFFFF


def _summed(data: bytes, place: int, before: bytes = b"", after: int = 0) -> bytes:
    """Fill in the checksum (RFC 1071) including a pseudo header, and the sum of what follows an even length."""
    total = (_sum(before + data[:place] + bytes(2) + data[place + 2 :]) + after) % 0xFFFF
    return data[:place] + struct.pack(">H", 0xFFFF - (total or 0xFFFF)) + data[place + 2 :]


def _framed(ladder: Ladder, src: str, dst: str, protocol: int, data: bytes, *, ttl: int, ip_id: int) -> bytes:
    """Wrap a packet in IP (never a fragment) and Ethernet."""
    ends = _ends(ladder.version, src, dst)
    if ladder.version == 6:
        header, kind = struct.pack(">IHBB", 6 << 28, len(data), protocol, ttl) + ends, 0x86DD
    else:
        numbers = (0x45, 0, 20 + len(data), ip_id, 0x4000, ttl, protocol, 0)
        header, kind = _summed(struct.pack(">BBHHHBBH", *numbers) + ends, 10), 0x0800
    return _link(src, dst, kind) + header + data


@cache
def _link(src: str, dst: str, kind: int) -> bytes:
    return bytes.fromhex((MACS[dst] + MACS[src]).replace(":", "")) + struct.pack(">H", kind)


@lru_cache(4096)
def _options(text: str, peer_isn: int) -> bytes:
    options = b""
    for part in text.split(","):
        name, *values = part.split()
        if name == "sack":
            edges = [(peer_isn + int(edge)) % (1 << 32) for block in values for edge in block.split(":")]
            options += struct.pack(f">BBBB{len(edges)}I", 1, 1, 5, 2 + 4 * len(edges), *edges)
        elif name == "ts":
            options += struct.pack(">BBBBII", 1, 1, 8, 10, int(values[0]), int(values[1]))
        elif name == "mss":
            options += struct.pack(">BBH", 2, 4, int(values[0]))
        elif name == "ws":
            options += struct.pack(">BBBB", 1, 3, 3, int(values[0]))
        elif name == "sackOK":
            options += bytes([1, 1, 4, 2])
        elif name == "mptcp":
            value = bytes.fromhex(values[0])
            options += struct.pack(">BB", 30, 2 + len(value)) + value
        elif name == "tfo":
            cookie = bytes.fromhex(values[0]) if values else b""
            options += struct.pack(">BB", 34, 2 + len(cookie)) + cookie
        else:
            raise ValueError(f"unknown option {name!r}")
    return options


def _copy(previous: bytes, fields: Mapping[str, str]) -> bytes:
    if "ttl" not in fields:
        return previous
    ttl = bytes([int(fields["ttl"])])
    if previous[14] >> 4 == 6:
        return previous[:21] + ttl + previous[22:]
    return previous[:14] + _summed(previous[14:22] + ttl + previous[23:34], 10) + previous[34:]


def _icmp(ladder: Ladder, src: str, dst: str) -> bytes:
    """Build "destination unreachable", which quotes the other side's last packet (RFC 792; RFC 4443 §3.1)."""
    ip_id = ladder.next_ip_id[src]
    ladder.next_ip_id[src] += 1
    quoted = ladder.last_packet[dst][14:]
    if ladder.version == 6:
        error = struct.pack(">BBHI", 1, 0, 0, 0) + quoted
        pseudo = _ends(6, src, dst) + struct.pack(">II", *_order(6, ICMPV6, len(error)))
        return _framed(ladder, src, dst, ICMPV6, _summed(error, 2, pseudo), ttl=64, ip_id=ip_id)
    error = struct.pack(">BBHI", 3, 1, 0, 0) + quoted
    return _framed(ladder, src, dst, ICMP, _summed(error, 2), ttl=64, ip_id=ip_id)


def check(ladder: Ladder, folder: Path) -> None:
    """Judge the packets twice, as scapy packets and as a pcap; both results must match the ladder."""
    import tcpwin

    path = folder / f"{ladder.name}.pcap"
    ladder.write_pcap(path)
    from_file, from_scapy = tcpwin.analyze(path), tcpwin.analyze(ladder.packets())
    rows = [dict(row) for row in from_file.segments().rows()]
    problems = _compare_rows(ladder, rows) + _compare_events(ladder, from_file) + _compare_claims(ladder, from_file)
    other_rows = [dict(row) for row in from_scapy.segments().rows()]
    if rows != other_rows or _facts(from_file) != _facts(from_scapy):
        differing = [a for a, b in zip(rows, other_rows, strict=False) if a != b][:1]
        problems.append((0, f"the pcap and the scapy packets differ: {differing or 'not in the rows'}"))
    if problems:
        raise LadderMismatchError(_report(ladder, rows, problems))


def _compare_rows(ladder: Ladder, rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    by_frame = {row["frame"]: row for row in rows}
    problems = []
    for frame, step in enumerate(ladder.steps, 1):
        row = by_frame.pop(frame, None)
        if (row is not None) != step.is_segment:
            problems.append((step.line, "no row for this segment" if step.is_segment else "a row, but no segment"))
        elif row is not None:
            of_row = [(key, value) for key, value in step.expected if key not in EVENT_KEYS]
            problems += [(step.line, problem) for key, value in of_row if (problem := _judge(row, key, value))]
    return problems + [(0, f"a row of no step: frame {frame}") for frame in by_frame]


def _compare_events(ladder: Ladder, analysis: Any) -> list[tuple[int, str]]:
    """Compare the typed events with the steps that claim them."""
    claims = [
        (frame, step.line, key, value)
        for frame, step in enumerate(ladder.steps, 1)
        for key, value in step.expected
        if key in EVENT_KEYS
    ]
    if not claims:
        return []
    events = {event.frame: event for connection in analysis.connections for event in connection.events}
    problems = []
    for frame, line, key, value in claims:
        measured = getattr(events[frame], EVENT_KEYS[key], "no such attribute") if frame in events else "no event"
        if measured != value:
            problems.append((line, f"{key} {measured}, not {value}"))
    return problems


def _judge(row: Mapping[str, Any], key: str, value: Any) -> str | None:
    events = row["events"] or ""
    if key == "events":
        return None if events == value else f"events {events or '-'}, not {value or '-'}"
    if key[0] in "+-":
        present = key[1:] in events.split("|")
        return None if present == (key[0] == "+") else f"events {events or '-'}, against {key}"
    measured = row[ROW_KEYS[key]]
    return None if measured == value else f"{key} {measured}, not {value}"


def names_of(analysis: Any, **more: Any) -> dict[str, Any]:
    """Return the names that a claim can use: the analysis, its first connection, and units."""
    names: dict[str, Any] = {"analysis": analysis, "connections": analysis.connections, "t0": START_NS}
    names |= {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000}
    if len(analysis.connections):
        connection = analysis.connections[0]
        names |= {"connection": connection, "a_to_b": connection.a_to_b, "b_to_a": connection.b_to_a}
    return names | more


def _compare_claims(ladder: Ladder, analysis: Any) -> list[tuple[int, str]]:
    names = names_of(analysis)
    if len(analysis.connections):
        # By address, so that a claim does not depend on who counts as the initiator.
        first = analysis.connections[0]
        a_is_a = str(first.a.address) in (ADDRESSES[4]["a"], ADDRESSES[6]["a"])
        names["from_a"], names["from_b"] = (first.a_to_b, first.b_to_a)[:: 1 if a_is_a else -1]
    return [(line, why) for line, claim in ladder.claims if (why := evaluate(claim, names))]


def evaluate(claim: str, names: Mapping[str, Any]) -> str | None:
    """Return None if the claim (a Python expression) holds, otherwise the reason."""
    tree = ast.parse(claim, mode="eval")
    scope = dict(names)
    try:
        if eval(compile(tree, "<claim>", "eval"), scope):
            return None
        if isinstance(tree.body, ast.Compare):
            left = ast.Expression(tree.body.left)
            return f"{ast.unparse(left)} is {eval(compile(left, '<claim>', 'eval'), scope)!r}, against: {claim}"
    except (AttributeError, LookupError, TypeError) as error:
        return f"{claim}: {type(error).__name__}: {error}"
    return f"does not hold: {claim}"


def _facts(analysis: Any) -> list[list[Any]]:
    return [
        [connection.start_ns, connection.end_ns, connection.initiator_known]
        + [getattr(direction, name) for direction in (connection.a_to_b, connection.b_to_a) for name in DIRECTION_FACTS]
        for connection in analysis.connections
    ]


def _report(ladder: Ladder, rows: list[dict[str, Any]], problems: list[tuple[int, str]]) -> str:
    """Return the ladder as written, with the measured values next to each failing step."""
    at_line: dict[int, list[str]] = {}
    for at, problem in problems:
        at_line.setdefault(at, []).append(problem)
    by_line = {step.line: frame for frame, step in enumerate(ladder.steps, 1)}
    by_frame = {row["frame"]: row for row in rows}
    out = [f"{ladder.name}: {len(problems)} differences"] + [f">>  {problem}" for problem in at_line.pop(0, [])]
    for number, line in enumerate(ladder.lines, 1):
        if number not in by_line and number not in at_line:
            continue
        out.append(f"{'>>' if number in at_line else '  '}{number:4} {line}")
        out += [f">>       {problem}" for problem in at_line.get(number, [])]
        if number in at_line and (row := by_frame.get(by_line.get(number, 0))):
            shown = ("bytes_in_flight", "pipe", "window", "shift", "events")
            out.append(f">>       row {row['frame']}: " + " ".join(f"{key}={row[key]}" for key in shown))
    return "\n".join(out)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    parse(source.read_text(encoding="utf8"), source.stem).write_pcap(Path(sys.argv[2]))
