"""Frames in which tshark's label is wrong or meaningless, judged by hand from the packets.

``judged.csv`` has the format of the public captures' debatable.csv, with the category ``judged FIELD``: tcpwin's label
is the opposite of tshark's, and the last column says why. Almost everywhere the packets support tcpwin. A label based
on a damaged number says nothing about either tool, and its reason begins with that. Numbers count from the connection's
ISN, as in Wireshark.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("judged.csv")
_CATEGORY = "judged "


@dataclass(frozen=True, slots=True)
class Judged:
    """One field of one frame in which tcpwin is the opposite of tshark."""

    field: str
    name: str
    frame: int
    why: str


def read_judged() -> list[Judged]:
    """Return the rows of the file."""
    with FILE.open(newline="", encoding="utf8") as lines:
        return [
            Judged(row["category"].removeprefix(_CATEGORY), row["file"], int(row["frame"]), row["why"])
            for row in csv.DictReader(lines)
        ]
