"""A prediction beside a run that tests it: what was captured, what was predicted, what a real kernel did.

In: a transfer as captured, that of the run, and a prediction where settings were changed. Out: rows and a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.kernel import ScalingRatio
from tcpwin.reference.measured import WINDOW_LIMITS, Measured
from tcpwin.reference.prediction import NEAR, Prediction, own_window
from tcpwin.units import binary_text, rate_text, share_text, time_text

TWIN = 0.15
"""Of the captured rate: a run that is further off is no twin."""
CLOSE = 0.25
"""Of the predicted rate: a model of windows and round trips does not know bursts and losses."""


_TWIN_WORDS = {
    True: "The run is a twin of what was captured: the same rate by the same limit.",
    False: "The run is no twin of what was captured: what it does under other settings says nothing of yours.",
}


@dataclass(frozen=True, slots=True)
class Against:
    """A prediction against a run.

    Attributes:
        rows: name, captured, predicted, run; None where it is not known or not predicted.
        is_window_right: the run's largest window is what the model says, or below where the window was not the limit;
            from Linux 6.6 on, no more than its buffer. None where the settings are not known.
        is_rate_right: the run's rate is within a quarter of the predicted; None without prediction.
        is_twin: a run of the same settings came within 15 % of the captured rate, by the same limit; None of others.
        verdict: in words.
    """

    rows: tuple[tuple[str, str | None, str | None, str | None], ...]
    is_window_right: bool | None
    is_rate_right: bool | None
    verdict: str
    is_twin: bool | None = None


def against(captured: Measured, run: Measured, prediction: Prediction | None = None) -> Against:
    """Put a run beside what was captured, and beside what the memory model says of the run's own settings.

    Args:
        captured: the transfer that the run was made like.
        run: the transfer of the run.
        prediction: of the rate, where the run has other settings than were captured. Without it the rate predicted is
            the captured one, at most the path's: the same settings should give the same.
    """
    allowed = own_window(run)
    goodput = prediction.goodput_bps if prediction is not None else _same(captured)
    window_right = rate_right = None
    told = []
    if allowed is not None and run.window_max_bytes and isinstance(allowed.model, ScalingRatio):
        window_right = run.window_max_bytes <= allowed.rmem_max_bytes
        told.append(
            f"The run's largest window is {binary_text(run.window_max_bytes)}, "
            f"{share_text(run.window_max_bytes / allowed.rmem_max_bytes)} of its buffer: from Linux 6.6 on each "
            "connection measures this share."
        )
    elif allowed is not None and run.window_max_bytes:
        share = run.window_max_bytes / allowed.window_bytes
        window_right = share <= 1 + NEAR and (share >= 1 - NEAR or run.limit not in WINDOW_LIMITS)
        told.append(
            f"The model's window ({allowed.words}) and the run's ({binary_text(run.window_max_bytes)}) "
            + ("agree" if abs(share - 1) <= NEAR else "differ: another limit came first" if window_right else "differ")
            + "."
        )
    if goodput and run.goodput_bps:
        rate_right = abs(run.goodput_bps / goodput - 1) <= CLOSE
        told.append(
            f"Predicted were {rate_text(goodput)}, the run came to {rate_text(run.goodput_bps)} "
            f"({_apart(run.goodput_bps / goodput - 1)}), {run.limited_by}."
        )
        if not rate_right and run.limit != captured.limit:
            told.append(f"What was captured was {captured.limited_by}; the run's path has no traffic but its own.")
    is_twin = None
    if prediction is None and goodput and run.goodput_bps:
        is_twin = abs(run.goodput_bps / goodput - 1) <= TWIN and _is_alike(captured, run)
        told.append(_TWIN_WORDS[is_twin])
    window = None if allowed is None else binary_text(allowed.window_bytes)
    rows = (
        ("round trip", _time(captured.rtt_ns), None, _time(run.rtt_ns)),
        ("payload", f"{captured.volume_bytes:,} B", None, f"{run.volume_bytes:,} B"),
        ("largest window", _size(captured.window_max_bytes), window, _size(run.window_max_bytes)),
        ("most in flight", _size(captured.flight_max_bytes), None, _size(run.flight_max_bytes)),
        ("throughput", _rate(captured.goodput_bps), _rate(goodput), _rate(run.goodput_bps)),
    )
    return Against(
        rows, window_right, rate_right, " ".join(told) or "Nothing is known that could be compared.", is_twin
    )


def _is_alike(captured: Measured, run: Measured) -> bool:
    """Whether they have the same limit; where two took about as much time, either of them."""
    return run.limit in (captured.limit, captured.second_limit) or captured.limit == run.second_limit


def _same(captured: Measured) -> float | None:
    """What the same settings give on the path that was asked for, which may be slower than the captured one."""
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
