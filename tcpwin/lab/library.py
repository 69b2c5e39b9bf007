"""The library of runs: transfers over a grid of paths, each with one limit, and the best that each path gives.

In: nothing but the grid. Out: scenarios by name, and after a run its record, one JSON object. The names of the
families say what was set; what limited a run is in its record, as tcpwin judges the capture at its sender.

Every path has a run with room for everything (`full`), which is what its other runs would be without their limit.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin.errors import TcpwinError
from tcpwin.lab.run import Outcome, run_scenario
from tcpwin.lab.scenario import Scenario, read_scenario
from tcpwin.lab.side_by_side import side_by_side
from tcpwin.lab.toml_text import render_toml
from tcpwin.output import append_whole, open_whole

if TYPE_CHECKING:
    from tcpwin.analysis import DirectionName, SeriesName
    from tcpwin.limits import Connection

Table = dict[str, Any]

RTTS_MS = (0.3, 1.0, 2.5, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 300.0)
RATES_MBPS = (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
"""Steps of about 1.5: two runs are less than 25 % from any rate between them."""
SLOW_MBPS = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7)
"""Rates of transfers that are slower than any path here."""
PACE_RTTS_MS = (1.0, 2.5, 10.0, 20.0, 50.0, 100.0, 300.0)
PACES_MBPS = (0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150)
"""Round trips and rates of transfers that an application slows down, for which the round trip matters little."""
FEW_RTTS_MS = (5.0, 20.0, 50.0, 100.0, 200.0)
FEW_RATES_MBPS = (2, 5, 10, 20, 50, 100, 200, 500)
POLICED_MBPS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)
POLICED_RTTS_MS = (1.0, 2.5, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 300.0)
BRIEF_RTTS_MS = (20.0, 50.0, 100.0, 200.0, 300.0)
BRIEF_ROUND_TRIPS = (6, 12)
"""Sizes of short transfers, in multiples of what the path carries in a round trip."""
_CUBIC = "cubic"
ALGORITHMS = (_CUBIC, "reno")
"""Congestion controls that random losses slow down."""
_LEAST_RENO_RTT_MS = 10.0
"""Over shorter round trips CUBIC grows like Reno (RFC 9438 §4.3)."""
LOSS_PERCENT = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 8, 12)
START_RTTS_MS = (10.0, 20.0, 30.0, 50.0, 70.0, 100.0, 150.0, 200.0, 300.0)
START_BYTES = (300_000, 600_000, 1_000_000, 2_000_000, 3_000_000, 6_000_000, 10_000_000, 20_000_000, 30_000_000)
SCALES = (2, 4)
"""Values of tcp_adv_win_scale that assume 1.33 and 1.07 bytes of memory per byte, where frames take 1.47 or more."""
SEEDS = 3
"""Runs with random losses; others do not depend on the seed."""
SAMPLES = 24
"""Points of a run's curves."""
SCHEMA = "tcpwin/library/1"

_MSS_BYTES = 1448
_MATHIS = 1.22
_ROOM = 3.0
"""Least multiple of a limited run's rate that its path carries."""
_ROUND_TRIPS, _SECONDS = 25, 3.0
"""Length of a run at its rate: the longer of both, so that slow start is a small part."""
_LEAST_BYTES, _MOST_BYTES, _MOST_FLIGHTS = 1_000_000, 50_000_000, 6
_LEAST_BRIEF_BYTES = 300_000
_LEAST_QUEUE_BYTES, _MOST_QUEUE_BYTES = 30_000, 40_000_000
_SHALLOW = 0.1
_LEAST_BUFFER_BYTES = 6_291_456
_LARGE_BYTES, _LARGE_MEMORY_MIB = 64 << 20, 4096
_FRAME_MEMORY_BYTES = 3328
_RMEM, _WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_CONTROL, _SCALE = "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_adv_win_scale"
_COUNTERS = (
    *("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop"),
    *("TcpExtTCPToZeroWindowAdv", "TcpRetransSegs"),
)
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Planned:
    """A run to be made.

    Attributes:
        family, name: the family, and the name of run and scenario: ``window-200ms-1.5mbps``.
        kernel: ``stock`` or ``patched``.
        rtt_ms, rate_mbps: the path's.
        table: its scenario, without title and seed.
        seeds: how many of it are run.
    """

    family: str
    name: str
    kernel: str
    rtt_ms: float
    rate_mbps: float
    table: Table = field(default_factory=dict)
    seeds: int = 1

    def scenario(self, seed: int = 1) -> Scenario:
        """Return the scenario with one seed."""
        title = f"{FAMILY_TITLES[self.family]}, {self.rtt_ms:g} ms, {self.rate_mbps:g} Mbit/s"
        return read_scenario(self.name, render_toml({"title": title, "sets": ["library"], "seed": seed, **self.table}))


@cache
def library() -> dict[str, Planned]:
    """Return every run of the library by name."""
    return {each.name: each for family in _FAMILIES.values() for each in family()}


def families() -> tuple[str, ...]:
    """Return the names of the families."""
    return tuple(_FAMILIES)


def sweep_library(
    runs: Iterable[Planned],
    file: Path,
    *,
    jobs: int = 1,
    run: Callable[[Scenario, str, Path], Outcome] = run_scenario,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Make these runs, append a line for each to the file, and return how many failed.

    A run that already has a line is not repeated, so an interrupted sweep continues. `finish_library` brings the lines
    of a complete file into order, after which equal runs give equal bytes.

    Args:
        jobs: runs at the same time.
        say: called for each run with a line of text.
    """
    there = {line["name"] for line in read_lines(file)} if file.exists() else set()
    todo = [each for each in runs if each.name not in there]
    lock = threading.Lock()
    done = 0

    def one(planned: Planned) -> bool:
        nonlocal done
        try:
            with tempfile.TemporaryDirectory(prefix="tcpwin-library-") as folder:
                record = _record(planned, Path(folder), run)
        except TcpwinError as error:
            # Write no line, so that the next sweep tries again.
            say(f"{planned.name}: {error}")
            return False
        with lock:
            append_whole(file, json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
            done += 1
            say(f"{done}/{len(todo)} {planned.name}: {record['goodput_bps'] / 1e6:.3g} Mbit/s, {record['limit']}")
        return True

    return side_by_side(one, todo, jobs).count(False)


def finish_library(file: Path) -> list[str]:
    """Write the lines of a file again, in the library's order; return the names of the runs that are left out.

    Left out are runs that something else limited than what their family restricts: the grid has places where a lossy
    path is still filled, or where a transfer ends before its buffer matters.
    """
    order = {name: number for number, name in enumerate(library())}
    lines = sorted((line for line in read_lines(file) if line["name"] in order), key=lambda line: order[line["name"]])
    kept = [line for line in lines if line["limit"] in _LIMITS[line["family"]]]
    with open_whole(file) as out:
        out.writelines(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in kept)
    there = {line["name"] for line in kept}
    return [line["name"] for line in lines if line["name"] not in there]


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the records in a file."""
    with file.open(encoding="utf8") as lines:
        return [json.loads(line) for line in lines]


def _record(planned: Planned, folder: Path, run: Callable[[Scenario, str, Path], Outcome]) -> dict[str, Any]:
    """Run each seed, and describe the one with the median goodput."""
    found = []
    for seed in range(1, planned.seeds + 1):
        each = folder / str(seed)
        each.mkdir()
        found.append(_judged(run(planned.scenario(seed), planned.kernel, each)))
    rates = [each["goodput_bps"] for each in found]
    middle = rates.index(statistics.median_low(rates))
    spread = {"goodput_low_bps": min(rates), "goodput_high_bps": max(rates)} if planned.seeds > 1 else {}
    return {
        "name": planned.name,
        "family": planned.family,
        "is_patched": planned.kernel == "patched",
        "seeds": planned.seeds,
        "settings": _settings(planned),
        **found[middle],
        **spread,
    }


def _settings(planned: Planned) -> dict[str, Any]:
    """Return what a reader compares with his own: path, buffers, algorithm, application."""
    scenario = planned.scenario()
    path, serve, drive = (planned.table.get(name, {}) for name in ("path", "serve", "drive"))
    workload = planned.table["workload"]
    serve, drive = workload.get("serve", {}), workload.get("drive", {})
    sender, receiver = scenario.sysctl["sender"], scenario.sysctl["receiver"]
    found = {
        "rtt_ms": planned.rtt_ms,
        "rate_mbps": planned.rate_mbps,
        "queue_bytes": path.get("queue_bytes"),
        "loss_percent": path.get("loss_percent"),
        "policer_mbps": path.get("policer_mbps"),
        "algorithm": sender.get(_CONTROL),
        "rmem_max_bytes": _largest(receiver.get(_RMEM)),
        "wmem_max_bytes": _largest(sender.get(_WMEM)),
        "adv_win_scale": int(receiver[_SCALE]) if _SCALE in receiver else None,
        "writer_mbps": serve.get("rate_mbps"),
        "reader_mbps": drive.get("rate_mbps"),
        "bytes": serve["bytes"],
    }
    return {name: value for name, value in found.items() if value is not None}


def _largest(sizes: str | None) -> int | None:
    return None if sizes is None else int(sizes.split()[-1])


def _judged(outcome: Outcome) -> dict[str, Any]:
    """Return what tcpwin finds in the capture at the sender of a run."""
    from tcpwin.limits import analyze

    analysis = analyze(str(outcome.bundle), capture="sender.pcap.gz")
    worst = analysis.worst(1)
    if not worst:
        raise TcpwinError("the run's capture has no connection")
    connection = worst[0]
    direction: DirectionName = "a_to_b" if connection.a_to_b.unique_bytes > connection.b_to_a.unique_bytes else "b_to_a"
    way = connection.a_to_b if direction == "a_to_b" else connection.b_to_a
    verdict = connection.verdicts[direction]
    counters = {
        name: value
        for host in ("receiver", "sender")
        for name, value in outcome.truth["hosts"][host]["counter_increases"].items()
        if name in _COUNTERS and (host == "sender") is (name == _COUNTERS[-1]) and value
    }
    return {
        "kernel": outcome.truth["release"],
        "duration_ms": connection.duration_ns // _MS,
        "goodput_bps": round(way.goodput_bps or 0.0),
        "limit": verdict.limit,
        "second_limit": verdict.second_limit,
        "share": round(verdict.share or 0.0, 3),
        "cost_ms": (verdict.cost_ns or 0) // _MS,
        "confidence": verdict.confidence,
        "counters": counters,
        "curve": _curve(connection, direction),
    }


def _curve(connection: Connection, direction: DirectionName) -> dict[str, list[int]]:
    """Return receive window, flight and acknowledged bytes at equally spaced times."""
    step_ns = max(connection.duration_ns // SAMPLES, 1)
    times = [connection.start_ns + step_ns * (1 + number) for number in range(SAMPLES)]
    found: dict[str, list[int]] = {"step_us": [step_ns // 1000]}
    names: tuple[tuple[SeriesName, str], ...] = (("receive_window", "window_bytes"), ("flight", "flight_bytes"))
    for name, key in names:
        series = connection.series(name, direction=direction)
        found[key] = _held(series.time_ns.tolist(), series.last.tolist(), times)
    series = connection.series("goodput", direction=direction)
    total, sums = 0, []
    for amount in series.sum.tolist():
        total += int(amount)
        sums.append(total)
    found["acked_bytes"] = _held(series.time_ns.tolist(), sums, times)
    return found


def _held(times: Sequence[int], values: Sequence[float], wanted: Iterable[int]) -> list[int]:
    """Return the value in force at each wanted time, to three digits; 0 before the first."""
    places = [bisect_right(times, each) for each in wanted]
    return [_three(int(values[place - 1])) if place else 0 for place in places]


def _three(value: int) -> int:
    return value if value < 1000 else round(value, 3 - len(str(value)))


# The families.


def _path(rtt_ms: float, rate_mbps: float, queue: float = 1.0) -> tuple[Table, int, int]:
    """Return a path with a queue of this multiple of rate times delay, what it holds in flight, and its queue."""
    held = round(rate_mbps * 125 * rtt_ms)
    queue_bytes = round(min(max(queue * held, _LEAST_QUEUE_BYTES), _MOST_QUEUE_BYTES))
    card = max(1000.0, 4 * rate_mbps)
    path = {"rtt_ms": rtt_ms, "rate_mbps": card, "bottleneck_mbps": float(rate_mbps), "queue_bytes": queue_bytes}
    return path, held, queue_bytes


def _bytes(mbps: float, rtt_ms: float, held: int) -> int:
    """Return the size of a transfer that lasts long enough at this rate, and not much longer."""
    seconds = max(_SECONDS, _ROUND_TRIPS * rtt_ms / 1000)
    most = max(_MOST_BYTES, _MOST_FLIGHTS * held)
    return round(min(max(mbps * 125_000 * seconds, _LEAST_BYTES), most))


def _table(
    path: Table,
    total: int,
    ample: int,
    *,
    rmem: int | None = None,
    wmem: int | None = None,
    algorithm: str = _CUBIC,
    serve: Table | None = None,
    drive: Table | None = None,
) -> Table:
    """Return a scenario's table; buffers that are not given hold twice what the path and its queue do."""
    roomy = max(_LEAST_BUFFER_BYTES, 4 * ample)
    rmem, wmem = rmem or roomy, wmem or roomy
    table: Table = {
        "path": path,
        "workload": {"name": "transfer", "serve": {"bytes": total, **(serve or {})}, "drive": drive or {}},
        "sysctl": {"net.ipv4.tcp_mem": "131072 196608 262144", _CONTROL: algorithm},
        "sysctl_sender": {_WMEM: f"4096 {min(16384, wmem)} {wmem}"},
        "sysctl_receiver": {_RMEM: f"4096 {min(131072, rmem)} {rmem}"},
        "measure": {"sample_ms": 0, "quick": True},
    }
    if max(rmem, wmem) > _LARGE_BYTES:
        table["host"] = {"memory_mib": _LARGE_MEMORY_MIB}
    return table


def _roomy(mbps: float) -> float:
    """Return the rate of the path for a transfer that should reach this rate at most."""
    return next((rate for rate in (10, 100, 1000) if rate >= _ROOM * mbps), 1000)


def _named(family: str, rtt_ms: float, mbps: float, rest: str = "") -> str:
    return f"{family}-{rtt_ms:g}ms-{mbps:g}mbps{rest}"


def _full(family: str = "full", queue: float = 1.0) -> Iterator[Planned]:
    few = family != "full"
    for rtt_ms, rate in product(FEW_RTTS_MS if few else RTTS_MS, FEW_RATES_MBPS if few else RATES_MBPS):
        yield _filled(family, rtt_ms, rate, queue)
    if not few:
        for rtt_ms, rate in product(FEW_RTTS_MS, FEW_RATES_MBPS):
            yield _filled(family, rtt_ms, rate, queue, "bbr")


def _filled(family: str, rtt_ms: float, rate: float, queue: float, algorithm: str = _CUBIC) -> Planned:
    path, held, queue_bytes = _path(rtt_ms, rate, queue)
    table = _table(path, _bytes(rate, rtt_ms, held), held + queue_bytes, algorithm=algorithm)
    return Planned(family, _suffixed(_named(family, rtt_ms, rate), algorithm), "stock", rtt_ms, rate, table)


def _brief() -> Iterator[Planned]:
    """Transfers of few round trips at the path's rate, of which slow start is a large part."""
    for rtt_ms, rate, trips in product(BRIEF_RTTS_MS, RATES_MBPS, BRIEF_ROUND_TRIPS):
        path, held, queue_bytes = _path(rtt_ms, rate)
        if _LEAST_BRIEF_BYTES <= trips * held <= _MOST_BYTES:
            table = _table(path, trips * held, held + queue_bytes)
            yield Planned("brief", _named("brief", rtt_ms, rate, f"-{trips}rtt"), "stock", rtt_ms, rate, table)


def _buffers(family: str) -> Iterator[Planned]:
    """A receive or send buffer that holds less than the path."""
    for rtt_ms, mbps in product(RTTS_MS, (*SLOW_MBPS, *RATES_MBPS)):
        rate = _roomy(mbps)
        path, held, queue_bytes = _path(rtt_ms, rate)
        window = round(mbps * 125 * rtt_ms)
        least = 2 if family == "window" else 8
        if not least * _MSS_BYTES <= window <= 0.8 * held:
            continue
        rmem, wmem = (2 * window, None) if family == "window" else (None, 2 * window)
        table = _table(path, _bytes(mbps, rtt_ms, held), held + queue_bytes, rmem=rmem, wmem=wmem)
        yield Planned(family, _named(family, rtt_ms, mbps), "stock", rtt_ms, rate, table)


def _lossy() -> Iterator[Planned]:
    """Random losses, at which Reno would reach at most a third of the path (Mathis et al., 1997)."""
    for algorithm, rtt_ms, percent in product(ALGORITHMS, RTTS_MS, LOSS_PERCENT):
        mbps = _MATHIS * _MSS_BYTES * 8 / (rtt_ms * 1000 * math.sqrt(percent / 100))
        if not 0.05 <= mbps <= 330 or (algorithm != _CUBIC and rtt_ms < _LEAST_RENO_RTT_MS):
            continue
        rate = _roomy(mbps)
        path, held, queue_bytes = _path(rtt_ms, rate)
        path["loss_percent"] = float(percent)
        table = _table(path, _bytes(1.3 * mbps, rtt_ms, 0), held + queue_bytes, algorithm=algorithm)
        name = _suffixed(f"loss-{rtt_ms:g}ms-{percent:g}percent", algorithm)
        yield Planned("loss", name, "stock", rtt_ms, rate, table, SEEDS)


def _suffixed(name: str, algorithm: str) -> str:
    return name if algorithm == _CUBIC else f"{name}-{algorithm}"


def _paced(family: str) -> Iterator[Planned]:
    """A writer or a reader that is slower than the path."""
    for rtt_ms, mbps in product(PACE_RTTS_MS, PACES_MBPS):
        rate = _roomy(mbps)
        path, held, queue_bytes = _path(rtt_ms, rate)
        pace = {"rate_mbps": float(mbps), "chunk_bytes": 16384}
        serve, drive = (pace, {}) if family == "writer" else ({}, pace)
        table = _table(path, _bytes(mbps, rtt_ms, 0), held + queue_bytes, serve=serve, drive=drive)
        yield Planned(family, _named(family, rtt_ms, mbps), "stock", rtt_ms, rate, table)


def _memory() -> Iterator[Planned]:
    """A reader that is fast and slow in turn, and frames that take more memory than the receiver assumes."""
    for rtt_ms, rate, scale, kernel in product((5.0, 20.0, 100.0, 300.0), (10, 100), SCALES, ("stock", "patched")):
        path, held, queue_bytes = _path(rtt_ms, rate)
        total = _bytes(rate, rtt_ms, held)
        drive = {"rate_mbps": 0.05 * rate, "fast_bytes": total // 4, "slow_bytes": max(total // 40, 2 * held)}
        rmem = max(4 * held, 1 << 20)
        table = _table(path, total, held + queue_bytes, rmem=rmem, drive=drive)
        table["host"] = {"frame_memory_bytes": _FRAME_MEMORY_BYTES, "collapse_max_bytes": rmem // 3}
        table["sysctl_receiver"][_SCALE] = scale
        name = _named("memory", rtt_ms, rate, f"-scale{scale}-{kernel}")
        yield Planned("memory", name, kernel, rtt_ms, rate, table)


def _policed() -> Iterator[Planned]:
    """A policer, which drops what exceeds its rate instead of delaying it."""
    for rtt_ms, rate in product(POLICED_RTTS_MS, POLICED_MBPS):
        held = round(rate * 125 * rtt_ms)
        path = {"rtt_ms": rtt_ms, "rate_mbps": max(100.0, 4.0 * rate), "policer_mbps": float(rate)}
        path["policer_burst_bytes"] = max(30_000, held // 2)
        table = _table(path, _bytes(rate, rtt_ms, held), 4 * held)
        yield Planned("policer", _named("policer", rtt_ms, rate), "stock", rtt_ms, rate, table)


def _starts() -> Iterator[Planned]:
    """Transfers that end while their window still grows."""
    for rtt_ms, total in product(START_RTTS_MS, START_BYTES):
        rate = 1000
        path, held, queue_bytes = _path(rtt_ms, rate)
        table = _table(path, total, held + queue_bytes)
        name = f"start-{rtt_ms:g}ms-{total // 1000}kb"
        yield Planned("start", name, "stock", rtt_ms, rate, table)


_FAMILIES: dict[str, Callable[[], Iterator[Planned]]] = {
    "full": _full,
    "brief": _brief,
    "window": lambda: _buffers("window"),
    "send-buffer": lambda: _buffers("send-buffer"),
    "loss": _lossy,
    "reader": lambda: _paced("reader"),
    "writer": lambda: _paced("writer"),
    "memory": _memory,
    "policer": _policed,
    "start": _starts,
    "shallow-queue": lambda: _full("shallow-queue", _SHALLOW),
}
_LIMITS: dict[str, tuple[str, ...]] = {
    "full": ("path_rate", "congestion_control"),
    "brief": ("path_rate", "congestion_control"),
    "window": ("receiver_window",),
    "send-buffer": ("send_buffer",),
    "loss": ("path_loss",),
    "reader": ("receiver_application",),
    "writer": ("sender_application",),
    "memory": ("receiver_memory", "receiver_application"),
    "policer": ("path_policer",),
    "start": ("congestion_control",),
    "shallow-queue": ("path_rate", "path_loss"),
}
"""The limits that a family stands for."""
FAMILY_TITLES = {
    "full": "The path with room for everything",
    "brief": "The path with room for everything, for few round trips",
    "window": "A small receive buffer",
    "send-buffer": "A small send buffer",
    "loss": "Random losses",
    "reader": "A slow reader",
    "writer": "A slow writer",
    "memory": "An oscillating reader, with more memory per frame than assumed",
    "policer": "A policer",
    "start": "A transfer that ends while its window grows",
    "shallow-queue": "A queue of a tenth of what the path holds",
}
"""The restriction of each family, as a title."""
