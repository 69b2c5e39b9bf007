"""A capture in which one packet's meaning depends on many earlier ones, including other connections."""

import random
import struct
from functools import cache

from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw, raw


def block(kind: int, body: bytes) -> bytes:
    """Return a pcapng block (draft-ietf-opsawg-pcapng §3.1)."""
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def enhanced(interface: int, time_ns: int, packet: bytes) -> bytes:
    head = struct.pack("<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(packet), len(packet))
    return block(6, head + packet + bytes(-len(packet) % 4))


@cache
def odd_capture(seed: int) -> bytes:
    """Return interleaved conversations on few ports: reused, duplicated by the capture, fragmented, lost, and late.

    In between are datagrams, packets of an undescribed interface, a second interface described later, and times that
    step back.
    """
    generator = random.Random(seed)
    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    interface = block(1, struct.pack("<HHI", 1, 0, 0) + bytes.fromhex("0900010009000000") + bytes(4))
    out.append(interface)
    seqs: dict[tuple[int, str], int] = {}
    recent: list[bytes] = []
    now_ns, fragments = 1_700_000_000 * 10**9, []
    for number in range(3000):
        now_ns += generator.choice((1_000, 5_000, 20_000, 100_000, 900_000, -60_000))
        if generator.random() < 0.0005:
            now_ns += 3_600 * 10**9
        kind = generator.random()
        if kind < 0.03:
            out.append(enhanced(9, now_ns, bytes(60)))
            continue
        if kind < 0.06:
            packet = raw(Ether() / IP(src="10.0.0.9", dst="10.0.0.8", id=number) / UDP(sport=5, dport=6) / bytes(40))
        elif kind < 0.12 and recent:
            packet = generator.choice(recent[-6:])
        elif fragments and kind < 0.5:
            packet = fragments.pop(generator.randrange(len(fragments)))
            if generator.random() < 0.05:
                continue
        else:
            port, side = generator.randrange(12), generator.choice("ab")
            syn = generator.random() < 0.04
            key, other = (port, side), (port, "ba"["ab".index(side)])
            if syn or key not in seqs:
                seqs[key] = generator.randrange(1 << 32)
            length = 0 if syn else generator.choice((0, 0, 500, 1400, 2500))
            ends = {"src": f"10.0.0.{1 + (side == 'b')}", "dst": f"10.0.0.{1 + (side == 'a')}"}
            ports = {"sport": 1000 + port, "dport": 80} if side == "a" else {"sport": 80, "dport": 1000 + port}
            flags = (
                ("S" if side == "a" else "SA") if syn else generator.choice(("A", "A", "A", "A", "A", "PA", "FA", "R"))
            )
            options = [("WScale", 7), ("MSS", 1460)] if syn else []
            tcp = TCP(
                **ports, flags=flags, seq=seqs[key], ack=seqs.get(other, 0), window=generator.choice((0, 500, 900))
            )
            tcp.options = options
            whole = IP(**ends, id=number & 0xFFFF) / tcp / Raw(bytes(length))
            seqs[key] = (seqs[key] + length + ("S" in flags) + ("F" in flags)) % (1 << 32)
            if length == 2500:
                pieces = [raw(Ether() / piece) for piece in fragment(whole, fragsize=1000)]
                fragments += pieces[1:]
                packet = pieces[0]
            else:
                packet = raw(Ether() / whole)
                recent.append(packet)
        if number == 1500:
            out.append(interface)
        out.append(enhanced(int(number > 1500 and generator.random() < 0.5), now_ns, packet))
    return b"".join(out)
