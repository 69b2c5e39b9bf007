"""Socket filters: matching sockets, errors, and the packets that they select."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from cases import all_cases
from hosts.collect.messages import message

from tcpwin.errors import TcpwinError
from tcpwin.hosts.collect import Filter, FilterError

WEB = message(1, ("192.0.2.1", 50_000), ("10.1.2.3", 443))
MAPPED = message(1, ("::ffff:192.0.2.1", 443), ("::ffff:10.9.9.9", 60_000))
SIX = message(8, ("2001:db8::1", 22), ("2001:db8::2", 50_001))
LISTENER = message(10, ("0.0.0.0", 80), ("0.0.0.0", 0))
CLOSED = message(6, ("192.0.2.1", 50_002), ("198.51.100.7", 80))


@all_cases(
    ("text", "wanted"),
    [
        ("dport = :443 and dst 10.0.0.0/8", [WEB]),
        ("dport = 443", [WEB]),
        ("dport == :https", [WEB]),
        ("dst 10.0.0.0/8", [WEB, MAPPED]),
        ("src = 192.0.2.1", [WEB, MAPPED, CLOSED]),
        ("src != 192.0.2.1", [SIX, LISTENER]),
        ("dst 10.1.2.3:443", [WEB]),
        ("dst :80", [CLOSED]),
        ("dst [2001:db8::]/64", [SIX]),
        ("dst [2001:db8::2]:50001", [SIX]),
        ("dst 2001:db8::2", [SIX]),
        ("dst 2001:db8::2/127 or dport ge :60000", [MAPPED, SIX]),
        ("sport < :443 and sport >= 22", [SIX, LISTENER]),
        ("sport gt 443 && dport lt 443", [CLOSED]),
        ("not dport = :443", [MAPPED, SIX, LISTENER, CLOSED]),
        ("! ( dport = :443 or sport = :443 )", [SIX, LISTENER, CLOSED]),
        ("state established", [WEB, MAPPED]),
        ("STATE ESTAB", [WEB, MAPPED]),
        ("exclude established exclude listen", [SIX, CLOSED]),
        ("state connected", [WEB, MAPPED, SIX, CLOSED]),
        ("state time-wait or state close-wait", [SIX, CLOSED]),
        ("state bucket", [CLOSED]),
        ("state all", [WEB, MAPPED, SIX, LISTENER, CLOSED]),
        # `and` binds tighter than `or`, also if it is omitted.
        ("sport = :80 or dport = :80 state established", [LISTENER]),
        ("dst * and sport = :80", None),
    ],
)
def test_a_filter_takes_what_it_says(text: str, wanted: list[bytes] | None) -> None:
    if wanted is None:
        with pytest.raises(FilterError, match=r"^expected an address, a network or a :port, at character 5$"):
            Filter(text)
    else:
        wish = Filter(text)
        assert [each for each in (WEB, MAPPED, SIX, LISTENER, CLOSED) if wish.matches(each)] == wanted


STATE_WORDS = (
    "all, big, bucket, close-wait, closed, closing, connected, estab, established, fin-wait-1, fin-wait-2, last-ack, "
    "listen, syn-recv, syn-sent, synchronized, time-wait, unconn"
)
BEGINNINGS = "dport, sport, dst, src, state, exclude, not or ("


@all_cases(
    ("text", "said", "position"),
    [
        ("", f"expected {BEGINNINGS}", 1),
        ("port = :443", f"expected {BEGINNINGS}, found 'port'", 1),
        ("dport = :foo", "expected a port, as :443 or :https, found 'foo'", 9),
        ("dport = :65536", "expected a port, as :443 or :https, found '65536'", 9),
        ("dport", "expected a port, as :443 or :https", 6),
        ("dport = ", "expected a port, as :443 or :https", 8),
        ("dst 10.0.0", "expected an address or a network, found '10.0.0'", 5),
        ("dst < 10.0.0.1", "an address allows only = and !=", 5),
        ("dst 10.0.0.1:x", "expected a port, as :443 or :https, found 'x'", 14),
        ("(dport = :1", "expected a )", 12),
        ("dport = :1)", "expected and or or, found ')'", 11),
        ("dport = :1 xor dport = :2", "expected and or or, found 'xor'", 12),
        ("dport = :1 and", f"expected {BEGINNINGS}", 15),
        ("state closing-time", f"expected a state ({STATE_WORDS}), found 'closing-time'", 7),
        ("not " * 60 + "dport = :1", "deeper than 50 levels", 201),
        ("(" * 4097, "longer than 4096 characters", 4097),
        ("dport = :\0\u0661", "expected a port, as :443 or :https, found '\\x00\u0661'", 9),
    ],
)
def test_a_wrong_filter_names_the_position(text: str, said: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        Filter(text)
    assert str(caught.value) == f"{said}, at character {position}"
    assert caught.value.position == position


@all_cases(
    ("text", "packets"),
    [
        ("state established", "tcp"),
        ("dport = :443", "tcp and ((dst port 443) or (src port 443))"),
        ("sport != :22", "tcp and ((not src port 22) or (not dst port 22))"),
        (
            "dst 10.0.0.0/8 and not sport < :1024",
            "tcp and (((dst net 10.0.0.0/8) and (src portrange 1024-65535)) or "
            "((src net 10.0.0.0/8) and (dst portrange 1024-65535)))",
        ),
        # Packets do not carry the socket's state: a condition on it lets all packets pass.
        ("dport = :443 and state established", "tcp and (((dst port 443)) or ((src port 443)))"),
        ("dport = :443 or not state established", "tcp"),
        ("not (dport = :443 or state established)", "tcp and (((not dst port 443)) or ((not src port 443)))"),
        ("not (dport = :443 and state established)", "tcp"),
        ("dst 2001:db8::/32", "tcp and ((dst net 2001:db8::/32) or (src net 2001:db8::/32))"),
        ("dport < :0", "tcp and ((less 0) or (less 0))"),
    ],
)
def test_the_packets_of_a_filter(text: str, packets: str, tool: Callable[[str], str]) -> None:
    assert Filter(text).packets() == packets
    subprocess.run([tool("tcpdump"), "-y", "EN10MB", "-d", packets], capture_output=True, check=True)


def test_filter_errors_are_tcpwin_errors_and_value_errors() -> None:
    for kind in (TcpwinError, ValueError):
        with pytest.raises(kind):
            Filter("dport =")
