"""Frames in which tshark's label is no measure, judged by hand from the packets.

``judged.csv`` has the format of the public captures' debatable.csv, with the category ``judged FIELD``: tcpwin says the
opposite of tshark there, and the last column says why. Almost everywhere the packets are with tcpwin. Where a label
rests on a damaged number, it tells of neither tool, and the reason begins with that. Numbers count from the
connection's ISN, as Wireshark shows them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("judged.csv")
_CATEGORY = "judged "


@dataclass(frozen=True, slots=True)
class Judged:
    """One field of one frame in which tcpwin says the opposite of tshark."""

    field: str
    name: str
    frame: int
    why: str


def read_judged() -> list[Judged]:
    """The rows of the file."""
    with FILE.open(newline="", encoding="utf8") as lines:
        return [
            Judged(row["category"].removeprefix(_CATEGORY), row["file"], int(row["frame"]), row["why"])
            for row in csv.DictReader(lines)
        ]
