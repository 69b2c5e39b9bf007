"""The clock of capture b beside that of capture a."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockPiece:
    """A time through which one line says how the two clocks differ.

    Attributes:
        from_ns, until_ns: by a's clock.
        epoch: between two settings of a clock, from 0: several pieces are of one where no line fits it.
        pairs_before: packets paired before it began.
        offset_ns: b's clock less a's at `from_ns`.
        drift_ppm: by how much b's clock runs faster.
        uncertainty_ns: the true offset at `from_ns` lies no farther away; None where packets of one direction only
            were paired. Half the round trip between the two points, or more: packets do not tell how that is divided.
        drift_uncertainty_ppm: the same of the drift.
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
        """b's clock less a's at a time of a's clock."""
        return self.offset_ns + round((time_ns - self.from_ns) * self.drift_ppm / 1e6)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of capture b beside that of capture a. Where either was set in between, there are several pieces."""

    pieces: tuple[ClockPiece, ...]

    @property
    def offset_ns(self) -> int:
        """b's clock less a's at the first paired packet."""
        return self.pieces[0].offset_ns

    @property
    def drift_ppm(self) -> float:
        """By how much b's clock runs faster, through the first piece."""
        return self.pieces[0].drift_ppm

    @property
    def uncertainty_ns(self) -> int | None:
        """The true offset lies no farther from `offset_ns`; None where it cannot be told."""
        return self.pieces[0].uncertainty_ns

    @property
    def steps_ns(self) -> tuple[int, ...]:
        """By how much b's clock was set against a's between the pieces."""
        steps = []
        for index in range(1, len(self.pieces)):
            before, after = self.pieces[index - 1], self.pieces[index]
            steps.append(after.offset_ns - before.at(after.from_ns))
        return tuple(steps)
