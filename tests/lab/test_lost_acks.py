"""Lost ACKs, found by the IP identification of those that arrived.

No lab run lost an ACK, so some are removed from a capture here, as if a link before the capture point had lost them.
Linux numbers a connection's packets consecutively, so each is identified.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from cases import all_cases
from lab.runs import Run
from lab.selection import on

import tcpwin

BUNDLED = Path(__file__).parents[2] / "captures" / "lab"
RECEIVER_PORT_FROM = 32_768
FILE_HEADER = struct.Struct("<IHHiIII")
RECORD_HEADER = struct.Struct("<IIII")
# Before several segments are in flight, and at the very end, there is nothing to compare with.
EDGE = 60


@on()
def test_no_ack_is_missing_where_none_was_lost(run: Run) -> None:
    """test_network_loss shows by both captures and by tc that none was lost."""
    assert (run.data.acks_missing, run.data.stretch_acks_after_loss) == (0, 0)


def thinned(name: str, share: float, seed: int) -> tuple[bytes, int, int]:
    """Return a bundled capture without some of the receiver's bare ACKs, their number, and the number of gaps."""
    chance = random.Random(seed)
    content = gzip.decompress((BUNDLED / name).read_bytes())
    records = []
    offset = FILE_HEADER.size
    while offset < len(content):
        end = offset + RECORD_HEADER.size + RECORD_HEADER.unpack_from(content, offset)[2]
        records.append(content[offset:end])
        offset = end
    bare = [number for number, record in enumerate(records) if is_bare_ack(record[RECORD_HEADER.size :])]
    gone = {number for number in bare[EDGE:-EDGE] if chance.random() < share}
    left = [record for number, record in enumerate(records) if number not in gone]
    gaps = sum(1 for before, number in pairwise(bare) if number in gone and before not in gone)
    return content[: FILE_HEADER.size] + b"".join(left), len(gone), gaps


def is_bare_ack(packet: bytes) -> bool:
    ip = packet[14:]
    header_bytes, total_bytes = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
    tcp = ip[header_bytes:]
    from_receiver = int.from_bytes(tcp[:2], "big") >= RECEIVER_PORT_FROM
    return from_receiver and total_bytes - header_bytes == (tcp[12] >> 4) * 4 and tcp[13] == 0x10


@all_cases("seed", range(4))
@all_cases("name", ["receive-buffer-64k.pcap.gz", "loss-1-percent.pcap.gz", "mid-connection.pcap.gz"])
def test_each_ack_taken_out_is_missing(name: str, seed: int) -> None:
    packets, gone, _ = thinned(name, 0.05, seed)
    assert gone > 20
    connection = tcpwin.analyze(io.BytesIO(packets)).connections[0]
    data = max((connection.a_to_b, connection.b_to_a), key=lambda direction: direction.payload_bytes)
    assert data.acks_missing == gone


@pytest.mark.parametrize("seed", range(4))
def test_a_stretch_ack_behind_missing_ones_differs_from_one_the_receiver_made(seed: int) -> None:
    """Without loss no ACK of this run covers more than two segments: every stretch ACK of the copy is due to loss."""
    packets, _, gaps = thinned("mid-connection.pcap.gz", 0.05, seed)
    connection = tcpwin.analyze(io.BytesIO(packets)).connections[0]
    data = max((connection.a_to_b, connection.b_to_a), key=lambda direction: direction.payload_bytes)
    assert data.stretch_acks_after_loss == data.stretch_acks
    assert 0 < data.stretch_acks <= gaps
