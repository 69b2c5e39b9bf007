"""The measured fields of a direction: generated from the engine's tables by `just model`."""

from dataclasses import dataclass


# Comparison, repr and __init__ would take 4 ms of every start, and only the engine makes one.
@dataclass(frozen=True, init=False, repr=False, eq=False)
class DirectionFields:
    """The measured fields of a direction; None where the capture cannot say.

    Attributes:
        segments: Segments sent, the capture's own duplicates left out.
        data_segments: Segments that carried payload.
        payload_bytes: Payload sent, retransmissions included.
        unique_bytes: Payload sent, each byte counted once.
        acked_bytes: Payload that the receiver acknowledged.
        first_data_ns: Time of the first payload.
        last_data_ns: Time of the last payload.
        throughput_bps: Payload bits per second from the first payload to the last, or to its acknowledgment.
        goodput_bps: Acknowledged payload bits per second over the same time.
        mss_bytes: Largest payload to expect: the smaller MSS option less the timestamps option, or what the path left
            of it in the end; else the largest payload seen.
        max_payload_bytes: Largest payload seen; above the MSS with segmentation offload (TSO, GRO).
        syn_mss: MSS option in the sender's SYN.
        syn_window_scale: Window scale option in the sender's SYN, as sent.
        syn_sack_permitted: SACK permitted option in the sender's SYN.
        syn_timestamps: Timestamps option in the sender's SYN.
        syn_fast_open: TCP Fast Open option in the sender's SYN.
        syn_multipath: Multipath TCP option in the sender's SYN.
        multipath_options: Kinds of Multipath TCP options that the sender sent (RFC 8684 section 3), parted by |:
            MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE, MP_TCPRST, and unknown for
            all others; none without any.
        syn_seen: The sender's SYN or SYN/ACK was captured.
        receive_window_initial_bytes: First window that the receiver advertised; a SYN's is never scaled.
        receive_window_min_bytes: Smallest accepted receive window.
        receive_window_max_bytes: Largest accepted receive window.
        receive_window_last_bytes: Receive window at the end.
        receive_window_mean_bytes: Receive window, mean over time.
        flight_max_bytes: Most bytes in flight: SND.MAX less SND.UNA.
        flight_mean_bytes: Bytes in flight, mean over the time in which they were known.
        window_utilisation: Mean flight over mean receive window.
        window_limited_ns: Time in which the next segment (at most half of the largest window) did not fit the open
            receive window, from when data was in flight until one fitted (Linux tcp_snd_wnd_test); a closed window is
            not counted here.
        window_cost_ns: Time that the receive window cost: closed while the sender had more to send (it probed, or sent
            soon after the opening), or too small for the next segment; near the receiver, where flight cannot be seen,
            the whole transfer when its goodput fills the window once per round trip.
        captured_near_receiver: Data is acknowledged at the capture point in less than a tenth of the path's round trip:
            bytes in flight are a lower bound of the sender's.
        window_full: Segments that ended exactly at the right edge of the window.
        window_near_full: Segments that left less than one segment's room below the right edge.
        window_overrun: Segments that ended beyond every right edge advertised so far.
        window_updates: ACKs of the receiver that changed nothing but the window.
        window_shrinks: ACKs that moved the right edge to the left by a unit of the scale or more.
        sub_mss_windows: Accepted windows above zero that are smaller than one segment.
        zero_window_segments: Segments of the receiver with a window of zero.
        zero_window_episode_count: Times the receiver closed its window.
        zero_window_ns: Time in which the receiver's window was closed.
        zero_window_longest_ns: Longest time for which the receiver's window was closed.
        zero_window_probes: Probes sent into the closed window.
        keep_alives: Keep-alives sent.
        stall_at_end: What the sender waits for when the capture, or a reset, ends the connection: zero_window (the
            closed window to open), small_window (one that holds the next segment), unacknowledged (data in flight for
            longer than its retransmission timeout) or peer_silent (no answer to three retransmissions, probes or
            keep-alives and more); none where nothing stalls.
        stall_at_end_start_ns: Since when: the window closed, the oldest byte in flight was sent, the last
            acknowledgment came or the first probe or keep-alive was left unanswered.
        stall_at_end_ns: For how long: until the reset, or the capture's last packet, at most two minutes after the
            connection's.
        stall_at_end_tries: Retransmissions, probes and keep-alives since the peer was last heard of, or last
            acknowledged data that is in flight, each of a timer of its own.
        fin: The sender sent a FIN.
        rst: The sender sent a RST.
        retransmissions: Segments sent again, whatever the cause, SYN and FIN included.
        resent_segments: Segments with data or FIN that were sent again.
        resent_bytes: Payload seen before and sent again, by overlap.
        fast_retransmissions: Retransmissions that opened a fast recovery: after three duplicate ACKs (RFC 5681), or by
            SACK (RFC 6675, RFC 8985).
        recovery_retransmissions: Later retransmissions of a fast recovery, by SACK or a partial ACK; those of lost
            retransmissions included.
        lost_retransmissions: Of these, bytes that the same recovery had sent again already, the retransmission before
            being lost; less those of which a DSACK showed later that it was not (RFC 2883).
        rto_retransmissions: Retransmissions by the timer: nothing acknowledged for the retransmission timeout (RFC
            6298).
        go_back_n_retransmissions: Retransmissions after a timeout of what had been sent before it.
        tail_loss_probes: Retransmissions of the last segment after about two round trips without an ACK (RFC 8985
            section 7).
        spurious_retransmissions: Retransmissions of data that had been acknowledged where it was captured.
        syn_retransmissions: SYNs or SYN/ACKs sent again.
        fin_retransmissions: FINs without data sent again.
        fast_open_retransmissions: Segments with the SYN's data again, which the SYN/ACK had left out: neither loss nor
            timer (RFC 7413 section 4.2).
        zero_window_retransmissions: Retransmissions into a closed window: probes (Linux tcp_retransmit_timer).
        unknown_retransmissions: Retransmissions that neither a timer nor an ACK explains.
        spurious_by_dsack: Retransmissions that the receiver reported as duplicates later (RFC 2883).
        spurious_by_timestamps: Retransmissions whose ACK echoed the original's timestamp (Eifel, RFC 3522).
        spurious_by_frto: Timeouts after which the first ACK covered data that was sent only once (F-RTO, RFC 5682),
            where timestamps cannot tell.
        recoveries: Fast recoveries.
        recovery_ns: Time in recovery, fast or after a timeout: until all was acknowledged that had been sent when it
            began, as the sender saw it.
        out_of_order: Segments that came later than those sent after them.
        reordering_max_bytes: Most bytes that overtook a segment.
        reordering_max_ns: Longest time by which a segment came after the first that overtook it.
        capture_reordered: Segments that the capture wrote down late: by its clock they came first.
        previous_segment_missing: Segments before which sequence numbers were skipped.
        missed_bytes: Payload acknowledged though the capture does not hold it: the capture's loss.
        acked_unseen: ACKs of data that the capture does not hold.
        duplicate_acks: Duplicate ACKs of the receiver.
        dsacks: ACKs of the receiver that report data received twice (RFC 2883).
        dsack_bytes: Bytes that they report.
        partial_acks: ACKs within a fast recovery that did not end it (RFC 6582).
        ce_segments: Segments that came marked: congestion experienced (RFC 3168 section 5). Only a capture behind the
            router that marks has them.
        ece_acks: ACKs of the receiver that tell of such a mark (ECE), by the RFC 3168 that both SYNs agree on; with
            AccECN the flag is a counter's.
        ace_marks: Marked packets that the receiver counted, by AccECN's three flags (RFC 9768 section 3.2.2): the least
            that they can be, eight looking like none; none where AccECN was not agreed on, or nothing told.
        cwr_segments: Segments with which the sender says that it has reduced its window for one (CWR), likewise.
        delayed_acks: ACKs of one segment that came 40 to 500 ms later than the fastest.
        stretch_acks: ACKs of more than two full segments (RFC 2525 section 2.13).
        acks_missing: ACKs of the receiver that never came to the capture point: gaps in the IP identification, where
            that counts this side's packets; none where it does not.
        stretch_acks_after_loss: Stretch ACKs that came right after missing ones; none likewise.
        compressed_acks: ACKs that came within a quarter of the time between the segments that they acknowledge: queued
            on their way.
        capture_duplicates: Packets that the capture holds twice; in no other count.
        recovery_share: Share of the time from the first to the last data in which the sender was in recovery.
        initial_flight_bytes: Bytes sent before the first acknowledgment of data reached the sender: the initial window
            in use; none where it cannot be told.
        view: Where the capture point lies for data of this direction: sender or receiver (within a tenth of the path's
            round trip), between, or unknown.
        sender_shift_ns: Least round trip between the capture point and the sender: what is seen here took effect there,
            and shows here, that much later.
        rtt_min_ns: Least time from data to its ACK at the capture point.
        rtt_smoothed_ns: Time from data to its ACK at the capture point, smoothed as Linux does (RFC 6298), at the end.
        rtt_variance_ns: Mean deviation of it as Linux has it: the second number behind rtt: in ss.
        rtt_samples: How many ACKs were timed.
        sender_rtt_smoothed_ns: The round trip as the sender has it: the smoothed one and what lies between the sender
            and the capture point.
        path_rate_bps: Rate of the path's bottleneck, bits of payload a second, by the spacing of trains of segments;
            None where they have no plateau, or a policer lets them through as they came.
        queue_mean_ns: By how much round trips were longer than the least, on average over time: what stood in queues.
        queue_max_ns: The same of the round trip of the path that waited longest, each averaged over itself.
        rto_ns: Retransmission timeout that a Linux sender has at the end, without back-off: its smoothed round trip and
            at least 200 ms.
        sender_flight_max_bytes: Most bytes in flight as the sender saw it, ACKs reaching it sender_shift_ns after they
            were captured; none where the capture point is the sender's.
        sender_flight_mean_bytes: Mean of the same over time; none where it was not known before most of the data had
            been sent.
        sender_window_limited_ns: Time in which the window that the sender knew held no further segment, from when data
            was in flight until one fitted; none where the capture point is the sender's: window_limited_ns tells it.
        cwnd_estimate_max_bytes: Most bytes outstanding, as the sender saw it: without loss the least that the
            congestion window was at its largest; in recovery SACKed bytes count too, which are no longer in it.
        cwnd_model_bytes: Congestion window at the end by Linux's rules: ten segments at first, widened by what was
            acknowledged while it was used, cut to seven tenths by loss and halved by idle timeouts; none before a round
            trip was seen.
        sender_algorithm: Congestion control of the sender by its moves: reno, cubic, bbr or dctcp, as Linux names them;
            none where they are too few, agree with none of them, or were not captured at the sender.
        sender_algorithm_confidence: How sure that is: likely, or possible where few moves show it.
        window_cuts: Losses and marks after which the flight shows what was left of the congestion window.
        window_cut_mean: What they left of it on average: a half by Reno, seven tenths by CUBIC; none without such a
            cut.
        rate_probes: Times that the flight rose by an eighth and more and fell back without a loss, as BBR's does.
        clock_step_ns: By how much the capture's clock was set during the connection, in all. Forward: time in silences
            that it counts and the timestamps of the sender that ended them do not; it is in duration_ns and in no rate.
            Back: what follows counts from the latest time before.
        slow_start_ns: Time in round trips whose flight was a third and more above the one before, below the threshold
            that a loss set.
        idle_gaps: Times that data followed a silence longer than the retransmission timeout with nothing in flight.
        idle_ns: Time with nothing in flight in these gaps.
        idle_restarts: Of these, after which the congestion window had been cut: the burst ended within what Linux
            leaves, and went on with the ACK.
        idle_restart_round_trips: Round trips that these restarts cost, against the window before.
        idle_restart_cost_ns: Time that they cost.
        messages: Stretches of data without a word of the other side and without a pause of two round trips with nothing
            in flight.
        message_delay_p50_ns: From the first byte of a message sent to its last byte arrived: median.
        message_delay_p95_ns: The same: not exceeded by 95 % of the messages.
        message_delay_p99_ns: The same: not exceeded by 99 % of the messages.
        turns: Times that the sender answered data of the other side, with nothing in flight.
        first_byte_p50_ns: From the other side's last data to the first of the answer, at the capture point: median.
        first_byte_p95_ns: The same: not exceeded by 95 % of the answers.
        first_byte_p99_ns: The same: not exceeded by 99 % of the answers.
        nagle_delays: Small segments that waited for the delayed ACK of a small one before them (Nagle, RFC 9293 section
            3.7.4).
        nagle_delay_ns: Time that they waited.
        tinygrams: Segments smaller than the MSS that more data followed before they were acknowledged.
        budget_handshake_ns: Time from the first segment to the end of the handshake.
        budget_zero_window_ns: Time in which the receiver's window was closed.
        budget_small_window_ns: Time in which nothing was in flight and the window did not hold a full segment.
        budget_window_full_ns: Time in which data was in flight and the window did not hold another full segment.
        budget_reader_ns: Time in which what limited was that the receiver's application did not read: the window was
            held down by unread data, its ACKs waited for the application, data that had all arrived was still being
            read, or what came was refused, its window having been taken back.
        budget_slow_start_ns: Time in round trips whose flight grew by a third and more: slow start.
        budget_congestion_ns: Time in round trips that the congestion window limited, none of the other items.
        budget_after_loss_ns: Time in round trips after a loss, until the flight before it was regained.
        budget_fast_recovery_ns: Time in fast recovery.
        budget_timeout_ns: Time of silence before retransmission timeouts, and of recovery after them.
        budget_tail_ns: Time of silence before tail loss probes.
        budget_peer_silent_ns: Time at the end in which the peer left data, probes or keep-alives unanswered: see
            stall_at_end.
        budget_idle_restart_ns: Time that idle restarts cost.
        budget_application_ns: Time in which the sender had nothing to send, as far as the packets show.
        budget_send_buffer_ns: Time in round trips of a flight that stayed the same below every other limit: a send
            buffer is suspected.
        budget_path_ns: Time in round trips at the rate of the path's bottleneck, or above a queue that never emptied:
            what the path gives.
        budget_policer_ns: Time in round trips at the rate of a policer, which drops what is above it and queues
            nothing.
        budget_closed_ns: Time after the sender had closed and all was acknowledged, or after a reset.
        budget_unknown_ns: Time that the capture does not explain.
    """

    segments: int
    data_segments: int
    payload_bytes: int
    unique_bytes: int
    acked_bytes: int
    first_data_ns: int | None
    last_data_ns: int | None
    throughput_bps: float | None
    goodput_bps: float | None
    mss_bytes: int
    max_payload_bytes: int
    syn_mss: int | None
    syn_window_scale: int | None
    syn_sack_permitted: bool
    syn_timestamps: bool
    syn_fast_open: bool
    syn_multipath: bool
    multipath_options: str | None
    syn_seen: bool
    receive_window_initial_bytes: int | None
    receive_window_min_bytes: int | None
    receive_window_max_bytes: int | None
    receive_window_last_bytes: int | None
    receive_window_mean_bytes: float | None
    flight_max_bytes: int | None
    flight_mean_bytes: float | None
    window_utilisation: float | None
    window_limited_ns: int
    window_cost_ns: int
    captured_near_receiver: bool
    window_full: int
    window_near_full: int
    window_overrun: int
    window_updates: int
    window_shrinks: int
    sub_mss_windows: int
    zero_window_segments: int
    zero_window_episode_count: int
    zero_window_ns: int
    zero_window_longest_ns: int
    zero_window_probes: int
    keep_alives: int
    stall_at_end: str | None
    stall_at_end_start_ns: int | None
    stall_at_end_ns: int
    stall_at_end_tries: int
    fin: bool
    rst: bool
    retransmissions: int
    resent_segments: int
    resent_bytes: int
    fast_retransmissions: int
    recovery_retransmissions: int
    lost_retransmissions: int
    rto_retransmissions: int
    go_back_n_retransmissions: int
    tail_loss_probes: int
    spurious_retransmissions: int
    syn_retransmissions: int
    fin_retransmissions: int
    fast_open_retransmissions: int
    zero_window_retransmissions: int
    unknown_retransmissions: int
    spurious_by_dsack: int
    spurious_by_timestamps: int
    spurious_by_frto: int
    recoveries: int
    recovery_ns: int
    out_of_order: int
    reordering_max_bytes: int
    reordering_max_ns: int
    capture_reordered: int
    previous_segment_missing: int
    missed_bytes: int
    acked_unseen: int
    duplicate_acks: int
    dsacks: int
    dsack_bytes: int
    partial_acks: int
    ce_segments: int
    ece_acks: int
    ace_marks: int | None
    cwr_segments: int
    delayed_acks: int
    stretch_acks: int
    acks_missing: int | None
    stretch_acks_after_loss: int | None
    compressed_acks: int
    capture_duplicates: int
    recovery_share: float | None
    initial_flight_bytes: int | None
    view: str
    sender_shift_ns: int | None
    rtt_min_ns: int | None
    rtt_smoothed_ns: int | None
    rtt_variance_ns: int | None
    rtt_samples: int
    sender_rtt_smoothed_ns: int | None
    path_rate_bps: float | None
    queue_mean_ns: int | None
    queue_max_ns: int | None
    rto_ns: int | None
    sender_flight_max_bytes: int | None
    sender_flight_mean_bytes: float | None
    sender_window_limited_ns: int | None
    cwnd_estimate_max_bytes: int | None
    cwnd_model_bytes: int | None
    sender_algorithm: str | None
    sender_algorithm_confidence: str | None
    window_cuts: int
    window_cut_mean: float | None
    rate_probes: int
    clock_step_ns: int
    slow_start_ns: int
    idle_gaps: int
    idle_ns: int
    idle_restarts: int
    idle_restart_round_trips: int
    idle_restart_cost_ns: int
    messages: int
    message_delay_p50_ns: int | None
    message_delay_p95_ns: int | None
    message_delay_p99_ns: int | None
    turns: int
    first_byte_p50_ns: int | None
    first_byte_p95_ns: int | None
    first_byte_p99_ns: int | None
    nagle_delays: int
    nagle_delay_ns: int
    tinygrams: int
    budget_handshake_ns: int
    budget_zero_window_ns: int
    budget_small_window_ns: int
    budget_window_full_ns: int
    budget_reader_ns: int
    budget_slow_start_ns: int
    budget_congestion_ns: int
    budget_after_loss_ns: int
    budget_fast_recovery_ns: int
    budget_timeout_ns: int
    budget_tail_ns: int
    budget_peer_silent_ns: int
    budget_idle_restart_ns: int
    budget_application_ns: int
    budget_send_buffer_ns: int
    budget_path_ns: int
    budget_policer_ns: int
    budget_closed_ns: int
    budget_unknown_ns: int
