"""`tcpwin bdp`: the window that a path needs, the rate of a window, and the settings for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tcpwin.errors import SnapshotError

if TYPE_CHECKING:
    from tcpwin.hosts import SettingsSample
    from tcpwin.kernel import Advice, Kernel, Plan

SCHEMA = "tcpwin/bdp/1"
_QUANTITY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE]([+-]?[0-9]{1,2}))? ?([^\d\s]*)")
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TIME_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
}


def parse_rtt(text: str) -> Fraction:
    """Parse a time into nanoseconds: ``300ms``, ``0.3s``, ``85us``. The unit is required."""
    return _parse(text, _time_factor, "300ms, 0.3s or 85us", 3600 * 10**9, "1 ns and 1 hour")


def parse_rate(text: str) -> Fraction:
    """Parse a rate into bits per second: ``3.5gbit``, ``10Mbps``, ``1e9``; ``125MB/s`` is bytes per second.

    Prefixes are decimal, with an i (``Mibit``) binary. Only a capital B, or the word, means bytes.
    """
    return _parse(text, _rate_factor, "3.5gbit, 10Mbps, 1e9 (bits) or 125MB/s (bytes)", 10**15, "1 bit/s and 1 Pbit/s")


def parse_size(text: str) -> Fraction:
    """Parse a size into bytes: ``64K`` and ``64KiB`` are 65,536, ``64kB`` is 64,000."""
    return _parse(text, _size_factor, "64K, 64KiB (65,536), 64kB (64,000) or 65536", 1 << 50, "1 byte and 1 PiB")


def _parse(text: str, factor_of: Callable[[str], int | None], example: str, most: int, bounds: str) -> Fraction:
    text = text.strip()
    found = _QUANTITY.fullmatch(text)
    factor = None if found is None else factor_of(found[3])
    if found is None or factor is None:
        raise click.BadParameter(f"'{text[:40]}' is not understood: write it as {example}.")
    amount = Fraction(found[1]) * Fraction(10) ** int(found[2] or 0) * factor
    if not 1 <= amount <= most:
        raise click.BadParameter(f"'{text[:40]}' is not between {bounds}.")
    return amount


def _time_factor(unit: str) -> int | None:
    return _TIME_UNITS_NS.get(unit.lower())


def _rate_factor(unit: str) -> int | None:
    found = re.fullmatch(r"(?:([kKmMgGtT])(i?))?(bits?|Bits?|BITS?|b|B|[bB]ytes?|)(/s|/sec|ps|)", unit)
    if found is None:
        return None
    is_bytes = found[3] == "B" or found[3].lower().startswith("byte")
    # Bytes without "per second" are more likely a size than a rate.
    if is_bytes and not found[4]:
        return None
    prefix = (found[1] or "").lower()
    return (_BINARY[prefix] if found[2] else _DECIMAL[prefix]) * (8 if is_bytes else 1)


def _size_factor(unit: str) -> int | None:
    # A lower-case b might be bits.
    found = re.fullmatch(r"(?:([kKmMgGtT])(i?))?(B|[bB]ytes?|)", unit)
    if found is None:
        return None
    prefix = (found[1] or "").lower()
    return _DECIMAL[prefix] if found[3] and not found[2] else _BINARY[prefix]


def _rtt_option(ctx: click.Context, param: click.Parameter, value: str | None) -> Fraction | None:  # noqa: ARG001
    return None if value is None else parse_rtt(value)


def _rate_option(ctx: click.Context, param: click.Parameter, value: str | None) -> Fraction | None:  # noqa: ARG001
    return None if value is None else parse_rate(value)


def _size_option(ctx: click.Context, param: click.Parameter, value: str | None) -> Fraction | None:  # noqa: ARG001
    return None if value is None else parse_size(value)


def _kernel_option(ctx: click.Context, param: click.Parameter, value: str | None) -> Kernel | None:  # noqa: ARG001
    from tcpwin.kernel import parse_kernel

    try:
        return None if value is None else parse_kernel(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


@click.command()
@click.option("--rtt", callback=_rtt_option, metavar="TIME", help="Round trip: 300ms, 0.3s, 85us.")
@click.option("--rate", callback=_rate_option, metavar="RATE", help="3.5gbit, 10Mbps, 1e9 (bits/s); 125MB/s (bytes/s).")
@click.option("--window", callback=_size_option, metavar="SIZE", help="64K = 64KiB = 65536 bytes; 64kB = 64000.")
@click.option(
    "--kernel", callback=_kernel_option, metavar="VERSION", help="Kernel of the host to set: 6.1, 5.15.0-92-generic."
)
@click.option("--adv-win-scale", type=click.IntRange(-31, 31), metavar="N", help="tcp_adv_win_scale, before 6.6.")
@click.option(
    "--scaling-ratio",
    type=click.IntRange(1, 255),
    default=128,
    show_default=True,
    metavar="N",
    help="Scaling ratio in 256ths, from 6.6.",
)
@click.option(
    "--mss",
    type=click.IntRange(1, 65535),
    default=1448,
    show_default=True,
    metavar="BYTES",
    help="Payload of a segment, in bytes.",
)
@click.option(
    "--audit", "dump", type=click.Path(), metavar="FILE", help="Check the settings in this output of `sysctl -a`."
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON document.")
def bdp(
    rtt: Fraction | None,
    rate: Fraction | None,
    window: Fraction | None,
    kernel: Kernel | None,
    adv_win_scale: int | None,
    scaling_ratio: int,
    mss: int,
    dump: str | None,
    as_json: bool,
) -> None:
    """Compute the window that a path needs, or the rate that a window allows, and the Linux settings for it.

    Give two of --rtt, --rate and --window; the third is computed.
    """
    from tcpwin.kernel import SCALING_RATIO_SINCE, adv_win_scale_of, kernel_of, plan, window_rate_bps, window_rtt_ns
    from tcpwin.kernel import audit as judge

    if sum(each is not None for each in (rtt, rate, window)) != 2:
        raise click.UsageError("give two of --rtt, --rate and --window: the third follows from them")
    settings, page_size_bytes = (None, None) if dump is None else _settings(dump)
    kernel = kernel or kernel_of(settings)
    if adv_win_scale is None and (kernel is None or kernel < SCALING_RATIO_SINCE):
        adv_win_scale = adv_win_scale_of(settings)
    computed = "window"
    if window is not None and rtt is not None:
        rate, computed = window_rate_bps(window, rtt), "rate"
    elif window is not None and rate is not None:
        rtt, computed = window_rtt_ns(window, rate), "rtt"
    assert rtt is not None
    assert rate is not None
    try:
        needed = plan(rtt, rate, kernel=kernel, adv_win_scale=adv_win_scale, scaling_ratio=scaling_ratio, mss_bytes=mss)
        advice = (
            None
            if settings is None
            else judge(
                settings,
                rtt,
                rate,
                kernel=kernel,
                scaling_ratio=scaling_ratio,
                page_size_bytes=page_size_bytes or 4096,
            )
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        import json

        click.echo(json.dumps(_document(needed, computed, dump, advice), indent=1))
        return
    click.echo("\n".join(_table(needed, computed, is_audit=dump is not None)))
    if dump is not None and advice is not None:
        click.echo("\n".join(_audit_lines(dump, advice)))


def _settings(path: str) -> tuple[SettingsSample, int | None]:
    """Return all settings of a file, the last of each name, and the host's page size if the file has it."""
    from tcpwin.hosts import KernelSample, SettingsSample, SnapshotFile

    values: dict[str, str] = {}
    page_size_bytes = None
    for sample in SnapshotFile(path):
        if isinstance(sample, SettingsSample):
            values.update(sample.values)
        elif isinstance(sample, KernelSample):
            values.setdefault("kernel.osrelease", sample.release)
            page_size_bytes = sample.page_size_bytes or page_size_bytes
    if not any(name.startswith("net.") for name in values):
        raise SnapshotError("holds no network settings: write one with `sysctl -a > FILE`", path)
    return SettingsSample(None, 1, values), page_size_bytes


def _table(needed: Plan, computed: str, *, is_audit: bool) -> list[str]:
    from tcpwin.units import bytes_text, rate_text, time_text

    window, rate = bytes_text(needed.window_bytes), rate_text(float(needed.rate_bps))
    rtt = time_text(round(needed.rtt_ns))
    first = {
        "window": f"{rate} over a round trip of {rtt} need {window} in flight.",
        "rate": f"A window of {window} carries {rate} over a round trip of {rtt}.",
        "rtt": f"A window of {window} carries {rate} over a round trip of {rtt} at most.",
    }[computed]
    shift = needed.smallest_shift
    rows = [
        ("window", _size_text(needed.window_bytes)),
        (
            "segments",
            f"{needed.segments:,} of {needed.mss_bytes:,} bytes payload; {needed.packets:,} packets of 1,500 bytes",
        ),
        ("window scale", "too large for any shift" if shift is None else f"{shift} is the smallest shift"),
        ("receive buffer", f"{_size_text(needed.receive_buffer_bytes)} by {needed.model.name}"),
        ("send buffer", _size_text(needed.send_buffer_bytes)),
    ]
    version = "unknown kernel" if needed.kernel is None else f"Linux {needed.kernel[0]}.{needed.kernel[1]}"
    defaults = [
        (
            name,
            f"{reach.buffer_bytes:,} bytes: {bytes_text(reach.window_bytes)} in flight, "
            f"{rate_text(float(reach.rate_bps))}, {_percent(reach.share)}",
        )
        for name, reach in (("tcp_rmem", needed.default_receive), ("tcp_wmem", needed.default_send))
    ]
    set_lines = [f"  {line}" for line in needed.lines] or ["  nothing: the defaults suffice"]
    # An audit omits these lines: the host may already have larger values.
    to_set = (
        []
        if is_audit
        else [
            f"To set: tcp_rmem where data is received, tcp_wmem where it is sent (a Linux receiver then offers shift "
            f"{needed.offered_shift})",
            *set_lines,
            "",
        ]
    )
    return [
        first,
        "",
        *(f"  {name:15} {text}" for name, text in rows),
        "",
        f"What the defaults reach ({version})",
        *(f"  {name:15} {text}" for name, text in defaults),
        "",
        *to_set,
        *(f"- {note}" for note in needed.notes),
    ]


def _audit_lines(dump: str, advice: list[Advice]) -> list[str]:
    from tcpwin.units import count_text, name_text

    limits = sum(each.kind == "limits" for each in advice)
    limiting = (
        f"{count_text(limits, 'setting holds', 'settings hold')} the rate below that" if limits else "nothing limits"
    )
    lines = ["", f"{name_text(dump)}: {limiting}"]
    for each in advice:
        lines += [
            "",
            f"  {each.kind:7} {each.setting} = {name_text(each.value)}",
            f"          {each.why}",
        ]
        if each.side_effects:
            lines.append(f"          Side effects: {each.side_effects}")
        if each.line is not None:
            lines.append(f"          {each.line}")
    return lines


def _document(needed: Plan, computed: str, dump: str | None, advice: list[Advice] | None) -> Mapping[str, Any]:
    from dataclasses import asdict

    reaches = {
        name: {
            "buffer_bytes": reach.buffer_bytes,
            "window_bytes": reach.window_bytes,
            "rate_bps": _number(reach.rate_bps),
            "share": float(reach.share),
        }
        for name, reach in (("receive", needed.default_receive), ("send", needed.default_send))
    }
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "asked": computed,
        "rtt_ns": _number(needed.rtt_ns),
        "rate_bps": _number(needed.rate_bps),
        "window_bytes": needed.window_bytes,
        "mss_bytes": needed.mss_bytes,
        "segments": needed.segments,
        "packets_of_1500_bytes": needed.packets,
        "smallest_shift": needed.smallest_shift,
        "offered_shift": needed.offered_shift,
        "kernel": None if needed.kernel is None else f"{needed.kernel[0]}.{needed.kernel[1]}",
        "model": needed.model.name,
        "receive_buffer_bytes": needed.receive_buffer_bytes,
        "send_buffer_bytes": needed.send_buffer_bytes,
        "defaults": {
            "tcp_rmem_bytes": needed.defaults.tcp_rmem_bytes,
            "tcp_wmem_bytes": needed.defaults.tcp_wmem_bytes,
            "adv_win_scale": needed.defaults.adv_win_scale,
            **reaches,
        },
        "lines": needed.lines,
        "notes": needed.notes,
    }
    if advice is not None:
        document["audit"] = {"file": dump, "advice": [asdict(each) for each in advice]}
    return document


def _number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _size_text(size_bytes: int) -> str:
    text = f"{size_bytes:,} bytes"
    return f"{text} ({size_bytes / (1 << 20):,.1f} MiB)" if size_bytes >= 1 << 20 else text


def _percent(share: Fraction) -> str:
    return "enough" if share == 1 else f"{float(share) * 100:.3g} % of that"
