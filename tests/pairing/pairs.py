"""Paired captures and their truth: packets that left one end of a lab run but did not reach the other.

The truth is tests/lab/both_ends, which pairs the unmodified captures independently and agrees with tc's counters.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lab.both_ends import ack_way, data_way
from lab.runs import Run
from pairing.packets import Packet, read, write
from reference import LAB_RUNS

import tcpwin
from tcpwin.pairing import PairedDirection, Pairing

Bend = Callable[[list[Packet]], list[Packet]]


def run_of(scenario: str) -> Run:
    """Return a lab run, seen from its data sender."""
    folder = LAB_RUNS / scenario
    return Run(scenario, "snd", folder, folder / "snd.pcap.gz")


def captures(scenario: str) -> tuple[Path, Path]:
    """Return the captures of the data sender and of the receiver."""
    return LAB_RUNS / scenario / "snd.pcap.gz", LAB_RUNS / scenario / "rcv.pcap.gz"


def bent(scenario: str, folder: Path, *, a: Bend | None = None, b: Bend | None = None) -> Pairing:
    """Pair a run's captures after modifying either."""
    paths = []
    for name, capture, bend in zip("ab", captures(scenario), (a, b), strict=True):
        packets = read(capture)
        paths.append(write(folder / f"{name}.pcap", packets if bend is None else bend(packets)))
    return tcpwin.pair(*paths)


def lost_frames(scenario: str) -> dict[str, set[int]]:
    """Return the frames that left but did not arrive: data in the sender's capture, ACKs in the receiver's."""
    run = run_of(scenario)
    return {
        "data": {each.left.frame for each in data_way(run).lost},
        "acks": {each.left.frame for each in ack_way(run).lost},
    }


def data_direction(pairing: Pairing) -> PairedDirection:
    """Return the direction that carries most payload."""
    return max((each for one in pairing.connections for each in one.directions), key=lambda each: each.bytes)


def ack_direction(pairing: Pairing) -> PairedDirection:
    """Return the other direction of that connection."""
    data = data_direction(pairing)
    return pairing.connections[data.connection].directions[1 - data.index]


def frames_by_fate(pairing: Pairing, direction: PairedDirection) -> dict[str, set[int]]:
    """Return the frames of a direction's packets in the capture at its sender, by fate."""
    found: dict[str, set[int]] = {}
    table = pairing.packets()
    column = "frame_a" if direction.leaves_at == "a" else "frame_b"
    mine = (table["connection"] == direction.connection) & (table["direction"] == direction.index)
    for fate, frame in zip(table["fate"][mine].tolist(), table[column][mine].tolist(), strict=True):
        if frame:
            found.setdefault(fate, set()).add(frame)
    return found
