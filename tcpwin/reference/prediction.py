"""The windows that a receiver's settings, or a reference's, allow by the memory model.

In: a measured transfer, a run of a reference. Out: windows and rates with their assumptions, or the reason why other
settings would not help. It measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpwin.kernel import (
    SCALING_RATIO_SINCE,
    AdvWinScale,
    Kernel,
    MemoryModel,
    ScalingRatio,
    measured_models,
    memory_models,
    parse_kernel,
    window_rate_bps,
)
from tcpwin.paths import SEND_SHARE
from tcpwin.reference.measured import WINDOW_LIMITS, Measured
from tcpwin.reference.model import Run
from tcpwin.units import binary_text, bytes_text, rate_text, share_text, time_text

NEAR = 0.1
"""Tolerance: windows are whole segments and whole units of the scale."""
REACHED = 0.7
"""Share of what the setting allows: rcv_ssthresh may stay a quarter below it."""

UNKNOWN_KERNEL = "your kernel is older than 6.6 (it is unknown, and newer ones ignore the scale);"
UNKNOWN_BOUND = "tcp_rmem bounded your window, not a buffer that the program set: your settings are unknown;"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Window and rate that a receive buffer allows.

    Attributes:
        rmem_max_bytes: the third value of tcp_rmem.
        model: the kernel's memory model.
        window_bytes: the largest window by that model.
        rate_bps: one such window per round trip.
        words: ``4 MiB at -2 gives 1 MiB``.
    """

    rmem_max_bytes: int
    model: MemoryModel
    window_bytes: int
    rate_bps: float
    words: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted effect of a run's settings.

    Attributes:
        allowed: what these settings allow on the user's kernel; None without any gain.
        lines: sysctl lines for the receiver.
        goodput_bps: expected rate: window-limited time shrinks with the larger window, other time stays, and no
            transfer is faster than slow start.
        ceiling_bps: the smaller of one window per round trip and the path's rate, if known.
        assumptions: its assumptions, one sentence each.
        text: summary, or why nothing is gained.
    """

    allowed: Allowed | None
    lines: tuple[str, ...]
    goodput_bps: float | None
    ceiling_bps: float | None
    assumptions: tuple[str, ...]
    text: str


def kernel_version(release: str | None) -> Kernel | None:
    """Return the version of a release, or None if invalid."""
    try:
        return None if release is None else parse_kernel(release)
    except ValueError:
        return None


def allowed_by(
    rmem_max_bytes: int,
    adv_win_scale: int | None,
    kernel: Kernel | None,
    rtt_ns: int,
    *,
    models: tuple[MemoryModel, ...] | None = None,
) -> Allowed | None:
    """Return what the settings allow, or None if neither kernel nor scale is known.

    Uses the kernel's possible model with the larger window; `models` are those that a connection showed.
    """
    if kernel is None and adv_win_scale is None:
        return None
    model: MemoryModel
    if kernel is None and adv_win_scale is not None:
        model = AdvWinScale(adv_win_scale)
    else:
        models = models or memory_models(kernel, adv_win_scale=adv_win_scale)
        model = max(models, key=lambda each: each.window_from_space(rmem_max_bytes))
    window = model.window_from_space(rmem_max_bytes)
    if not window:
        return None
    share = f"{model.scale:+d}" if isinstance(model, AdvWinScale) else f"{model.ratio}/256"
    words = f"{binary_text(rmem_max_bytes)} at {share} gives {binary_text(window)}"
    return Allowed(rmem_max_bytes, model, window, float(window_rate_bps(window, rtt_ns)), words)


def own_window(measured: Measured) -> Allowed | None:
    """Return what the user's settings allow, or None if unknown."""
    if measured.rmem_max_bytes is None or not measured.rtt_ns:
        return None
    kernel = kernel_version(measured.kernel)
    return allowed_by(measured.rmem_max_bytes, measured.adv_win_scale, kernel, measured.rtt_ns)


def agreement(measured: Measured, own: Allowed | None) -> str | None:
    """Describe the agreement of the model's window and the packets', or None if one is unknown."""
    if own is None or not measured.window_max_bytes:
        return None
    share = measured.window_max_bytes / own.window_bytes
    windows = f"memory model: {own.words}; the largest window seen is {binary_text(measured.window_max_bytes)}"
    if isinstance(own.model, ScalingRatio) and share >= REACHED and measured.window_max_bytes < own.rmem_max_bytes:
        ratio = measured.window_max_bytes / own.rmem_max_bytes
        return (
            f"memory model: {own.words} before anything is measured; the largest window seen is "
            f"{binary_text(measured.window_max_bytes)}, {share_text(ratio)} of the buffer: from 6.6 on Linux measures "
            "this share for each connection"
        )
    if share > 1 + NEAR:
        return f"{windows}, more than the model allows: other settings were in force, or the program set a buffer"
    if share < REACHED:
        return f"{windows}, {share_text(share)} of it: the setting did not bound it"
    return f"{windows}, {share_text(share)} of it: they agree"


def predict(measured: Measured, run: Run) -> Prediction:
    """Predict the transfer with the run's settings."""
    own, rtt_ns, kernel = own_window(measured), measured.rtt_ns, kernel_version(measured.kernel)
    reason = _no_gain(measured, own)
    if reason is not None:
        return _nothing(reason)
    if run.rmem_max_bytes is None or not rtt_ns or not measured.window_max_bytes or not measured.goodput_bps:
        return _nothing("The reference states no receive buffer, so it predicts nothing for yours.")
    models = None
    if kernel is not None and measured.rmem_max_bytes:
        models = measured_models(
            kernel,
            buffer_bytes=measured.rmem_max_bytes,
            window_bytes=measured.window_max_bytes,
            adv_win_scale=run.adv_win_scale,
        )
    allowed = allowed_by(
        run.rmem_max_bytes, run.adv_win_scale, kernel or kernel_version(run.kernel), rtt_ns, models=models
    )
    if allowed is None:
        return _nothing("Neither your kernel nor the reference's is known, so the buffer's window is unknown.")
    if allowed.window_bytes <= measured.window_max_bytes * (1 + NEAR):
        return _nothing(f"The reference's settings allow no larger window than yours: {allowed.words}.")
    rest_ns = max(measured.duration_ns - measured.window_ns, 0)
    expected_ns = rest_ns + measured.window_ns * measured.window_max_bytes / allowed.window_bytes
    expected_ns = max(expected_ns, slow_start_ns(measured.volume_bytes, measured.first_flight_bytes, rtt_ns))
    sent = send_window(measured)
    sends_bps = float(window_rate_bps(round(sent), rtt_ns)) if sent else None
    ceiling = min(each for each in (allowed.rate_bps, measured.path_rate_bps, sends_bps) if each)
    is_sender = sends_bps is not None and ceiling == sends_bps
    if is_sender and sent and sent <= measured.window_max_bytes * (1 + NEAR):
        return _nothing(f"A larger receive buffer alone would not help: {_sender_words(measured)}.")
    if is_sender and sent:
        window_ns = measured.window_ns * measured.window_max_bytes / min(sent, allowed.window_bytes)
        ramp_ns = slow_start_ns(measured.volume_bytes, measured.first_flight_bytes, rtt_ns)
        expected_ns = max(rest_ns + window_ns, ramp_ns)
    goodput = min(measured.volume_bytes * 8e9 / max(expected_ns, 1), ceiling)
    begin = f"With the settings of {run.reference}/{run.name}: {allowed.words}"
    if goodput <= measured.goodput_bps * (1 + NEAR):
        return _nothing(
            f"{begin}, but this would reach no more than {rate_text(ceiling)}: the present rate, "
            f"{rate_text(measured.goodput_bps)}, stays."
        )
    lines = [f'sysctl -w net.ipv4.tcp_rmem="{_rmem(measured, run)}"']
    if run.adv_win_scale is not None and (kernel is None or kernel < SCALING_RATIO_SINCE):
        lines.append(f"sysctl -w net.ipv4.tcp_adv_win_scale={run.adv_win_scale}")
    path = (
        f"the path carries no more than {rate_text(measured.path_rate_bps)}"
        if measured.path_rate_bps
        else "the path carries it: a capture does not show what a path could carry (give it with --rate)"
    )
    text = (
        f"{begin}, at most {rate_text(allowed.rate_bps)} over "
        f"{time_text(rtt_ns)}. This transfer of {bytes_text(measured.volume_bytes)} should reach about "
        f"{rate_text(goodput)} instead of {rate_text(measured.goodput_bps)}."
        + (f" No more, because {_sender_words(measured)}: raise it as well." if is_sender else "")
    )
    return Prediction(
        allowed=allowed,
        lines=tuple(lines),
        goodput_bps=goodput,
        ceiling_bps=ceiling,
        assumptions=(
            *(() if own else (UNKNOWN_BOUND,)),
            f"{path};",
            f"the round trip stays {time_text(rtt_ns)}, and the maximum is one window per round trip;",
            f"the kernel counts memory by {allowed.model.name}, and a byte takes at most "
            f"{float(allowed.model.overhead):.3g} bytes of memory: above that, queues overflow too early;",
            *(() if kernel else (UNKNOWN_KERNEL,)),
            f"slow start doubles the flight each round trip, and {_allow_as_much(measured)};",
            f"the {time_text(rest_ns)} in which the window did not limit it do not change.",
        ),
        text=text,
    )


def send_window(measured: Measured) -> float | None:
    """Return the bytes in flight that the sender's tcp_wmem allows, or None if unknown."""
    return None if measured.wmem_max_bytes is None else SEND_SHARE[1] * measured.wmem_max_bytes


def _sender_words(measured: Measured) -> str:
    own, sent = measured.wmem_max_bytes or 0, round(send_window(measured) or 0.0)
    return f"the sender's tcp_wmem of {binary_text(own)} lets about {binary_text(sent)} be in flight"


def _allow_as_much(measured: Measured) -> str:
    if measured.wmem_max_bytes is None:
        return "the sender's buffer (tcp_wmem) and losses allow as much"
    return "losses allow as much"


def slow_start_ns(volume_bytes: int, first_flight_bytes: int, rtt_ns: int) -> int:
    """Return the minimum time of a transfer in slow start, up to the last ACK."""
    rounds, flight, sent = 0, max(first_flight_bytes, 1), 0
    while sent < volume_bytes:
        sent, flight, rounds = sent + flight, 2 * flight, rounds + 1
    return rounds * rtt_ns


def _no_gain(measured: Measured, own: Allowed | None) -> str | None:
    if measured.limit == "capture":
        return "Its limit is unknown, so the effect of another receive buffer is, too."
    if measured.limit not in WINDOW_LIMITS:
        return f"A larger receive buffer would not help: it was {measured.limited_by}."
    if measured.is_reader_slow:
        return f"A larger receive buffer would not help: the application on {measured.receiver} reads too slowly."
    if measured.is_unscaled:
        return "A larger receive buffer would not help: without the window scale option the maximum is 65,535 bytes."
    if own is not None and measured.window_max_bytes and measured.window_max_bytes < REACHED * own.window_bytes:
        return (
            f"A larger setting would not help: {own.words}, and the window never came above "
            f"{binary_text(measured.window_max_bytes)}: the program set a buffer, or the transfer was too short."
        )
    return None


def _nothing(reason: str) -> Prediction:
    return Prediction(None, (), None, None, (), reason)


def _rmem(measured: Measured, run: Run) -> str:
    own = measured.settings.get("net.ipv4.tcp_rmem", "4096 131072 0").split()
    first = own[:2] if len(own) == 3 else ["4096", "131072"]
    return " ".join([*first, str(run.rmem_max_bytes)])
