"""Published results and the lab's runs as tables, and the published matrix beside the lab's as a heat map."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin.reference import Cell, Reference, Run, is_ours, matrix, references
from tcpwin.report._reference import mib_text, rates_text, run_facts
from tcpwin.report._units import time_text
from tcpwin_web.pages.parts import show

QUEUE = ("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed", "TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop")
SHARES = (0.9, 0.5, 0.2, 0.05)
"""Of the path's rate, where a paler colour begins; below the last is the darkest."""
COUNTS = (1, 100, 10_000, 500_000)
"""Where a darker colour begins."""
WORKLOADS = {"oscillating-reader": "Oscillating reader", "iperf3": "Bulk (iperf3)"}


@dataclass(frozen=True)
class Shade:
    """A cell of a heat map: its text, and how dark it is from 0 (well) to 4; None where nothing is stated."""

    lines: Sequence[str] = ("–",)
    level: int | None = None


@dataclass(frozen=True)
class HeatRow:
    """The five settings over one path with one kernel, by one of both sources."""

    rtt: str
    kernel: str
    source: str
    shades: Sequence[Shade]


@dataclass(frozen=True)
class HeatMap:
    """One quantity of one workload."""

    title: str
    columns: Sequence[str]
    rows: Sequence[HeatRow]


@dataclass(frozen=True)
class ReferenceTable:
    """A reference as a table: a column for each kind of fact that any of its runs states."""

    reference: Reference
    columns: Sequence[str]
    rows: list[tuple[str, Sequence[Sequence[str]]]] = field(default_factory=list)


def routes(templates: Jinja2Templates) -> APIRouter:
    """Make the route."""
    router = APIRouter()

    @router.get("/references")
    def show_references(request: Request) -> Response:
        heat_maps, groups = _drawn()
        return show(templates, request, "references.html", heat_maps=heat_maps, groups=groups)

    return router


@cache
def _drawn() -> tuple[list[HeatMap], list[tuple[str, list[ReferenceTable]]]]:
    """Of data that ship with the package: drawn once."""
    known = list(references().values())
    groups = [
        ("Published results", [make_table(each) for each in known if not is_ours(each)]),
        ("Runs of the lab", [make_table(each) for each in known if is_ours(each)]),
    ]
    return heat_maps(matrix()), groups


def make_table(reference: Reference) -> ReferenceTable:
    """Put the runs of a reference into rows."""
    told = []
    columns: dict[str, None] = {}
    for run in reference.runs:
        facts: dict[str, list[str]] = defaultdict(list)
        for name, text in run_facts(run):
            facts[name].append(text)
        columns.update(dict.fromkeys(facts))
        told.append((run.name, facts))
    table = ReferenceTable(reference, list(columns))
    table.rows.extend((name, [facts.get(column, ()) for column in columns]) for name, facts in told)
    return table


def heat_maps(cells: Iterable[Cell]) -> list[HeatMap]:
    """Throughput and what the receive queue suffered, of each workload."""
    maps = []
    for workload, found in groupby(cells, key=lambda cell: cell.workload):
        of_workload = list(found)
        words = WORKLOADS.get(workload, workload)
        maps.append(_heat_map(f"{words}: Mbit/s by loop, least to most", of_workload, rate_shade))
        maps.append(_heat_map(f"{words}: what the receive queue suffered", of_workload, queue_shade))
    return maps


def _heat_map(title: str, cells: Sequence[Cell], shade: Callable[[Run | None], Shade]) -> HeatMap:
    settings = list(dict.fromkeys((cell.rmem_max_bytes, cell.adv_win_scale) for cell in cells))
    rows = []
    for (rtt_ns, is_patched), found in groupby(cells, key=lambda cell: (cell.rtt_ns, cell.is_patched)):
        by_setting = {(cell.rmem_max_bytes, cell.adv_win_scale): cell for cell in found}
        of_row = [by_setting.get(each) for each in settings]
        kernel = "patched" if is_patched else "stock"
        for source in ("published", "ours"):
            runs: list[Run | None] = [None if cell is None else getattr(cell, source) for cell in of_row]
            if any(runs):
                rows.append(HeatRow(time_text(rtt_ns), kernel, source, [shade(run) for run in runs]))
    return HeatMap(title, [f"{mib_text(size)} at {scale:+d}" for size, scale in settings], rows)


def rate_shade(run: Run | None) -> Shade:
    """Coloured by the best second of the slowest loop, as a share of the path's rate."""
    if run is None or not run.throughput or not run.rate_bps:
        return Shade() if run is None or not run.verdict else Shade((run.verdict,))
    share = min(each.most_bps for each in run.throughput) / run.rate_bps
    return Shade(rates_text(run).split(" / "), sum(share < each for each in SHARES))


def queue_shade(run: Run | None) -> Shade:
    """Coloured by the segments collapsed or dropped and the times the queue was pruned, whichever is most."""
    stated = {} if run is None else {name: run.counters[name] for name in QUEUE if name in run.counters}
    if not stated:
        return Shade()
    suffered = [
        f"{name.removeprefix('TcpExt').removeprefix('TCP')} {count:,}" for name, count in stated.items() if count
    ]
    return Shade(suffered or ("0",), sum(max(stated.values()) >= each for each in COUNTS))
