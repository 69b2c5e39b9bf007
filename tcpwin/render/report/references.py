"""Compare the connections of a report with their nearest references: verdict, table, nearest runs, prediction.

In: connections shown in full, and their comparisons. Out: text for each connection that has a sufficiently near
reference, and the reasons why the others have none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.reference import Comparison
    from tcpwin.render.view.connection import ConnectionView


@dataclass(frozen=True, slots=True)
class LikeView:
    """A connection compared with references.

    Attributes:
        connection: its number; `ends` its ends.
        verdict, agreement: sentences; `agreement` says whether the memory model's window is the observed one.
        references: the nearest run, and the verdict's run if that is another.
        rows: name, this connection's figure, those of the runs.
        nearest: runs with their distance, and why they are near.
        prediction: the expected result with the settings of the best run: text, lines for sysctl, and assumptions.
    """

    connection: int
    ends: str
    verdict: str
    agreement: str
    references: Sequence[str]
    rows: Sequence[Sequence[str]]
    nearest: Sequence[tuple[str, str, str]]
    prediction: str
    lines: Sequence[str]
    assumptions: Sequence[str]


@dataclass(frozen=True, slots=True)
class LabView:
    """A connection next to the runs of the lab's library that fit.

    Attributes:
        connection: its number; `ends` its ends.
        text: the results in one sentence.
        heads, rows: the table, see `tcpwin.reference.Fits`.
        says: what each run shows, one sentence each.
        why_not: why no run shows it as it is; empty if one does.
    """

    connection: int
    ends: str
    text: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    says: Sequence[str]
    why_not: str


@dataclass(frozen=True, slots=True)
class TwinView:
    """A connection and runs like it in the lab's kernel, made for this report.

    Attributes:
        connection: its number; `ends` its ends, which the report adds.
        text: what the runs show, or why there is none.
        heads, rows: the behaviour of the capture and the runs; empty without a run.
        doubts: reasons for doubt, one sentence each.
        document: the twin as an object of a JSON document; empty without a run.
    """

    connection: int
    text: str
    ends: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    doubts: Sequence[str] = ()
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FarView:
    """Connections without a sufficiently near reference, for one reason."""

    connections: Sequence[int]
    why: str


def describe_likeness(pairs: Iterable[tuple[ConnectionView, Comparison]]) -> tuple[list[LikeView], list[FarView]]:
    """Describe comparisons in words, in their order."""
    near: list[LikeView] = []
    far: dict[str, list[int]] = defaultdict(list)
    for view, comparison in pairs:
        if comparison.why_not is not None:
            far[name_text(comparison.why_not)].append(view.connection.id)
        else:
            near.append(_describe(view, comparison))
    return near, [FarView(ids, why) for why, ids in far.items()]


def describe_lab(pairs: Iterable[tuple[ConnectionView, Comparison]]) -> list[LabView]:
    """Describe the runs of the lab's library that fit, for the connections that have any."""
    return [
        LabView(
            connection=view.connection.id,
            ends=view.ends,
            text=fits.text,
            heads=fits.heads,
            rows=[[name_text(cell or "–") for cell in row] for row in fits.cells],
            says=[f"{each.role}: {each.text}" for each in fits.found],
            why_not=fits.why_not or "",
        )
        for view, comparison in pairs
        if (fits := comparison.lab) is not None and fits.text is not None
    ]


def describe_twins(views: Iterable[ConnectionView], twins: Mapping[int, TwinView]) -> list[TwinView]:
    """Return the twins of the connections shown, with their ends."""
    return [
        replace(twins[view.connection.id], ends=view.ends, text=name_text(twins[view.connection.id].text))
        for view in views
        if view.connection.id in twins
    ]


def _describe(view: ConnectionView, comparison: Comparison) -> LikeView:
    prediction = comparison.prediction
    return LikeView(
        connection=view.connection.id,
        ends=view.ends,
        verdict=name_text(comparison.verdict or ""),
        agreement=name_text(comparison.agreement or ""),
        references=[f"{run.reference}/{run.name}" for run in comparison.beside],
        rows=[[name_text(cell or "–") for cell in row] for row in comparison.cells],
        nearest=[
            (f"{near.run.reference}/{near.run.name}", f"{near.distance:.2f}", name_text("; ".join(near.why)))
            for near in comparison.nearest
        ],
        prediction="" if prediction is None else name_text(prediction.text),
        lines=() if prediction is None else [name_text(line) for line in prediction.lines],
        assumptions=() if prediction is None else [name_text(each.rstrip(";")) for each in prediction.assumptions],
    )
