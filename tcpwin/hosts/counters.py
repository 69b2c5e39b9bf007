"""Counters of the network stack: how much they grew between samples, and what each of them counts.

In: counter samples of one host in order. Out: increases, with rates and resets; the meaning of a counter by its
`nstat` name. It never guesses what a sample left out.
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
"""Settings and current numbers among the counters: they may fall. `nstat` leaves the first seven out."""

SURE = 10
"""So many counts, not 0, that stayed or grew show counts since boot."""


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """How much counters grew over a time.

    Attributes:
        start_ns, end_ns: nanoseconds since the epoch by the host's clock; None where it is not known.
        values: increases by `nstat` name; of the names in `resets` what is sure to have been counted.
        resets: names that ran backwards. The host, or its network namespace, started again in between, or a counter
            of 32 bits wrapped. All increases are then the least that they can be.
        is_assumed: the samples did not show whether they count since boot; it was judged from these two alone.
    """

    start_ns: int | None
    end_ns: int | None
    values: Mapping[str, int]
    resets: frozenset[str] = frozenset()
    is_assumed: bool = False

    @property
    def seconds(self) -> float | None:
        """The time between the samples; None where it is not known or not more than 0."""
        if self.start_ns is None or self.end_ns is None or self.end_ns <= self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def rates(self) -> dict[str, float] | None:
        """Increases per second by name; None where the time is not known."""
        seconds = self.seconds
        return None if seconds is None else {name: value / seconds for name, value in self.values.items()}


def deltas(samples: Iterable[CounterSample]) -> Iterator[CounterDelta]:
    """Compare each sample with the one before it, where both are of one kind and have a name in common.

    An increment is an increase already; the first one has no start. Of two samples that do not show their kind, the
    second is taken for an increment where a count fell, and for counts since boot where none did. A name that one of
    the two lacks is left out, save where that sample printed no zeros and everything else (`nstat -a`).
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
    """Whether a counter has less in the second sample: something started again, or the first was taken later."""
    return bool(_increases(before, after)[1])


def are_increments(samples: Sequence[CounterSample]) -> bool | None:
    """Judge whether samples that follow each other are increments (True) or counts since boot (False).

    Counts since boot fall at a restart only, so increments are what falls between half of the samples or more. For
    counts since boot it takes `SURE` counts, not 0, that did not fall. `nstat` marks an overflow in increments only
    (misc/nstat.c, dump_incr_db).

    Returns:
        None where too little is there to judge.
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
    # Both are there on every host that ever received a packet, but not where somebody asked for a few names.
    is_whole = "IpInReceives" in sample.values and "IpExtInOctets" in sample.values
    return is_whole and 0 not in sample.values.values()


def _without_gauges(sample: CounterSample) -> dict[str, int]:
    return {name: value for name, value in sample.values.items() if name not in GAUGES}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a counter counts.

    Attributes:
        name: as `nstat` prints it.
        counts: what the kernel counts, in one sentence.
        source: the kernel's function and file that count it. Many are described in snmp_counter.rst as well
            (Documentation/networking).
        since: the first kernel that has it, where that is known.
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
        "Segments received, bad ones too; what GRO merged counts once.",
        f"tcp_v4_rcv, {_IPV4}",
    ),
    Meaning(
        "TcpOutSegs",
        "Segments sent without retransmissions, but with pure ACKs and SYNs; what GSO will split counts as its parts.",
        f"__tcp_transmit_skb, {_OUTPUT}",
    ),
    Meaning(
        "TcpRetransSegs",
        "Segments retransmitted for any reason, SYN and SYN/ACK too.",
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
        "Segments that came out of order and were queued; what GRO merged counts once.",
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
        "Segments that were refused because data of theirs lay beyond the window; a window taken back refuses many.",
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
        "Segments whose data was put into the buffer before it in a receive queue; what GRO merged is not among them.",
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
        "Times that memory called for a window of zero, but a window may not shrink, so its rest was advertised.",
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
        "Segments retransmitted in the Loss state: after a timeout, without the one that the timer sent itself.",
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
        "Retransmissions that the layers below, or a lack of memory, refused.",
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
        "ACKs that the timer of delayed ACKs sent.",
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
        "Connections given up because retransmissions, probes or keep-alives stayed without an answer.",
        f"tcp_write_err, {_TIMER}",
    ),
    Meaning(
        "TcpExtTCPAbortOnLinger",
        "Connections in FIN-WAIT-2 given up at once because TCP_LINGER2 is negative.",
        f"__tcp_close, {_TCP}; tcp_keepalive_timer, {_TIMER}",
    ),
    Meaning(
        "TcpExtTCPAbortFailed",
        "Resets that could not be sent, for want of memory or refused by the layers below.",
        f"tcp_send_active_reset, {_OUTPUT}",
    ),
    Meaning(
        "TcpExtTCPOrigDataSent",
        "Segments with data sent for the first time: what retransmissions are a share of.",
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
        "Times that a timeout made a connection draw a new flow hash, so that it may take another path.",
        f"tcp_write_timeout, {_TIMER}",
        "5.6",
    ),
    Meaning(
        "TcpExtTCPPLBRehash",
        "Times that protective load balancing (tcp_plb_enabled) made a connection draw a new flow hash.",
        "tcp_plb_check_rehash, net/ipv4/tcp_plb.c",
        "6.2",
    ),
)

MEANINGS: Mapping[str, Meaning] = {meaning.name: meaning for meaning in _MEANINGS}
"""Meanings of counters by `nstat` name."""
