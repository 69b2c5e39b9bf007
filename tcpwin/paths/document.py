"""A path and predictions as objects of a JSON document: the names of the Python API, null where nothing is known."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from tcpwin.limits import describe_verdict
from tcpwin.paths.effect import Effect
from tcpwin.paths.path import Path
from tcpwin.paths.prediction import Prediction, WhatIf

WHATIF_SCHEMA = "tcpwin/whatif/1"
"""Schema of the document from `describe_whatif`."""


def describe_path(path: Path) -> dict[str, Any]:
    """Describe a path: each value with its range and how it is known."""
    described: dict[str, Any] = _plain(path)
    return described


def describe_whatif(found: WhatIf) -> dict[str, Any]:
    """Describe a connection under changes: its path, its verdict, and the predictions."""
    return {
        "connection": found.path.connection,
        "path": describe_path(found.path),
        "verdict": describe_verdict(found.verdict),
        "prediction": None if found.prediction is None else _prediction(found.prediction),
        "each": [_prediction(each) for each in found.each],
        "unsaid": [{"limit": limit, "reason": reason} for limit, reason in found.unsaid],
    }


def describe_effect(effect: Effect) -> dict[str, Any]:
    """Describe a change that was made: its prediction, what came of it, and what limits now."""
    prediction = None if effect.prediction is None else _prediction(effect.prediction)
    return {**_plain(effect), "prediction": prediction}


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return {**_plain(prediction), "gain_ns": prediction.gain_ns}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if hasattr(value, "items") else value
