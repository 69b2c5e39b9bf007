"""The clock of capture b relative to that of capture a."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockPiece:
    """A time span in which one line describes the difference of the clocks.

    Attributes:
        from_ns, until_ns: its bounds, by a's clock.
        epoch: span between two clock settings, from 0; has several pieces if no line fits it.
        pairs_before: packets paired before its start.
        offset_ns: b's clock minus a's at `from_ns`.
        drift_ppm: how much faster b's clock runs.
        uncertainty_ns: maximum error of the offset at `from_ns`; None if only packets of one direction were paired. At
            least half the round trip between the points, because packets do not show how it is divided.
        drift_uncertainty_ppm: maximum error of the drift.
    """

    from_ns: int
    until_ns: int
    epoch: int
    pairs_before: int
    offset_ns: int
    drift_ppm: float
    uncertainty_ns: int | None
    drift_uncertainty_ppm: float | None

    def at(self, time_ns: int) -> int:
        """Return b's clock minus a's at a time of a's clock."""
        return self.offset_ns + round((time_ns - self.from_ns) * self.drift_ppm / 1e6)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of capture b relative to capture a's. If either was set in between, there are several pieces."""

    pieces: tuple[ClockPiece, ...]

    @property
    def offset_ns(self) -> int:
        """Return b's clock minus a's at the first paired packet."""
        return self.pieces[0].offset_ns

    @property
    def drift_ppm(self) -> float:
        """Return how much faster b's clock runs, in the first piece."""
        return self.pieces[0].drift_ppm

    @property
    def uncertainty_ns(self) -> int | None:
        """Return the maximum error of `offset_ns`, or None if unknown."""
        return self.pieces[0].uncertainty_ns

    @property
    def steps_ns(self) -> tuple[int, ...]:
        """Return the steps of b's clock against a's between the pieces."""
        steps = []
        for index in range(1, len(self.pieces)):
            before, after = self.pieces[index - 1], self.pieces[index]
            steps.append(after.offset_ns - before.at(after.from_ns))
        return tuple(steps)
