"""The page of references: published results and the lab's runs as tables, and their matrices as heat maps."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from math import log
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin.lab import FAMILY_TITLES
from tcpwin.paths import PAYLOAD_SHARE
from tcpwin.reference import Cell, LabRun, Reference, Run, is_ours, library, matrix, references
from tcpwin.render import rates_text, run_facts
from tcpwin.units import binary_text, rate_text, time_text
from tcpwin_web.api.parts import ServiceOf, analysed, detailed
from tcpwin_web.pages.parts import show
from tcpwin_web.results import layout, queries

QUEUE = ("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop")
SHARES = (0.9, 0.5, 0.2, 0.05)
"""Shares of the path's rate at which a paler colour begins; below the last is the darkest."""
COUNTS = (1, 100, 10_000, 500_000)
"""Counts at which a darker colour begins."""
WORKLOADS = {"oscillating-reader": "Oscillating reader", "iperf3": "Bulk (iperf3)"}


@dataclass(frozen=True)
class Shade:
    """A cell of a heat map: its text, and its darkness from 0 (good) to 4; None without a value."""

    lines: Sequence[str] = ("–",)
    level: int | None = None
    is_near: bool = False
    """Whether the run is one of those nearest to the viewer's connection."""
    columns: int = 1
    """Number of columns it spans."""


@dataclass(frozen=True)
class HeatRow:
    """One source's runs of all settings over one path with one kernel."""

    rtt: str
    kernel: str
    source: str
    shades: Sequence[Shade]
    is_yours: bool = False


@dataclass(frozen=True)
class HeatMap:
    """One quantity of one workload."""

    title: str
    columns: Sequence[str]
    rows: Sequence[HeatRow]


@dataclass(frozen=True)
class Yours:
    """The viewer's connection, shown among the references.

    Attributes:
        capture: name of its capture.
        path: path of its page.
        comparison: comparison with the nearest references, as the API describes it.
    """

    capture: str
    path: str
    comparison: Mapping[str, Any]

    @property
    def measured(self) -> Mapping[str, Any]:
        """Its measurements; empty without data."""
        return self.comparison["measured"] or {}

    @property
    def is_drawn(self) -> bool:
        """Whether it has a row in the maps."""
        return self.measured.get("workload") in WORKLOADS and bool(self.measured.get("rtt_ns"))

    @property
    def has_near(self) -> bool:
        """Whether the maps contain a run near it."""
        return any(run is not None and self.is_near(run) for cell in matrix() for run in (cell.published, cell.ours))

    def is_near(self, run: Run) -> bool:
        """Whether this run is one of those nearest to it."""
        near = [(each["run"]["reference"], each["run"]["name"]) for each in self.comparison["nearest"]]
        return (run.reference, run.name) in near


@dataclass(frozen=True)
class ReferenceTable:
    """A reference as a table, with a column for each kind of fact that any of its runs states."""

    reference: Reference
    columns: Sequence[str]
    rows: list[tuple[str, Sequence[Sequence[str]]]] = field(default_factory=list)


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the route."""
    router = APIRouter()

    @router.get("/references")
    async def show_references(
        request: Request,
        service: ServiceOf,
        capture: Annotated[str, Query(max_length=64, pattern=r"^[A-Za-z0-9_-]*$")] = "",
        connection: Annotated[int, Query(ge=0, le=(1 << 32) - 1)] = 0,
    ) -> Response:
        yours = None
        if capture:
            found = await detailed(service, await analysed(service, capture), connection)
            folder = service.data.results(capture) / layout.connection(connection)
            document = await asyncio.to_thread(queries.read_document, folder, layout.CONNECTION)
            yours = Yours(found.name, f"/captures/{capture}/connections/{connection}", document["comparison"])
        drawn, groups = _drawn()
        drawn = drawn if yours is None else heat_maps(matrix(), yours)
        return show(
            templates,
            request,
            "references.html",
            heat_maps=drawn,
            groups=groups,
            yours=yours,
            library_maps=library_maps(),
            library_size=len(library()),
        )

    return router


@cache
def _drawn() -> tuple[list[HeatMap], list[tuple[str, list[ReferenceTable]]]]:
    """Return the heat maps and tables of the packaged data, made once."""
    known = list(references().values())
    groups = [
        ("Published results", [make_table(each) for each in known if not is_ours(each)]),
        ("Runs of the lab", [make_table(each) for each in known if is_ours(each)]),
    ]
    return heat_maps(matrix()), groups


_COLUMN_UNITS = {"mbps": "Mbit/s", "percent": "%", "kb": "kB"}


@cache
def library_maps() -> list[HeatMap]:
    """Return a map of throughput for each family of the lab's own runs: round trips by what was restricted."""
    grouped: dict[tuple[str, str], list[tuple[str, LabRun]]] = defaultdict(list)
    for name, run in library().items():
        _, column, *variant = name.removeprefix(f"{run.family}-").split("-")
        grouped[run.family, " ".join(variant)].append((column, run))
    order = {family: number for number, (family, _) in enumerate(grouped)}
    # Short variants first: 6 round trips before 12.
    groups = sorted(grouped.items(), key=lambda group: (order[group[0][0]], len(group[0][1]), group[0][1]))
    return [_library_map(family, variant, runs) for (family, variant), runs in groups]


def _library_map(family: str, variant: str, runs: Sequence[tuple[str, LabRun]]) -> HeatMap:
    columns = sorted({column for column, _ in runs}, key=lambda column: float(_split(column)[0]))
    rows = []
    for rtt_ns in sorted({run.rtt_ns for _, run in runs}):
        found = {column: run for column, run in runs if run.rtt_ns == rtt_ns}
        shades = [_library_shade(found.get(column)) for column in columns]
        rows.append(HeatRow(time_text(rtt_ns), "", "", shades))
    words = f", {', '.join(map(_variant_words, variant.split()))}" if variant else ""
    labels = [" ".join(_split(column)) for column in columns]
    return HeatMap(f"{FAMILY_TITLES[family]}{words}", labels, rows)


def _variant_words(variant: str) -> str:
    if variant.endswith("rtt"):
        return f"{variant.removesuffix('rtt')} of them"
    if variant.startswith("scale"):
        return f"tcp_adv_win_scale {variant.removeprefix('scale')}"
    return {"bbr": "BBR", "reno": "Reno"}.get(variant, f"{variant} kernel")


def _split(column: str) -> tuple[str, str]:
    """Divide ``1.5mbps`` into the number and its unit."""
    for suffix, unit in _COLUMN_UNITS.items():
        if column.endswith(suffix):
            return column.removesuffix(suffix), unit
    return column, ""


def _library_shade(run: LabRun | None) -> Shade:
    """Shade a run by its throughput as a share of what its path carries."""
    if run is None:
        return Shade()
    share = run.goodput_bps / (run.path_rate_bps * PAYLOAD_SHARE)
    return Shade((rate_text(run.goodput_bps),), sum(share < each for each in SHARES))


def make_table(reference: Reference) -> ReferenceTable:
    """Return the runs of a reference as a table."""
    named = []
    columns: dict[str, None] = {}
    for run in reference.runs:
        facts: dict[str, list[str]] = defaultdict(list)
        for name, text in run_facts(run):
            facts[name].append(text)
        columns.update(dict.fromkeys(facts))
        named.append((run.name, facts))
    table = ReferenceTable(reference, list(columns))
    table.rows.extend((name, [facts.get(column, ()) for column in columns]) for name, facts in named)
    return table


def heat_maps(cells: Iterable[Cell], yours: Yours | None = None) -> list[HeatMap]:
    """Return maps of throughput and receive queue pressure per workload, with the viewer's connection in its own."""
    maps = []
    for workload, found in groupby(cells, key=lambda cell: cell.workload):
        of_workload = list(found)
        words = WORKLOADS.get(workload, workload)
        mine = yours if yours is not None and yours.measured.get("workload") == workload else None
        maps.append(_heat_map(f"{words}: Mbit/s by loop, least to most", of_workload, rate_shade, mine, your_rate))
        maps.append(_heat_map(f"{words}: receive queue pressure", of_workload, queue_shade, mine, your_queue))
    return maps


def _heat_map(
    title: str,
    cells: Sequence[Cell],
    shade: Callable[[Run | None], Shade],
    mine: Yours | None,
    shade_mine: Callable[[Mapping[str, Any]], Shade],
) -> HeatMap:
    settings = list(dict.fromkeys((cell.rmem_max_bytes, cell.adv_win_scale) for cell in cells))
    rows: list[HeatRow] = []
    trips_ns: list[int] = []
    for (rtt_ns, is_patched), found in groupby(cells, key=lambda cell: (cell.rtt_ns, cell.is_patched)):
        by_setting = {(cell.rmem_max_bytes, cell.adv_win_scale): cell for cell in found}
        of_row = [by_setting.get(each) for each in settings]
        kernel = "patched" if is_patched else "stock"
        for source in ("published", "ours"):
            runs: list[Run | None] = [None if cell is None else getattr(cell, source) for cell in of_row]
            if any(runs):
                shades = [
                    replace(shade(run), is_near=mine is not None and run is not None and mine.is_near(run))
                    for run in runs
                ]
                rows.append(HeatRow(time_text(rtt_ns), kernel, source, shades))
                trips_ns.append(rtt_ns)
    if mine is not None and mine.measured["rtt_ns"]:
        row = _your_row(mine.measured, settings, shade_mine)
        rows.insert(_place_of(mine.measured["rtt_ns"], trips_ns), row)
    return HeatMap(title, [f"{binary_text(size)} at {scale:+d}" for size, scale in settings], rows)


def _place_of(rtt_ns: int, trips_ns: Sequence[int]) -> int:
    """Return the index after the rows of the nearest round trip, by ratio."""
    nearest_ns = min(trips_ns, key=lambda each: abs(log(each / rtt_ns)))
    return len(trips_ns) - trips_ns[::-1].index(nearest_ns)


def _your_row(
    measured: Mapping[str, Any], settings: Sequence[tuple[int, int]], shade: Callable[[Mapping[str, Any]], Shade]
) -> HeatRow:
    """Return the connection's row: in the column of its settings, or across all columns if there is none."""
    kernel = {True: "patched", False: "stock", None: "unknown kernel"}[measured["is_patched"]]
    own = measured["rmem_max_bytes"], measured["adv_win_scale"]
    mine = shade(measured)
    if own in settings:
        shades = [mine if each == own else Shade() for each in settings]
    else:
        where = "settings not known" if None in own else f"{binary_text(own[0])} at {own[1]:+d}"
        shades = [Shade((f"{where}: {', '.join(mine.lines)}",), mine.level, columns=len(settings))]
    return HeatRow(time_text(measured["rtt_ns"]), kernel, "yours", shades, is_yours=True)


def your_rate(measured: Mapping[str, Any]) -> Shade:
    """Shade a connection by its best second as a share of the path's rate, if known."""
    best_bps, path_bps = measured["best_second_bps"], measured["path_rate_bps"]
    level = sum(best_bps / path_bps < each for each in SHARES) if best_bps and path_bps else None
    best = "" if not best_bps else f" (best second {rate_text(best_bps)})"
    return Shade((f"{rate_text(measured['goodput_bps'])}{best}",), level)


def your_queue(measured: Mapping[str, Any]) -> Shade:
    """Shade a connection by its host's counters, if known."""
    return _queue({name: measured["counters"][name] for name in QUEUE if name in measured["counters"]})


def rate_shade(run: Run | None) -> Shade:
    """Shade a run by the best second of its slowest loop, as a share of the path's rate."""
    if run is None or not run.throughput or not run.rate_bps:
        return Shade() if run is None or not run.verdict else Shade((run.verdict,))
    share = min(each.most_bps for each in run.throughput) / run.rate_bps
    return Shade(rates_text(run).split(" / "), sum(share < each for each in SHARES))


def queue_shade(run: Run | None) -> Shade:
    """Shade a run by its largest counter of collapsed or dropped segments or of queue prunings."""
    stated = {} if run is None else {name: run.counters[name] for name in QUEUE if name in run.counters}
    return _queue(stated)


def _queue(stated: Mapping[str, int]) -> Shade:
    if not stated:
        return Shade()
    suffered = [
        f"{name.removeprefix('TcpExt').removeprefix('TCP')} {count:,}" for name, count in stated.items() if count
    ]
    return Shade(suffered or ("0",), sum(max(stated.values()) >= each for each in COUNTS))
