"""Count what each stage of the engine costs per packet, in instructions and cache misses: noise cannot change these.

Runs the example `track` under callgrind, built as `cargo test` builds it or optimised. Each instruction belongs to the
source file that it was compiled from, inlined or not. Those of libraries count for the files that call them.
"""

import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.captures import build_example

PACKETS = 6_000
SHAPES = {
    "A": ("--shape", "A", "--packets", str(PACKETS), "--connections", "12"),
    "D": ("--shape", "D", "--packets", str(PACKETS), "--connections", "1200"),
    "E": ("--shape", "E", "--packets", str(PACKETS), "--connections", "12"),
}
# The caches of many of today's processors, whatever this one has. The last one is its second level.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=524288,8,64")
# By folder or file of `src`; the longest name that fits decides.
STAGES = {
    "read and wire": ("capture", "wire", "output/segmenter"),
    "look-up": (
        *("output/lane", "output/pass", "tcp/tracker/mod", "tcp/tracker/prefetch", "tcp/recovery/copies"),
        *("tcp/recovery/duplicate", "tcp/connection/table", "tcp/connection/arena", "tcp/connection/state"),
    ),
    "fast path": (
        *("tcp/tracker/fast", "tcp/tracker/sender", "tcp/tracker/receiver", "tcp/tracker/segment_size"),
        *("tcp/connection/direction", "tcp/window", "tcp/timing", "sequence"),
    ),
    "rounds and path": ("tcp/path", "tcp/budget", "tcp/tracker/rounds", "tcp/tracker/time_charge"),
    "recovery": ("tcp", "event"),
    "end of connection": ("tcp/tracker/end_stall", "tcp/path/bottleneck", "tcp/budget/reassignment"),
}
REST = "rest"
TOTAL = "total"
BUDGET = Path(__file__).resolve().parent.parent / "budget.toml"
# Hash seeds move instructions by less than 1 %, and the addresses of memory move misses by a few. Another compiler has
# another standard library: only its total is comparable.
TOLERANCE = 0.02
MISSES = 0.1
OTHER_COMPILER = 0.15
SOURCES = "src/"
# Instructions name their source files, and are those of CI: an incremental build takes a fifth more.
BUILD = {
    "CARGO_INCREMENTAL": "0",
    "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
    "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only",
}
MOST_LEVELS = 60
_STAGE_OF = {name: stage for stage, names in STAGES.items() for name in names}


@dataclass(frozen=True)
class Cost:
    """Cost per packet. The misses are those of data."""

    instructions: float = 0
    d1_misses: float = 0
    l2_misses: float = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.instructions + other.instructions,
            self.d1_misses + other.d1_misses,
            self.l2_misses + other.l2_misses,
        )

    def times(self, factor: float) -> "Cost":
        return Cost(self.instructions * factor, self.d1_misses * factor, self.l2_misses * factor)


class Profile:
    """A callgrind profile: the cost of each place, and what its calls of libraries cost with all that these call.

    A place is a file of the engine, or a function of a library.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.own: defaultdict[str, Cost] = defaultdict(Cost)
        self.calls: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._names: dict[tuple[str, str], str] = {}
        events: list[str] = []
        place = function = callee = ""
        is_call = False
        for line in lines:
            key, _, value = line.rstrip("\n").partition("=")
            if line.startswith("events:"):
                events = line.split()[1:]
            elif key == "fl":
                file = engine_file(self._name("file", value))
            elif key == "fn":
                function = self._name("function", value)
                place = file or function
            elif key in ("fi", "fe"):
                # Libraries' inlined lines belong to the file around them.
                place = engine_file(self._name("file", value)) or place
            elif key in ("cfi", "cfl"):
                self._name("file", value)
            elif key == "cfn":
                callee = self._name("function", value)
            elif key == "calls":
                is_call = True
            elif line[0] in "0123456789+-*":
                counts = dict(zip(events, map(int, line.split()[1:]), strict=False))
                if is_call:
                    self.calls[callee][place] += counts["Ir"]
                else:
                    self.own[place] += Cost(
                        counts["Ir"],
                        counts.get("D1mr", 0) + counts.get("D1mw", 0),
                        counts.get("DLmr", 0) + counts.get("DLmw", 0),
                    )
                is_call = False

    def _name(self, kind: str, text: str) -> str:
        number, _, name = text.partition(" ")
        return self._names.setdefault((kind, number), name)

    def by_stage(self) -> dict[str, Cost]:
        """Return the cost of each stage; a library's function shares its own among its callers in proportion."""
        stages: defaultdict[str, Cost] = defaultdict(Cost)
        left = dict(self.own)
        # Libraries call each other a few levels deep, and seldom in circles.
        for _ in range(MOST_LEVELS):
            onward: defaultdict[str, Cost] = defaultdict(Cost)
            for place, cost in left.items():
                callers = {} if place.startswith(SOURCES) else self.calls.get(place, {})
                total_spent = sum(callers.values())
                if total_spent == 0:
                    stages[stage_of(place)] += cost
                for caller, spent in callers.items():
                    onward[caller] += cost.times(spent / total_spent)
            left = onward
        for cost in left.values():
            stages[REST] += cost
        return dict(stages)


def engine_file(path: str) -> str:
    """Return the path of a source file from `src` on; "" for those of libraries."""
    _, found, inner = path.partition("/tcpwin/engine/" + SOURCES)
    return SOURCES + inner if found else ""


def stage_of(place: str) -> str:
    """Return the stage to which a file of the engine belongs."""
    name = place.removeprefix(SOURCES).removesuffix(".rs") if place.startswith(SOURCES) else ""
    while name:
        if (stage := _STAGE_OF.get(name)) is not None:
            return stage
        name = name.rpartition("/")[0]
    return REST


def measure(folder: Path, *, release: bool = False) -> dict[str, dict[str, Cost]]:
    """Make a small capture of each shape and return what tracking it costs per packet, by shape and stage.

    Raises `ValueError` where the build names no lines of source, without which no instruction belongs to a stage.
    """
    generate, track = (build_example(name, release=release, environment=BUILD) for name in ("generate", "track"))
    measured = {}
    for shape, arguments in SHAPES.items():
        capture, profile = folder / f"{shape}.capture", folder / f"{shape}.callgrind"
        subprocess.run([generate, *arguments, capture], check=True, capture_output=True)
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", *CACHES, f"--callgrind-out-file={profile}"]
        subprocess.run([*command, track, capture], check=True, capture_output=True)
        with profile.open() as lines:
            costs = Profile(lines).by_stage()
        if not costs.keys() - {REST}:
            raise ValueError(f"{track}: no instruction names its line of source: was it built with line tables?")
        measured[shape] = {stage: costs.get(stage, Cost()).times(1 / PACKETS) for stage in (*STAGES, REST)}
    return measured


def total(costs: Mapping[str, Cost]) -> Cost:
    """Return the cost of all stages."""
    return sum(costs.values(), Cost())


@dataclass(frozen=True)
class Budget:
    """What may be spent per packet, by shape and stage, when this compiler built the engine."""

    compiler: str
    instructions: Mapping[str, Mapping[str, float]]
    misses: Mapping[str, Mapping[str, float]]


def compiler() -> str:
    """Return the version of the Rust compiler."""
    return subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]


def read_budget() -> Budget:
    """Read the budget."""
    return Budget(**tomllib.loads(BUDGET.read_text()))


def write_budget(measured: Mapping[str, Mapping[str, Cost]]) -> None:
    """Make what was measured the budget."""
    lines = [
        "# Per packet, in the build of `cargo test`; written by `python tests/benchmark/stages.py --write`.",
        f'compiler = "{compiler()}"',
    ]
    for shape, costs in measured.items():
        lines += ["", f"[instructions.{shape}]"]
        lines += [f'"{stage}" = {cost.instructions:.0f}' for stage, cost in costs.items()]
        lines += [f'"{TOTAL}" = {total(costs).instructions:.0f}']
    for shape, costs in measured.items():
        lines += ["", f"[misses.{shape}]", f"d1 = {total(costs).d1_misses:.2f}", f"l2 = {total(costs).l2_misses:.2f}"]
    BUDGET.write_text("\n".join(lines) + "\n")


def exceeded(costs: Mapping[str, Cost], budget: Budget, shape: str) -> list[str]:
    """Return what costs more than the budget allows, one sentence each."""
    is_same = budget.compiler == compiler()
    sums = total(costs)
    spent = {stage: cost.instructions for stage, cost in costs.items()} | {TOTAL: sums.instructions}
    rows = [
        (f"instructions, {stage}", spent[stage], allowed, TOLERANCE if is_same else OTHER_COMPILER)
        for stage, allowed in budget.instructions[shape].items()
        if stage == TOTAL or (is_same and stage != REST)
    ]
    misses = budget.misses[shape]
    rows += [("D1 misses", sums.d1_misses, misses["d1"], MISSES), ("L2 misses", sums.l2_misses, misses["l2"], MISSES)]
    return [
        f"{shape}: {name}: {now:,.2f} per packet, {now / allowed - 1:.1%} above the budget of {allowed:,.2f}"
        for name, now, allowed, tolerance in rows
        if now > allowed * (1 + tolerance)
    ]
