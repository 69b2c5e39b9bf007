"""Precision and recall of tcpwin's causes over many simulated runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from random import Random

from simulator import truth
from simulator.draw import draw
from simulator.judge import Verdict, agree, judge
from simulator.run import Run, simulate

SENDER, RECEIVER = "sender", "receiver"
VANTAGES = (SENDER, RECEIVER)
LABELS = (*truth.CAUSES, truth.OUT_OF_ORDER)
# Number of connections written into one file.
FILE_OF = 40


@dataclass(frozen=True, slots=True, order=True)
class Options:
    """Options of the connections in one tally."""

    sack: bool
    timestamps: bool
    wrap: bool


GRID = tuple(Options(*choice) for choice in product((True, False), repeat=3))


@dataclass
class Tally:
    """Counts of packets by their truth and tcpwin's label.

    Attributes:
        hidden: retransmissions invisible in the capture, because neither these nor later bytes appeared before.
    """

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    hidden: int = 0

    def true(self, label: str) -> int:
        return sum(count for (true, _), count in self.pairs.items() if true == label)

    def said(self, label: str) -> int:
        return sum(count for (_, said), count in self.pairs.items() if said == label)

    def precision(self, label: str) -> float | None:
        """Return the share of tcpwin's labels that are right; None if there are none."""
        said = self.said(label)
        return self.pairs[label, label] / said if said else None

    def recall(self, label: str) -> float | None:
        """Return the share of the true labels that tcpwin found; None if there are none."""
        true = self.true(label)
        return self.pairs[label, label] / true if true else None

    @property
    def resent(self) -> int:
        return sum(self.true(label) for label in truth.CAUSES)

    @property
    def duplicates_recognised(self) -> float | None:
        """Return the share of the network's duplicates that tcpwin does not call retransmissions."""
        of_network = [(said, count) for (true, said), count in self.pairs.items() if true == truth.NETWORK_DUPLICATE]
        total = sum(count for _, count in of_network)
        recognised = sum(count for said, count in of_network if said not in (*truth.CAUSES, "unknown"))
        return recognised / total if total else None


def simulate_many(options: Options, seeds: Iterable[int]) -> Iterator[Run]:
    for seed in seeds:
        yield simulate(draw(Random(seed), sack=options.sack, timestamps=options.timestamps, wrap=options.wrap))


def tally(runs: Iterable[Run], *, both_ends: bool = True) -> dict[str, Tally]:
    """Judge runs at both ends; a packet counts as the sender's in the capture at its own sender.

    Without `both_ends` only the capture at the data's sender is read.
    """
    tallies = {vantage: Tally() for vantage in VANTAGES}
    waiting = iter(runs)
    while some := list(islice(waiting, FILE_OF)):
        ends = [(run, side) for run in some for side in ("ab" if both_ends else run.settings.sender)]
        for verdict in judge(ends):
            _count(verdict, tallies)
    return tallies


def _count(verdict: Verdict, tallies: dict[str, Tally]) -> None:
    for packet in verdict.packets:
        if packet.truth.label == truth.PURE_ACK and agree(packet.truth, packet.said):
            continue
        counted = tallies[SENDER if packet.truth.segment.side == verdict.side else RECEIVER]
        counted.pairs[packet.truth.label, packet.said] += 1
        counted.hidden += packet.truth.cause is not None and not packet.truth.is_visible
