"""Audit of a host's settings for a path: what keeps a connection below the wanted rate, and the line that fixes it.

In: a sysctl dump, round trip, rate, kernel. Out: Advice, limits first. Settings missing from the dump are not judged.
Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tcpwin.errors import ArgumentError
from tcpwin.kernel.bdp import Number, bdp_bytes, exact, window_rate_bps
from tcpwin.kernel.defaults import SCALING_RATIO_SINCE, Kernel
from tcpwin.kernel.memory import HALF_RATIO, AdvWinScale, MemoryModel
from tcpwin.kernel.receive import adv_win_scale_of, kernel_of
from tcpwin.kernel.scale import MAX_FIELD
from tcpwin.kernel.tuning import MAX_SETTING_BYTES, SEND_BUFFER_FACTOR, planning_model, setting_line
from tcpwin.units import rate_text

if TYPE_CHECKING:
    from tcpwin.hosts import SettingsSample

Kind = Literal["limits", "risk", "info"]
_ORDER: tuple[Kind, ...] = ("limits", "risk", "info")
_UNSENT_BYTES = 131072
"""tcp_notsent_lowat as Cloudflare sets it for all senders ("Optimizing TCP for high WAN throughput", 2022)."""
BBR_SEND_BUFFER_FACTOR = 3
"""`bbr_sndbuf_expand` (net/ipv4/tcp_bbr.c): BBR keeps up to twice the path's content in flight, and needs a third."""
_UNLIMITED = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Advice:
    """Effect of one setting on the path.

    Attributes:
        setting: its name.
        kind: "limits" keeps the rate below the wanted one, "risk" does so in some conditions, "info" is worth knowing.
        value: its present value.
        should_be: recommended value; None if there is nothing to change.
        why: a sentence or two, with the numbers.
        side_effects: other effects of the change; empty if none is known.
        line: for sysctl.conf; None if there is nothing to change.
    """

    setting: str
    kind: Kind
    value: str
    should_be: str | None
    why: str
    side_effects: str
    line: str | None


@dataclass(frozen=True, slots=True)
class _Target:
    """The path's needs, and this host's model of memory and windows."""

    rtt_ns: Fraction
    rate_bps: Fraction
    kernel: Kernel | None
    model: MemoryModel
    window: int
    receive: int
    send: int
    send_factor: int
    page_size_bytes: int

    def reaches(self, window_bytes: int) -> str:
        """Describe which part of the rate a window carries."""
        window_bytes = min(window_bytes, MAX_SETTING_BYTES)
        rate = window_rate_bps(window_bytes, self.rtt_ns) if window_bytes > 0 else Fraction(0)
        return f"{rate_text(float(rate))} of the {rate_text(float(self.rate_bps))} wanted"


def audit(
    settings: SettingsSample,
    rtt_ns: Number,
    rate_bps: Number,
    *,
    kernel: Kernel | None = None,
    scaling_ratio: int = HALF_RATIO,
    page_size_bytes: int = 4096,
) -> list[Advice]:
    """Find settings of a host that keep a connection below a rate, as receiver or sender.

    Args:
        settings: the host's settings.
        rtt_ns: round trip in nanoseconds.
        rate_bps: wanted rate in bits per second.
        kernel: version; by default ``kernel.osrelease`` of the dump, else unknown.
        scaling_ratio: window in 256ths of the buffer, from 6.6 on.
        page_size_bytes: the host's page size; tcp_mem counts pages.

    Raises:
        ArgumentError: a number is invalid or out of range.
    """
    if page_size_bytes < 1:
        raise ArgumentError(f"a memory page cannot have {page_size_bytes} bytes")
    kernel = kernel or kernel_of(settings)
    rtt, rate = exact(rtt_ns, "round trip"), exact(rate_bps, "rate")
    window = bdp_bytes(rtt, rate)
    model = planning_model(kernel, adv_win_scale=adv_win_scale_of(settings), scaling_ratio=scaling_ratio)
    receive = model.space_from_window(window)
    factor = BBR_SEND_BUFFER_FACTOR if _is_bbr(settings) else SEND_BUFFER_FACTOR
    target = _Target(rtt, rate, kernel, model, window, receive, factor * window, factor, page_size_bytes)
    checks = (
        _scaling,
        _receive_buffer,
        _send_buffer,
        _moderation,
        _host_memory,
        _share,
        _shrinking,
        _collapsing,
        _options,
        _idle,
        _socket,
        _unsent,
    )
    found = [advice for check in checks for advice in check(settings, target)]
    return sorted(found, key=lambda advice: _ORDER.index(advice.kind))


def _scaling(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_window_scaling"
    if settings.number(name) == 0 and target.window > MAX_FIELD:
        yield _switch(
            name,
            "limits",
            "0",
            f"Without window scaling (RFC 7323) a window is 65,535 bytes at most, either way: "
            f"{target.reaches(MAX_FIELD)}.",
            "The shift is agreed in the SYNs: open connections keep theirs.",
        )


def _receive_buffer(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_rmem"
    sizes = _three(settings, name)
    if sizes is None or sizes[2] >= target.receive:
        return
    yield _buffer(
        name,
        sizes,
        target.receive,
        f"As receiver: {sizes[2]:,} bytes allow a window of {target.model.window_from_space(sizes[2]):,} "
        f"({target.model.name}): {target.reaches(target.model.window_from_space(sizes[2]))}, which takes "
        f"{target.window:,}.",
        "Each connection whose application reads slowly may hold that much memory, counted in tcp_mem. A large queue "
        "that fills up is collapsed, and receiving waits for it: Cloudflare measured 32 to 64 ms with 137 to 170 MiB, "
        "and no collapse where the buffer was twice the window or more. A new shift counts for new connections only.",
    )


def _send_buffer(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_wmem"
    sizes = _three(settings, name)
    if sizes is None or sizes[2] >= target.send:
        return
    held = sizes[2] // target.send_factor
    yield _buffer(
        name,
        sizes,
        target.send,
        f"As sender: {sizes[2]:,} bytes hold {held:,} in flight by the kernel's own factor of {target.send_factor}"
        f"{' with BBR' if _is_bbr(settings) else ''}: "
        f"{target.reaches(held)}. Large segments need less memory, small writes more.",
        "Unsent data may fill the rest of the buffer, which takes memory and delays the data written last. "
        f"net.ipv4.tcp_notsent_lowat = {_UNSENT_BYTES} bounds it.",
    )


def _moderation(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_moderate_rcvbuf"
    sizes = _three(settings, "net.ipv4.tcp_rmem")
    if settings.number(name) != 0:
        return
    start = None if sizes is None else sizes[1]
    if start is not None and start >= target.receive:
        return
    stays = "" if start is None else f" of {start:,} bytes: {target.reaches(target.model.window_from_space(start))}"
    yield _switch(
        name,
        "limits",
        "0",
        f"Receive autotuning is off: the buffer stays at the second value of tcp_rmem{stays}.",
        "Buffers grow with what each application reads, up to the third value of tcp_rmem.",
    )


def _host_memory(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_mem"
    bounds = _three(settings, name)
    needed = -(-max(target.receive, target.send) // target.page_size_bytes)
    if bounds is None or bounds[1] >= needed:
        return
    # tcp_init_mem sets the bounds 3/4 : 1 : 3/2.
    low = -(-needed * 3 // 4)
    wanted = (low, needed, 2 * low)
    yield Advice(
        name,
        "limits",
        _values(bounds),
        _values(wanted),
        f"The host is under memory pressure above {bounds[1]:,} pages of {target.page_size_bytes:,} bytes, and buffers "
        f"stop growing: one connection at its largest takes {needed:,}. Multiply by the number of such connections.",
        "Memory that TCP may take from everything else on the host.",
        setting_line(name, *wanted),
    )


def _share(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_adv_win_scale"
    scale = adv_win_scale_of(settings)
    if scale is None:
        return
    if target.kernel is not None and target.kernel >= SCALING_RATIO_SINCE:
        if scale != 1:
            why = "It has no effect from kernel 6.6 on, which measures the share of payload per connection."
            yield Advice(name, "info", str(scale), None, why, "", None)
    elif scale >= 2:
        yield Advice(
            name,
            "risk",
            str(scale),
            "1",
            f"It assumes {float(AdvWinScale(scale).overhead):.2f} bytes of memory per byte of payload. "
            "Cloudflare measured up to 3: queues then fill before the window does, are collapsed, and packets drop.",
            "Half of the buffer is window: tcp_rmem has to be twice the window. No effect from kernel 6.6 on.",
            setting_line(name, 1),
        )


def _shrinking(settings: SettingsSample, _: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_shrink_window"
    if settings.number(name) == 1:
        yield Advice(
            name,
            "risk",
            "1",
            "0",
            "Windows shrink when memory runs short, although RFC 9293 §3.8.6 discourages it: in the lab a slow "
            "reader's transfer ran at half the rate, and Multipath TCP stalls (mptcp_net-next issue 439).",
            "A receiver may hold more memory than its buffer allows for a while.",
            setting_line(name, 0),
        )


def _collapsing(settings: SettingsSample, _: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_collapse_max_bytes"
    value = settings.number(name)
    if value is not None:
        yield Advice(
            name,
            "info",
            str(value),
            None,
            "It exists only in kernels with Cloudflare's patch, and has no effect on others. There, a receiver drops "
            "what it does not collapse (TcpExtTCPRcvQDrop, TcpExtTCPOFODrop).",
            "",
            None,
        )


def _is_bbr(settings: SettingsSample) -> bool:
    return settings.values.get("net.ipv4.tcp_congestion_control", "").startswith("bbr")


def _options(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_sack"
    if settings.number(name) == 0:
        yield _switch(
            name,
            "risk",
            "0",
            f"Without SACK only one loss per round trip is repaired, of {target.window:,} bytes in flight (RFC 6675).",
            "",
        )
    name = "net.ipv4.tcp_timestamps"
    if settings.number(name) == 0:
        wrap_s = Fraction(8 << 32) / target.rate_bps
        yield _switch(
            name,
            "risk",
            "0",
            f"Sequence numbers wrap every {float(wrap_s):.3g} s at this rate, and only timestamps distinguish an old "
            "segment from a new one (RFC 7323 §5). Round trips are also measured less often.",
            "12 bytes of each segment.",
        )


def _idle(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_slow_start_after_idle"
    if settings.number(name) == 1 and target.window > MAX_FIELD:
        yield Advice(
            name,
            "risk",
            "1",
            "0",
            "After a pause longer than the retransmission timeout the congestion window is halved, more often after "
            "longer pauses, down to 10 segments, and then grows again. This matters for bursts, not steady transfers.",
            "After a pause the whole old window leaves in one burst. The setting belongs to the network namespace: a "
            "container has its own.",
            setting_line(name, 0),
        )


def _socket(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    for name, option, needed in (
        ("net.core.rmem_max", "SO_RCVBUF", target.receive),
        ("net.core.wmem_max", "SO_SNDBUF", target.send),
    ):
        most = settings.number(name)
        if most is not None and 2 * most < needed:
            yield Advice(
                name,
                "info",
                str(most),
                None,
                f"An application that sets {option} gets at most {2 * most:,} bytes (twice the requested size) and no "
                f"autotuning; {needed:,} are needed. Applications should not set it: then this limit does not apply.",
                "",
                None,
            )


def _unsent(settings: SettingsSample, target: _Target) -> Iterator[Advice]:
    name = "net.ipv4.tcp_notsent_lowat"
    value = settings.number(name)
    if value is not None and value >= _UNLIMITED and target.send > _UNSENT_BYTES:
        yield Advice(
            name,
            "info",
            str(value),
            str(_UNSENT_BYTES),
            "Unsent data may fill the whole send buffer, which costs memory and delays the data written last. "
            "Cloudflare's transfers over 466 ms lost no rate to this limit.",
            "The application is woken more often.",
            setting_line(name, _UNSENT_BYTES),
        )


def _three(settings: SettingsSample, name: str) -> tuple[int, int, int] | None:
    """Return a setting with three numbers, or None if the kernel would reject them (below 1)."""
    numbers = settings.numbers(name)
    if numbers is None or len(numbers) != 3 or min(numbers) < 1:
        return None
    return numbers[0], numbers[1], numbers[2]


def _switch(name: str, kind: Kind, value: str, why: str, side_effects: str) -> Advice:
    return Advice(name, kind, value, "1", why, side_effects, setting_line(name, 1))


def _buffer(name: str, sizes: tuple[int, ...], needed: int, why: str, side_effects: str) -> Advice:
    wanted = (sizes[0], sizes[1], min(needed, MAX_SETTING_BYTES))
    return Advice(name, "limits", _values(sizes), _values(wanted), why, side_effects, setting_line(name, *wanted))


def _values(numbers: tuple[int, ...]) -> str:
    return " ".join(str(number) for number in numbers)
