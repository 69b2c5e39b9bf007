"""A table of counters in CSV: a column of times and one per counter.

In: a header ``t,PruneCalled,RetransSegs`` and rows of seconds since the epoch with counts since boot. Out: a
CounterSample per row, with `nstat`'s names: a short name is completed if only one section of the kernel has it. A time
that is not since the epoch is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample
from tcpwin.hosts.times import epoch_ns

MAX_COLUMNS = 4096
"""Headers with more columns are rejected: a kernel has about 400 counters."""
_MAX_COUNT = 1 << 64
_TIMES = ("t", "time", "time_s", "timestamp", "epoch")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
_TIME = re.compile(r"\d{1,19}(?:\.\d{1,9})?")
_COUNT = re.compile(r"-?\d{1,20}")
_NAMES = {
    "TcpExt": """
        SyncookiesSent SyncookiesRecv SyncookiesFailed EmbryonicRsts PruneCalled RcvPruned OfoPruned
        OutOfWindowIcmps LockDroppedIcmps ArpFilter TW TWRecycled TWKilled PAWSActive PAWSEstab BeyondWindow
        TSEcrRejected PAWSOldAck PAWSTimewait DelayedACKs DelayedACKLocked DelayedACKLost ListenOverflows
        ListenDrops TCPHPHits TCPPureAcks TCPHPAcks TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPSACKReorder
        TCPRenoReorder TCPTSReorder TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPLostRetransmit
        TCPRenoFailures TCPSackFailures TCPLossFailures TCPFastRetrans TCPSlowStartRetrans TCPTimeouts TCPLossProbes
        TCPLossProbeRecovery TCPRenoRecoveryFail TCPSackRecoveryFail TCPRcvCollapsed TCPBacklogCoalesce
        TCPDSACKOldSent TCPDSACKOfoSent TCPDSACKRecv TCPDSACKOfoRecv TCPAbortOnData TCPAbortOnClose TCPAbortOnMemory
        TCPAbortOnTimeout TCPAbortOnLinger TCPAbortFailed TCPMemoryPressures TCPMemoryPressuresChrono TCPSACKDiscard
        TCPDSACKIgnoredOld TCPDSACKIgnoredNoUndo TCPSpuriousRTOs TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure
        TCPSackShifted TCPSackMerged TCPSackShiftFallback TCPBacklogDrop PFMemallocDrop TCPMinTTLDrop
        TCPDeferAcceptDrop IPReversePathFilter TCPTimeWaitOverflow TCPReqQFullDoCookies TCPReqQFullDrop
        TCPRetransFail TCPRcvCoalesce TCPOFOQueue TCPOFODrop TCPOFOMerge TCPChallengeACK TCPSYNChallenge
        TCPFastOpenActive TCPFastOpenActiveFail TCPFastOpenPassive TCPFastOpenPassiveFail TCPFastOpenListenOverflow
        TCPFastOpenCookieReqd TCPFastOpenBlackhole TCPSpuriousRtxHostQueues BusyPollRxPackets TCPAutoCorking
        TCPFromZeroWindowAdv TCPToZeroWindowAdv TCPWantZeroWindowAdv TCPSynRetrans TCPOrigDataSent
        TCPHystartTrainDetect TCPHystartTrainCwnd TCPHystartDelayDetect TCPHystartDelayCwnd TCPACKSkippedSynRecv
        TCPACKSkippedPAWS TCPACKSkippedSeq TCPACKSkippedFinWait2 TCPACKSkippedTimeWait TCPACKSkippedChallenge
        TCPWinProbe TCPKeepAlive TCPMTUPFail TCPMTUPSuccess TCPDelivered TCPDeliveredCE TCPAckCompressed
        TCPZeroWindowDrop TCPRcvQDrop TCPWqueueTooBig TCPFastOpenPassiveAltKey TcpTimeoutRehash
        TcpDuplicateDataRehash TCPDSACKRecvSegs TCPDSACKIgnoredDubious TCPMigrateReqSuccess TCPMigrateReqFailure
        TCPPLBRehash TCPAORequired TCPAOBad TCPAOKeyNotFound TCPAOGood TCPAODroppedIcmps PAWSPassive TCPPrequeued
        TCPDirectCopyFromBacklog TCPDirectCopyFromPrequeue TCPPrequeueDropped TCPHPHitsToUser TCPFACKReorder TCPLoss
        TCPForwardRetrans TCPSchedulerFailed
    """,
    "Tcp": """
        RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs
        OutSegs RetransSegs InErrs OutRsts InCsumErrors
    """,
    "Ip": """
        Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards
        InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails
        FragCreates OutTransmits
    """,
    "IpExt": """
        InNoRoutes InTruncatedPkts InMcastPkts OutMcastPkts InBcastPkts OutBcastPkts InOctets OutOctets
        InMcastOctets OutMcastOctets InBcastOctets OutBcastOctets InCsumErrors InNoECTPkts InECT1Pkts InECT0Pkts
        InCEPkts ReasmOverlaps
    """,
    "Icmp": """
        InMsgs InErrors InCsumErrors InDestUnreachs InTimeExcds InParmProbs InSrcQuenchs InRedirects InEchos
        InEchoReps InTimestamps InTimestampReps InAddrMasks InAddrMaskReps OutMsgs OutErrors OutRateLimitGlobal
        OutRateLimitHost OutDestUnreachs OutTimeExcds OutParmProbs OutSrcQuenchs OutRedirects OutEchos OutEchoReps
        OutTimestamps OutTimestampReps OutAddrMasks OutAddrMaskReps
    """,
    "Udp": "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors",
}
"""Counters by section, as named in kernels up to 6.18 (net/ipv4/proc.c), including removed ones."""


def _short_names() -> dict[str, str]:
    short: dict[str, str] = {}
    twice: set[str] = set()
    for section, names in _NAMES.items():
        for name in names.split():
            if name in short:
                twice.add(name)
            short[name] = section + name
    return {name: full for name, full in short.items() if name not in twice}


_FULL = _short_names()
_FULL_NAMES = frozenset(section + name for section, names in _NAMES.items() for name in names.split())


def full_name(name: str) -> str:
    """Return `nstat`'s name of a counter: a short name is completed if unambiguous, else returned unchanged.

    ``PruneCalled`` is TcpExtPruneCalled. ``InErrors`` is unchanged, because Icmp and Udp both have it.
    ``TcpTimeoutRehash`` is a short name too, despite its prefix: it is completed to TcpExtTcpTimeoutRehash.
    """
    return _FULL.get(name, name)


def recognise(head: list[str]) -> int:
    """Score these lines as such a table: a header with a time and a known counter."""
    first = next((text for text in head if text.strip()), "")
    names = _header(first)
    if names is None:
        return 0
    return 90 if any(name in _FULL_NAMES for name in names) else 0


def read(lines: Lines) -> Iterator[CounterSample]:
    """Yield a sample per row. The header may repeat; rows of another length are rejected."""
    names: list[str] | None = None
    for text in lines:
        if not text or text.isspace():
            continue
        if text[0].isalpha() or text[0] == '"':
            found = _header(text)
            if found is None:
                lines.reject(text)
            else:
                names = found
            continue
        cells = text.split(",", MAX_COLUMNS + 1)
        sample = None if names is None or len(cells) != len(names) + 1 else _sample(names, cells, lines)
        if sample is None:
            lines.reject(text)
        else:
            yield sample


def _sample(names: list[str], cells: list[str], lines: Lines) -> CounterSample | None:
    time = cells[0].strip()
    if not _TIME.fullmatch(time):
        return None
    values: dict[str, int] = {}
    for name, cell in zip(names, cells[1:], strict=True):
        count = cell.strip()
        if not count:
            continue
        if not _COUNT.fullmatch(count):
            return None
        values[name] = int(count)
    if values and max(values.values()) >= _MAX_COUNT:
        return None
    return CounterSample(epoch_ns(time), lines.number, values, is_increment=False, rates={})


def _header(text: str) -> list[str] | None:
    """Return the full names of the columns after the time, or None if the line is not a header or repeats a name."""
    first, *rest = (cell.strip().strip('"') for cell in text.split(",", MAX_COLUMNS + 1))
    if first not in _TIMES or not rest or len(rest) > MAX_COLUMNS:
        return None
    if not all(_NAME.fullmatch(name) for name in rest):
        return None
    names = [full_name(name) for name in rest]
    return names if len(set(names)) == len(names) else None


FORMAT = Format("counter_csv", "table of counters: t,Name,... with counts since boot", recognise, read, ("counters",))
