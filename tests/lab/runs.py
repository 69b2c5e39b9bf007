"""One capture of a lab run, and the kernels' and programs' reports on the same connection.

Reads a folder with meta.json, ss_*.txt and nstat_*.csv, and a capture. Gives the values of these texts, tcpwin's
analysis, and the state of the connection after every row of tcpwin's per-segment table.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from lab import ss_text
from lab.selection import IPERF3, LATE
from numpy.typing import NDArray
from reference import LAB_RUNS

import tcpwin

HERE = Path(__file__).parent
COPIED_CAPTURES = HERE.parents[1] / "captures" / "lab"
LAB_PORT = 5201
SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000
FIN = 0x01
SYN = 0x02
RST = 0x04
ACK = 0x10

Column = NDArray[np.int64]


@dataclass(frozen=True)
class Track:
    """The state of the data's sender and its window after each row.

    A RST ends the connection before its ACK and window are processed (tcp_validate_incoming, net/ipv4/tcp_input.c).

    Attributes:
        time_ns: of the row.
        una: payload acknowledged so far; without a SYN, since the first ACK.
        flight: bytes in flight: of the data sender's last row, minus data acknowledged since.
        window: window of the receiver's last row with an ACK, as scaled by tcpwin; -1 if unscaled.
        window_raw: the field of that row.
    """

    time_ns: Column
    una: Column
    flight: Column
    window: Column
    window_raw: Column

    def at(self, time_ns: int) -> int:
        """Return the last row at or before a time, -1 if there is none."""
        return int(np.searchsorted(self.time_ns, time_ns, side="right")) - 1

    def between(self, first_ns: int, last_ns: int) -> range:
        """Return the rows whose state was current at some moment between two times."""
        return range(max(0, int(np.searchsorted(self.time_ns, first_ns)) - 1), self.at(last_ns) + 1)


@dataclass(frozen=True)
class Run:
    """A lab run seen from one end, `snd` (the data's source) or `rcv`."""

    scenario: str
    end: str
    truth: Path
    capture: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = json.loads((self.truth / "meta.json").read_text(encoding="utf8"))
        return meta

    @cached_property
    def analysis(self) -> tcpwin.Analysis:
        return tcpwin.analyze(self.capture)

    @property
    def reader(self) -> dict[str, Any]:
        """Return the reading program's measurements; iperf3's client reports them for both."""
        reader: dict[str, Any] = self.meta["ground_truth"]["reader"]
        return reader

    @property
    def is_iperf3(self) -> bool:
        return self.scenario in IPERF3

    @property
    def is_late(self) -> bool:
        """Return whether the capture began after the connection."""
        return self.scenario in LATE

    @property
    def read_bytes(self) -> int:
        """Return the bytes read by the reading program."""
        return int(self.reader["end"]["sum_received"]["bytes"] if self.is_iperf3 else self.reader["bytes"])

    @property
    def read_seconds(self) -> float:
        """Return the time from the reader's connect to its close."""
        return float(self.reader["end"]["sum_received"]["seconds"] if self.is_iperf3 else self.reader["seconds"])

    @property
    def rtt_ns(self) -> int:
        """Return the round trip without queues, half of which netem adds in each direction."""
        return int(self.meta["scenario"]["rtt_ms"] * MILLISECOND_NS)

    @property
    def jitter_ns(self) -> int:
        """Return the variation that netem adds to the delay of the data's path."""
        match = re.match(r"(\d+)ms", self.meta["scenario"].get("netem_fwd", ""))
        return int(match[1]) * MILLISECOND_NS if match else 0

    def counter(self, end: str, name: str) -> int:
        """Return the increase of a kernel counter in the run, such as `TcpExt.TCPWinProbe`."""
        return int(self.meta["nstat_delta"][end].get(name, 0))

    def counters(self, end: str, name: str) -> list[tuple[int, int]]:
        """Return a counter's increase since the start of the run at each sample."""
        with (self.truth / f"nstat_{end}.csv").open(newline="", encoding="ascii") as file:
            rows = [(int(row["t"].replace(".", "")) * 1000, int(row[name])) for row in csv.DictReader(file)]
        return [(time_ns, value - rows[0][1]) for time_ns, value in rows]

    def samples(self, end: str) -> list[ss_text.Sample]:
        """Return ss's samples of the data connection's socket at one end, once it is established."""
        ports = self.sender_port, self.receiver_port
        if end == "rcv":
            ports = ports[::-1]
        samples = ss_text.read_samples((self.truth / f"ss_{end}.txt").read_text(encoding="ascii"))
        mine = [sample for sample in samples if (sample.local_port, sample.peer_port) == ports]
        return [sample for sample in mine if sample.state != "SYN-SENT"]

    @cached_property
    def sender_port(self) -> int:
        return int(self.reader["start"]["connected"][0]["local_port"]) if self.is_iperf3 else LAB_PORT

    @cached_property
    def receiver_port(self) -> int:
        if self.is_iperf3:
            return LAB_PORT
        [port] = {sample.local_port for sample in ss_text.read_samples((self.truth / "ss_rcv.txt").read_text())}
        return port

    def acked_bytes(self, sample: ss_text.Sample) -> int:
        """Return the payload acknowledged according to a sender's sample: bytes_acked without SYN and FIN.

        tcp_snd_una_update counts sequence numbers: the SYN too if the sender connected, and an acknowledged FIN.
        """
        return sample.number("bytes_acked") - self.is_iperf3 - (sample.state == "FIN-WAIT-2")

    def outstanding_bytes(self, sample: ss_text.Sample) -> int:
        """Return SND.NXT minus SND.UNA of a sender's sample, without SYN and FIN."""
        return sample.number("bytes_sent") - sample.number("bytes_retrans") - self.acked_bytes(sample)

    @cached_property
    def connection(self) -> tcpwin.Connection:
        ports = {self.sender_port, self.receiver_port}
        [connection] = [each for each in self.analysis.connections if {each.a.port, each.b.port} == ports]
        return connection

    @property
    def sender(self) -> str:
        """Return the side that sends the data."""
        return "a" if self.connection.a.port == self.sender_port else "b"

    @property
    def way(self) -> str:
        """Return the data's direction by the name used for series."""
        return "a_to_b" if self.sender == "a" else "b_to_a"

    @property
    def data(self) -> tcpwin.Direction:
        return self.connection.a_to_b if self.sender == "a" else self.connection.b_to_a

    @property
    def back(self) -> tcpwin.Direction:
        return self.connection.b_to_a if self.sender == "a" else self.connection.a_to_b

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the per-segment table, with -1 for missing numbers."""
        columns = {}
        for name, column in self.connection.segments().items():
            number = column.dtype != object
            columns[name] = np.ma.filled(column.astype(np.int64), -1) if number else column
        return columns

    @cached_property
    def from_sender(self) -> NDArray[np.bool_]:
        """Return which rows the data sender sent."""
        return np.asarray(self.columns["direction"] == self.sender)

    @cached_property
    def track(self) -> Track:
        columns = self.columns
        ours = self.from_sender
        acks = ~ours & (columns["flags"] & (ACK | RST) == ACK)
        base = int(columns["ack"][acks][0])
        ends = modulo_difference(columns["seq"] + columns["length"], base)[ours & (columns["length"] > 0)]
        una = np.maximum.accumulate(np.where(acks, modulo_difference(columns["ack"], base), 0))
        una = np.minimum(una, ends.max())  # An ACK of the FIN is one above the payload.
        last_sent = last_true(ours & (columns["bytes_in_flight"] >= 0))
        flight = columns["bytes_in_flight"][last_sent] - (una - una[last_sent])
        last_ack = last_true(acks)
        syns = ours & (columns["flags"] & SYN > 0)
        start = modulo_difference(columns["seq"][syns][:1] + 1, base)
        return Track(
            time_ns=columns["time_ns"],
            una=una - (int(start[0]) if len(start) else 0),
            flight=np.where(last_sent >= 0, flight, 0),
            window=np.where(last_ack >= 0, columns["window"][last_ack], -1),
            window_raw=np.where(last_ack >= 0, columns["window_raw"][last_ack], -1),
        )


def modulo_difference(numbers: Column, base: int) -> Column:
    """Return sequence numbers minus a base, as signed numbers."""
    difference: Column = (numbers - base + (1 << 31)) % (1 << 32) - (1 << 31)
    return difference


def last_true(mask: NDArray[np.bool_]) -> Column:
    """Return for each position the last true one at or before it, -1 if there is none."""
    positions: Column = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))
    return positions


@cache
def read_run(scenario: str, end: str, copy: str) -> Run:
    """Return a run's capture, or the bundled copy of it, cached for all tests."""
    if copy:
        return Run(scenario, end, HERE / "truth" / scenario, COPIED_CAPTURES / f"{copy}.pcap.gz")
    folder = LAB_RUNS / scenario
    return Run(scenario, end, folder, folder / f"{end}.pcap.gz")
