"""Predict the effect of changes on a stored connection, as `tcpwin whatif` does.

Runs in worker processes.
"""

from dataclasses import dataclass
from typing import Any

from tcpwin.lab import series_of
from tcpwin.limits import LIMIT_NAMES
from tcpwin.paths import WHATIF_SCHEMA, ChangeError, Prediction, WhatIf, WhatIfError, describe_whatif, path_rows, whatif
from tcpwin_web.jobs.opened import open_connections
from tcpwin_web.jobs.work import FileSet


@dataclass(frozen=True, slots=True)
class WhatIfQuery:
    """Changes as `tcpwin.paths.whatif` takes them; without any, every limit is lifted alone.

    Attributes:
        settings: settings of an end with their values, such as ``("receiver.tcp_rmem", "32M")``.
    """

    settings: tuple[tuple[str, str], ...] = ()
    lift: tuple[str, ...] = ()
    loss_share: float | None = None
    round_trip_ns: float | None = None
    rate_bps: float | None = None


class _NoChange(str):
    """Reason why the requested change is invalid."""


def predict(file_set: FileSet, connection: int, query: WhatIfQuery) -> dict[str, Any]:
    """Return the document of `tcpwin whatif --json`, or ``{"refused": why}``."""
    found = _found(file_set, connection, query)
    return {"refused": found} if isinstance(found, str) else {"schema": WHATIF_SCHEMA, **describe_whatif(found)}


def describe_page(file_set: FileSet, connection: int, query: WhatIfQuery) -> dict[str, Any]:
    """Return the content of the what-if page; `refused` says why there is no prediction for these changes."""
    found = _found(file_set, connection, query)
    refused = None
    is_no_change = isinstance(found, _NoChange)
    if isinstance(found, str):
        # The page shows the gain of each limit in any case.
        refused, found = _here(found), _found(file_set, connection, WhatIfQuery())
    if isinstance(found, str):
        why = _here(found)
        return {"refused": refused, "why_none": why if why != refused else None, "is_no_change": is_no_change}
    shown = [each for each in (found.prediction, *found.each) if each is not None]
    longest_ns = max((each.duration_ns.high for each in shown), default=0.0)
    longest_ns = max([longest_ns, *(float(each.before_ns) for each in shown)])
    return {
        "refused": refused,
        "is_no_change": is_no_change,
        "verdict": found.verdict.text,
        "before_ns": shown[0].before_ns if shown else None,
        "before": _bar(0, shown[0].before_ns, longest_ns) if shown else None,
        "prediction": None if found.prediction is None else _describe(found.prediction, longest_ns),
        "each": [_describe(each, longest_ns) for each in found.each],
        "unsaid": [(LIMIT_NAMES[limit], _here(reason)) for limit, reason in found.unsaid],
        "path": path_rows(found.path),
        "kernel": series_of(found.path),
        "notes": found.path.notes,
    }


def _found(file_set: FileSet, number: int, query: WhatIfQuery) -> WhatIf | str:
    """Return the prediction, or the reason why none is possible."""
    analysis = open_connections(file_set, [number])
    try:
        return whatif(
            analysis.connections[number],
            query.settings,
            lift=query.lift,
            loss_share=query.loss_share,
            round_trip_ns=query.round_trip_ns,
            rate_bps=query.rate_bps,
            each=True,
        )
    except ChangeError as error:
        return _NoChange(error)
    except WhatIfError as error:
        return str(error)


def _describe(prediction: Prediction, longest_ns: float) -> dict[str, Any]:
    duration = prediction.duration_ns
    return {
        "what": ", ".join(_words(change) for change in prediction.changes),
        "lifts": _only_lift(prediction),
        "gain_ns": max(prediction.gain_ns, 0.0),
        "later_ns": max(-prediction.gain_ns, 0.0),
        "duration_ns": duration,
        "goodput_bps": prediction.goodput_bps,
        "before_bps": prediction.before_bps,
        "limit": LIMIT_NAMES[prediction.limit],
        "before_limit": LIMIT_NAMES[prediction.before_limit],
        "confidence": prediction.confidence,
        "doubts": [_here(doubt) for doubt in prediction.doubts],
        "bar": _bar(0, duration.likely, longest_ns),
        "between": _bar(duration.low, duration.high, longest_ns),
    }


def _here(reason: str) -> str:
    """Rephrase a reason for the page where it names an option of the command line."""
    return reason.replace("give it with --rate", "enter the path's rate here")


def _only_lift(prediction: Prediction) -> str | None:
    (first, *more) = prediction.changes
    return first.removeprefix("lift ") if not more and first.startswith("lift ") else None


def _words(change: str) -> str:
    limit = change.removeprefix("lift ")
    return f"without {LIMIT_NAMES[limit]}" if limit != change else change


def _bar(start_ns: float, end_ns: float, longest_ns: float) -> tuple[float, float]:
    """Return start and width of a bar, in thousandths."""
    return round(start_ns * 1000 / longest_ns, 1), round((end_ns - start_ns) * 1000 / longest_ns, 1)
