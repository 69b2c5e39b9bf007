"""Memory of a socket and of a host, from lab runs and the tuning article."""

import pytest
from cases import all_cases

from tcpwin.hosts import MemorySample, SettingsSample, SocketSample
from tcpwin.kernel import (
    AdvWinScale,
    AllowedWindow,
    HostMemory,
    ReceiveMemory,
    ScalingRatio,
    adv_win_scale_of,
    host_memory,
    kernel_of,
    receive_memory,
)


def settings_of(**values: str) -> SettingsSample:
    """Return settings by the last part of their name."""
    names = {"osrelease": "kernel.osrelease"}
    return SettingsSample(None, 1, {names.get(name, f"net.ipv4.{name}"): value for name, value in values.items()})


SLOW_READER = SocketSample(
    state="ESTAB", recv_q_bytes=276_656, rmem_alloc_bytes=302_344, rcvbuf_bytes=358_080, rcv_ssthresh_bytes=124_904
)
OVERFULL = SocketSample(
    state="ESTAB",
    recv_q_bytes=1_201_116,
    rmem_alloc_bytes=1_782_784,
    rcvbuf_bytes=1_782_579,
    rcv_ssthresh_bytes=670_799,
)


def test_a_slow_reader() -> None:
    """skmem:(r302344,rb358080,…) rcv_ssthresh:124904, Recv-Q 276656, kernel 6.1, tcp_adv_win_scale 1."""
    assert receive_memory(SLOW_READER, settings=settings_of(tcp_adv_win_scale="1"), kernel=(6, 1)) == ReceiveMemory(
        kernel=(6, 1),
        rmem_alloc_bytes=302_344,
        rcvbuf_bytes=358_080,
        recv_q_bytes=276_656,
        fill=302_344 / 358_080,
        is_over=False,
        measured_overhead=302_344 / 276_656,
        measured_window_bytes=327_656,
        allowed=(AllowedWindow(AdvWinScale(1), 179_040, 2.0),),
        rcv_ssthresh_bytes=124_904,
        rcv_wnd_bytes=None,
    )


def test_a_queue_above_its_limit() -> None:
    """skmem:(r1782784,rb1782579,…) of a run with tcp_adv_win_scale 2; the dump names the kernel."""
    found = receive_memory(OVERFULL, settings=settings_of(tcp_adv_win_scale="2", osrelease="6.1.192"))
    assert found == ReceiveMemory(
        kernel=(6, 1),
        rmem_alloc_bytes=1_782_784,
        rcvbuf_bytes=1_782_579,
        recv_q_bytes=1_201_116,
        fill=1_782_784 / 1_782_579,
        is_over=True,
        measured_overhead=1_782_784 / 1_201_116,
        measured_window_bytes=1_200_977,
        allowed=(AllowedWindow(AdvWinScale(2), 1_336_935, 4 / 3),),
        rcv_ssthresh_bytes=670_799,
        rcv_wnd_bytes=None,
    )


def test_both_models_where_the_kernel_is_not_known() -> None:
    found = receive_memory(SLOW_READER)
    assert found.kernel is None
    assert found.allowed == (
        AllowedWindow(AdvWinScale(1), 179_040, 2.0),
        AllowedWindow(ScalingRatio(128), 179_040, 2.0),
    )


def test_both_start_ratios_of_6_6() -> None:
    found = receive_memory(SLOW_READER, kernel=(6, 6), settings=settings_of(tcp_adv_win_scale="-2"))
    assert found.allowed == (
        AllowedWindow(ScalingRatio(65), 90_918, 256 / 65),
        AllowedWindow(ScalingRatio(128), 179_040, 2.0),
    )


def test_an_empty_queue_measures_nothing() -> None:
    sample = SocketSample(state="ESTAB", recv_q_bytes=0, rmem_alloc_bytes=0, rcvbuf_bytes=131_072, rcv_wnd_bytes=65_536)
    assert receive_memory(sample, kernel=(6, 18)) == ReceiveMemory(
        kernel=(6, 18),
        rmem_alloc_bytes=0,
        rcvbuf_bytes=131_072,
        recv_q_bytes=0,
        fill=0.0,
        is_over=False,
        measured_overhead=None,
        measured_window_bytes=None,
        allowed=(AllowedWindow(ScalingRatio(128), 65_536, 2.0),),
        rcv_ssthresh_bytes=None,
        rcv_wnd_bytes=65_536,
    )


def test_a_sample_without_memory_says_what_it_can() -> None:
    nothing = ReceiveMemory(None, None, None, None, None, None, None, None, (), None, None)
    assert receive_memory(SocketSample(state="ESTAB")) == nothing


def test_numbers_beyond_a_float_do_not_stop_it() -> None:
    sample = SocketSample(state="ESTAB", recv_q_bytes=1, rmem_alloc_bytes=10**400, rcvbuf_bytes=0)
    found = receive_memory(sample, kernel=(6, 1))
    assert (found.fill, found.is_over, found.measured_overhead, found.measured_window_bytes) == (None, True, None, 0)


@all_cases(("text", "scale"), [("1", 1), ("-31", -31), ("31", 31), ("32", None), ("x", None), ("1 2", None)])
def test_only_a_scale_that_the_kernel_accepts_counts(text: str, scale: int | None) -> None:
    assert adv_win_scale_of(settings_of(tcp_adv_win_scale=text)) == scale


def test_kernel_of_a_dump() -> None:
    assert kernel_of(settings_of(osrelease="5.15.32-cloudflare")) == (5, 15)
    assert kernel_of(settings_of(osrelease="unknown")) is None
    assert kernel_of(settings_of()) is None
    assert kernel_of(None) is None
    assert adv_win_scale_of(None) is None


def memory(pages: int | None, page_size_bytes: int = 4096) -> MemorySample:
    """Return a sample of sockstat with that much memory."""
    return MemorySample(None, 1, 5, 0, 0, 6, pages, None, page_size_bytes, {})


@all_cases(
    ("pages", "state"),
    [
        (1054, "low"),
        (190_791, "low"),
        (190_792, "normal"),
        (254_389, "normal"),
        (254_390, "pressure"),
        (381_582, "pressure"),
        (381_583, "exhausted"),
    ],
)
def test_memory_of_a_host(pages: int, state: str) -> None:
    """The tuning article: "TCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1054", tcp_mem = 190791 254389 381582."""
    found = host_memory(memory(pages), settings=settings_of(tcp_mem="190791 254389 381582"))
    assert found == HostMemory(
        tcp_memory_bytes=pages * 4096,
        low_bytes=781_479_936,
        pressure_bytes=1_041_977_344,
        high_bytes=1_562_959_872,
        share=pages / 381_582,
        state=state,  # type: ignore[arg-type]
    )


def test_pages_of_another_size() -> None:
    found = host_memory(memory(10, 65_536), settings=settings_of(tcp_mem="1 2 4"))
    assert found == HostMemory(655_360, 65_536, 131_072, 262_144, 2.5, "exhausted")


@pytest.mark.parametrize("text", ["", "1 2", "a b c", "1 2 3 4"])
def test_without_bounds_only_the_memory_is_given(text: str) -> None:
    assert host_memory(memory(10), settings=settings_of(tcp_mem=text)) == HostMemory(
        40_960, None, None, None, None, None
    )
    assert host_memory(memory(10)) == HostMemory(40_960, None, None, None, None, None)


def test_without_memory_the_bounds_are_given() -> None:
    found = host_memory(memory(None), settings=settings_of(tcp_mem="1 2 0"))
    assert found == HostMemory(None, 4096, 8192, 0, None, None)
