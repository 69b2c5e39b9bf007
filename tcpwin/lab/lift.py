"""The cost of each limit of a scenario: one unchanged run, and one per limit with only that limit lifted.

In: a scenario, a folder. Out: the duration of each run, and the gain of each lift. A transfer lasts from before its SYN
(bulk and stalled readers: from its connection) until its last byte is read, and so do messages, for which the sum of
one-way delays is reported too. A conversation lasts from before its SYN until its last answer is read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.errors import TcpwinError
from tcpwin.lab.lifts import Lift, lifted, lifts_of
from tcpwin.lab.run import run_scenario
from tcpwin.lab.scenario import Scenario
from tcpwin.lab.side_by_side import side_by_side

SCHEMA = "tcpwin/lift/1"
ALIKE = 0.1
"""Gains that differ by less than this share of the larger count as equal."""
NONE_BELOW = 0.02
"""Minimum gain as a share of the time: if no lift reaches it, nothing limited the run."""
_LOG = "log_receiver.jsonl"
_BY_BYTES = ("bulk", "stalled-reader", "transfer")
_BY_COUNT = ("conversation", "messages")


class LiftError(TcpwinError):
    """A scenario that ends by the clock, so that no lift can shorten it."""


@dataclass(frozen=True, slots=True)
class Times:
    """Duration of a run.

    Attributes:
        completion_ns: time until the last byte was read.
        delays_ns: sum of the one-way delays of messages; None for other workloads.
    """

    completion_ns: int
    delays_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """One lift and its run."""

    lift: Lift
    times: Times
    gain_ns: int
    """Negative if the transfer took longer."""
    gain_share: float
    """Share of the unchanged run's time."""


@dataclass(frozen=True, slots=True)
class LiftResult:
    """Costs of a scenario's limits."""

    scenario: Scenario
    kernel: str
    base: Times
    gains: tuple[Gain, ...]

    @property
    def limit(self) -> str:
        """Return the limit whose lifting gains most."""
        best = self._best()
        return "none" if best is None else best.lift.limit

    @property
    def alike(self) -> list[str]:
        """Return every limit whose lifting gains about as much as the best."""
        best = self._best()
        if best is None:
            return ["none"]
        least_ns = (1 - ALIKE) * best.gain_ns
        return list(dict.fromkeys(each.lift.limit for each in self.gains if each.gain_ns >= least_ns))

    def _best(self) -> Gain | None:
        best = max(self.gains, key=lambda each: each.gain_ns, default=None)
        return best if best and best.gain_ns >= NONE_BELOW * self.base.completion_ns else None

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "kernel": self.kernel,
            "judged": "completion",
            "base": _times(self.base),
            "lifts": [
                {
                    "name": each.lift.name,
                    "limit": each.lift.limit,
                    **_times(each.times),
                    "gain_ns": each.gain_ns,
                    "gain_share": round(each.gain_share, 6),
                }
                for each in self.gains
            ],
            "limit": self.limit,
            "alike": self.alike,
        }


Run = Callable[[Scenario, str, Path], Path]
"""Runs a scenario on a kernel into a folder, unless already done, and returns the bundle."""


def check_liftable(scenario: Scenario) -> None:
    """Refuse a scenario that ends by the clock, or never."""
    name = scenario.workload.name
    if name in _BY_COUNT or (name in _BY_BYTES and scenario.serve.bytes):
        return
    why = "sends for a time" if name in _BY_BYTES else "does not end by its bytes"
    raise LiftError(
        f"{scenario.name}: its workload {name} {why}, so that no lift can shorten it: "
        "use transfer, or bulk with serve.bytes"
    )


def lift_scenario(
    scenario: Scenario,
    kernel: str,
    folder: Path,
    *,
    jobs: int = 1,
    run: Run | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LiftResult:
    """Run a scenario and each of its lifts; runs whose bundles are in the folder are not repeated.

    Args:
        jobs: how many runs at once.
        run: runs a scenario, by default in the lab's kernel.
        say: called with the name of each finished run.
    """
    check_liftable(scenario)
    folder.mkdir(parents=True, exist_ok=True)
    lifts = lifts_of(scenario)
    runs = [scenario, *(lifted(scenario, lift) for lift in lifts)]

    def one(each: Scenario) -> Times:
        times = read_times((run or _run)(each, kernel, folder), each)
        say(each.name)
        return times

    base, *others = side_by_side(one, runs, jobs)
    return lift_result(scenario, kernel, base, dict(zip((lift.name for lift in lifts), others, strict=True)))


def lift_result(scenario: Scenario, kernel: str, base: Times, lifted_times: Mapping[str, Times]) -> LiftResult:
    """Return the costs of a scenario's limits from its runs' times, by lift name."""
    gains = []
    for lift in lifts_of(scenario):
        times = lifted_times[lift.name]
        gain_ns = base.completion_ns - times.completion_ns
        gains.append(Gain(lift, times, gain_ns, gain_ns / base.completion_ns))
    return LiftResult(scenario, kernel, base, tuple(gains))


def read_times(bundle: Path, scenario: Scenario) -> Times:
    """Return a run's duration from the reader's log."""
    with zipfile.ZipFile(bundle) as members:
        text = members.read(f"{bundle.stem}/{_LOG}").decode()
    lines = [json.loads(line) for line in text.splitlines()]
    if scenario.workload.name == "messages":
        messages = [line for line in lines if line["event"] == "message"]
        began_ns = messages[0]["time_ns"] - messages[0]["one_way_delay_ns"]
        return Times(messages[-1]["time_ns"] - began_ns, sum(line["one_way_delay_ns"] for line in messages))
    summary = lines[-1]
    return Times(summary.get("completion_ns") or summary["elapsed_ns"])


def _run(scenario: Scenario, kernel: str, folder: Path) -> Path:
    return run_scenario(scenario, kernel, folder).bundle


def _times(times: Times) -> dict[str, int]:
    found = {"completion_ns": times.completion_ns}
    return found if times.delays_ns is None else {**found, "delays_ns": times.delays_ns}
