"""Drawn worlds with a fault of the path or of a box, each with every cause lifted alone; how often verdicts are right.

From the folder ``tests``, ``python -m worlds.faults run SEED COUNT FOLDER`` as root appends a line per world to
FOLDER/worlds.jsonl and keeps the captures of the unchanged runs; ``score FOLDER`` prints the tables.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.box import RULES
from worlds.faulty_path import World, timed
from worlds.owners import changed_by, is_fix_right
from worlds.sweeping import between, in_order, main, run_missing, tabulate

import tcpwin
from tcpwin.lab.lift import ALIKE, NONE_BELOW
from tcpwin.limits import Verdict
from tcpwin.limits.tables import FAULTS

POINTS = ("client", "middle", "server")
JOBS = 8
OWNERS = {
    "path_mtu": ("network",),
    "middlebox": ("network",),
    "path_outage": ("network",),
    "path_loss": ("network",),
    "path_rate": ("nobody",),
    "round_trips": ("client_application",),
    "requester_application": ("client_application",),
    "sender_application": ("server_application",),
    # A proxy that closes idle connections: the client must give them up sooner, or the proxy wait longer.
    "idle": ("server_application",),
    "none": ("nobody",),
}
"""Owners who can lift each limit."""
UNSEEN = {each: OWNERS[each] for each in ("none", "round_trips", "requester_application", "sender_application")} | {
    "idle": ("nobody",)
}
"""Answers at the far side of a box that spoke to the other side only: nobody asked any more, and what limited the
exchanges before that is not measured.
"""
BEHIND = {"sender_application": ("server_application",)}
"""Answers on the near side of a proxy that waits for the far side: it has nothing to send."""


@dataclass
class Draw:
    """A world while it is drawn."""

    random: random.Random
    world: World

    def between(self, least: float, most: float) -> float:
        """Return a log-uniform random number with three digits."""
        return between(self.random, least, most)

    def transfer(self, least: float, most: float) -> None:
        """Send answers, or requests in one of three worlds, that take these times in all."""
        total = self.world.rate_mbps * 125_000 * self.between(least, most)
        count = self.random.choice((1, 2, 4))
        size = max(4000, round(total / count))
        up = self.random.random() < 1 / 3
        self.world.steps += [(0.0, size if up else 100, 100 if up else size, 0.0)] * count

    def talk(self, count: int) -> None:
        """Exchange small messages."""
        sizes = round(self.between(60, 800)), round(self.between(60, 1200))
        self.world.steps += [(self.between(0.01, 0.2), *sizes, self.between(0.001, 0.02))] * count


def world(seed: int, number: int) -> World:
    """Return world `number`, from 0, of a seed."""
    drawn = random.Random(f"{seed}, faults {number}")
    draw = Draw(drawn, World(1.0, 1.0, seed=1 + number))
    made = draw.world
    made.rtt_ms, made.rate_mbps = draw.between(2, 120), draw.between(3, 30)
    if drawn.random() < 0.2:
        made.sysctls["tcp_timestamps"] = 0
    if drawn.random() < 0.2:
        made.sysctls["tcp_sack"] = 0
    STORIES[story(seed, number)](draw)
    if made.side == "far" and "server" in made.elsewhere:
        made.elsewhere["middle"] = made.elsewhere["server"]
    made.lifts["path_rate"] = ("path_rate", {"rate_mbps": 4 * made.rate_mbps})
    made.lifts["delay"] = ("round_trips", {"rtt_ms": made.rtt_ms / 10})
    steps = made.steps
    if made.loss:
        made.lifts["loss"] = ("path_loss", {"loss": 0.0})
    if any(step[3] for step in steps):
        made.lifts["work"] = ("sender_application", {"steps": [(*step[:3], 0.0) for step in steps]})
    if any(0 < step[0] < 1 for step in steps):
        asks = [(step[0] if step[0] >= 1 else 0.0, *step[1:]) for step in steps]
        made.lifts["think"] = ("requester_application", {"steps": asks})
    return made


def story(seed: int, number: int) -> str:
    """Return the story of a world: each once per round, in a random order."""
    return in_order(STORIES, f"{seed}, round of faults", number)


def _black_hole(draw: Draw) -> None:
    """Large packets vanish in the router, and ICMP with them; some hosts probe for a smaller size."""
    _small_mtu(draw)
    made = draw.world
    made.rules = RULES["icmp-blocked"]
    made.sysctls["tcp_mtu_probing"] = draw.random.choice((0, 1))
    made.give_up_s = draw.between(5, 12)


def _small_mtu(draw: Draw) -> None:
    made = draw.world
    made.mtu = draw.random.choice((1280, 1400, 1420, 1450, 1492))
    draw.talk(draw.random.choice((0, 3)))
    draw.transfer(0.3, 3)
    made.lifts["mtu"] = ("path_mtu", {"mtu": 1500})


def _refused_by_size(draw: Draw) -> None:
    """Something on the way drops packets above a size, on both sides of a plain segment's."""
    made = draw.world
    made.most_bytes = draw.random.choice((700, 1000, 1300, 1480))
    made.sysctls["tcp_mtu_probing"] = draw.random.choice((0, 1, 1))
    draw.talk(draw.random.choice((0, 3)))
    draw.transfer(0.3, 3)
    made.give_up_s = draw.between(5, 12)
    made.lifts["size"] = ("path_mtu", {"most_bytes": 0})


def _forgetful(draw: Draw, kind: str, idle_s: float) -> None:
    made = draw.world
    draw.talk(4)
    _, request, answer, work_s = made.steps[-1]
    made.steps += [(idle_s, request, answer, work_s), *made.steps[-2:]]
    made.rules, made.forgets_s, made.give_up_s = RULES[kind], max(1, int(idle_s / 1.5)), draw.between(4, 8)
    if draw.random.random() < 0.5:
        made.rules = RULES["nat"] + "; " + made.rules
    made.lifts["time_out"] = ("middlebox", {"forgets_s": 1000})
    made.lifts["keep_alive"] = ("middlebox", {"keep_alive": True})
    made.elsewhere = {"server": UNSEEN}


def _idle_drop(draw: Draw) -> None:
    _forgetful(draw, "conntrack-drop", draw.between(3, 8))


def _idle_reset(draw: Draw) -> None:
    _forgetful(draw, "conntrack-reset", draw.between(32, 45))


def _forged(draw: Draw) -> None:
    """A box resets the connection in the middle of a transfer, in the names of both ends."""
    made = draw.world
    draw.talk(3)
    draw.transfer(0.5, 3)
    total = sum(sum(step[1:3]) for step in made.steps)
    made.forged = round(total * draw.between(0.2, 0.8)), draw.random.choice((30, 47, 110, 128, 243))
    made.lifts["box"] = ("middlebox", {"forged": None})


def _proxy_idle(draw: Draw) -> None:
    made = draw.world
    draw.talk(4)
    _, *rest = made.steps[-1]
    made.proxy_s = draw.between(1, 4)
    made.steps += [(1.5 * made.proxy_s, *rest), made.steps[-1]]
    made.lifts["time_out"] = ("idle", {"proxy_s": 1000.0})
    made.elsewhere = {"server": UNSEEN, "middle": {"middlebox": ("network",)}, "client": {"middlebox": ("network",)}}


def _proxy_slow(draw: Draw) -> None:
    """A proxy near the client, and a slow way from there to the server."""
    made = draw.world
    made.proxy_s = 1000.0
    made.loss = draw.random.choice((0.0, 0.01, 0.02))
    draw.talk(1)
    made.steps += [(0.0, 100, round(made.rate_mbps * 125_000 * draw.between(1, 4)), 0.0)]
    made.elsewhere = {"client": BEHIND, "middle": BEHIND}


def _outage(draw: Draw) -> None:
    """The path carries nothing for a while, one way or both."""
    made = draw.world
    draw.talk(2)
    draw.transfer(1, 4)
    made.outage = draw.between(0.3, 1.2), draw.between(1, 5), draw.random.choice(("up", "down", "both", "both"))
    made.give_up_s = 40.0
    made.lifts["outage"] = ("path_outage", {"outage": None})


def _none(draw: Draw) -> None:
    """No fault: a slow path, loss, or a slow application."""
    made = draw.world
    made.loss = draw.random.choice((0.0, 0.0, 0.01, 0.03))
    draw.talk(draw.random.choice((0, 20)))
    draw.transfer(1, 4)


STORIES: dict[str, Callable[[Draw], None]] = {
    "black-hole": _black_hole,
    "black-hole-too": _black_hole,
    "mtu-with-icmp": _small_mtu,
    "refused-by-size": _refused_by_size,
    "idle-drop": _idle_drop,
    "idle-reset": _idle_reset,
    "forged-rst": _forged,
    "proxy-idle": _proxy_idle,
    "proxy-slow": _proxy_slow,
    "outage": _outage,
    "outage-too": _outage,
    "no-fault": _none,
}


def sweep(seed: int, numbers: Iterable[int], folder: Path) -> None:
    """Run these worlds, and each of their lifts, unless they have a line."""

    def one(number: int) -> dict[str, Any]:
        made = world(seed, number)
        with tempfile.TemporaryDirectory() as name:
            base = timed(made, Path(name))
            kept = folder / f"{seed}-{number:03d}"
            kept.mkdir(exist_ok=True)
            for point in POINTS:
                shutil.copy(Path(name, f"{point}.pcap"), kept)
            lifts = {lift: timed(made.lifted(lift), Path(name)) for lift in made.lifts}
        return {"seed": seed, "story": story(seed, number), "base": base, "lifts": lifts}

    run_missing(numbers, folder, one, JOBS)


@dataclass(frozen=True)
class Row:
    """One world at one capture point."""

    line: dict[str, Any]
    point: str
    verdict: Verdict

    @property
    def story(self) -> str:
        return str(self.line["story"])

    @property
    def gains_ns(self) -> dict[str, int]:
        """Return the most that lifting each limit gained; a connection that no longer fails gained everything."""
        made, (base_ns, failures, _) = world(self.line["seed"], self.line["number"]), self.line["base"]
        gains: dict[str, int] = {}
        for name, (time_ns, others, _) in self.line["lifts"].items():
            limit = made.lifts[name][0]
            gain_ns = base_ns - time_ns if others == failures else base_ns * (others < failures)
            gains[limit] = max(gain_ns, gains.get(limit, gain_ns))
        return gains

    @property
    def alike(self) -> dict[str, tuple[str, ...]]:
        """Return the limits whose lifting gained about most, or that this point shows, with their owners."""
        gains = self.gains_ns
        most, least = max(gains.values()), NONE_BELOW * self.line["base"][0]
        if most < least:
            return {"none": OWNERS["none"]}
        # Whatever else is slow, a fault that costs time is broken.
        best = [limit for limit, gain in gains.items() if gain >= (least if limit in FAULTS else (1 - ALIKE) * most)]
        seen = world(self.line["seed"], self.line["number"]).elsewhere.get(self.point, {})
        return {**{limit: OWNERS[limit] for limit in best}, **seen}

    @property
    def is_right(self) -> bool:
        return self.verdict.limit in self.alike

    @property
    def is_owner_right(self) -> bool:
        return any(self.verdict.owner in owners for owners in self.alike.values())

    @property
    def is_fix_right(self) -> bool:
        return is_fix_right(changed_by(self.verdict), self.alike, self.gains_ns, self.line["base"][0])


def rows_of(folder: Path, lines: Iterable[str]) -> Iterator[Row]:
    """Judge the captures in a folder against the truths: the connection that the summary names, or the first."""
    for line in map(json.loads, lines):
        for point in POINTS:
            analysis = tcpwin.analyze(folder / f"{line['seed']}-{line['number']:03d}" / f"{point}.pcap")
            chosen = [*analysis.problems, 0][0]
            yield Row(line, point, analysis.connections[chosen].verdict)


def summary(rows: Sequence[Row]) -> str:
    """Return a table: limit, owner and fix right, certain and wrong, by capture point."""
    return tabulate(rows, POINTS)


def mistake(row: Row) -> str | None:
    """Describe a wrong limit, owner or fix."""
    if row.is_right and row.is_owner_right and row.is_fix_right:
        return None
    base_ns, failures, _ = row.line["base"]
    gains = {limit: round(gain / base_ns, 2) for limit, gain in row.gains_ns.items() if gain > 0.02 * base_ns}
    said = f"{row.verdict.limit} ({row.verdict.confidence}), {row.verdict.owner}, fix of {changed_by(row.verdict)}"
    name = f"{row.line['seed']}-{row.line['number']:03d} {row.story} {row.point}"
    return f"{name}: {said}; {base_ns / 1e9:.2f} s, {failures} failed; {gains}"


if __name__ == "__main__":
    main(sweep, rows_of, summary, mistake)
