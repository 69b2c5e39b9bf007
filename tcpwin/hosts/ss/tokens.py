"""The tokens that `ss` prints after a socket's addresses: options, memory, TCP information, congestion control.

In: the words of one line. Out: values by SocketSample's field names, and unknown words separately. Names, units and
order follow iproute2's misc/ss.c, tcp_stats_print and inet_show_sock, from 3.10 to 7.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from operator import length_hint
from typing import Any

from tcpwin.hosts.socket import UlpInfo
from tcpwin.hosts.ss.values import (
    MAX_COUNT,
    MAX_EXTRA,
    MAX_EXTRA_CHARACTERS,
    RATE,
    RATES,
    VALUES,
    Values,
    keep,
)


class Found(Enum):
    """Content of a line: nothing known, tokens, or the start of BPF storage."""

    NOTHING = 0
    TOKENS = 1
    STORAGE = 2


COUNTS = {
    "mss": "mss_bytes",
    "pmtu": "pmtu_bytes",
    "rcvmss": "rcvmss_bytes",
    "advmss": "advmss_bytes",
    "cwnd": "cwnd_segments",
    "ssthresh": "ssthresh_segments",
    "bytes_sent": "bytes_sent",
    "bytes_retrans": "bytes_retrans",
    "bytes_acked": "bytes_acked",
    "bytes_received": "bytes_received",
    "segs_out": "segs_out",
    "segs_in": "segs_in",
    "data_segs_out": "data_segs_out",
    "data_segs_in": "data_segs_in",
    "delivered": "delivered",
    "delivered_ce": "delivered_ce",
    "unacked": "unacked_segments",
    "lost": "lost_segments",
    "sacked": "sacked_segments",
    "dsack_dups": "dsack_dups",
    "fackets": "fackets",
    "reordering": "reordering",
    "reord_seen": "reord_seen",
    "rcv_space": "rcv_space_bytes",
    "rcv_ssthresh": "rcv_ssthresh_bytes",
    "notsent": "notsent_bytes",
    "rcv_ooopack": "rcv_ooopack",
    "snd_wnd": "snd_wnd_bytes",
    "rcv_wnd": "rcv_wnd_bytes",
    "rehash": "rehash",
    "backoff": "backoff",
    "qack": "qack",
    "uid": "uid",
    "ino": "inode",
}
"""Tokens with one whole number."""

_ALGORITHMS = [
    "bbr",
    "bbr1",
    "bbr2",
    "bbr3",
    "bic",
    "brutal",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "prague",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
]
BARE: dict[str, tuple[str, Any]] = {
    "ts": ("timestamps", True),
    "usec_ts": ("usec_timestamps", True),
    "sack": ("sack", True),
    "ecn": ("ecn", True),
    "ecnseen": ("ecn_seen", True),
    "fastopen": ("fast_open", True),
    "bidir": ("bidir", True),
    "app_limited": ("app_limited", True),
    **{f"{receive}-{send}": ("shutdown", f"{receive}-{send}") for receive in "<-" for send in ">-"},
    **{name: ("congestion_control", name) for name in _ALGORITHMS},
}
"""Words without a value."""

_MPTCP = frozenset(
    [
        "subflows",
        "add_addr_signal",
        "add_addr_accepted",
        "subflows_max",
        "add_addr_signal_max",
        "add_addr_accepted_max",
        "fallback",
        "remote_key",
        "token",
        "write_seq",
        "snd_una",
        "rcv_nxt",
        "local_addr_used",
        "local_addr_max",
        "csum_enabled",
        "retransmits",
        "subflows_total",
        "endp_laminar_max",
        "last_data_sent",
        "last_data_recv",
        "last_ack_recv",
        "flags",
        "seq",
        "sfseq",
        "ssnoff",
        "maplen",
    ]
)
_TLS = frozenset(("version", "cipher", "rxconf", "txconf", "zc_ro_tx", "no_pad_rx"))
_AFTER_ALGORITHM = frozenset(("wscale", "rto", "backoff", "rtt", "ato", "mss", "pmtu", "rcvmss", "advmss", "cwnd"))
"""Tokens that follow the name of the congestion control, which may be any word of at most 15 characters."""

_ALGORITHM = re.compile(r"[A-Za-z0-9_-]{1,15}")


def read_tokens(values: Values, words: list[str], *, is_row: bool) -> Found:
    """Add the values in a line's words to `values`, and unknown words to its `extra`.

    If no word is known, `values` does not change, unless `is_row`: the line is a socket's first.
    """
    is_known = is_row
    is_storage = False
    unknown: dict[str, str] | None = None
    rest = iter(words)
    for word in rest:
        name, colon, text = word.partition(":")
        try:
            if name in COUNTS:
                number = int(text)
                if not 0 <= number <= MAX_COUNT:
                    raise ValueError
                values[COUNTS[name]] = number
            elif name in VALUES and colon:
                VALUES[name](values, text)
            elif word in BARE and BARE[word][0] not in values:
                field, value = BARE[word]
                values[field] = value
            elif word in RATES:
                text = next(rest, "")
                RATES[word](values, text)
            elif name == "bpf_map_id":
                is_storage = True
                break
            elif not _read_rare(values, words, rest, word):
                raise ValueError
            is_known = True
        except (ValueError, ArithmeticError):
            if unknown is None:
                unknown = {}
            if not colon and not text and RATE.fullmatch(_peek(words, rest)):
                text = next(rest)
            if len(unknown) < MAX_EXTRA:
                unknown[name[:MAX_EXTRA_CHARACTERS]] = text[:MAX_EXTRA_CHARACTERS]
    if unknown is not None and (is_known or is_storage):
        keep(values, unknown)
    return Found.STORAGE if is_storage else Found.TOKENS if is_known else Found.NOTHING


def is_token(word: str) -> bool:
    """Whether a word is the name of a token."""
    name, colon, _ = word.partition(":")
    return bool(colon) and (name in COUNTS or name in VALUES)


def _peek(words: list[str], rest: Iterator[str]) -> str:
    left = length_hint(rest)
    return words[-left] if left else ""


def _read_rare(values: Values, words: list[str], rest: Iterator[str], word: str) -> bool:
    name, colon, text = word.partition(":")
    if name == "inet-sockopt":
        values["inet_sockopts"] = _sockopts(rest)
    elif name.startswith("tcp-ulp-") and not text:
        values["ulp"] = UlpInfo(name.removeprefix("tcp-ulp-")[:MAX_EXTRA_CHARACTERS], {})
    elif name in _TLS and "ulp" in values:
        ulp: UlpInfo = values["ulp"]
        values["ulp"] = UlpInfo(ulp.name, {**ulp.values, name: text or (next(rest, "") if colon else "")})
    elif name in _MPTCP:
        values.setdefault("mptcp", {})[name] = text
    elif _is_algorithm(values, name, text, _peek(words, rest)):
        values["congestion_control"] = name
    elif not colon and 0 < len(values.get("cgroup", "")) < MAX_EXTRA_CHARACTERS and ("/" in name or "." in name):
        values["cgroup"] += f" {name}"
    else:
        return False
    return True


def _is_algorithm(values: Values, name: str, text: str, after: str) -> bool:
    return (
        not text
        and "congestion_control" not in values
        and "cwnd_segments" not in values
        and after.partition(":")[0] in _AFTER_ALGORITHM
        and _ALGORITHM.fullmatch(name) is not None
    )


def _sockopts(rest: Iterator[str]) -> tuple[str, ...]:
    options: list[str] = []
    for word in rest:
        option = word.strip("()")
        if option and len(options) < MAX_EXTRA:
            options.append(option[:MAX_EXTRA_CHARACTERS])
        if word.endswith(")"):
            break
    return tuple(options)
