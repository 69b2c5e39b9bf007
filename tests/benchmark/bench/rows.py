"""Runs → rows: each a measure of tcpwin, pair by pair, next to its bound and aim.

A ratio is judged by its median over the rounds, peak memory by its highest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from . import tools
from .captures import MIB, SHAPED, Capture
from .measure import Run

# (tool, capture) → one run per round. A slow tool has fewer rounds; round i pairs with round i.
Runs = Mapping[tuple[str, str], Sequence[Run]]

VERSION = "--version"
# Below the clock's precision: keeps a ratio finite if start-up is everything.
LEAST_NET_S = 0.001


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    values: tuple[float, ...]
    must: float | None
    aim: float | None
    by_highest: bool = False

    @property
    def value(self) -> float:
        return max(self.values) if self.by_highest else median(self.values)

    @property
    def holds(self) -> bool | None:
        return None if self.must is None else self.value <= self.must

    @property
    def reaches_aim(self) -> bool | None:
        return None if self.aim is None else self.value <= self.aim


def all_rows(runs: Runs, captures: Mapping[str, Capture]) -> list[Row]:
    """Return every row for which there are runs, in the order of the table."""
    rows = [
        *_against_peers(runs),
        *_memory(runs, captures),
        *_own_costs(runs, captures),
        *_wall(runs),
        *_outputs(runs),
    ]
    return [row for row in rows if row.values]


def _pairs(runs: Runs, measure: Callable[..., float], *keys: tuple[str, str]) -> tuple[float, ...]:
    """Return the measure of each round that has all of these runs."""
    columns = [runs.get(key, ()) for key in keys]
    return tuple(measure(*together) for together in zip(*columns, strict=False))


def _against_peers(runs: Runs) -> list[Row]:
    def row(capture: str, peer: str, must: float | None, aim: float | None) -> Row:
        keys = ((tools.TCPWIN_ONE, capture), (peer, capture))
        values = _pairs(runs, lambda ours, theirs: ours.cpu_s / max(theirs.cpu_s, LEAST_NET_S), *keys)
        return Row(f"{capture}: CPU over `{peer}`", "ratio", values, must, aim)

    return [
        row("B", tools.TCPTRACE_ALL, 0.33, 0.2),
        row("C", tools.TCPTRACE_ALL, 1 / 3.5, 1 / 5),
        row("D", tools.TCPTRACE, 1 / 14, 1 / 20),
        row("B", tools.TSHARK, 1 / 100, 1 / 150),
        # Start-up weighs ten times more on A, which replaces B in a quick run and is not judged.
        row("A", tools.TSHARK, None, None),
        row("A", tools.TCPDUMP, None, 1.0),
        row("B", tools.TCPDUMP, 2, 1.2),
        row("B", tools.EARLIER, 1.1, 0.7),
    ]


def _memory(runs: Runs, captures: Mapping[str, Capture]) -> list[Row]:
    rows = []
    for name in ("A", "B", "C", "D", *SHAPED):
        if name not in captures:
            continue
        connections = captures[name].connections
        eventful = connections if captures[name].eventful is None else captures[name].eventful
        peaks = _pairs(runs, lambda run: run.peak_bytes / MIB, (tools.TCPWIN, name))
        must = 60 + (600 * connections + 250 * eventful) / MIB
        aim = 40 + (400 * connections + 150 * eventful) / MIB
        rows.append(Row(f"{name}: peak memory", "MiB", peaks, must, aim, by_highest=True))
    growth = _pairs(runs, _peak_growth_mib, (tools.TCPWIN, "A"), (tools.TCPWIN, "B"))
    rows.append(Row("A → B: growth of peak memory", "MiB", growth, 10, None, by_highest=True))
    return rows


def _peak_growth_mib(before: Run, after: Run) -> float:
    return (after.peak_bytes - before.peak_bytes) / MIB


def _net_s(run: Run, startup: Run) -> float:
    return max(run.cpu_s - startup.cpu_s, LEAST_NET_S)


def _own_costs(runs: Runs, captures: Mapping[str, Capture]) -> list[Row]:
    """Measure tcpwin's own costs without start-up, which would distort them."""
    startup = (tools.TCPWIN_ONE, "small")

    def per_packet(name: str, base: str) -> tuple[float, ...]:
        if name not in captures or base not in captures:
            return ()
        packets, base_packets = captures[name].packets, captures[base].packets

        def measure(run: Run, base_run: Run, startup_run: Run) -> float:
            return (_net_s(run, startup_run) / packets) / (_net_s(base_run, startup_run) / base_packets)

        return _pairs(runs, measure, (tools.TCPWIN_ONE, name), (tools.TCPWIN_ONE, base), startup)

    gzip = _pairs(
        runs,
        lambda run, startup_run, inflate: _net_s(run, startup_run) / max(inflate.cpu_s, LEAST_NET_S),
        (tools.TCPWIN_ONE, "A.gz"),
        startup,
        (tools.INFLATE, "A.gz"),
    )

    def over_python(key: tuple[str, str]) -> tuple[float, ...]:
        keys = (key, (tools.PYTHON, "small"))
        return _pairs(runs, lambda run, python: run.cpu_s / max(python.cpu_s, LEAST_NET_S), *keys)

    return [
        Row("B over A: CPU per packet, less start-up", "ratio", per_packet("B", "A"), 1.35, 1.2),
        Row("D over B: CPU per packet, less start-up", "ratio", per_packet("D", "B"), 7, 5),
        Row("E over A: pcapng over pcap, less start-up", "ratio", per_packet("E", "A"), 1.3, 1.2),
        Row("A.gz: CPU over inflating alone, less start-up", "ratio", gzip, 1.6, 1.3),
        Row("100 packets: CPU over `python3 -c pass`", "ratio", over_python(startup), 2.5, 1.7),
        Row("`--version`: CPU over `python3 -c pass`", "ratio", over_python((tools.TCPWIN_ONE, VERSION)), 1.4, 1.2),
    ]


def _wall(runs: Runs) -> list[Row]:
    """Compare the time that passes, as people run the commands."""

    def row(name: str, what: str, ours: tuple[str, str], theirs: tuple[str, str], must: float, aim: float) -> Row:
        values = _pairs(runs, lambda one, other: one.wall_s / max(other.wall_s, LEAST_NET_S), ours, theirs)
        return Row(f"{name}: wall time {what}", "ratio", values, must, aim)

    own, one, two = tools.TCPWIN, tools.TCPWIN_ONE, tools.TCPWIN_TWO
    return [
        row("B", f"over `{tools.TCPTRACE_ALL}`", (own, "B"), (tools.TCPTRACE_ALL, "B"), 0.2, 0.12),
        row("B.gz", f"over `{tools.GZIP}`", (own, "B.gz"), (tools.GZIP, "B.gz"), 0.5, 0.4),
        *(row(name, "of two threads over one", (two, name), (one, name), 0.62, 0.55) for name in ("B", "D")),
    ]


def _outputs(runs: Runs) -> list[Row]:
    def over(tool: str, name: str) -> tuple[float, ...]:
        keys = ((tool, name), (tools.TCPWIN_ONE, name))
        return _pairs(runs, lambda run, one: run.cpu_s / max(one.cpu_s, LEAST_NET_S), *keys)

    def peaks(tool: str, name: str) -> tuple[float, ...]:
        return _pairs(runs, lambda run: run.peak_bytes / MIB, (tool, name))

    pair = ((tools.LIBRARY, "D"), (tools.POLARS, "D"))
    table_ms = _pairs(runs, lambda before, after: 1000 * (after.cpu_s - before.cpu_s), *pair)
    return [
        Row("B: CPU of csv over analyze", "ratio", over(tools.CSV, "B"), 1.8, 1.5),
        Row("B: CPU of Parquet over analyze", "ratio", over(tools.PARQUET, "B"), 2.5, 1.8),
        Row("B: peak memory of Parquet", "MiB", peaks(tools.PARQUET, "B"), 120, 80, by_highest=True),
        Row("D: CPU of `--json`", "ms", _pairs(runs, lambda run: 1000 * run.cpu_s, (tools.JSON, "D")), 12_000, 6_000),
        Row("D: peak memory of `--json`", "MiB", peaks(tools.JSON, "D"), 700, None, by_highest=True),
        Row("D: CPU of a polars table of 20 columns", "ms", table_ms, 500, 200),
        Row("D: memory of that table", "MiB", _pairs(runs, _peak_growth_mib, *pair), 250, None, by_highest=True),
    ]
