"""ECN: what the SYNs negotiate, marks, echoes, reductions. RFC 3168 §6.1, RFC 9768 §3.1."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import tcpwin

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 80)
ECT_0, CE = 2, 3


def segment(source: tuple[str, int], flags: str, seq: int, ack: int, *, mark: int = 0, size: int = 0) -> Packet:
    """One segment; `mark` is the ECN field of its IP header."""
    other = SERVER if source == CLIENT else CLIENT
    ip = IP(src=source[0], dst=other[0], tos=mark)
    tcp = TCP(sport=source[1], dport=other[1], flags=flags, seq=seq, ack=ack, window=60000)
    return Ether() / ip / tcp / Raw(b"x" * size)


def transfer(asked: str, answered: str, *, echo: str = "", reduce: str = "", mark: int = CE) -> list[Packet]:
    """The server sends five segments, two of them marked; three ACKs echo, and one segment reports a reduction."""
    packets = [
        segment(CLIENT, f"S{asked}", 100, 0),
        segment(SERVER, f"SA{answered}", 500, 101),
        segment(CLIENT, "A", 101, 501),
    ]
    for number in range(5):
        seq = 501 + 1000 * number
        flags = "A" + (reduce if number == 3 else "")
        packets.append(segment(SERVER, flags, seq, 101, mark=mark if number in (1, 2) else ECT_0, size=1000))
        packets.append(segment(CLIENT, "A" + (echo if number in (1, 2, 3) else ""), 101, seq + 1000))
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number * 0.01
    return packets


def analyze(packets: list[Packet], folder: Path) -> tcpwin.Connection:
    path = folder / "ecn.pcap"
    wrpcap(str(path), packets)
    (connection,) = tcpwin.analyze(path).connections
    return connection


@pytest.mark.parametrize(
    ("asked", "answered", "agreed"),
    [("", "", "off"), ("EC", "", "refused"), ("EC", "E", "ecn"), ("EC", "EC", "refused"), ("NEC", "E", "ecn")]
    + [("NEC", answered, "accecn") for answered in ("C", "EC", "N", "NC")],
)
def test_what_both_syns_agree_on(asked: str, answered: str, agreed: str, tmp_path: Path) -> None:
    assert analyze(transfer(asked, answered), tmp_path).ecn == agreed


def test_marks_echoes_and_reductions_are_counted_and_reported(tmp_path: Path) -> None:
    connection = analyze(transfer("EC", "E", echo="E", reduce="C"), tmp_path)
    data, back = connection.b_to_a, connection.a_to_b
    assert (data.ce_segments, data.ece_acks, data.cwr_segments) == (2, 3, 1)
    assert (back.ce_segments, back.ece_acks, back.cwr_segments) == (0, 0, 0)
    told = {event.frame: set(event.names) for event in connection.events}
    names = {
        frame: found & {"congestion_experienced", "congestion_echo", "window_reduced"} for frame, found in told.items()
    }
    assert {frame: found for frame, found in names.items() if found} == {
        6: {"congestion_experienced"},
        7: {"congestion_echo"},
        8: {"congestion_experienced"},
        9: {"congestion_echo"},
        10: {"window_reduced"},
        11: {"congestion_echo"},
    }


def test_the_flags_of_an_accurate_counter_are_not_an_echo(tmp_path: Path) -> None:
    """RFC 9768 §3.2: AE, CWR and ECE count marks, and change with each of them."""
    data = analyze(transfer("NEC", "C", echo="E", reduce="C"), tmp_path).b_to_a
    assert (data.ce_segments, data.ece_acks, data.cwr_segments) == (2, 0, 0)


def test_flags_of_hosts_that_did_not_agree_mean_nothing(tmp_path: Path) -> None:
    data = analyze(transfer("", "", echo="E", reduce="C"), tmp_path).b_to_a
    assert (data.ece_acks, data.cwr_segments) == (0, 0)


def test_without_the_syns_the_flags_are_taken_as_they_mostly_are(tmp_path: Path) -> None:
    connection = analyze(transfer("EC", "E", echo="E", reduce="C")[3:], tmp_path)
    data = connection.b_to_a if connection.b_to_a.data_segments else connection.a_to_b
    assert connection.ecn is None
    assert (data.ce_segments, data.ece_acks, data.cwr_segments) == (2, 3, 1)


def test_a_mark_is_neither_retransmission_nor_loss(tmp_path: Path) -> None:
    """The numbers are the same with and without marks, except those of the marks."""
    marked = analyze(transfer("EC", "E", echo="E", reduce="C"), tmp_path).b_to_a
    plain = analyze(transfer("EC", "E", mark=ECT_0), tmp_path).b_to_a
    own = ("ce_segments", "ece_acks", "cwr_segments")
    names = [name for name in dir(plain) if name.endswith(("_bytes", "_segments", "retransmissions", "_acks"))]
    differ = {name for name in names if getattr(marked, name) != getattr(plain, name)}
    assert differ == set(own)


def counted(
    values: list[int], *, first: int = 0b010, request: int = 5, acks: list[int] | None = None
) -> tuple[int | None, int | None]:
    """Marks counted by the client on the server's data, and by the server on the client's, with AccECN negotiated.

    Args:
        values: of the client's three flags, in one ACK each.
        first: of its first ACK, which reports how the SYN/ACK arrived.
        request: of its only segment with data.
        acks: how many segments each ACK covers in total; one more each if None.
    """

    def flags(value: int) -> str:
        return "A" + "".join(letter for bit, letter in ((4, "N"), (2, "C"), (1, "E")) if value & bit)

    packets = [
        segment(CLIENT, "SNEC", 100, 0),
        segment(SERVER, "SAC", 500, 101),
        segment(CLIENT, flags(first), 101, 501),
        segment(CLIENT, flags(request), 101, 501, size=100),
    ]
    packets += [segment(SERVER, flags(5), 501 + 1000 * number, 201, size=1000) for number in range(len(values))]
    covered = acks or list(range(1, len(values) + 1))
    packets += [
        segment(CLIENT, flags(value), 201, 501 + 1000 * upto) for value, upto in zip(values, covered, strict=True)
    ]
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number * 0.001
    with tempfile.TemporaryDirectory() as folder:
        connection = analyze(packets, Path(folder))
    assert connection.ecn == "accecn"
    return connection.b_to_a.ace_marks, connection.a_to_b.ace_marks


def test_a_receivers_counter_of_marks_is_decoded() -> None:
    """RFC 9768 §3.2.2: three bits that start at five and wrap; zero has no flag set."""
    assert counted([5, 5, 5]) == (0, 0)
    assert counted([6, 6, 0, 1]) == (4, 0)
    # It ends at zero: an ordinary segment by its flags.
    assert counted([6, 7, 0]) == (3, 0)
    assert counted([6, 6], first=0b110) == (1, 0)
    # The third one is older than the second, and arrived late.
    assert counted([5, 7, 6, 7], acks=[1, 3, 2, 4]) == (2, 0)


def test_a_counter_cleared_on_the_path_is_ignored() -> None:
    """A middlebox that clears the flags leaves zeros, with which no counter begins."""
    assert counted([0, 0, 3], first=0, request=0) == (None, 0)
