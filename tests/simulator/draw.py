"""Random settings: faults of real paths, alone and combined, so that every cause occurs often."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from simulator.clock import MILLISECOND_NS, SECOND_NS
from simulator.settings import Link, Receiving, Settings

Fault = Callable[[Random, "Draft"], None]


class Draft:
    """Settings under construction; `rtt_ns` is the path's without queues."""

    def __init__(self, random: Random, *, sack: bool, timestamps: bool, wrap: bool) -> None:
        self.rtt_ns = random.choice((2, 5, 10, 20, 40, 80, 150, 300)) * MILLISECOND_NS
        self.general: dict[str, object] = {
            "seed": random.randrange(1 << 30),
            "sack": sack,
            "timestamps": timestamps,
            "wrap": wrap,
            "sender": random.choice("ab"),
            "mss": random.choice((1460, 1460, 1400, 536)),
            "tick_ns": random.choice((1, 4, 10)) * MILLISECOND_NS,
            "beta": random.choice((0.7, 0.5)),
            "no_delay": random.random() < 0.7,
            "request_bytes": random.choice((0, 0, 200)),
        }
        rate = random.choice((None, 1_000_000_000, 100_000_000, 20_000_000))
        self.data: dict[str, object] = {"delay_ns": self.rtt_ns // 2, "rate_bps": rate}
        self.acks: dict[str, object] = {"delay_ns": self.rtt_ns - self.rtt_ns // 2}
        self.receiving: dict[str, object] = {"delayed_ack_ns": random.choice((40, 40, 40, 200)) * MILLISECOND_NS}
        self.drops: set[tuple[str, int, int]] = set()
        self.segments = random.choice((8, 20, 40, 80, 150, 250))
        self.lasting_ns = 0
        self._write(random)

    @property
    def sender(self) -> str:
        return str(self.general["sender"])

    def settings(self) -> Settings:
        return Settings(
            **self.general,  # type: ignore[arg-type]
            receiving=Receiving(**self.receiving),  # type: ignore[arg-type]
            data_link=Link(**self.data),  # type: ignore[arg-type]
            ack_link=Link(**self.acks),  # type: ignore[arg-type]
            drops=frozenset(self.drops),
        )

    def moment(self, random: Random) -> int:
        """Return a time at which data is likely under way."""
        return 2 * self.rtt_ns + random.randrange(max(self.lasting_ns, 4 * self.rtt_ns))

    def _write(self, random: Random) -> None:
        total = self.segments * int(str(self.general["mss"]))
        kind = random.choice(("bulk", "bulk", "messages", "trickle"))
        if kind == "bulk":
            self.general["writes"] = ((0, total - random.randrange(400)),)
            return
        count = random.randrange(2, 8) if kind == "messages" else min(self.segments, 60)
        gap_ns = random.choice((5, 30, 120, 700)) * MILLISECOND_NS if kind == "messages" else 15 * MILLISECOND_NS
        size = total // count if kind == "messages" else random.randrange(50, 1_200)
        self.general["writes"] = tuple((place * gap_ns, max(size - random.randrange(40), 1)) for place in range(count))
        self.lasting_ns = count * gap_ns


def draw(random: Random, *, sack: bool, timestamps: bool, wrap: bool) -> Settings:
    """Draw a connection with one to three kinds of faults."""
    draft = Draft(random, sack=sack, timestamps=timestamps, wrap=wrap)
    for _ in range(random.choice((1, 1, 2, 3))):
        random.choice(FAULTS)(random, draft)
    return draft.settings()


def _none(random: Random, draft: Draft) -> None:
    """Add no faults."""


def _random_loss(random: Random, draft: Draft) -> None:
    draft.data["loss"] = random.choice((0.005, 0.01, 0.03, 0.06, 0.12))


def _ack_loss(random: Random, draft: Draft) -> None:
    draft.acks["loss"] = random.choice((0.02, 0.1, 0.3))


def _bursts(random: Random, draft: Draft) -> None:
    draft.data["bursts"] = (random.choice((0.004, 0.015)), random.randrange(2, 12))


def _full_queue(random: Random, draft: Draft) -> None:
    draft.data["rate_bps"] = random.choice((2_000_000, 10_000_000))
    draft.data["queue_packets"] = random.randrange(6, 40)


def _exact(random: Random, draft: Draft) -> None:
    """Lose one to three segments, some of them two or three times."""
    for _ in range(random.randrange(1, 4)):
        ordinal = random.randrange(draft.segments)
        for transmission in range(random.choice((1, 1, 2, 3))):
            draft.drops.add((draft.sender, ordinal, transmission))


def _tail(random: Random, draft: Draft) -> None:
    """Lose the last segments, and perhaps their probe."""
    writes = draft.settings().writes
    size = draft.settings().segment_bytes
    last = -(-sum(length for _, length in writes) // size) - 1
    for back in range(random.randrange(1, 4)):
        draft.drops.add((draft.sender, last - back, 0))
    if random.random() < 0.3:
        draft.drops.add((draft.sender, last, 1))


def _handshake(random: Random, draft: Draft) -> None:
    for transmission in range(random.randrange(1, 3)):
        draft.drops.add((random.choice("ab"), -1, transmission))


def _fin(random: Random, draft: Draft) -> None:
    for transmission in range(random.randrange(1, 3)):
        draft.drops.add((random.choice("ab"), -2, transmission))


def _outage(random: Random, draft: Draft) -> None:
    start = draft.moment(random)
    draft.data["outages"] = ((start, start + random.randrange(1, 12) * draft.rtt_ns),)


def _silent_acks(random: Random, draft: Draft) -> None:
    start = draft.moment(random)
    draft.acks["outages"] = ((start, start + random.randrange(1, 8) * draft.rtt_ns),)


def _hold(random: Random, draft: Draft) -> None:
    """Hold packets for a while, which makes timeouts and probes spurious."""
    start = draft.moment(random)
    link = random.choice((draft.data, draft.acks))
    link["holds"] = ((start, start + random.randrange(100, 900) * MILLISECOND_NS),)


def _reordering(random: Random, draft: Draft) -> None:
    draft.data["reorder"] = random.choice((0.01, 0.04, 0.15))
    draft.data["reorder_ns"] = max(int(draft.rtt_ns * random.choice((0.02, 0.1, 0.3, 1.2))), 1_000)


def _reordered_acks(random: Random, draft: Draft) -> None:
    draft.acks["reorder"] = random.choice((0.02, 0.1))
    draft.acks["reorder_ns"] = max(int(draft.rtt_ns * random.choice((0.02, 0.1, 0.3))), 1_000)


def _duplication(random: Random, draft: Draft) -> None:
    link = random.choice((draft.data, draft.acks))
    link["duplicate"] = random.choice((0.01, 0.05))
    link["duplicate_ns"] = max(draft.rtt_ns // random.choice((1, 4, 20)), 1_000)


def _stall(random: Random, draft: Draft) -> None:
    """Stall the reader; its window closes, possibly with data in flight."""
    start = draft.moment(random)
    draft.receiving["stalls"] = ((start, start + random.randrange(200, 3_000) * MILLISECOND_NS),)
    draft.receiving["buffer_bytes"] = random.choice((8, 16, 64)) * 1_024
    draft.receiving["shrinks"] = random.random() < 0.5
    draft.lasting_ns = max(draft.lasting_ns, SECOND_NS)


FAULTS: tuple[Fault, ...] = (
    _none,
    _random_loss,
    _random_loss,
    _ack_loss,
    _bursts,
    _full_queue,
    _exact,
    _tail,
    _handshake,
    _fin,
    _outage,
    _silent_acks,
    _hold,
    _reordering,
    _reordered_acks,
    _duplication,
    _stall,
)
