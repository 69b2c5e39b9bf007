"""Drawn receivers whose window promises more than their memory holds, in the lab; how often verdicts are right.

On the patched kernel such a receiver drops data, and on the stock one it collapses its queue. From the folder
``tests``, ``python -m worlds.memory run SEED COUNT FOLDER`` appends a line per world to FOLDER/worlds.jsonl and keeps
the bundles of the unchanged runs; ``score FOLDER`` prints the tables.
"""

from __future__ import annotations

import json
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.owners import changed_by, expected_owners, gains_of, is_fix_right, owners_of
from worlds.sweeping import between, in_order, main, run_missing, tabulate

import tcpwin
from tcpwin.lab import LiftResult, Scenario, Times, lift_result, lift_scenario, run_scenario
from tcpwin.lab.lift import NONE_BELOW
from tcpwin.lab.scenario import read_scenario
from tcpwin.lab.toml_text import render_toml
from tcpwin.limits import Verdict

ENDS = ("sender", "receiver")
WITH = ("packets alone", "with snapshots")
FRAME_BYTES = 3328
"""Memory of a frame, as in the article's lab; the windows below promise about 1.07 to 1.33 bytes per byte."""
Table = dict[str, Any]


def _stalls(drawn: random.Random, total: int) -> Table:
    return {"stall_bytes": round(total / drawn.uniform(2.1, 4.9)), "stall_s": between(drawn, 1, 4)}


def _oscillates(drawn: random.Random, total: int) -> Table:
    loop = total / drawn.uniform(2, 4)
    slow = round(loop * drawn.uniform(0.2, 0.5))
    return {"rate_mbps": between(drawn, 0.5, 3), "fast_bytes": round(loop) - slow, "slow_bytes": slow}


@dataclass(frozen=True)
class Story:
    """A kind of world: kernel, settings of the window's share of the memory, reader, and whether the path loses."""

    kernel: str
    scales: tuple[int, ...]
    reader: Callable[[random.Random, int], Table]
    loses: bool = False


STORIES = {
    "drops-oscillating": Story("patched", (2, 3, 4), _oscillates),
    "drops-oscillating-too": Story("patched", (2, 3, 4), _oscillates),
    "drops-stalled": Story("patched", (2, 3, 4), _stalls),
    "drops-with-loss": Story("patched", (3, 4), _stalls, loses=True),
    "collapses-oscillating": Story("stock", (2, 3, 4), _oscillates),
    "collapses-stalled": Story("stock", (2, 3, 4), _stalls),
    "reckons-enough": Story("patched", (-2, 1), _oscillates),
    "reads-at-once": Story("patched", (2, 3, 4), lambda *_: {}, loses=True),
}


def story(seed: int, number: int) -> str:
    """Return the story of a world: each once per round, in a random order."""
    return in_order(STORIES, f"{seed}, round of memory", number)


def world(seed: int, number: int) -> Scenario:
    """Return world `number`, from 0, of a seed."""
    drawn = random.Random(f"{seed}, memory {number}")
    which = STORIES[story(seed, number)]
    rtt_ms, rate_mbps = between(drawn, 10, 300), between(drawn, 4, 12)
    held = rate_mbps * 125 * rtt_ms
    memory = round(between(drawn, 1.5, 4) * max(held, 65_536))
    total = round(rate_mbps * 125_000 * between(drawn, 3, 6) + 2 * memory)
    table = {
        "title": f"Drawn: {story(seed, number)}",
        "seed": 1 + number,
        "path": {"rtt_ms": rtt_ms, "rate_mbps": rate_mbps},
        "host": {
            "frame_memory_bytes": FRAME_BYTES,
            "read_ps_per_byte": 330,
            "gro_flush_us": 20,
            "collapse_max_bytes": memory // 23,
        },
        "workload": {
            "name": "transfer",
            "serve": {"bytes": total},
            "drive": which.reader(drawn, total),
        },
        "sysctl": {"net.ipv4.tcp_mem": "131072 196608 262144"},
        "sysctl_sender": {"net.ipv4.tcp_wmem": f"4096 16384 {max(4 << 20, round(6 * held))}"},
        "sysctl_receiver": {
            "net.ipv4.tcp_rmem": f"4096 {min(131_072, memory)} {memory}",
            "net.ipv4.tcp_adv_win_scale": drawn.choice(which.scales),
        },
        "measure": {"sample_ms": 500, "quick": True},
    }
    if which.loses:
        table["path"]["loss_percent"] = between(drawn, 0.05, 0.5)
    return read_scenario(f"memory-{seed}-{number:03d}", render_toml(table))


def sweep(seed: int, numbers: Iterable[int], folder: Path) -> None:
    """Run these worlds, and each of their lifts, unless they have a line."""
    (folder / "lifts").mkdir(parents=True, exist_ok=True)

    def one(number: int) -> dict[str, Any]:
        scenario, which = world(seed, number), story(seed, number)

        def place(each: Scenario, kernel: str, _: Path) -> Path:
            return run_scenario(each, kernel, folder if each is scenario else folder / "lifts").bundle

        result = lift_scenario(scenario, STORIES[which].kernel, folder, run=place)
        times = {each.lift.name: each.times.completion_ns for each in result.gains}
        return {"seed": seed, "story": which, "base": result.base.completion_ns, "lifts": times}

    run_missing(numbers, folder, one, 1)


@dataclass(frozen=True)
class Row:
    """One world at one end, by packets alone or with snapshots."""

    story: str
    name: str
    point: str
    result: LiftResult
    verdict: Verdict

    @property
    def alike(self) -> dict[str, tuple[str, ...]]:
        """Return the limits whose lifting gains about most, with their owners; memory that costs time is broken."""
        alike = dict.fromkeys(self.result.alike, expected_owners(self.result))
        if gains_of(self.result).get("receiver_memory", 0) >= NONE_BELOW * self.result.base.completion_ns:
            alike["receiver_memory"] = owners_of(self.result.scenario, "receiver_memory")
        return alike

    @property
    def is_right(self) -> bool:
        return self.verdict.limit in self.alike

    @property
    def is_owner_right(self) -> bool:
        return any(self.verdict.owner in owners for owners in self.alike.values())

    @property
    def is_fix_right(self) -> bool:
        completion_ns = self.result.base.completion_ns
        return is_fix_right(changed_by(self.verdict), self.alike, gains_of(self.result), completion_ns)


def rows_of(folder: Path, lines: Sequence[str]) -> Iterator[Row]:
    """Judge the bundles in a folder against the truths."""
    for line in map(json.loads, lines):
        scenario = world(line["seed"], line["number"])
        kernel = STORIES[line["story"]].kernel
        times = {name: Times(each) for name, each in line["lifts"].items()}
        result = lift_result(scenario, kernel, Times(line["base"]), times)
        bundle = folder / f"{scenario.name}-{kernel}.zip"
        with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(bundle) as members:
            for end in ENDS:
                alone = tcpwin.analyze(members.extract(f"{bundle.stem}/{end}.pcap.gz", name))
                for how, analysis in zip(WITH, (alone, tcpwin.analyze(bundle, capture=f"{end}.pcap.gz")), strict=True):
                    (connection,) = analysis.connections
                    yield Row(line["story"], scenario.name, f"{end}, {how}", result, connection.verdict)


def summary(rows: Sequence[Row]) -> str:
    """Return a table: limit, owner and fix right, certain and wrong, by capture point."""
    return tabulate(rows, [f"{end}, {how}" for end in ENDS for how in WITH])


def mistake(row: Row) -> str | None:
    """Describe a wrong limit, owner or fix."""
    if row.is_right and row.is_owner_right and row.is_fix_right:
        return None
    gains = {each.lift.name: round(each.gain_share, 2) for each in row.result.gains if each.gain_share > 0.02}
    said = f"{row.verdict.limit} ({row.verdict.confidence}), {row.verdict.owner}, fix of {changed_by(row.verdict)}"
    return f"{row.name} {row.story} {row.point}: {said}; {row.result.base.completion_ns / 1e9:.2f} s {gains}"


if __name__ == "__main__":
    main(sweep, rows_of, summary, mistake)
