"""Changes of drawn worlds, as a user would request them, and runs with their results.

Uses the worlds of seed 1. ``changes.jsonl`` in this folder has a line per change with the time of the changed run, made
by ``python -m worlds.changes FOLDER`` from the folder ``tests``, in the lab's kernel, without packets.
"""

from __future__ import annotations

import copy
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.lab import Scenario, read_scenario, run_scenario, story, world
from tcpwin.lab.lift import read_times
from tcpwin.lab.toml_text import render_toml

HERE = Path(__file__).resolve().parent
FILE = HERE / "changes.jsonl"
SEED = 1
RMEM, WMEM, CONTROL = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control"
LARGE = 64 << 20
Table = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One change of one world."""

    number: int
    words: tuple[str, ...]
    change: Callable[[Table], None]

    @property
    def name(self) -> str:
        """Return the name of the run: letters, digits and dashes."""
        said = "-".join(self.words).replace("--", "").lower()
        return "".join(letter if letter.isalnum() else "-" for letter in said).strip("-")

    def scenario(self) -> Scenario:
        """Return the changed world, without packets and nearly without samples."""
        before = world(SEED, self.number)
        table = copy.deepcopy(tomllib.loads(before.text))
        table["measure"] = {"capture": False, "sample_ms": 0, "quick": True}
        self.change(table)
        return read_scenario(f"{before.name}.{self.name}", render_toml(table))


def _largest(number: int, heading: str, name: str) -> int:
    return int(tomllib.loads(world(SEED, number).text)[heading][name].split()[2])


def _buffer(number: int, end: str, name: str, size: int) -> Asked:
    key = name.removeprefix("net.ipv4.")

    def change(table: Table) -> None:
        least, start, _ = table[f"sysctl_{end}"][name].split()
        table[f"sysctl_{end}"][name] = f"{least} {min(int(start), size)} {size}"

    return Asked(number, ("--set", f"{end}.{key}={size}"), change)


def _algorithm(number: int, algorithm: str) -> Asked:
    def change(table: Table) -> None:
        table["sysctl"][CONTROL] = algorithm

    return Asked(number, ("--set", f"sender.tcp_congestion_control={algorithm}"), change)


def _loss(number: int, percent: float) -> Asked:
    def change(table: Table) -> None:
        table["path"]["loss_percent"] = percent

    return Asked(number, ("--loss", f"{percent:g}%"), change)


def _round_trip(number: int, factor: float) -> Asked:
    rtt_ms = float(f"{tomllib.loads(world(SEED, number).text)['path']['rtt_ms'] * factor:.4g}")

    def change(table: Table) -> None:
        table["path"]["rtt_ms"] = rtt_ms

    return Asked(number, ("--rtt", f"{rtt_ms:g}ms"), change)


def _rate(number: int, factor: float) -> Asked:
    path = tomllib.loads(world(SEED, number).text)["path"]
    name = "bottleneck_mbps" if "bottleneck_mbps" in path else "rate_mbps"
    rate_mbps = float(f"{path[name] * factor:.4g}")

    def change(table: Table) -> None:
        own = table["path"]
        own[name] = rate_mbps
        if "queue_bytes" in own:
            own["queue_bytes"] = round(own["queue_bytes"] * factor)
            own["rate_mbps"] = max(own["rate_mbps"], rate_mbps)

    return Asked(number, ("--rate", f"{rate_mbps:g}mbit"), change)


def _of_story(*stories: str, count: int) -> list[int]:
    return [number for number in range(200) if story(SEED, number) in stories][:count]


def asked_of(words: Sequence[str]) -> tuple[list[tuple[str, str]], dict[str, float]]:
    """Return the arguments of `tcpwin.whatif` for the words of `tcpwin whatif`."""
    settings: list[tuple[str, str]] = []
    more: dict[str, float] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--set":
            name, _, wanted = value.partition("=")
            settings.append((name, wanted))
        elif option == "--loss":
            more["loss_share"] = float(value.removesuffix("%")) / 100
        elif option == "--rtt":
            more["round_trip_ns"] = float(value.removesuffix("ms")) * 1e6
        else:
            more["rate_bps"] = float(value.removesuffix("mbit")) * 1e6
    return settings, more


def every() -> list[Asked]:
    """Return all changes: up and down of everything that can be changed."""
    asked = []
    for number in _of_story("window", "window-too", count=8):
        size = _largest(number, "sysctl_receiver", RMEM)
        asked += [_buffer(number, "receiver", RMEM, wanted) for wanted in (size // 2, 2 * size, LARGE)]
    for number in _of_story("send-buffer", count=6):
        size = _largest(number, "sysctl_sender", WMEM)
        asked += [_buffer(number, "sender", WMEM, wanted) for wanted in (size // 2, 2 * size)]
    for number in _of_story("drop-tail", "card", "managed-queue", count=6):
        asked += [_rate(number, factor) for factor in (0.5, 2.0)]
        asked += [_round_trip(number, factor) for factor in (0.5, 2.0)]
    for number in _of_story("window", "send-buffer", "random-loss", count=6):
        asked += [_round_trip(number, factor) for factor in (0.5, 2.0)]
    for number in _of_story("random-loss", "random-loss-too", count=8):
        asked += [_loss(number, 0.0), _algorithm(number, "bbr")]
    for number in _of_story("drop-tail", "card", count=4):
        asked += [_loss(number, 1.0), _algorithm(number, "bbr"), _algorithm(number, "reno")]
    return asked


def run_all(folder: Path, say: Callable[[str], None]) -> Iterator[str]:
    """Run every change one after the other, except those with a bundle in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in every():
        scenario = each.scenario()
        times = read_times(run_scenario(scenario, "stock", folder, capture=False).bundle, scenario)
        say(scenario.name)
        yield json.dumps(
            {"number": each.number, "asked": list(each.words), "completion_ns": times.completion_ns},
            separators=(",", ":"),
        )


def main(arguments: Sequence[str]) -> int:
    """Write the result of every change."""
    if len(arguments) != 1:
        sys.stderr.write("worlds.changes: name a folder for the bundles\n")
        return 2
    lines = list(run_all(Path(arguments[0]), lambda name: print(name, file=sys.stderr)))
    FILE.write_text("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
