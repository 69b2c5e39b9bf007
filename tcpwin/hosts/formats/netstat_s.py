"""Text of Linux's `netstat -s` (net-tools, statistics.c): counters since boot, in sentences.

In: lines of one run or many. Out: one CounterSample per run, with `nstat`'s names. The program prints counters without
a sentence as ``Name: 12``, and omits most zero counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample

MAX_NAMES = 4096
"""Samples with more names are rejected: a kernel has about 400."""
_MAX_COUNT = 1 << 64
_SECTION = re.compile(r"(Ip6?|Icmp6?|IcmpMsg|Tcp|Udp6?|UdpLite6?|TcpExt|IpExt|MPTcpExt):\s*")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,20}(?![\w.-])")
_NAMED = re.compile(r"([A-Z][A-Za-z0-9]{1,60}): (\d{1,20})")
# Settings and titles without a count.
_SILENT = re.compile(r"Forwarding is \w+|Default TTL is \d+|RTO algorithm is \w+|ICMP (?:in|out)put histogram:")

# Sentences of net-tools 2.10, found by running the program on a /proc/net with distinct numbers; then those of older
# releases (1.60, and distributions' patches of it).
SENTENCES: dict[str, dict[str, str]] = {
    "Ip": {
        "# total packets received": "InReceives",
        "# with invalid headers": "InHdrErrors",
        "# with invalid addresses": "InAddrErrors",
        "# forwarded": "ForwDatagrams",
        "# with unknown protocol": "InUnknownProtos",
        "# incoming packets discarded": "InDiscards",
        "# incoming packets delivered": "InDelivers",
        "# requests sent out": "OutRequests",
        "# outgoing packets dropped": "OutDiscards",
        "# dropped because of missing route": "OutNoRoutes",
        "# fragments dropped after timeout": "ReasmTimeout",
        "# reassemblies required": "ReasmReqds",
        "# packets reassembled ok": "ReasmOKs",
        "# packet reassemblies failed": "ReasmFails",
        "# outgoing packets fragmented ok": "FragOKs",
        "# outgoing packets failed fragmentation": "FragFails",
        "# fragments created": "FragCreates",
    },
    "Tcp": {
        "# active connection openings": "ActiveOpens",
        "# passive connection openings": "PassiveOpens",
        "# failed connection attempts": "AttemptFails",
        "# connection resets received": "EstabResets",
        "# connections established": "CurrEstab",
        "# segments received": "InSegs",
        "# segments sent out": "OutSegs",
        "# segments retransmitted": "RetransSegs",
        "# bad segments received": "InErrs",
        "# resets sent": "OutRsts",
        "# active connections openings": "ActiveOpens",
        "# active opens": "ActiveOpens",
        "# passive opens": "PassiveOpens",
        "# segments send out": "OutSegs",
        "# segments retransmited": "RetransSegs",
    },
    "Udp": {
        "# packets received": "InDatagrams",
        "# packets to unknown port received": "NoPorts",
        "# packet receive errors": "InErrors",
        "# packets sent": "OutDatagrams",
        "# receive buffer errors": "RcvbufErrors",
        "# send buffer errors": "SndbufErrors",
        "# packets send": "OutDatagrams",
    },
    "TcpExt": {
        "# SYN cookies sent": "SyncookiesSent",
        "# SYN cookies received": "SyncookiesRecv",
        "# invalid SYN cookies received": "SyncookiesFailed",
        "# resets received for embryonic SYN_RECV sockets": "EmbryonicRsts",
        "# packets pruned from receive queue because of socket buffer overrun": "PruneCalled",
        "# packets pruned from receive queue": "RcvPruned",
        "# packets dropped from out-of-order queue because of socket buffer overrun": "OfoPruned",
        "# ICMP packets dropped because they were out-of-window": "OutOfWindowIcmps",
        "# ICMP packets dropped because socket was locked": "LockDroppedIcmps",
        "# TCP sockets finished time wait in fast timer": "TW",
        "# time wait sockets recycled by time stamp": "TWRecycled",
        "# active connections rejected because of time stamp": "PAWSActive",
        "# packets rejected in established connections because of timestamp": "PAWSEstab",
        "# delayed acks sent": "DelayedACKs",
        "# delayed acks further delayed because of locked socket": "DelayedACKLocked",
        "Quick ack mode was activated # times": "DelayedACKLost",
        "# times the listen queue of a socket overflowed": "ListenOverflows",
        "# SYNs to LISTEN sockets dropped": "ListenDrops",
        "# packet headers predicted": "TCPHPHits",
        "# acknowledgments not containing data payload received": "TCPPureAcks",
        "# predicted acknowledgments": "TCPHPAcks",
        "# times recovered from packet loss due to fast retransmit": "TCPRenoRecovery",
        "Detected reordering # times using SACK": "TCPSACKReorder",
        "Detected reordering # times using reno fast retransmit": "TCPRenoReorder",
        "Detected reordering # times using time stamp": "TCPTSReorder",
        "# congestion windows fully recovered without slow start": "TCPFullUndo",
        "# congestion windows partially recovered using Hoe heuristic": "TCPPartialUndo",
        "# congestion windows recovered without slow start after partial ack": "TCPLossUndo",
        "# timeouts after reno fast retransmit": "TCPRenoFailures",
        "# timeouts in loss state": "TCPLossFailures",
        "# fast retransmits": "TCPFastRetrans",
        "# retransmits in slow start": "TCPSlowStartRetrans",
        "# packets collapsed in receive queue due to low socket buffer": "TCPRcvCollapsed",
        "# connections reset due to unexpected data": "TCPAbortOnData",
        "# connections reset due to early user close": "TCPAbortOnClose",
        "# connections aborted due to memory pressure": "TCPAbortOnMemory",
        "# connections aborted due to timeout": "TCPAbortOnTimeout",
        "# connections aborted after user close in linger timeout": "TCPAbortOnLinger",
        "# times unable to send RST due to no memory": "TCPAbortFailed",
        "TCP ran low on memory # times": "TCPMemoryPressures",
        "# packets directly queued to recvmsg prequeue": "TCPPrequeued",
        "# bytes directly in process context from backlog": "TCPDirectCopyFromBacklog",
        "# packet headers predicted and directly queued to user": "TCPHPHitsToUser",
        "Detected reordering # times using FACK": "TCPFACKReorder",
        "# forward retransmits": "TCPForwardRetrans",
        "# times receiver scheduled too late for direct processing": "TCPSchedulerFailed",
        "# passive connections rejected because of time stamp": "PAWSPassive",
        "# times recovered from packet loss by selective acknowledgements": "TCPSackRecovery",
        "# times recovered from packet loss due to SACK data": "TCPSackRecovery",
        "# bad SACK blocks received": "TCPSACKReneging",
        "# congestion windows recovered without slow start by DSACK": "TCPDSACKUndo",
        "# congestion windows recovered after partial ack": "TCPLossUndo",
        "# TCP data loss events": "TCPLoss",
        "# retransmits lost": "TCPLostRetransmit",
        "# timeouts after SACK recovery": "TCPSackFailures",
        "# other TCP timeouts": "TCPTimeouts",
        "# SACK retransmits failed": "TCPSackRecoveryFail",
        "# sack retransmits failed": "TCPSackRecoveryFail",
        "# classic Reno fast retransmits failed": "TCPRenoRecoveryFail",
        "# reno fast retransmits failed": "TCPRenoRecoveryFail",
        "# DSACKs sent for old packets": "TCPDSACKOldSent",
        "# DSACKs sent for out of order packets": "TCPDSACKOfoSent",
        "# DSACKs received": "TCPDSACKRecv",
        "# DSACKs for out of order packets received": "TCPDSACKOfoRecv",
        "# packets rejects in established connections because of timestamp": "PAWSEstab",
        "# packets header predicted": "TCPHPHits",
        "# packets header predicted and directly queued to user": "TCPHPHitsToUser",
        "# bytes directly received in process context from prequeue": "TCPDirectCopyFromPrequeue",
        "# packets dropped from prequeue": "TCPPrequeueDropped",
        "# acknowledgments not containing data received": "TCPPureAcks",
        "# TCP sockets finished time wait in slow timer": "TWKilled",
        "# connections reset due to unexpected SYN": "TCPAbortOnSyn",
    },
}


def recognise(head: list[str]) -> int:
    """Score these lines as `netstat -s`: a section's title alone on a line, with indented sentences below."""
    section = ""
    known = filled = 0
    for text in head:
        if not text.strip():
            continue
        filled += 1
        if title := _SECTION.fullmatch(text):
            section = title[1]
            known += 1
        elif section and text[0] in " \t" and _counter(section, text.strip()) is not None:
            known += 1
    return 95 if section and known > 2 and known * 2 >= filled else 0


def read(lines: Lines) -> Iterator[CounterSample]:
    """Yield samples in order: a new one begins at a stamp, and when a counter repeats."""
    values: dict[str, int] = {}
    start: tuple[int | None, int] = (None, 0)
    block = lines.block
    section = ""
    for text in lines:
        if lines.block != block:
            block = lines.block
            section = ""
            if values:
                yield _sample(start, values)
                values = {}
        line = text.strip()
        if not line or text.startswith(("$ ", "# ")) or _SILENT.fullmatch(line):
            continue
        if title := _SECTION.fullmatch(text):
            section = title[1]
            continue
        # The same sentences describe received and sent messages.
        if section.startswith("Icmp") and not _NAMED.fullmatch(line):
            continue
        found = _counter(section, line) if section else None
        if found is None or len(values) == MAX_NAMES or found[1] >= _MAX_COUNT:
            lines.reject(text)
            continue
        name, count = found
        if name in values:
            yield _sample(start, values)
            values = {}
        if not values:
            start = (lines.time_ns, lines.number)
        values[name] = count
    if values:
        yield _sample(start, values)


def _counter(section: str, line: str) -> tuple[str, int] | None:
    """Return a line's counter by `nstat`'s name, and its count, or None if unknown."""
    if named := _NAMED.fullmatch(line):
        return section + named[1], int(named[2])
    number = _NUMBER.search(line)
    if number is None:
        return None
    sentence = f"{line[: number.start()]}#{line[number.end() :]}".rstrip(".")
    name = SENTENCES.get(section, {}).get(sentence)
    return (section + name, int(number[0])) if name else None


def _sample(start: tuple[int | None, int], values: dict[str, int]) -> CounterSample:
    return CounterSample(start[0], start[1], values, is_increment=False, rates={})


FORMAT = Format("netstat_s", "netstat -s: counters since boot, in sentences", recognise, read, ("counters",))
