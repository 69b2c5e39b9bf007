"""Counters of the network stack: their increases between samples, and their meanings.

In: counter samples of one host in order. Out: increases, with rates and resets; the meaning of a counter by its
`nstat` name. It never guesses values that a sample omits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tcpwin.hosts.samples import CounterSample

GAUGES = frozenset(
    (
        "IpForwarding",
        "IpDefaultTTL",
        "TcpRtoAlgorithm",
        "TcpRtoMin",
        "TcpRtoMax",
        "TcpMaxConn",
        "TcpCurrEstab",
        "MPTcpExtMPCurrEstab",
    )
)
"""Settings and current values among the counters, which may fall. `nstat` omits the first seven."""

SURE = 10
"""Number of non-zero counts that stayed equal or grew, which shows that samples count since boot."""


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """Increases of counters over a time span.

    Attributes:
        start_ns, end_ns: nanoseconds since the epoch by the host's clock; None if unknown.
        values: increases by `nstat` name; for the names in `resets`, lower bounds.
        resets: names that ran backwards: the host or its network namespace restarted in between, or a 32-bit counter
            wrapped. All increases are then lower bounds.
        is_assumed: whether the samples did not show if they count since boot, so it was inferred from these two alone.
    """

    start_ns: int | None
    end_ns: int | None
    values: Mapping[str, int]
    resets: frozenset[str] = frozenset()
    is_assumed: bool = False

    @property
    def seconds(self) -> float | None:
        """The time between the samples; None if unknown or not positive."""
        if self.start_ns is None or self.end_ns is None or self.end_ns <= self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def rates(self) -> dict[str, float] | None:
        """Increases per second by name; None if the time is unknown."""
        seconds = self.seconds
        return None if seconds is None else {name: value / seconds for name, value in self.values.items()}


def deltas(samples: Iterable[CounterSample]) -> Iterator[CounterDelta]:
    """Compare each sample with the one before it, if both are of one kind and have a name in common.

    An increment is already an increase; the first one has no start. If two samples do not show their kind, the second
    is taken as an increment if a count fell, and as counts since boot otherwise. A name that one of the two lacks is
    omitted, unless that sample printed everything except zeros (`nstat -a`).
    """
    before: CounterSample | None = None
    for sample in samples:
        if sample.is_increment:
            start_ns = before.time_ns if before is not None and before.is_increment else None
            yield CounterDelta(start_ns, sample.time_ns, _without_gauges(sample), sample.resets)
        elif (
            before is not None
            and before.is_increment is sample.is_increment
            and not before.values.keys().isdisjoint(sample.values)
        ):
            yield _between(before, sample)
        before = sample


def falls(before: CounterSample, after: CounterSample) -> bool:
    """Whether a counter is smaller in the second sample: after a restart, or because the order is wrong."""
    return bool(_increases(before, after)[1])


def are_increments(samples: Sequence[CounterSample]) -> bool | None:
    """Judge whether consecutive samples are increments (True) or counts since boot (False).

    Counts since boot fall only at a restart, so samples are increments if counts fall between at least half of them,
    and counts since boot if `SURE` non-zero counts did not fall. `nstat` marks an overflow only in increments
    (misc/nstat.c, dump_incr_db).

    Returns:
        None if there is too little data to judge.
    """
    if any(sample.resets for sample in samples):
        return True
    fallen = kept = 0
    for before, after in pairwise(samples):
        # A name that is missing among names without a zero was 0.
        absent = None if 0 in after.values.values() else 0
        fell = False
        for name, was in before.values.items():
            now = after.values.get(name, absent)
            if now is None or was == 0 or name in GAUGES:
                continue
            if now < was:
                fell = True
            else:
                kept += 1
        fallen += fell
    if fallen * 2 >= len(samples) - 1:
        return True if fallen else None
    return False if kept >= SURE else None


def _between(before: CounterSample, after: CounterSample) -> CounterDelta:
    values, resets = _increases(before, after)
    is_assumed = after.is_increment is None
    if is_assumed and resets:
        return CounterDelta(before.time_ns, after.time_ns, _without_gauges(after), is_assumed=True)
    return CounterDelta(before.time_ns, after.time_ns, values, frozenset(resets), is_assumed)


def _increases(before: CounterSample, after: CounterSample) -> tuple[dict[str, int], set[str]]:
    values: dict[str, int] = {}
    resets: set[str] = set()
    unprinted = 0 if _left_out_zeros(before) else None
    for name, now in after.values.items():
        was = before.values.get(name, unprinted)
        if was is None or name in GAUGES:
            continue
        if now >= was:
            values[name] = now - was
        else:
            values[name] = now
            resets.add(name)
    if _left_out_zeros(after):
        for name, was in before.values.items():
            if was > 0 and name not in after.values and name not in GAUGES:
                values[name] = 0
                resets.add(name)
    return values, resets


def _left_out_zeros(sample: CounterSample) -> bool:
    # Every host that ever received a packet has both, unless only some names were requested.
    is_whole = "IpInReceives" in sample.values and "IpExtInOctets" in sample.values
    return is_whole and 0 not in sample.values.values()


def _without_gauges(sample: CounterSample) -> dict[str, int]:
    return {name: value for name, value in sample.values.items() if name not in GAUGES}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a counter.

    Attributes:
        name: its name in `nstat`.
        counts: what the kernel counts, as a sentence.
        source: the kernel's function and file that increment it; snmp_counter.rst (Documentation/networking) describes
            many of them as well.
        since: the first kernel that has it, if known.
    """

    name: str
    counts: str
    source: str
    since: str | None = None


_INPUT = "net/ipv4/tcp_input.c"
_OUTPUT = "net/ipv4/tcp_output.c"
_TIMER = "net/ipv4/tcp_timer.c"
_TCP = "net/ipv4/tcp.c"
_IPV4 = "net/ipv4/tcp_ipv4.c"

_MEANINGS = (
    Meaning(
        "TcpInSegs",
        "Segments received, including bad ones; segments merged by GRO count once.",
        f"tcp_v4_rcv, {_IPV4}",
    ),
    Meaning(
        "TcpOutSegs",
        "Segments sent, including pure ACKs and SYNs but not retransmissions; GSO segments count as their parts.",
        f"__tcp_transmit_skb, {_OUTPUT}",
    ),
    Meaning(
        "TcpRetransSegs",
        "Segments retransmitted for any reason, including SYN and SYN/ACK.",
        f"__tcp_retransmit_skb and tcp_rtx_synack, {_OUTPUT}",
    ),
    Meaning(
        "TcpEstabResets",
        "Connections that went from ESTABLISHED or CLOSE-WAIT straight to CLOSE: reset by either side, or given up.",
        f"tcp_set_state, {_TCP}",
    ),
    Meaning(
        "TcpExtPruneCalled",
        "Times that a segment did not fit into a socket's receive memory, so its queues were collapsed and pruned.",
        f"tcp_prune_queue, {_INPUT}",
    ),
    Meaning(
        "TcpExtRcvPruned",
        "Times that neither collapsing nor dropping out-of-order data made room, so that the new segment was dropped.",
        f"tcp_prune_queue, {_INPUT}",
    ),
    Meaning(
        "TcpExtOfoPruned",
        "Times that data of an out-of-order queue was dropped to make room, however many segments that took.",
        f"tcp_prune_ofo_queue, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPRcvCollapsed",
        "Socket buffers freed while a queue was copied into fewer, fuller ones: buffers, not events and not bytes.",
        f"tcp_collapse_one, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPRcvQDrop",
        "Segments in order and inside the window that were dropped because no receive memory was left.",
        f"tcp_data_queue, {_INPUT}",
        "4.19",
    ),
    Meaning(
        "TcpExtTCPOFODrop",
        "Segments out of order that were dropped because no receive memory was left.",
        f"tcp_data_queue_ofo, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPOFOQueue",
        "Segments that arrived out of order and were queued; segments merged by GRO count once.",
        f"tcp_data_queue_ofo, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPOFOMerge",
        "Out-of-order segments that were dropped because others, before or after them, covered all of their data.",
        f"tcp_data_queue_ofo, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPZeroWindowDrop",
        "Segments in order that were dropped because the window was zero: the data of window probes.",
        f"tcp_data_queue, {_INPUT}",
        "4.19",
    ),
    Meaning(
        "TcpExtBeyondWindow",
        "Segments refused because some of their data was beyond the window; many if the window shrank.",
        f"tcp_validate_incoming and tcp_data_queue, {_INPUT}",
        "6.17",
    ),
    Meaning(
        "TcpExtTCPBacklogDrop",
        "Segments dropped because the backlog of a socket that its application was using was full.",
        f"tcp_add_backlog, {_IPV4}",
    ),
    Meaning(
        "TcpExtTCPRcvCoalesce",
        "Segments whose data was merged into the preceding buffer of a receive queue; not those merged by GRO.",
        f"tcp_try_coalesce, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPToZeroWindowAdv",
        "Times that the advertised window went from more than zero to zero.",
        f"tcp_select_window, {_OUTPUT}",
        "3.15",
    ),
    Meaning(
        "TcpExtTCPFromZeroWindowAdv",
        "Times that the advertised window went from zero to more.",
        f"tcp_select_window, {_OUTPUT}",
        "3.15",
    ),
    Meaning(
        "TcpExtTCPWantZeroWindowAdv",
        "Times that memory called for a zero window, but the rest of the window was advertised, which may not shrink.",
        f"tcp_select_window, {_OUTPUT}",
        "3.15",
    ),
    Meaning(
        "TcpExtTCPWinProbe",
        "Empty segments sent to probe a zero window; a probe that carries data is not counted.",
        f"tcp_send_probe0 and tcp_xmit_probe_skb, {_OUTPUT}",
        "4.2",
    ),
    Meaning(
        "TcpExtTCPKeepAlive",
        "Keep-alive probes sent.",
        f"tcp_keepalive_timer, {_TIMER}; tcp_xmit_probe_skb, {_OUTPUT}",
        "4.2",
    ),
    Meaning(
        "TcpExtTCPTimeouts",
        "Retransmission timeouts of data, SYN, SYN/ACK and FIN; kernels without commit e1561fe2dd69 leave out"
        " repeated ones and those in recovery or disorder.",
        f"tcp_retransmit_timer and tcp_syn_ack_timeout, {_TIMER}",
    ),
    Meaning(
        "TcpExtTCPLossProbes",
        "Tail loss probes sent (RFC 8985).",
        f"tcp_send_loss_probe, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPLossProbeRecovery",
        "Losses that a tail loss probe repaired, after which the congestion window was reduced.",
        f"tcp_process_tlp_ack, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPSpuriousRTOs",
        "Retransmission timeouts that F-RTO (RFC 5682) found to be false, and that were undone.",
        f"tcp_try_undo_loss, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPFastRetrans",
        "Segments retransmitted as lost outside the Loss state: by fast recovery, not after a timeout.",
        f"tcp_xmit_retransmit_queue, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPSlowStartRetrans",
        "Segments retransmitted in the Loss state: after a timeout, not counting the one that the timer sent.",
        f"tcp_xmit_retransmit_queue, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPSynRetrans",
        "SYN and SYN/ACK segments retransmitted.",
        f"__tcp_retransmit_skb and tcp_rtx_synack, {_OUTPUT}",
        "3.15",
    ),
    Meaning(
        "TcpExtTCPLostRetransmit",
        "Retransmitted segments that were found lost again.",
        f"tcp_mark_skb_lost, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPSackRecovery",
        "Times that a connection with SACK entered fast recovery.",
        f"tcp_enter_recovery, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPRenoRecovery",
        "Times that a connection without SACK entered fast recovery.",
        f"tcp_enter_recovery, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPSACKReorder",
        "Times that SACK showed that the network had reordered segments.",
        f"tcp_check_sack_reordering, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPDSACKRecv",
        "DSACKs received: the peer received data twice that it had already acknowledged (RFC 2883).",
        f"tcp_check_dsack, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPDSACKOfoRecv",
        "DSACKs received: the peer received data twice that was in its out-of-order queue (RFC 2883).",
        f"tcp_check_dsack, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPDSACKOldSent",
        "DSACKs sent: data arrived twice that had already been acknowledged (RFC 2883).",
        f"tcp_dsack_set, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPDSACKOfoSent",
        "DSACKs sent: data arrived twice that was in the out-of-order queue (RFC 2883).",
        f"tcp_dsack_set, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPRetransFail",
        "Retransmissions that failed in lower layers or for lack of memory.",
        f"tcp_retransmit_skb and __tcp_retransmit_skb, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPSpuriousRtxHostQueues",
        "Retransmissions given up because the segment itself was still in a queue of this host.",
        f"skb_still_in_host_queue, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPWqueueTooBig",
        "Times that a segment was not split because the memory of the send queue was far above the send buffer.",
        f"tcp_fragment, {_OUTPUT}",
        "5.2",
    ),
    Meaning(
        "TcpExtTCPMemoryPressures",
        "Times that TCP as a whole came under memory pressure: above the second value of tcp_mem.",
        f"tcp_enter_memory_pressure, {_TCP}",
    ),
    Meaning(
        "TcpExtTCPMemoryPressuresChrono",
        "Milliseconds that TCP as a whole was under memory pressure, counted when it ends.",
        f"tcp_leave_memory_pressure, {_TCP}",
        "4.13",
    ),
    Meaning(
        "TcpExtTCPAckCompressed",
        "ACKs with SACK that were not sent because a later one replaced them.",
        f"tcp_sack_compress_send_ack, {_INPUT}; tcp_event_ack_sent, {_OUTPUT}",
        "4.18",
    ),
    Meaning(
        "TcpExtDelayedACKs",
        "ACKs sent by the delayed ACK timer.",
        f"tcp_delack_timer_handler, {_TIMER}",
    ),
    Meaning(
        "TcpExtDelayedACKLost",
        "Segments received whose data had been acknowledged: the ACK was lost, or the data was sent twice.",
        f"tcp_data_queue and tcp_send_dupack, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPAbortOnData",
        "Connections reset because the application closed them with a linger time of 0, or because data came after it"
        " had closed.",
        f"__tcp_close, {_TCP}; tcp_rcv_state_process, {_INPUT}",
    ),
    Meaning(
        "TcpExtTCPAbortOnClose",
        "Connections reset because the application closed them with received data unread.",
        f"__tcp_close, {_TCP}",
    ),
    Meaning(
        "TcpExtTCPAbortOnMemory",
        "Closed connections given up because of too many orphans (tcp_max_orphans) or too little memory (tcp_mem).",
        f"tcp_out_of_resources, {_TIMER}; __tcp_close, {_TCP}",
    ),
    Meaning(
        "TcpExtTCPAbortOnTimeout",
        "Connections given up because retransmissions, probes or keep-alives were not answered.",
        f"tcp_write_err, {_TIMER}",
    ),
    Meaning(
        "TcpExtTCPAbortOnLinger",
        "Connections in FIN-WAIT-2 given up at once because TCP_LINGER2 is negative.",
        f"__tcp_close, {_TCP}; tcp_keepalive_timer, {_TIMER}",
    ),
    Meaning(
        "TcpExtTCPAbortFailed",
        "Resets that could not be sent, for lack of memory or because lower layers refused them.",
        f"tcp_send_active_reset, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPOrigDataSent",
        "Segments with data sent for the first time.",
        f"tcp_event_new_data_sent, {_OUTPUT}",
        "3.15",
    ),
    Meaning(
        "TcpExtTCPDelivered",
        "Segments with data newly acknowledged or SACKed by the peer.",
        f"tcp_newly_delivered, {_INPUT}",
        "4.18",
    ),
    Meaning(
        "TcpExtTCPDeliveredCE",
        "Segments delivered that the peer reported as marked with congestion (ECN).",
        f"tcp_newly_delivered, {_INPUT}",
        "4.18",
    ),
    Meaning(
        "TcpExtTcpTimeoutRehash",
        "Times that a timeout changed a connection's flow hash, so that it may take another path.",
        f"tcp_write_timeout, {_TIMER}",
        "5.6",
    ),
    Meaning(
        "TcpExtTCPPLBRehash",
        "Times that protective load balancing (tcp_plb_enabled) changed a connection's flow hash.",
        "tcp_plb_check_rehash, net/ipv4/tcp_plb.c",
        "6.2",
    ),
)

MEANINGS: Mapping[str, Meaning] = {meaning.name: meaning for meaning in _MEANINGS}
"""Meanings of counters by `nstat` name."""
