"""The templates' ways to write a number: with its unit, short, and the same everywhere."""

from datetime import UTC, datetime

from fastapi.templating import Jinja2Templates

from tcpwin.report import ITEM_WORDS, frames_filter, threshold_text
from tcpwin.units import begin, bytes_text, rate_text, time_text
from tcpwin_web.pages.prose import prose
from tcpwin_web.pages.verdicts import OWNER_WORDS, limit_words, problem_words


def prepare(templates: Jinja2Templates) -> None:
    """Give the templates these ways."""
    templates.env.filters.update(
        bytes=lambda value: "–" if value is None else bytes_text(value),
        duration=lambda value: "–" if value is None else time_text(value),
        rate=lambda value: "–" if value is None else rate_text(value),
        count=lambda value: "–" if value is None else f"{value:,.0f}",
        moment=_moment,
        begin=begin,
        prose=prose,
        limit=limit_words,
        problem=problem_words,
        owner=OWNER_WORDS.__getitem__,
        threshold=threshold_text,
        percent=lambda share: f"{share * 100:.0f} %",
        item=ITEM_WORDS.__getitem__,
        display_filter=frames_filter,
        sum_values=lambda counts: sum(counts.values()),
        iso=lambda value: datetime.fromtimestamp(value / 1e9, UTC).isoformat(timespec="seconds"),
    )


def _moment(value_ns: int) -> str:
    return datetime.fromtimestamp(value_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
