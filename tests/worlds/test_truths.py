"""The truths of drawn worlds belong to the seed's worlds, and no run is faster than its path."""

from __future__ import annotations

from cases import all_cases
from worlds.truths import SEEDS, Truth, read_truths

from tcpwin.lab import drawn, story, world

TRUTHS = [truth for seed in SEEDS for truth in read_truths(seed)]
TRANSFERS = [truth for truth in TRUTHS if truth.result.scenario.workload.name == "transfer"]
LARGEST_SHARE = 2920 / (2 * 1514 + 24)
"""Payload's share of a rate, if a host sends no timestamps: the bucket counts preamble, checksum and gap once for
two segments that the card separates (TSO; Linux, net/sched/sch_tbf.c).
"""


def name(truth: Truth) -> str:
    return f"{truth.seed}-{truth.number}"


@all_cases("seed", SEEDS)
def test_worlds_are_there_once_each_and_in_order(seed: int) -> None:
    numbers = [truth.number for truth in read_truths(seed)]
    assert numbers == list(range(len(numbers)))


@all_cases("truth", TRUTHS, ids=name)
def test_a_truth_is_of_the_world_that_the_seed_draws(truth: Truth) -> None:
    assert truth.drawn == drawn(world(truth.seed, truth.number))
    assert truth.story == story(truth.seed, truth.number)


@all_cases("truth", TRANSFERS, ids=name)
def test_no_run_is_faster_than_its_path(truth: Truth) -> None:
    """Payload at the narrowest rate, plus a round trip for the handshake; a policer's bucket passes at no cost."""
    scenario = truth.result.scenario
    runs = {"": truth.result.base, **{gain.lift.name: gain.times for gain in truth.result.gains}}
    for lift, times in runs.items():
        route = scenario.route
        rate_mbps = (route.bottleneck_mbps or route.rate_mbps) * (4 if lift == "path_rate" else 1)
        total = scenario.serve.bytes
        # The rate's bucket passes immediately: 50 µs at a card's rate, or two frames.
        bucket = max(3200, rate_mbps * 6.25)
        least_s = 8 * (total / LARGEST_SHARE - bucket) / (rate_mbps * 1e6)
        if route.policer_mbps and lift != "path_policer":
            least_s = max(least_s, 8 * (total - route.policer_burst_bytes) / (route.policer_mbps * 1e6))
        least_s += route.rtt_ms / 1000
        assert times.completion_ns / 1e9 >= least_s * 0.999, lift
