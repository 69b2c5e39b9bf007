"""The numbers in the documentation of the calculator equal the models'."""

import re
from pathlib import Path

from cases import all_cases

import tcpwin
from tcpwin.kernel import (
    AdvWinScale,
    ScalingRatio,
    bdp_bytes,
    kernel_defaults,
    linux_shift,
    segments,
    window_rate_bps,
    windows_shift,
)

DOCS = Path(tcpwin.__file__).parent / "docs"


def page(name: str) -> str:
    """Return the text of a page with its lines joined."""
    return " ".join((DOCS / name).read_text(encoding="utf8").split())


def test_why_the_congestion_window_is_not_shifted() -> None:
    text = page("congestion-window.md")
    right, wrong = window_rate_bps(10 * 32_768, 23_000), window_rate_bps(10 << 7, 23_000)
    assert f"| 327,680 | **{float(right) / 1e6:,.2f} Mbit/s**" in text
    assert f"| 1,280 | {float(wrong) / 1e6:,.0f} Mbit/s |" in text
    assert f"needs a `cwnd` of {segments(131_250_000, 1448) + 1:,} at an mss of 1,448" in text


def test_the_table_of_defaults() -> None:
    rows = re.findall(r"^\| (before 3\.4|\d\.\d+) \| (\d+ \d+ \d+) \|", (DOCS / "bdp.md").read_text(), re.MULTILINE)
    assert [since for since, _ in rows] == ["before 3.4", "3.4", "4.20", "6.6", "6.16"]
    for (since, sizes), kernel in zip(rows, [(3, 3), (3, 4), (4, 20), (6, 6), (6, 16)], strict=True):
        found = kernel_defaults(kernel)
        assert sizes == " ".join(map(str, found.tcp_rmem_bytes)), since
        assert found.tcp_wmem_bytes == (4096, 16_384, 4_194_304)


def test_the_shifts() -> None:
    text = page("bdp.md")
    offered = [linux_shift(mib << 20) for mib in (6, 32, 512)]
    assert "6 MiB give {}, 32 MiB {}, 512 MiB {}.".format(*offered) in text
    levels = [windows_shift(level) for level in ("normal", "restricted", "highlyrestricted", "experimental")]
    assert 'Windows offers {} at its level "normal", {} at "restricted"'.format(*levels) in text
    assert '{} at "highlyrestricted", {} at "experimental"'.format(*levels[2:]) in text
    assert f"10 Mbit/s over 200 ms are {segments(bdp_bytes(200_000_000, 10_000_000))} of them" in text


@all_cases(
    ("scale", "share"),
    [(4, "15/16"), (3, "7/8"), (2, "3/4"), (1, "1/2"), (0, "all"), (-1, "1/2"), (-2, "1/4"), (-3, "1/8")],
)
def test_the_table_of_shares(scale: int, share: str) -> None:
    lines = (DOCS / "receive-memory.md").read_text(encoding="utf8").splitlines()
    heads = next(line for line in lines if line.startswith("| scale |")).strip("| ").split(" | ")
    shares = next(line for line in lines if line.startswith("| window ÷ buffer |")).strip("| ").split(" | ")
    assert dict(zip(heads, shares, strict=True))[str(scale).replace("-", "−")] == share
    whole = AdvWinScale(scale).overhead
    assert share == "all" if whole == 1 else share == f"{whole.denominator}/{whole.numerator}"


def test_the_numbers_of_the_socket_and_of_cloudflares_hosts() -> None:
    text = page("receive-memory.md")
    assert f"| {302_344 / 276_656:.2f} | measured overhead" in text
    assert f"| {302_344 / 358_080:.2f} | how full" in text
    assert f"| rb × share | {AdvWinScale(1).window_from_space(358_080):,} |" in text
    assert f"| rb × Recv-Q ÷ r | {358_080 * 276_656 // 302_344:,} |" in text
    assert f"With 1,448 bytes in 2,304 bytes of memory it is {ScalingRatio.measured(1448, 2304).ratio}/256" in text
    window = AdvWinScale(-2).window_from_space(16 << 20)
    near, far = (float(window_rate_bps(window, rtt_ms * 10**6)) / 1e6 for rtt_ms in (121, 282))
    assert f"{near:.0f} Mbit/s over 121 ms and {far:.0f} over 282 ms" in text
