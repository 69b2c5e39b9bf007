"""The result of reading two captures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import Capture, Endpoint
from tcpwin.pairing.clock import Clock, ClockPiece
from tcpwin.pairing.connection import Change, Delay, PairedConnection, PairedDirection, Resent
from tcpwin.pairing.judging import JudgedConnection, Judging
from tcpwin.pairing.packets import NO_NUMBER, PacketTable
from tcpwin.pairing.unpaired import Proxy, UnpairedConnection, find_proxies

if TYPE_CHECKING:
    from typing import IO

    from numpy.typing import NDArray

    from tcpwin.limits import Analysis

    _Measure = Callable[[str], Analysis]
    _Read = Callable[[Callable[[dict[str, NDArray[Any]]], object]], object]


class Pairing:
    """Two captures of the same traffic, read in step: their connections, and each packet's fate.

    >>> pairing = tcpwin.pair("client.pcap", "server.pcap")
    >>> pairing.connections[0].directions[0].lost
    3

    Attributes:
        name_a, name_b: names of the captures.
        segments: TCP segments in each.
        missed: packets proved to have passed each point that are missing from its capture.
    """

    def __init__(self, names: tuple[str, str], found: Mapping[str, Any], read: _Read, measure: _Measure) -> None:
        self.name_a, self.name_b = names
        self.segments: tuple[int, int] = tuple(found["segments"])
        self.missed: tuple[int, int] = tuple(found["missed"])
        self._found = found
        self._read = read
        self._measure = measure

    def __repr__(self) -> str:
        return f"Pairing({self.name_a!r}, {self.name_b!r}: {len(self)} connections)"

    def __len__(self) -> int:
        return len(self._found["pairs"]["first_frame_a"])

    @cached_property
    def clock(self) -> Clock | None:
        """Return b's clock relative to a's, or None without a common packet."""
        pieces = tuple(ClockPiece(**piece) for piece in self._found["clock"])
        return Clock(pieces) if pieces else None

    @cached_property
    def connections(self) -> Sequence[PairedConnection]:
        """Return the connections in both captures."""
        changes: dict[tuple[int, int], list[Change]] = {}
        for number, direction, *change in self._found["changes"]:
            changes.setdefault((number, direction), []).append(Change(*change))
        return tuple(self._connection(number, changes) for number in range(len(self)))

    @cached_property
    def unpaired(self) -> Sequence[UnpairedConnection]:
        """Return the connections in only one capture."""
        alone = {name: _plain(values) for name, values in self._found["alone"].items()}
        both = [
            [Endpoint(*each) for each in zip(alone[f"{end}_address"], alone[f"{end}_port"], strict=True)]
            for end in ("first", "second")
        ]
        return tuple(
            UnpairedConnection(
                capture="b" if in_b else "a",
                source=both[0][index],
                target=both[1][index],
                packets=(alone["first_packets"][index], alone["second_packets"][index]),
                bytes=(alone["first_bytes"][index], alone["second_bytes"][index]),
                first_ns=alone["first_ns"][index],
                last_ns=alone["last_ns"][index],
                first_frame=alone["first_frame"][index],
                has_syns=(alone["first_syn"][index], alone["second_syn"][index]),
            )
            for index, in_b in enumerate(alone["in_b"])
        )

    @cached_property
    def proxies(self) -> tuple[Proxy, ...]:
        """Return connections that seem to be two halves joined by a TCP-terminating proxy between the points."""
        return find_proxies(self.unpaired, self.clock.offset_ns if self.clock else None)

    @cached_property
    def analyses(self) -> Mapping[str, Analysis]:
        """Return the analyses of both captures by letter, with host data from their bundles."""
        return {letter: self._measure(letter) for letter in "ab"}

    def judge(self, number: int) -> JudgedConnection | None:
        """Judge a paired connection from both captures; None if either analysis lacks it.

        Raises:
            IndexError: unknown connection.
        """
        return self._judging.judge(self.connections[number])

    @cached_property
    def _judging(self) -> Judging:
        return Judging(self.analyses)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about damage, and about captures that cannot come from two points of one path."""
        a, b = self._found["facts"]
        odd = []
        if not len(self) and all(self.segments) and not self.proxies:
            odd.append("no connection is in both captures: they may be of different traffic or times")
        elif self._is_one_capture:
            odd.append("every packet has the same time in both captures: they seem to be copies of one capture")
        return (*map(str, (*Capture.warnings_of(a), *Capture.warnings_of(b))), *odd)

    @property
    def spans_ns(self) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """Return each capture's first and last packet time by its clock; None if empty."""
        a, b = (_span_of(facts) for facts in self._found["facts"])
        return a, b

    @property
    def _is_one_capture(self) -> bool:
        delays = [each.delay for connection in self.connections for each in connection.directions if each.delay]
        is_at_once = all(delay.least_ns == delay.most_ns == 0 for delay in delays)
        return bool(delays) and is_at_once and self.clock is not None and self.clock.offset_ns == 0

    def packets(self) -> dict[str, NDArray[Any]]:
        """Return one row per packet, as columns in frame order; reads both captures a second time.

        ``connection``, ``direction``, ``fate`` (delivered, late, duplicated, lost, unknown, captured_twice, injected),
        ``frame_a`` and ``frame_b`` (0 if missing from that capture), ``time_a_ns``, ``time_b_ns`` and ``delay_ns`` by
        one clock (the smallest integer if unknown), ``seq``, ``ack``, ``length``, ``flags``, ``is_resend``; ``cause``:
        why the packet was retransmitted (lost, ack_lost, needless, refused, unknown; None if it was not), and
        ``lost_frame``: the previous copy if that was lost, in the capture where it left (else 0).
        """
        return self._table.all()

    def read_packets(self, take: Callable[[dict[str, NDArray[Any]]], object]) -> None:
        """Pass the rows to `take` in batches, in the order in which their fates became known.

        Args:
            take: called with the columns of at most 131,072 packets; an exception stops the reading.
        """
        self._table.read(take)

    def write_packets(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the packet table as Parquet, in the order in which fates became known.

        Raises:
            ImportError: polars is not installed (the extra ``tables``).
        """
        self._table.write_parquet(Path(path) if isinstance(path, str | os.PathLike) else path)

    @cached_property
    def _table(self) -> PacketTable:
        return PacketTable(self._found["lanes"], self.clock, self._read)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``tcpwin pair --json`` writes."""
        from tcpwin.pairing.document import describe

        return describe(self)

    def _connection(self, number: int, changes: Mapping[tuple[int, int], list[Change]]) -> PairedConnection:
        pairs = self._found["pairs"]
        ends = [
            Endpoint(pairs[f"{end}_address_{side}"][number], int(pairs[f"{end}_port_{side}"][number]))
            for side in "ab"
            for end in ("first", "second")
        ]
        directions = [
            self._direction(number, index, ends if index == 0 else [*ends[1::-1], *ends[:1:-1]], changes)
            for index in range(2)
        ]
        first_frames = (int(pairs["first_frame_a"][number]), int(pairs["first_frame_b"][number]))
        return PairedConnection(number, *first_frames, (directions[0], directions[1]))

    def _possible_ns(self, delay_ns: int) -> int:
        """Return the delay, or 0 if it is negative within the clocks' uncertainty."""
        pieces = self.clock.pieces if self.clock else ()
        uncertain_ns = max((piece.uncertainty_ns or 0 for piece in pieces), default=0)
        return 0 if -uncertain_ns <= delay_ns < 0 else delay_ns

    def _direction(
        self, number: int, index: int, ends: list[Endpoint], changes: Mapping[tuple[int, int], list[Change]]
    ) -> PairedDirection:
        lane = {name: int(values[2 * number + index]) for name, values in self._found["lanes"].items()}
        back_shift = int(self._found["lanes"]["sequence_shift"][2 * number + 1 - index])
        shifts = (("sequence", lane["sequence_shift"]), ("acknowledgment", back_shift))
        sign = -1 if lane["leaves_at_b"] else 1
        first = (lane["first_frame_a"], lane["first_frame_b"])
        rewritten = [Change(name, None, *first, 0, (sign * shift) % (1 << 32)) for name, shift in shifts if shift]
        before, after = (ends[2:], ends[:2]) if lane["leaves_at_b"] else (ends[:2], ends[2:])
        translated = [
            Change(name, None, *first, str(left), str(came))
            for name, left, came in zip(("source", "destination"), before, after, strict=True)
            if left != came
        ]
        least_ns, mean_ns, most_ns = (self._possible_ns(lane[f"{name}_delay_ns"]) for name in ("least", "mean", "most"))
        before_ns = self._possible_ns(lane["delay_before_loss_ns"])
        hops = (lane["least_hops"], lane["most_hops"])
        acked_is_proof = not (lane["near_has_gaps"] and lane["far_has_gaps"])
        far_missed = lane["fate_far_missed"]
        return PairedDirection(
            connection=number,
            index=index,
            source=ends[0],
            target=ends[1],
            source_in_b=ends[2],
            target_in_b=ends[3],
            leaves_at="b" if lane["leaves_at_b"] else "a",
            unit="segment" if lane["is_resegmented"] else "frame",
            **{name: lane[name] for name in ("sent", "delivered", "lost", "late", "duplicated", "unknown")},
            outside=lane["fate_outside"],
            unseen=lane["doubtful"] + (0 if acked_is_proof else far_missed),
            in_neither=lane["in_neither"],
            missed_at_source=lane["fate_near_missed"],
            missed_at_target=far_missed if acked_is_proof else 0,
            captured_twice=lane["fate_captured_twice"],
            injected=lane["fate_injected"],
            retransmissions=lane["resent"],
            resent=Resent(*(lane[f"resent_{name}"] for name in ("lost", "ack_lost", "needless", "refused", "unknown"))),
            altered=lane["altered"],
            bytes=lane["bytes"],
            hops=None if hops[0] == NO_NUMBER else hops,
            delay=None
            if least_ns == NO_NUMBER
            else Delay(least_ns, mean_ns, most_ns, None if before_ns == NO_NUMBER else before_ns),
            changes=(*translated, *rewritten, *changes.get((number, index), ())),
            lost_frames=tuple(self._found["lost_frames"][2 * number + index]),
        )


def _span_of(facts: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    firsts = [each["first_time_ns"] for each in facts if each["first_time_ns"] is not None]
    lasts = [each["last_time_ns"] for each in facts if each["last_time_ns"] is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def _plain(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list) else list(values.tolist())
