"""The kinds of figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Panel
    from tcpwin.figures.drawing.request import Request

SCOPES = ("connection", "analysis")


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure.

    Attributes:
        name: the name by which users ask for it, in kebab-case: ``time-sequence``.
        title: a few words above the figure.
        scope: ``connection`` or ``analysis``: its subject.
        page: the module's docstring, in Markdown: what is drawn, by which rule, how to read it.
        draw: from a request to a panel; raises `Nothing` if there is nothing to show.
        has_directions: it shows the data of one direction.
        has_time_axis: its horizontal axis is time, which it can share with others.
        has_fields: it draws one of several fields or runs, chosen by name.
        is_in_timeline: a timeline shows it by default.
        limits: connections with one of these limits get it in the timeline, too.
        order: place in lists, and from top to bottom of a timeline.
    """

    name: str
    title: str
    scope: str
    page: str
    draw: Callable[[Request], Panel]
    has_directions: bool = True
    has_time_axis: bool = True
    has_fields: bool = False
    is_in_timeline: bool = False
    limits: frozenset[str] = frozenset()
    order: int = 100

    def is_shown_of(self, limit: str) -> bool:
        """Return true if the default timeline of a connection with this limit includes it."""
        return self.is_in_timeline or limit in self.limits

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.strip().partition("\n\n")[0].replace("\n", " ")


class Nothing(Exception):  # noqa: N818
    """Raised if there is nothing to show; the figure displays the reason instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
