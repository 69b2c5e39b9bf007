"""A prediction and a run that tests it: capture, prediction and a real kernel's result.

In: the captured transfer, the run's, and a prediction if settings changed. Out: rows and a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.kernel import ScalingRatio
from tcpwin.reference.measured import WINDOW_LIMITS, Measured
from tcpwin.reference.prediction import NEAR, Prediction, own_window
from tcpwin.units import binary_text, rate_text, share_text, time_text

TWIN = 0.15
"""Relative difference to the captured rate above which a run is not a twin."""
CLOSE = 0.25
"""Accepted relative error of the predicted rate: the model ignores bursts and losses."""


_TWIN_WORDS = {
    True: "The run is a twin of the captured transfer: the same rate and the same limit.",
    False: "The run is not a twin of the capture, so its behaviour under other settings does not apply to yours.",
}


@dataclass(frozen=True, slots=True)
class Against:
    """A prediction compared with a run.

    Attributes:
        rows: name, captured, predicted, run; None if unknown or not predicted.
        is_window_right: whether the run's largest window matches the model, or is smaller if the window was not the
            limit; from Linux 6.6 on, no more than its buffer. None if the settings are unknown.
        is_rate_right: whether the run's rate is within 25 % of the prediction; None without one.
        is_twin: whether a run with the same settings came within 15 % of the captured rate, with the same limit; None
            for others.
        verdict: the verdict in words.
    """

    rows: tuple[tuple[str, str | None, str | None, str | None], ...]
    is_window_right: bool | None
    is_rate_right: bool | None
    verdict: str
    is_twin: bool | None = None


def against(captured: Measured, run: Measured, prediction: Prediction | None = None) -> Against:
    """Compare a run with the capture, and with the memory model for the run's settings.

    Args:
        captured: the transfer that the run imitates.
        run: the run's transfer.
        prediction: rate prediction, if the run's settings differ from the capture's. Without it the captured rate is
            expected, at most the path's.
    """
    allowed = own_window(run)
    goodput = prediction.goodput_bps if prediction is not None else _same(captured)
    window_right = rate_right = None
    parts = []
    if allowed is not None and run.window_max_bytes and isinstance(allowed.model, ScalingRatio):
        window_right = run.window_max_bytes <= allowed.rmem_max_bytes
        parts.append(
            f"The run's largest window is {binary_text(run.window_max_bytes)}, "
            f"{share_text(run.window_max_bytes / allowed.rmem_max_bytes)} of its buffer: from Linux 6.6 on each "
            "connection measures this share."
        )
    elif allowed is not None and run.window_max_bytes:
        share = run.window_max_bytes / allowed.window_bytes
        window_right = share <= 1 + NEAR and (share >= 1 - NEAR or run.limit not in WINDOW_LIMITS)
        parts.append(
            f"The model's window ({allowed.words}) and the run's ({binary_text(run.window_max_bytes)}) "
            + ("agree" if abs(share - 1) <= NEAR else "differ: another limit came first" if window_right else "differ")
            + "."
        )
    if goodput and run.goodput_bps:
        rate_right = abs(run.goodput_bps / goodput - 1) <= CLOSE
        parts.append(
            f"The prediction was {rate_text(goodput)}, the run reached {rate_text(run.goodput_bps)} "
            f"({_apart(run.goodput_bps / goodput - 1)}), {run.limited_by}."
        )
        if not rate_right and run.limit != captured.limit:
            parts.append(f"The captured transfer was {captured.limited_by}; the run's path has no traffic but its own.")
    is_twin = None
    if prediction is None and goodput and run.goodput_bps:
        is_twin = abs(run.goodput_bps / goodput - 1) <= TWIN and _is_alike(captured, run)
        parts.append(_TWIN_WORDS[is_twin])
    window = None if allowed is None else binary_text(allowed.window_bytes)
    rows = (
        ("round trip", _time(captured.rtt_ns), None, _time(run.rtt_ns)),
        ("payload", f"{captured.volume_bytes:,} B", None, f"{run.volume_bytes:,} B"),
        ("largest window", _size(captured.window_max_bytes), window, _size(run.window_max_bytes)),
        ("most in flight", _size(captured.flight_max_bytes), None, _size(run.flight_max_bytes)),
        ("throughput", _rate(captured.goodput_bps), _rate(goodput), _rate(run.goodput_bps)),
    )
    return Against(rows, window_right, rate_right, " ".join(parts) or "There is nothing to compare.", is_twin)


def _is_alike(captured: Measured, run: Measured) -> bool:
    """Whether they have the same limit; if two took about as much time, either counts."""
    return run.limit in (captured.limit, captured.second_limit) or captured.limit == run.second_limit


def _same(captured: Measured) -> float | None:
    """Return the rate for the same settings on the given path, which may be slower than the captured one."""
    if captured.goodput_bps is None or captured.path_rate_bps is None:
        return captured.goodput_bps
    return min(captured.goodput_bps, captured.path_rate_bps)


def _apart(share: float) -> str:
    return "less than 1 % apart" if abs(share) < 0.01 else f"{share_text(abs(share))} {'more' if share > 0 else 'less'}"


def _time(ns: int | None) -> str | None:
    return None if ns is None else time_text(ns)


def _size(count: int | None) -> str | None:
    return None if count is None else binary_text(count)


def _rate(bps: float | None) -> str | None:
    return None if bps is None else rate_text(bps)
