"""The packet table: one row per packet, from reading both captures again, in batches.

In: the result of the first reading, which delays and fates depend on. Out: columns, or Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tcpwin.pairing.clock import Clock
from tcpwin.parquet import parquet_writer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]

NO_NUMBER = -(1 << 63)
"""Marks a missing time or delay."""
_COLUMNS = (
    *("connection", "direction", "fate", "frame_a", "frame_b", "time_a_ns", "time_b_ns", "seq", "ack"),
    *("length", "flags", "is_resend", "cause", "lost_frame", "pairs_before", "epoch"),
)
_TEXTS = ("fate", "cause")
_TIMES = ("time_a_ns", "time_b_ns", "delay_ns")
_FRAMES = ("frame_a", "frame_b", "lost_frame")
_ON_THEIR_WAY = 4_096
"""Packets that may have been in transit when a clock was set."""
_SLACK_NS = 1_000_000
"""Delays below the minimum by no more than this count as the minimum."""


class PacketTable:
    """The packets of a pairing."""

    def __init__(
        self,
        lanes: Mapping[str, NDArray[Any]],
        clock: Clock | None,
        read: Callable[[Callable[[Columns], object]], object],
    ) -> None:
        self._lanes = lanes
        self._clock = clock
        self._read = read

    def read(self, take: Callable[[Columns], object]) -> None:
        """Pass the columns to `take` in batches."""
        self._read(lambda chunk: take(self._told(chunk)))

    def all(self) -> Columns:
        """Return all rows in frame order."""
        import numpy as np

        chunks: list[Columns] = []
        self._read(chunks.append)
        none = [np.empty(0, np.int64)]
        columns = self._told({name: np.concatenate([chunk[name] for chunk in chunks] or none) for name in _COLUMNS})
        order = np.lexsort((columns["frame_b"], columns["frame_a"]))
        return {name: values[order] for name, values in columns.items()}

    def write_parquet(self, target: str | Path | IO[bytes]) -> None:
        """Write rows as their fates become known, with only a few chunks in memory."""
        import polars

        kinds: dict[str, type[polars.DataType]] = {}
        for name in (*_COLUMNS[:-2], "delay_ns"):
            kinds[name] = polars.Boolean if name == "is_resend" else polars.Int64
        kinds |= dict.fromkeys(_TEXTS, polars.String)

        with parquet_writer(polars.Schema(kinds), target) as write:

            def take(chunk: Columns) -> None:
                told = {name: values.tolist() if name in _TEXTS else values for name, values in chunk.items()}
                frame = polars.DataFrame(told).select(polars.col(name).cast(kind) for name, kind in kinds.items())
                frame = frame.with_columns(polars.col(*_TIMES).replace(NO_NUMBER, None))
                write(frame.with_columns(polars.col(*_FRAMES).replace(0, None)))

            self.read(take)

    def _told(self, columns: Columns) -> Columns:
        """Add delays and fates to the columns of an engine's chunk."""
        import numpy as np

        from tcpwin import _engine

        told = {**columns, "delay_ns": self._delays(columns), "fate": self._fates(columns)}
        causes = np.array([*_engine.PAIR_CAUSES, None], dtype=object)
        told["cause"] = causes[np.minimum(columns["cause"], len(_engine.PAIR_CAUSES))]
        del told["pairs_before"], told["epoch"]
        return told

    def _delays(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return the one-way delay, by one clock, of each packet in both captures."""
        import numpy as np

        delay_ns = np.full(len(columns["frame_a"]), NO_NUMBER, np.int64)
        both = (columns["frame_a"] > 0) & (columns["frame_b"] > 0)
        if self._clock is None or not both.any():
            return delay_ns
        pieces = self._clock.pieces
        time_ns = columns["time_a_ns"][both]
        apart_ns = columns["time_b_ns"][both] - time_ns
        before = columns["pairs_before"][both].astype(np.int64)
        firsts = np.array([piece.pairs_before for piece in pieces])
        epochs = np.array([piece.epoch for piece in pieces])
        epoch = columns["epoch"][both].astype(np.int64)
        index = np.searchsorted(firsts, before, side="right") - 1
        index = np.clip(index, np.searchsorted(epochs, epoch), np.searchsorted(epochs, epoch, side="right") - 1)
        lanes = _lanes_of(columns)[both]
        leaves_at_b = self._lanes["leaves_at_b"][lanes]
        # When clocks were set, packets in transit may belong to either piece: choose the one with the smallest delay.
        least_ns = self._lanes["least_delay_ns"][lanes] - _SLACK_NS
        best = np.full(len(time_ns), NO_NUMBER, np.int64)
        for nearby in (0, 1, -1) if len(pieces) > 1 else (0,):
            chosen = np.clip(index + nearby, 0, len(pieces) - 1)
            if nearby:
                begin = firsts[np.maximum(chosen, index)]
                chosen = np.where(np.abs(before - begin) <= _ON_THEIR_WAY, chosen, index)
            from_ns, offset_ns, drift = (
                np.array([getattr(piece, name) for piece in pieces])[chosen]
                for name in ("from_ns", "offset_ns", "drift_ppm")
            )
            by_piece = apart_ns - offset_ns - np.rint((time_ns - from_ns) * drift * 1e-6).astype(np.int64)
            by_piece = np.where(leaves_at_b, -by_piece, by_piece)
            is_possible = by_piece >= least_ns
            is_better = (best == NO_NUMBER) | (is_possible & ((best < least_ns) | (by_piece < best)))
            best = np.where(is_better, by_piece, best)
        delay_ns[both] = best
        return delay_ns

    def _fates(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Return fates, which depend on which captures have gaps."""
        import numpy as np

        from tcpwin import _engine

        lanes = _lanes_of(columns)
        near, far = (self._lanes[f"{end}_has_gaps"][lanes].astype(bool) for end in ("near", "far"))
        names = np.array(_engine.PAIR_FATES, dtype=object)[columns["fate"]]
        fates: NDArray[Any] = names.copy()
        fates[names == "near_missed"] = "delivered"
        fates[names == "far_missed"] = "delivered"
        fates[(names == "far_missed") & near & far] = "unknown"
        fates[names == "unseen"] = "lost"
        hole_is_proof = self._lanes["hole_is_proof"][lanes].astype(bool)
        fates[((names == "unseen") | ((names == "lost") & ~hole_is_proof)) & far] = "unknown"
        fates[names == "outside"] = "unknown"
        return fates


def _lanes_of(columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    import numpy as np

    lanes: NDArray[Any] = columns["connection"].astype(np.int64) * 2 + columns["direction"]
    return lanes
