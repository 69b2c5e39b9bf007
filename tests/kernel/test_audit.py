"""Audit of a host's settings for a path: single settings, every field of the advice, and complete hosts."""

import pytest
from cases import all_cases

from tcpwin.hosts import SettingsSample
from tcpwin.kernel import Advice, audit

MS, MBIT = 10**6, 10**6
RTT_NS, RATE_BPS = 300 * MS, 3500 * MBIT
"""Cloudflare's path: a window of 131,250,000 bytes, buffers of 262,500,000."""


def settings_of(**values: str) -> SettingsSample:
    """Return settings by the last part of their name; those of net.core begin with core_."""
    names = {
        "osrelease": "kernel.osrelease",
        "core_rmem_max": "net.core.rmem_max",
        "core_wmem_max": "net.core.wmem_max",
    }
    return SettingsSample(None, 1, {names.get(name, f"net.ipv4.{name}"): value for name, value in values.items()})


def the_only(settings: SettingsSample) -> Advice:
    """Return the only advice on these settings."""
    (advice,) = audit(settings, RTT_NS, RATE_BPS)
    return advice


@all_cases(
    ("name", "given", "kind", "should_be", "why", "side_effects"),
    [
        # 65535 bytes in 300 ms: 1.7476 Mbit/s.
        (
            "tcp_window_scaling",
            {"tcp_window_scaling": "0"},
            "limits",
            "1",
            "Without window scaling (RFC 7323) a window is 65,535 bytes at most, either way: "
            "1.75 Mbit/s of the 3.5 Gbit/s wanted.",
            "The shift is agreed in the SYNs: open connections keep theirs.",
        ),
        # Cloudflare's old setting: 16 MiB at -2 is 4 MiB, 112 Mbit/s over 300 ms.
        (
            "tcp_rmem",
            {"tcp_rmem": "8192 2097152 16777216", "tcp_adv_win_scale": "-2"},
            "limits",
            "8192 2097152 525000000",
            "As receiver: 16,777,216 bytes allow a window of 4,194,304 (tcp_adv_win_scale -2): "
            "112 Mbit/s of the 3.5 Gbit/s wanted, which takes 131,250,000.",
            "Each connection whose application reads slowly may hold that much memory, counted in tcp_mem. "
            "A large queue that fills up is collapsed, and receiving waits for it: Cloudflare measured 32 to 64 ms "
            "with 137 to 170 MiB, and no collapse where the buffer was twice the window or more. A new shift counts "
            "for new connections only.",
        ),
        (
            "tcp_wmem",
            {"tcp_wmem": "4096 16384 4194304"},
            "limits",
            "4096 16384 262500000",
            "As sender: 4,194,304 bytes hold 2,097,152 in flight by the kernel's own factor of 2: 55.9 Mbit/s of the "
            "3.5 Gbit/s wanted. Large segments need less memory, small writes more.",
            "Unsent data may fill the rest of the buffer, which takes memory and delays the data written last. "
            "net.ipv4.tcp_notsent_lowat = 131072 bounds it.",
        ),
        (
            "tcp_moderate_rcvbuf",
            {"tcp_moderate_rcvbuf": "0", "tcp_rmem": "4096 131072 536870912"},
            "limits",
            "1",
            "Receive autotuning is off: the buffer stays at the second value of tcp_rmem of 131,072 bytes: "
            "1.75 Mbit/s of the 3.5 Gbit/s wanted.",
            "Buffers grow with what each application reads, up to the third value of tcp_rmem.",
        ),
        (
            "tcp_moderate_rcvbuf",
            {"tcp_moderate_rcvbuf": "0"},
            "limits",
            "1",
            "Receive autotuning is off: the buffer stays at the second value of tcp_rmem.",
            "Buffers grow with what each application reads, up to the third value of tcp_rmem.",
        ),
        # 262,500,000 bytes are 64,087 pages of 4096; the other bounds are 3/4 of and twice that.
        (
            "tcp_mem",
            {"tcp_mem": "30000 40000 60000"},
            "limits",
            "48066 64087 96132",
            "The host is under memory pressure above 40,000 pages of 4,096 bytes, and buffers stop growing: one "
            "connection at its largest takes 64,087. Multiply by the number of such connections.",
            "Memory that TCP may take from everything else on the host.",
        ),
        (
            "tcp_adv_win_scale",
            {"tcp_adv_win_scale": "2"},
            "risk",
            "1",
            "It assumes 1.33 bytes of memory per byte of payload. Cloudflare measured up to 3: queues then fill "
            "before the window does, are collapsed, and packets drop.",
            "Half of the buffer is window: tcp_rmem has to be twice the window. No effect from kernel 6.6 on.",
        ),
        (
            "tcp_adv_win_scale",
            {"tcp_adv_win_scale": "2", "osrelease": "6.6.1"},
            "info",
            None,
            "It has no effect from kernel 6.6 on, which measures the share of payload per connection.",
            "",
        ),
        (
            "tcp_sack",
            {"tcp_sack": "0"},
            "risk",
            "1",
            "Without SACK only one loss per round trip is repaired, of 131,250,000 bytes in flight (RFC 6675).",
            "",
        ),
        # 2^32 bytes at 3500 Mbit/s: 9.817 s.
        (
            "tcp_timestamps",
            {"tcp_timestamps": "0"},
            "risk",
            "1",
            "Sequence numbers wrap every 9.82 s at this rate, and only timestamps distinguish an old segment from a "
            "new one (RFC 7323 §5). Round trips are also measured less often.",
            "12 bytes of each segment.",
        ),
        (
            "tcp_slow_start_after_idle",
            {"tcp_slow_start_after_idle": "1"},
            "risk",
            "0",
            "After a pause longer than the retransmission timeout the congestion window is halved, more often after "
            "longer pauses, down to 10 segments, and then grows again. This matters for bursts, not steady transfers.",
            "After a pause the whole old window leaves in one burst. The setting belongs to the network "
            "namespace: a container has its own.",
        ),
        (
            "core_rmem_max",
            {"core_rmem_max": "212992"},
            "info",
            None,
            "An application that sets SO_RCVBUF gets at most 425,984 bytes (twice the requested size) and no "
            "autotuning; 262,500,000 are needed. Applications should not set it: then this limit does not apply.",
            "",
        ),
        (
            "tcp_notsent_lowat",
            {"tcp_notsent_lowat": "4294967295"},
            "info",
            "131072",
            "Unsent data may fill the whole send buffer, which costs memory and delays the data written last. "
            "Cloudflare's transfers over 466 ms lost no rate to this limit.",
            "The application is woken more often.",
        ),
    ],
)
def test_advice(
    name: str, given: dict[str, str], kind: str, should_be: str | None, why: str, side_effects: str
) -> None:
    """Every field of the only advice on a host's settings."""
    setting = f"net.core.{name[5:]}" if name.startswith("core_") else f"net.ipv4.{name}"
    assert the_only(settings_of(**{"osrelease": "6.1.1", **given})) == Advice(
        setting=setting,
        kind=kind,  # type: ignore[arg-type]
        value=given[name],
        should_be=should_be,
        why=why,
        side_effects=side_effects,
        line=should_be and f"{setting} = {should_be}",
    )


@all_cases(
    ("given", "found"),
    [
        ({"tcp_moderate_rcvbuf": "0", "tcp_rmem": "4096 262500000 536870912"}, []),
        ({"tcp_mem": "190791 254389 381582"}, []),
        ({"tcp_adv_win_scale": "1", "osrelease": "6.6.1"}, []),
        ({"tcp_sack": "0", "tcp_timestamps": "0"}, [("risk", "tcp_sack"), ("risk", "tcp_timestamps")]),
        ({"core_rmem_max": "131250000", "core_wmem_max": "131250000"}, []),
        ({"core_rmem_max": "212992", "core_wmem_max": "131249999"}, [("info", "rmem_max"), ("info", "wmem_max")]),
        ({"tcp_rmem": "4096 131072 262500000", "tcp_wmem": "4096 16384 262500000"}, []),
        (
            {"tcp_rmem": "4096 131072 262499998", "tcp_wmem": "4096 16384 262499999"},
            [("limits", "tcp_rmem"), ("limits", "tcp_wmem")],
        ),
    ],
)
def test_a_value_that_suffices_gets_no_advice_and_less_does(
    given: dict[str, str], found: list[tuple[str, str]]
) -> None:
    advice = audit(settings_of(**{"osrelease": "6.1.1", **given}), RTT_NS, RATE_BPS)
    assert [(each.kind, each.setting.rpartition(".")[2]) for each in advice] == found


def test_pages_of_64_kib_make_a_small_tcp_mem_suffice() -> None:
    settings = settings_of(tcp_mem="30000 40000 60000")
    assert audit(settings, RTT_NS, RATE_BPS, kernel=(6, 1), page_size_bytes=65_536) == []


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
    with pytest.raises(ValueError, match="a memory page cannot have 0 bytes"):
        audit(settings_of(), 1, 1, page_size_bytes=0)


REPORTED = """
net.ipv4.tcp_rmem = 4096 131072 33554432
net.ipv4.tcp_wmem = 4096 16384 4194304
net.ipv4.tcp_shrink_window = 1
net.ipv4.tcp_adv_win_scale = -2
net.ipv4.tcp_collapse_max_bytes = 6291456
net.ipv4.tcp_congestion_control = bbr
"""


def test_settings_with_a_catch_and_those_without_effect() -> None:
    """A report from the field, for Linux 6.18 and 100 Mbit/s over 300 ms: 3.75 MB in flight."""
    values = dict(line.split(" = ") for line in REPORTED.split("\n") if line)
    settings = SettingsSample(None, 1, values)
    by_name = {each.setting: each for each in audit(settings, 300_000_000, 100_000_000, kernel=(6, 18))}
    shrinking = by_name["net.ipv4.tcp_shrink_window"]
    assert (shrinking.kind, shrinking.should_be) == ("risk", "0")
    for name in ("net.ipv4.tcp_adv_win_scale", "net.ipv4.tcp_collapse_max_bytes"):
        assert (by_name[name].kind, by_name[name].should_be) == ("info", None)
    # `bbr_sndbuf_expand` returns 3.
    assert by_name["net.ipv4.tcp_wmem"].should_be == "4096 16384 11250000"
    values["net.ipv4.tcp_congestion_control"] = "cubic"
    cubic = {each.setting: each for each in audit(SettingsSample(None, 1, values), 300_000_000, 100_000_000)}
    assert cubic["net.ipv4.tcp_wmem"].should_be == "4096 16384 7500000"
