"""Audit a host's settings against a path: each setting alone, every field of the advice, and whole hosts."""

import pytest
from cases import all_cases

from tcpwin.hosts import SettingsSample
from tcpwin.kernel import Advice, audit

MS, MBIT = 10**6, 10**6
RTT_NS, RATE_BPS = 300 * MS, 3500 * MBIT
"""Cloudflare's path: a window of 131,250,000 bytes, buffers of 262,500,000."""


def settings_of(**values: str) -> SettingsSample:
    """Settings by the last part of their name; those of net.core begin with core_."""
    names = {
        "osrelease": "kernel.osrelease",
        "core_rmem_max": "net.core.rmem_max",
        "core_wmem_max": "net.core.wmem_max",
    }
    return SettingsSample(None, 1, {names.get(name, f"net.ipv4.{name}"): value for name, value in values.items()})


def the_only(settings: SettingsSample, *, kernel: tuple[int, int] | None = (6, 1)) -> Advice:
    """The one advice on these settings."""
    (advice,) = audit(settings, RTT_NS, RATE_BPS, kernel=kernel)
    return advice


def test_window_scaling_off() -> None:
    """65535 bytes in 300 ms: 1.7476 Mbit/s."""
    assert the_only(settings_of(tcp_window_scaling="0")) == Advice(
        setting="net.ipv4.tcp_window_scaling",
        kind="limits",
        value="0",
        should_be="1",
        why="Without window scaling (RFC 7323) a window is 65,535 bytes at most, either way: "
        "1.75 Mbit/s of the 3.5 Gbit/s wanted.",
        side_effects="The shift is agreed in the SYNs: connections that are open keep theirs.",
        line="net.ipv4.tcp_window_scaling = 1",
    )


def test_receive_buffer_too_small() -> None:
    """Cloudflare's old setting: 16 MiB at -2 is 4 MiB, 112 Mbit/s over 300 ms."""
    settings = settings_of(tcp_rmem="8192 2097152 16777216", tcp_adv_win_scale="-2")
    advice = the_only(settings)
    assert advice == Advice(
        setting="net.ipv4.tcp_rmem",
        kind="limits",
        value="8192 2097152 16777216",
        should_be="8192 2097152 525000000",
        why="As receiver: 16,777,216 bytes allow a window of 4,194,304 (tcp_adv_win_scale -2): "
        "112 Mbit/s of the 3.5 Gbit/s wanted, which takes 131,250,000.",
        side_effects="Each connection whose application reads slowly may hold that much memory, counted in tcp_mem. "
        "A large queue that fills up is collapsed, and receiving waits for it: Cloudflare measured 32 to 64 ms with "
        "137 to 170 MiB, and no collapse where the buffer was twice the window or more. A new shift counts for new "
        "connections only.",
        line="net.ipv4.tcp_rmem = 8192 2097152 525000000",
    )


def test_cloudflares_new_settings_are_enough() -> None:
    settings = settings_of(
        tcp_rmem="8192 262144 536870912",
        tcp_wmem="4096 16384 536870912",
        tcp_adv_win_scale="-2",
        tcp_notsent_lowat="131072",
        tcp_window_scaling="1",
        tcp_sack="1",
        tcp_timestamps="1",
        tcp_moderate_rcvbuf="1",
        tcp_slow_start_after_idle="0",
        osrelease="5.15.32",
    )
    assert audit(settings, RTT_NS, RATE_BPS) == []


def test_send_buffer_too_small() -> None:
    assert the_only(settings_of(tcp_wmem="4096 16384 4194304")) == Advice(
        setting="net.ipv4.tcp_wmem",
        kind="limits",
        value="4096 16384 4194304",
        should_be="4096 16384 262500000",
        why="As sender: 4,194,304 bytes hold 2,097,152 in flight by the kernel's own factor of 2: 55.9 Mbit/s of the "
        "3.5 Gbit/s wanted. Large segments need less memory, small writes more.",
        side_effects="Unsent data may fill the rest of the buffer: memory, and delay for what is written last. "
        "net.ipv4.tcp_notsent_lowat = 131072 bounds it.",
        line="net.ipv4.tcp_wmem = 4096 16384 262500000",
    )


def test_autotuning_off() -> None:
    settings = settings_of(tcp_moderate_rcvbuf="0", tcp_rmem="4096 131072 536870912")
    assert the_only(settings) == Advice(
        setting="net.ipv4.tcp_moderate_rcvbuf",
        kind="limits",
        value="0",
        should_be="1",
        why="Receive autotuning is off: the buffer stays at the second value of tcp_rmem of 131,072 bytes: "
        "1.75 Mbit/s of the 3.5 Gbit/s wanted.",
        side_effects="Buffers grow with what each application reads, up to the third value of tcp_rmem.",
        line="net.ipv4.tcp_moderate_rcvbuf = 1",
    )
    alone = the_only(settings_of(tcp_moderate_rcvbuf="0"))
    assert alone.why == "Receive autotuning is off: the buffer stays at the second value of tcp_rmem."


def test_autotuning_off_with_a_start_that_suffices_is_no_limit() -> None:
    settings = settings_of(tcp_moderate_rcvbuf="0", tcp_rmem="4096 262500000 536870912")
    assert audit(settings, RTT_NS, RATE_BPS, kernel=(6, 1)) == []


def test_memory_of_the_host() -> None:
    """262,500,000 bytes are 64,087 pages of 4096; 3/4 of it and twice that are the other bounds."""
    assert the_only(settings_of(tcp_mem="30000 40000 60000")) == Advice(
        setting="net.ipv4.tcp_mem",
        kind="limits",
        value="30000 40000 60000",
        should_be="48066 64087 96132",
        why="The host is under memory pressure above 40,000 pages of 4,096 bytes, and buffers stop growing: one "
        "connection at its largest takes 64,087. For more connections give as many times more.",
        side_effects="Memory that TCP may take from everything else on the host.",
        line="net.ipv4.tcp_mem = 48066 64087 96132",
    )
    assert audit(settings_of(tcp_mem="190791 254389 381582"), RTT_NS, RATE_BPS, kernel=(6, 1)) == []
    assert (
        audit(settings_of(tcp_mem="30000 40000 60000"), RTT_NS, RATE_BPS, kernel=(6, 1), page_size_bytes=65_536) == []
    )


def test_a_share_that_is_too_hopeful() -> None:
    assert the_only(settings_of(tcp_adv_win_scale="2")) == Advice(
        setting="net.ipv4.tcp_adv_win_scale",
        kind="risk",
        value="2",
        should_be="1",
        why="It assumes 1.33 bytes of memory per byte of payload. Cloudflare measured up to 3: queues then fill "
        "before the window does, are collapsed, and packets drop.",
        side_effects="Half of the buffer is window: tcp_rmem has to be twice the window. No effect from kernel 6.6 on.",
        line="net.ipv4.tcp_adv_win_scale = 1",
    )


def test_a_share_without_effect() -> None:
    assert the_only(settings_of(tcp_adv_win_scale="2"), kernel=(6, 6)) == Advice(
        setting="net.ipv4.tcp_adv_win_scale",
        kind="info",
        value="2",
        should_be=None,
        why="It has no effect from kernel 6.6 on, which measures the share of payload per connection.",
        side_effects="",
        line=None,
    )
    assert audit(settings_of(tcp_adv_win_scale="1"), RTT_NS, RATE_BPS, kernel=(6, 6)) == []


def test_sack_and_timestamps_off() -> None:
    """2^32 bytes at 3500 Mbit/s: 9.817 s."""
    sack, timestamps = audit(settings_of(tcp_sack="0", tcp_timestamps="0"), RTT_NS, RATE_BPS)
    assert sack == Advice(
        setting="net.ipv4.tcp_sack",
        kind="risk",
        value="0",
        should_be="1",
        why="Without SACK one loss a round trip is mended, of 131,250,000 bytes in flight (RFC 6675).",
        side_effects="",
        line="net.ipv4.tcp_sack = 1",
    )
    assert timestamps == Advice(
        setting="net.ipv4.tcp_timestamps",
        kind="risk",
        value="0",
        should_be="1",
        why="Sequence numbers wrap every 9.82 s at this rate, and only timestamps distinguish an old segment from a "
        "new one (RFC 7323 §5). Round trips are measured less often too.",
        side_effects="12 bytes of each segment.",
        line="net.ipv4.tcp_timestamps = 1",
    )


def test_idle_restart() -> None:
    assert the_only(settings_of(tcp_slow_start_after_idle="1")) == Advice(
        setting="net.ipv4.tcp_slow_start_after_idle",
        kind="risk",
        value="1",
        should_be="0",
        why="After a pause longer than the retransmission timeout the congestion window is halved, the more often the "
        "longer the pause, to 10 segments at least, and then grows again. It matters to bursts, not to steady "
        "transfers.",
        side_effects="After a pause the whole old window goes out in one burst. The setting belongs to the network "
        "namespace: a container has its own.",
        line="net.ipv4.tcp_slow_start_after_idle = 0",
    )


def test_what_bounds_only_an_application_that_asks() -> None:
    receive, send = audit(settings_of(core_rmem_max="212992", core_wmem_max="131249999"), RTT_NS, RATE_BPS)
    assert receive == Advice(
        setting="net.core.rmem_max",
        kind="info",
        value="212992",
        should_be=None,
        why="An application that sets SO_RCVBUF gets 425,984 bytes at most (twice what it asks for) and no autotuning; "
        "262,500,000 are needed. Better not set it: without it this limit does not apply.",
        side_effects="",
        line=None,
    )
    assert (send.setting, send.kind, send.value, send.line) == ("net.core.wmem_max", "info", "131249999", None)
    assert audit(settings_of(core_rmem_max="131250000", core_wmem_max="131250000"), RTT_NS, RATE_BPS) == []


def test_unsent_data() -> None:
    assert the_only(settings_of(tcp_notsent_lowat="4294967295")) == Advice(
        setting="net.ipv4.tcp_notsent_lowat",
        kind="info",
        value="4294967295",
        should_be="131072",
        why="Unsent data may fill the whole send buffer, which costs memory and delays what is written last. "
        "Cloudflare's transfers over 466 ms lost no rate by the limit.",
        side_effects="The application is woken more often.",
        line="net.ipv4.tcp_notsent_lowat = 131072",
    )


def test_what_limits_comes_first_and_the_kernel_is_taken_from_the_dump() -> None:
    settings = settings_of(
        tcp_notsent_lowat="4294967295",
        tcp_slow_start_after_idle="1",
        tcp_adv_win_scale="-2",
        tcp_wmem="4096 16384 4194304",
        tcp_rmem="4096 131072 33554432",
        osrelease="6.18.44",
    )
    found = audit(settings, RTT_NS, RATE_BPS)
    assert [(advice.kind, advice.setting.rpartition(".")[2]) for advice in found] == [
        ("limits", "tcp_rmem"),
        ("limits", "tcp_wmem"),
        ("risk", "tcp_slow_start_after_idle"),
        ("info", "tcp_adv_win_scale"),
        ("info", "tcp_notsent_lowat"),
    ]
    assert found[0].line == "net.ipv4.tcp_rmem = 4096 131072 262500000"
    older = audit(settings, RTT_NS, RATE_BPS, kernel=(5, 15))
    assert older[0].line == "net.ipv4.tcp_rmem = 4096 131072 525000000"


def test_the_buffer_that_suffices_is_no_limit_and_a_byte_less_is() -> None:
    enough = settings_of(tcp_rmem="4096 131072 262500000", tcp_wmem="4096 16384 262500000")
    assert audit(enough, RTT_NS, RATE_BPS, kernel=(6, 1)) == []
    short = settings_of(tcp_rmem="4096 131072 262499998", tcp_wmem="4096 16384 262499999")
    assert [advice.kind for advice in audit(short, RTT_NS, RATE_BPS, kernel=(6, 1))] == ["limits", "limits"]


def test_a_short_path_needs_nothing() -> None:
    settings = settings_of(
        tcp_window_scaling="0",
        tcp_rmem="4096 131072 6291456",
        tcp_wmem="4096 16384 4194304",
        tcp_slow_start_after_idle="1",
        tcp_notsent_lowat="4294967295",
        core_rmem_max="212992",
    )
    assert audit(settings, 1 * MS, 100 * MBIT, kernel=(6, 1)) == []


@all_cases("text", ["", "x", "1", "1 2", "1 2 x", "4096 131072", "9" * 5000, "nan nan nan"])
def test_settings_that_say_nothing_are_not_judged(text: str) -> None:
    names = ("tcp_rmem", "tcp_wmem", "tcp_mem", "tcp_adv_win_scale")
    settings = settings_of(**{name: text for name in names if text != "1" or name != "tcp_adv_win_scale"})
    assert audit(settings, RTT_NS, RATE_BPS, kernel=(6, 1)) == []


def test_numbers_without_sense_do_no_harm() -> None:
    huge = "9" * 4000
    settings = settings_of(
        tcp_rmem=f"1 1 {huge}", tcp_wmem="-1 -1 -1", tcp_mem="0 0 0", core_rmem_max=huge, tcp_notsent_lowat=huge
    )
    assert the_only(settings).setting == "net.ipv4.tcp_notsent_lowat"
    sizes = settings_of(tcp_rmem=f"1 1 {'9' * 40}", tcp_wmem=f"1 1 {'9' * 40}", tcp_timestamps="0")
    assert [advice.kind for advice in audit(sizes, 10**30, 10**30)] == ["limits", "limits", "risk"]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="round trip must be above 0"):
        audit(settings_of(), 0, 1)
    with pytest.raises(ValueError, match="no memory page has 0 bytes"):
        audit(settings_of(), 1, 1, page_size_bytes=0)
