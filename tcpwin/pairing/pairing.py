"""What one reading of two captures found, as types."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import Capture, Endpoint
from tcpwin.pairing.clock import Clock, ClockPiece
from tcpwin.pairing.connection import Change, Delay, PairedConnection, PairedDirection, Resent
from tcpwin.pairing.judging import JudgedConnection, Judging
from tcpwin.pairing.unpaired import Proxy, UnpairedConnection, find_proxies

if TYPE_CHECKING:
    from typing import IO

    from numpy.typing import NDArray

    from tcpwin.analysis import Analysis

    _Measure = Callable[[str], Analysis]
    _Read = Callable[[Callable[[dict[str, NDArray[Any]]], object]], object]

_NO_NUMBER = -(1 << 63)
_COLUMNS = (
    *("connection", "direction", "fate", "frame_a", "frame_b", "time_a_ns", "time_b_ns", "seq", "ack"),
    *("length", "flags", "is_resend", "cause", "lost_frame", "pairs_before"),
)


class Pairing:
    """Two captures of the same traffic, read in step: their connections, and what became of each packet.

    >>> pairing = tcpwin.pair("client.pcap", "server.pcap")
    >>> pairing.connections[0].directions[0].lost
    3

    Attributes:
        name_a, name_b: of the captures.
        segments: TCP segments of each.
        missed: packets that passed each point and are not in its capture, as far as that is proved.
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
        """The clock of b beside that of a; None where they have no packet in common."""
        pieces = tuple(ClockPiece(**piece) for piece in self._found["clock"])
        return Clock(pieces) if pieces else None

    @cached_property
    def connections(self) -> Sequence[PairedConnection]:
        """Connections that both captures have."""
        changes: dict[tuple[int, int], list[Change]] = {}
        for number, direction, *change in self._found["changes"]:
            changes.setdefault((number, direction), []).append(Change(*change))
        return tuple(self._connection(number, changes) for number in range(len(self)))

    @cached_property
    def unpaired(self) -> Sequence[UnpairedConnection]:
        """Connections that one capture has alone."""
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
        """Connections that seem to be two halves, joined by a proxy that ends TCP between the two points."""
        return find_proxies(self.unpaired, self.clock.offset_ns if self.clock else None)

    @cached_property
    def analyses(self) -> Mapping[str, Analysis]:
        """The analyses of both captures, by letter, with what their hosts said where they stand in bundles."""
        return {letter: self._measure(letter) for letter in "ab"}

    def judge(self, number: int) -> JudgedConnection | None:
        """What limited a paired connection, by both captures; None where the analysis of either does not have it.

        Raises:
            IndexError: there is no such connection.
        """
        return self._judging.judge(self.connections[number])

    @cached_property
    def _judging(self) -> Judging:
        return Judging(self.analyses)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Damage of either capture."""
        a, b = self._found["facts"]
        return tuple(map(str, (*Capture.warnings_of(a), *Capture.warnings_of(b))))

    def packets(self) -> dict[str, NDArray[Any]]:
        """One row for each packet, as columns: both captures are read once more.

        ``connection``, ``direction``, ``fate`` (delivered, late, duplicated, lost, unknown, captured_twice, injected),
        ``frame_a`` and ``frame_b`` (0 where the capture lacks it), ``time_a_ns`` and ``time_b_ns`` (the least number
        there), ``delay_ns`` by one clock (the same), ``seq``, ``ack``, ``length``, ``flags``, ``is_resend``;
        ``cause``: why it was sent again (lost, ack_lost, needless, refused, unknown; None of what was not), and
        ``lost_frame``: the copy before, where that was lost, in the capture where it left (0 without).
        """
        import numpy as np

        from tcpwin import _engine

        chunks: list[dict[str, NDArray[Any]]] = []
        self._read(chunks.append)
        none = [np.empty(0, np.int64)]
        columns = {name: np.concatenate([chunk[name] for chunk in chunks] or none) for name in _COLUMNS}
        columns["delay_ns"] = self._delays(columns)
        columns["fate"] = self._fates(columns)
        columns["cause"] = np.array([*_engine.PAIR_CAUSES, None], dtype=object)[
            np.minimum(columns["cause"], len(_engine.PAIR_CAUSES))
        ]
        del columns["pairs_before"]
        order = np.lexsort((columns["frame_b"], columns["frame_a"]))
        return {name: values[order] for name, values in columns.items()}

    def write_packets(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the table of packets as Parquet.

        Raises:
            ImportError: polars is not installed (the extra ``tables``).
        """
        import polars

        target = os.fspath(path) if isinstance(path, os.PathLike) else path
        texts = {"fate": polars.String, "cause": polars.String}
        packets = self.packets()
        columns = {name: values.tolist() if name in texts else values for name, values in packets.items()}
        polars.DataFrame(columns, schema_overrides=texts).write_parquet(target)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``tcpwin pair --json`` writes."""
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

    def _direction(
        self, number: int, index: int, ends: list[Endpoint], changes: Mapping[tuple[int, int], list[Change]]
    ) -> PairedDirection:
        lane = {name: int(values[2 * number + index]) for name, values in self._found["lanes"].items()}
        back_shift = int(self._found["lanes"]["sequence_shift"][2 * number + 1 - index])
        shifts = (("sequence", lane["sequence_shift"]), ("acknowledgment", back_shift))
        sign = -1 if lane["leaves_at_b"] else 1
        rewritten = [Change(name, None, 0, 0, 0, (sign * shift) % (1 << 32)) for name, shift in shifts if shift]
        least_ns, mean_ns, most_ns = (lane[f"{name}_delay_ns"] for name in ("least", "mean", "most"))
        before_ns = lane["delay_before_loss_ns"]
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
            hops=None if hops[0] == _NO_NUMBER else hops,
            delay=None
            if least_ns == _NO_NUMBER
            else Delay(least_ns, mean_ns, most_ns, None if before_ns == _NO_NUMBER else before_ns),
            changes=(*rewritten, *changes.get((number, index), ())),
        )

    def _delays(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Far less near time of each packet that both captures have, by one clock."""
        import numpy as np

        delay_ns = np.full(len(columns["frame_a"]), _NO_NUMBER, np.int64)
        both = (columns["frame_a"] > 0) & (columns["frame_b"] > 0)
        if self.clock is None or not both.any():
            return delay_ns
        pieces = self.clock.pieces
        time_ns = columns["time_a_ns"][both]
        apart_ns = columns["time_b_ns"][both] - time_ns
        before = columns["pairs_before"][both].astype(np.int64)
        index = np.searchsorted([piece.pairs_before for piece in pieces], before, side="right") - 1
        least: NDArray[np.int64] | None = None
        # Near the moment at which a clock was set, the piece by which a packet took less time is its own.
        for nearby in (-1, 0, 1) if len(pieces) > 1 else (0,):
            chosen = np.clip(index + nearby, 0, len(pieces) - 1)
            from_ns, offset_ns, drift = (
                np.array([getattr(piece, name) for piece in pieces])[chosen]
                for name in ("from_ns", "offset_ns", "drift_ppm")
            )
            by_piece = apart_ns - offset_ns - np.rint((time_ns - from_ns) * drift * 1e-6).astype(np.int64)
            least = by_piece if least is None else np.where(np.abs(by_piece) < np.abs(least), by_piece, least)
        leaves_at_b = self._found["lanes"]["leaves_at_b"][self._lanes(columns)[both]]
        if least is not None:
            delay_ns[both] = np.where(leaves_at_b, -least, least)
        return delay_ns

    def _fates(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Fates by what is known at the end: which captures have gaps."""
        import numpy as np

        from tcpwin import _engine

        lanes = self._lanes(columns)
        near, far = (self._found["lanes"][f"{end}_has_gaps"][lanes].astype(bool) for end in ("near", "far"))
        names = np.array(_engine.PAIR_FATES, dtype=object)[columns["fate"]]
        fates: NDArray[Any] = names.copy()
        fates[names == "near_missed"] = "delivered"
        fates[names == "far_missed"] = "delivered"
        fates[(names == "far_missed") & near & far] = "unknown"
        fates[names == "unseen"] = "lost"
        hole_is_proof = self._found["lanes"]["hole_is_proof"][lanes].astype(bool)
        fates[((names == "unseen") | ((names == "lost") & ~hole_is_proof)) & far] = "unknown"
        fates[names == "outside"] = "unknown"
        return fates

    @staticmethod
    def _lanes(columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        import numpy as np

        lanes: NDArray[Any] = columns["connection"].astype(np.int64) * 2 + columns["direction"]
        return lanes


def _plain(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list) else list(values.tolist())
