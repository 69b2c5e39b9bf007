"""struct tcp_info and sk_meminfo decoded by length. Offsets are written by hand from include/uapi/linux/tcp.h."""

from __future__ import annotations

import struct
from dataclasses import fields
from typing import Any

import pytest
from cases import all_cases
from hypothesis import given
from hypothesis import strategies as st

from tcpwin.hosts import SocketSample
from tcpwin.hosts.collect.tcp_info import TCP_INFO_BYTES, decode_tcp_info, unpack_meminfo, zero_fields

OFFSETS = {
    "state": (0, "B"),
    "ca_state": (1, "B"),
    "retransmits": (2, "B"),
    "probes": (3, "B"),
    "backoff": (4, "B"),
    "options": (5, "B"),
    "wscale": (6, "B"),
    "app_limited": (7, "B"),
    "rto": (8, "I"),
    "ato": (12, "I"),
    "snd_mss": (16, "I"),
    "rcv_mss": (20, "I"),
    "unacked": (24, "I"),
    "sacked": (28, "I"),
    "lost": (32, "I"),
    "retrans": (36, "I"),
    "fackets": (40, "I"),
    "last_data_sent": (44, "I"),
    "last_ack_sent": (48, "I"),
    "last_data_recv": (52, "I"),
    "last_ack_recv": (56, "I"),
    "pmtu": (60, "I"),
    "rcv_ssthresh": (64, "I"),
    "rtt": (68, "I"),
    "rttvar": (72, "I"),
    "snd_ssthresh": (76, "I"),
    "snd_cwnd": (80, "I"),
    "advmss": (84, "I"),
    "reordering": (88, "I"),
    "rcv_rtt": (92, "I"),
    "rcv_space": (96, "I"),
    "total_retrans": (100, "I"),
    "pacing_rate": (104, "Q"),
    "max_pacing_rate": (112, "Q"),
    "bytes_acked": (120, "Q"),
    "bytes_received": (128, "Q"),
    "segs_out": (136, "I"),
    "segs_in": (140, "I"),
    "notsent_bytes": (144, "I"),
    "min_rtt": (148, "I"),
    "data_segs_in": (152, "I"),
    "data_segs_out": (156, "I"),
    "delivery_rate": (160, "Q"),
    "busy_time": (168, "Q"),
    "rwnd_limited": (176, "Q"),
    "sndbuf_limited": (184, "Q"),
    "delivered": (192, "I"),
    "delivered_ce": (196, "I"),
    "bytes_sent": (200, "Q"),
    "bytes_retrans": (208, "Q"),
    "dsack_dups": (216, "I"),
    "reord_seen": (220, "I"),
    "rcv_ooopack": (224, "I"),
    "snd_wnd": (228, "I"),
    "rcv_wnd": (232, "I"),
    "rehash": (236, "I"),
    "total_rto": (240, "H"),
    "total_rto_recoveries": (242, "H"),
    "total_rto_time": (244, "I"),
    "received_ce": (248, "I"),
    "received_ce_bytes": (272, "I"),
}

NEVER_HAPPENED = {"lastsnd_ns": 0, "lastrcv_ns": 0, "lastack_ns": 0}


def info(length: int, **values: int) -> bytes:
    """Return a struct of this length, zero except for some members."""
    data = bytearray(1024)
    for name, value in values.items():
        offset, code = OFFSETS[name]
        struct.pack_into(f"={code}", data, offset, value)
    return bytes(data[:length])


def values_of(length: int, **members: int) -> dict[str, Any]:
    """Return the decoded values of a struct of this length."""
    return decode_tcp_info(info(length, **members))


# A sender with losses: timestamps, SACK, window scaling and ECN negotiated; limited by the application.
SENDER = {
    "state": 1,
    "ca_state": 3,
    "retransmits": 1,
    "probes": 0,
    "backoff": 2,
    "options": 0x01 | 0x02 | 0x04 | 0x10,
    "wscale": 0xA7,
    "app_limited": 0x07,
    "rto": 404_000,
    "ato": 40_000,
    "snd_mss": 1448,
    "rcv_mss": 536,
    "unacked": 5,
    "sacked": 1,
    "lost": 2,
    "retrans": 3,
    "fackets": 4,
    "last_data_sent": 12,
    "last_ack_sent": 99,
    "last_data_recv": 34,
    "last_ack_recv": 56,
    "pmtu": 1500,
    "rcv_ssthresh": 64_088,
    "rtt": 180_123,
    "rttvar": 5_001,
    "snd_ssthresh": 20,
    "snd_cwnd": 32,
    "advmss": 1460,
    "reordering": 3,
    "rcv_rtt": 150_500,
    "rcv_space": 14_480,
    "total_retrans": 9,
    "pacing_rate": 5_000_001,
    "max_pacing_rate": 0xFFFF_FFFF_FFFF_FFFF,
    "bytes_acked": 123_456_789_012,
    "bytes_received": 77,
    "segs_out": 1001,
    "segs_in": 1002,
    "notsent_bytes": 8192,
    "min_rtt": 179_999,
    "data_segs_in": 3,
    "data_segs_out": 998,
    "delivery_rate": 6_000_000,
    "busy_time": 7_000_000,
    "rwnd_limited": 120_000,
    "sndbuf_limited": 1,
    "delivered": 990,
    "delivered_ce": 0,
    "bytes_sent": 123_456_800_000,
    "bytes_retrans": 13_032,
    "dsack_dups": 6,
    "reord_seen": 7,
    "rcv_ooopack": 8,
    "snd_wnd": 2_097_152,
    "rcv_wnd": 65_536,
    "rehash": 4,
    "total_rto": 11,
    "total_rto_recoveries": 12,
    "total_rto_time": 13,
    "received_ce": 14,
    "received_ce_bytes": 15,
}

# Until Linux 3.14.
AT_104 = {
    "backoff": 2,
    "timestamps": True,
    "sack": True,
    "ecn_seen": True,
    "snd_wscale": 7,
    "rcv_wscale": 10,
    "app_limited": True,
    "rto_ns": 404_000_000,
    "ato_ns": 40_000_000,
    "mss_bytes": 1448,
    "rcvmss_bytes": 536,
    "unacked_segments": 5,
    "sacked_segments": 1,
    "lost_segments": 2,
    "retrans_segments": 3,
    "fackets": 4,
    "lastsnd_ns": 12_000_000,
    "lastrcv_ns": 34_000_000,
    "lastack_ns": 56_000_000,
    "pmtu_bytes": 1500,
    "rcv_ssthresh_bytes": 64_088,
    "rtt_ns": 180_123_000,
    "rttvar_ns": 5_001_000,
    "ssthresh_segments": 20,
    "cwnd_segments": 32,
    "advmss_bytes": 1460,
    "reordering": 3,
    "rcv_rtt_ns": 150_500_000,
    "rcv_space_bytes": 14_480,
    "retrans_total": 9,
}
# Linux 4.10 to 4.17.
AT_192 = {
    **AT_104,
    "pacing_rate_bps": 40_000_008,
    "bytes_acked": 123_456_789_012,
    "bytes_received": 77,
    "segs_out": 1001,
    "segs_in": 1002,
    "notsent_bytes": 8192,
    "minrtt_ns": 179_999_000,
    "data_segs_in": 3,
    "data_segs_out": 998,
    "delivery_rate_bps": 48_000_000,
    "busy_ns": 7_000_000_000,
    "rwnd_limited_ns": 120_000_000,
    "sndbuf_limited_ns": 1000,
}
# Linux 5.4 to 6.1.
AT_232 = {
    **AT_192,
    "delivered": 990,
    "bytes_sent": 123_456_800_000,
    "bytes_retrans": 13_032,
    "dsack_dups": 6,
    "reord_seen": 7,
    "rcv_ooopack": 8,
    "snd_wnd_bytes": 2_097_152,
}
# Linux 6.17 and later; members after tcpi_rehash have no field.
AT_280 = {**AT_232, "rcv_wnd_bytes": 65_536, "rehash": 4}


@all_cases(
    ("length", "expected"), [(104, AT_104), (192, AT_192), (232, AT_232), (240, AT_280), (280, AT_280), (1000, AT_280)]
)
def test_a_struct_is_read_as_far_as_it_goes(length: int, expected: dict[str, Any]) -> None:
    assert values_of(length, **SENDER) == expected


@pytest.mark.parametrize(
    ("length", "names"),
    [
        (120, {"pacing_rate_bps"}),
        (119, {"pacing_rate_bps"}),
        (111, set()),
        (144, {"pacing_rate_bps", "bytes_acked", "bytes_received", "segs_out", "segs_in"}),
    ],
)
def test_a_member_that_is_cut_is_not_read(length: int, names: set[str]) -> None:
    assert values_of(length, **SENDER) == {**AT_104, **{name: AT_192[name] for name in names}}


def test_zeros_are_left_out() -> None:
    assert values_of(280) == NEVER_HAPPENED


@all_cases(
    ("members", "expected"),
    [
        ({"rtt": 1, "rttvar": 0}, {"rtt_ns": 1000, "rttvar_ns": 0}),
        # The kernel's initial deviation, before any round trip.
        ({"rtt": 0, "rttvar": 250_000}, {}),
        ({"snd_ssthresh": 0x7FFF_FFFF}, {}),
        ({"snd_ssthresh": 65_534}, {"ssthresh_segments": 65_534}),
        ({"snd_ssthresh": 65_535}, {}),
        ({"min_rtt": 0xFFFF_FFFF}, {}),
        ({"min_rtt": 0xFFFF_FFFE}, {"minrtt_ns": 4_294_967_294_000}),
        ({"pacing_rate": 0xFFFF_FFFF_FFFF_FFFF}, {}),
        ({"max_pacing_rate": 125_000_000}, {"max_pacing_rate_bps": 1_000_000_000}),
        # A shift of 0 counts as a shift; without the option there is none.
        ({"options": 0x04, "wscale": 0x00}, {"snd_wscale": 0, "rcv_wscale": 0}),
        ({"options": 0x04, "wscale": 0xE0}, {"snd_wscale": 0, "rcv_wscale": 14}),
        ({"options": 0x00, "wscale": 0x77}, {}),
        ({"options": 0x08 | 0x20 | 0x40}, {"ecn": True, "fast_open": True, "usec_timestamps": True}),
        ({"app_limited": 0x06}, {}),
        ({"last_data_sent": 0x7FFF_FFFF}, {"lastsnd_ns": 2_147_483_647_000_000}),
        ({"last_data_sent": 0x8000_0000}, {"lastsnd_ns": None}),
        ({"last_ack_recv": 4_294_961_226}, {"lastack_ns": None}),
    ],
)
def test_special_values(members: dict[str, int], expected: dict[str, Any]) -> None:
    assert values_of(280, state=1, **members) == {**NEVER_HAPPENED, **expected}


def test_a_listener_has_a_window_and_no_more() -> None:
    """A listener reports its accept queue in `unacked` and `sacked`, which otherwise count segments."""
    assert values_of(280, state=10, unacked=3, sacked=128, snd_cwnd=10, reordering=3, pacing_rate=1) == {
        "cwnd_segments": 10
    }
    assert values_of(280, state=10, unacked=3, sacked=128) == {}


@pytest.mark.parametrize("length", [0, 1, 103])
def test_fewer_bytes_than_any_kernel_gives_are_an_error(length: int) -> None:
    with pytest.raises(ValueError, match=rf"^tcp_info of {length} bytes: at least 104 needed$"):
        decode_tcp_info(bytes(length))


def test_fields_left_out_at_zero_are_those_of_the_length() -> None:
    oldest = {
        "backoff": 0,
        "unacked_segments": 0,
        "sacked_segments": 0,
        "lost_segments": 0,
        "retrans_segments": 0,
        "retrans_total": 0,
        "timestamps": False,
        "sack": False,
        "ecn": False,
        "ecn_seen": False,
        "fast_open": False,
        "usec_timestamps": False,
        "app_limited": False,
    }
    newer = ("bytes_acked", "bytes_received", "segs_out", "segs_in", "notsent_bytes", "data_segs_in", "data_segs_out")
    newest = ("delivered", "delivered_ce", "bytes_sent", "bytes_retrans", "dsack_dups", "reord_seen", "rcv_ooopack")
    times = ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns")
    windows = ("snd_wnd_bytes", "rcv_wnd_bytes", "rehash")
    assert zero_fields(104) == oldest
    assert zero_fields(192) == {**oldest, **dict.fromkeys((*newer, *times), 0)}
    assert zero_fields(280) == {**oldest, **dict.fromkeys((*newer, *times, *newest, *windows), 0)}


def test_memory_by_the_number_of_members() -> None:
    data = struct.pack("=10I", *range(1, 11))
    assert unpack_meminfo(data, 0, 36) == (1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert unpack_meminfo(data, 0, 40) == (1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert unpack_meminfo(data, 0, 32) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert unpack_meminfo(data, 4, 30) == (2, 3, 4, 5, 6, 7, 8)


FIELDS = {each.name for each in fields(SocketSample)}
INFOS = st.binary(min_size=104, max_size=300)


@given(INFOS)
def test_any_bytes_give_fields_of_a_sample(data: bytes) -> None:
    assert decode_tcp_info(data).keys() <= FIELDS


def test_the_struct_ends_where_linux_6_2_ended_it() -> None:
    assert TCP_INFO_BYTES == 240
