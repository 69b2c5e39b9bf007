"""The measured fields of a direction: generated from the engine's tables by `just model`."""

from dataclasses import dataclass


# Comparison, repr and __init__ would take 4 ms of every start, and only the engine makes one.
@dataclass(frozen=True, init=False, repr=False, eq=False)
class DirectionFields:
    """The measured fields of a direction; None if the capture lacks the value.

    Attributes:
        segments: Segments sent, excluding the capture's own duplicates.
        data_segments: Segments that carried payload.
        payload_bytes: Payload sent, including retransmissions.
        unique_bytes: Payload sent, each byte counted once.
        acked_bytes: Payload that the receiver acknowledged.
        first_data_ns: Time of the first payload.
        last_data_ns: Time of the last payload.
        throughput_bps: Payload bits per second from the first payload to the last, or to its acknowledgment.
        goodput_bps: Acknowledged payload bits per second over the same time.
        mss_bytes: Largest expected payload: the smaller MSS option minus the timestamps option, or the size that the
            path finally allowed; otherwise the largest payload seen.
        max_payload_bytes: Largest payload seen; above the MSS with segmentation offload (TSO, GRO).
        syn_mss: MSS option in the sender's SYN.
        syn_window_scale: Window scale option in the sender's SYN, as sent.
        syn_sack_permitted: SACK permitted option in the sender's SYN.
        syn_timestamps: Timestamps option in the sender's SYN.
        syn_fast_open: TCP Fast Open option in the sender's SYN.
        syn_multipath: Multipath TCP option in the sender's SYN.
        multipath_options: Multipath TCP options that the sender sent (RFC 8684 section 3), separated by |: MP_CAPABLE,
            MP_JOIN, DSS, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE, MP_TCPRST, and unknown for all others;
            none without any.
        syn_seen: The sender's SYN or SYN/ACK was captured.
        receive_window_initial_bytes: First window that the receiver advertised; a SYN's is never scaled.
        receive_window_min_bytes: Smallest accepted receive window.
        receive_window_max_bytes: Largest accepted receive window.
        receive_window_last_bytes: Receive window at the end.
        receive_window_mean_bytes: Receive window, averaged over time.
        flight_max_bytes: Maximum bytes in flight: SND.MAX minus SND.UNA.
        flight_mean_bytes: Bytes in flight, averaged over the time in which they were known.
        window_utilisation: Mean flight divided by mean receive window.
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
        window_low_acked_bytes: Acknowledged bytes whose ACK left less than half of the largest window until then:
            unread data took the rest.
        loss_times: Times at which data was lost, each after the retransmission of what was lost before.
        loss_times_unread: Of these, times at which `loss_unread_share` of the receiver's largest window or more was
            filled by unread data, as the last ACK shows.
        loss_unread_share: The share, a quarter or more in steps of an eighth, that explains the most losses; none if
            chance explains them.
        loss_unread_arrived_share: Share of all acknowledged data that arrived while so much was unread.
        loss_unread_chance: Probability, at most, that a path that loses at any time would have lost so often while so
            much was unread (Chernoff's bound).
        window_updates: ACKs from the receiver that changed nothing but the window.
        window_shrinks: ACKs that moved the right edge to the left by at least one unit of the scale.
        sub_mss_windows: Accepted windows above zero that are smaller than one segment.
        zero_window_segments: Segments from the receiver with a window of zero.
        zero_window_episode_count: Times the receiver closed its window.
        zero_window_ns: Time in which the receiver's window was closed.
        zero_window_longest_ns: Longest time for which the receiver's window was closed.
        zero_window_probes: Probes sent into the closed window.
        keep_alives: Keep-alives sent.
        stall_at_end: What the sender waits for when the capture or a reset ends the connection: zero_window (a closed
            window to open), small_window (space for the next segment), unacknowledged (an ACK for data in flight longer
            than its retransmission timeout) or peer_silent (any answer after at least three retransmissions, probes or
            keep-alives); none without a stall.
        stall_at_end_start_ns: Start of the stall: when the window closed, the oldest byte in flight was sent, the last
            acknowledgment arrived or the first unanswered probe or keep-alive was sent.
        stall_at_end_ns: Duration of the stall, until the reset or the capture's last packet, at most two minutes after
            the connection's last one.
        stall_at_end_tries: Retransmissions, probes and keep-alives, each triggered by its own timer, since the peer was
            last heard from or last acknowledged data in flight.
        fin: The sender sent a FIN.
        rst: The sender sent a RST.
        retransmissions: Retransmitted segments, whatever the cause, including SYN and FIN.
        resent_segments: Retransmitted segments with data or FIN.
        resent_bytes: Retransmitted payload, by overlap with payload seen before.
        fast_retransmissions: Retransmissions that opened a fast recovery: after three duplicate ACKs (RFC 5681), or by
            SACK (RFC 6675, RFC 8985).
        recovery_retransmissions: Later retransmissions of a fast recovery, by SACK or a partial ACK, including those of
            lost retransmissions.
        lost_retransmissions: Recovery retransmissions of bytes whose earlier retransmission in the same recovery was
            lost, minus those that a later DSACK shows was not lost (RFC 2883).
        rto_retransmissions: Retransmissions by the timer: no acknowledgment during the retransmission timeout (RFC
            6298).
        go_back_n_retransmissions: Retransmissions, after a timeout, of data sent before it.
        tail_loss_probes: Retransmissions of the last segment after about two round trips without an ACK (RFC 8985
            section 7).
        spurious_retransmissions: Retransmissions of data that had already been acknowledged at the capture point.
        syn_retransmissions: Retransmitted SYNs or SYN/ACKs.
        fin_retransmissions: Retransmitted FINs without data.
        fast_open_retransmissions: Retransmissions of a SYN's data that the SYN/ACK did not acknowledge: neither loss
            nor timeout (RFC 7413 section 4.2).
        zero_window_retransmissions: Retransmissions into a closed window: probes (Linux tcp_retransmit_timer).
        unknown_retransmissions: Retransmissions explained by neither a timer nor an ACK.
        spurious_by_dsack: Retransmissions that the receiver later reported as duplicates (RFC 2883).
        spurious_by_timestamps: Retransmissions whose ACK echoed the original's timestamp (Eifel, RFC 3522).
        spurious_by_frto: Timeouts after which the first ACK covered data sent only once (F-RTO, RFC 5682), if
            timestamps do not decide.
        recoveries: Fast recoveries.
        recovery_ns: Time in recovery, fast or after a timeout, as seen by the sender: until everything sent before its
            start was acknowledged.
        out_of_order: Segments that arrived after segments sent later.
        reordering_max_bytes: Maximum bytes that overtook a segment.
        reordering_max_ns: Longest delay of a segment behind the first one that overtook it.
        capture_reordered: Segments that the capture recorded late although its timestamps put them earlier.
        previous_segment_missing: Segments before which sequence numbers were skipped.
        missed_bytes: Payload acknowledged but missing from the capture, so lost by the capture.
        acked_unseen: ACKs of data missing from the capture.
        duplicate_acks: Duplicate ACKs from the receiver.
        dsacks: ACKs from the receiver that report data received twice (RFC 2883).
        dsack_bytes: Bytes that DSACKs reported as received twice.
        partial_acks: ACKs within a fast recovery that did not end it (RFC 6582).
        ce_segments: Segments marked congestion experienced (RFC 3168 section 5). Visible only if captured after the
            marking router.
        ece_acks: ACKs from the receiver that report a congestion mark (ECE), if the SYNs negotiated RFC 3168; with
            AccECN the flag is part of a counter.
        ace_marks: Marked packets counted by the receiver in AccECN's three flags (RFC 9768 section 3.2.2): a lower
            bound, as eight marks look like zero; none if AccECN was not negotiated or never used.
        cwr_segments: Segments in which the sender reports that it reduced its window because of a mark (CWR), if the
            SYNs negotiated RFC 3168.
        delayed_acks: ACKs of a single segment that came 40 to 500 ms later than the fastest.
        stretch_acks: ACKs of more than two full segments (RFC 2525 section 2.13).
        acks_missing: ACKs from the receiver that did not reach the capture point, by gaps in its IP IDs; none if the
            IDs do not count this connection's packets.
        stretch_acks_after_loss: Stretch ACKs directly after missing ACKs; none if acks_missing is none.
        compressed_acks: ACKs whose spacing is less than a quarter of that of the segments they acknowledge: they were
            queued on the path.
        capture_duplicates: Packets that the capture holds twice; excluded from all other counts.
        recovery_share: Share of the time from the first to the last data in which the sender was in recovery.
        initial_flight_bytes: Bytes sent before the first acknowledgment of data reached the sender: the initial window
            in use; none if it cannot be determined.
        view: Position of the capture point for data of this direction: sender or receiver (within a tenth of the path's
            round trip), between, or unknown.
        sender_shift_ns: Minimum round trip between the capture point and the sender: an ACK captured here shows its
            effect here this much later.
        rtt_min_ns: Minimum time from data to its ACK at the capture point.
        rtt_smoothed_ns: Time from data to its ACK at the capture point, smoothed as Linux does (RFC 6298), at the end.
        rtt_variance_ns: Mean deviation of rtt_smoothed_ns as in Linux: the second number after rtt: in ss.
        rtt_samples: Number of timed ACKs.
        sender_rtt_smoothed_ns: Smoothed round trip at the sender: rtt_smoothed_ns plus the round trip between the
            sender and the capture point.
        path_rate_bps: Rate of the path's bottleneck, in bits of payload per second, measured by the spacing of segment
            trains; none if they show no plateau, or pass a policer unchanged.
        queue_mean_ns: Queueing delay: excess of round trips over the minimum, averaged over time.
        queue_max_ns: Maximum queueing delay of a round trip, each averaged over its duration.
        rto_ns: Retransmission timeout of a Linux sender at the end, without back-off: its smoothed round trip plus at
            least 200 ms.
        sender_flight_max_bytes: Maximum bytes in flight as seen by the sender, which ACKs reach sender_shift_ns after
            their capture; none if captured at the sender.
        sender_flight_mean_bytes: Average over time of the bytes in flight as seen by the sender; none if unknown until
            most of the data had been sent.
        sender_window_limited_ns: Time in which the window known to the sender had no space for another segment, from
            when data was in flight until one fitted; none if captured at the sender (see window_limited_ns).
        cwnd_estimate_max_bytes: Maximum bytes outstanding, as seen by the sender. Without loss, a lower bound for the
            largest congestion window; in recovery it also includes SACKed bytes, which no longer count against the
            window.
        cwnd_model_bytes: Congestion window at the end by Linux's rules: ten segments at first, increased by ACKs while
            in use, reduced to seven tenths by loss and halved by idle timeouts; none before the first round trip.
        sender_algorithm: Congestion control of the sender, inferred from its behaviour: reno, cubic, bbr or dctcp, as
            named by Linux; none if there is too little evidence, none of them fits, or the capture was not made at the
            sender.
        sender_algorithm_confidence: Confidence in sender_algorithm: likely, or possible if there is little evidence.
        window_cuts: Losses and marks after which the flight shows the reduced congestion window.
        window_cut_mean: Average share of the window that remained after a cut: half with Reno, seven tenths with CUBIC;
            none without a cut.
        rate_probes: Times that the flight rose by at least an eighth and fell back without a loss, as BBR's does.
        clock_step_ns: Total adjustment of the capture's clock during the connection. Forward: silence that the clock
            shows but the timestamps of the sender that ended it do not; included in duration_ns but in no rate.
            Backward: later times are counted from the latest time before.
        slow_start_ns: Time in round trips whose flight grew by at least a third over the previous one, below the
            threshold set by a loss.
        idle_gaps: Times that data followed a silence longer than the retransmission timeout with nothing in flight.
        idle_ns: Time with nothing in flight in idle gaps.
        idle_restarts: Idle gaps after which the congestion window had been reduced: the burst stopped within the window
            that Linux leaves, and continued with the ACK.
        idle_restart_round_trips: Round trips lost to idle restarts, compared with the window before.
        idle_restart_cost_ns: Time lost to idle restarts.
        messages: Runs of data uninterrupted by data of the other side or by a pause of two round trips with nothing in
            flight.
        message_delay_p50_ns: Message delay, from sending the first byte to the arrival of the last: median.
        message_delay_p95_ns: Message delay: 95th percentile.
        message_delay_p99_ns: Message delay: 99th percentile.
        turns: Times that the sender answered data of the other side, with nothing in flight.
        first_byte_p50_ns: Time to first byte, from the other side's last data to the first data of the answer, at the
            capture point: median.
        first_byte_p95_ns: Time to first byte: 95th percentile.
        first_byte_p99_ns: Time to first byte: 99th percentile.
        work_p50_ns: Time to answer, from having the other side's data to sending the first byte: first_byte less the
            round trip between the capture point and this side; median.
        work_p95_ns: Time to answer: 95th percentile.
        work_max_ns: Time to answer: maximum.
        nagle_delays: Small segments that waited for the delayed ACK of a previous small segment (Nagle, RFC 9293
            section 3.7.4).
        nagle_delay_ns: Total time that small segments waited for delayed ACKs.
        nagle_waits: Small segments sent as soon as the ACK of a previous small segment reached the sender, whether that
            ACK was delayed or not.
        nagle_wait_ns: Total time from the previous small segment to its ACK, at the sender.
        tinygrams: Segments smaller than the MSS that were followed by more data before they were acknowledged.
        budget_handshake_ns: Time from the first segment to the end of the handshake.
        budget_zero_window_ns: Time in which the receiver's window was closed.
        budget_small_window_ns: Time in which nothing was in flight and the window did not hold a full segment.
        budget_window_full_ns: Time in which data was in flight and the window did not hold another full segment.
        budget_reader_ns: Time limited by the receiver's application, which did not read: unread data kept the window
            small, ACKs waited for the application, data that had already arrived was still being read, or the receiver
            had shrunk its window and refused data.
        budget_slow_start_ns: Time in round trips whose flight grew by at least a third: slow start.
        budget_congestion_ns: Time in round trips limited by the congestion window and by no other item.
        budget_after_loss_ns: Time in round trips after a loss, until the flight before it was regained.
        budget_fast_recovery_ns: Time in fast recovery.
        budget_timeout_ns: Silence before retransmission timeouts, and recovery after them.
        budget_tail_ns: Silence before tail loss probes.
        budget_peer_silent_ns: Time at the end in which the peer left data, probes or keep-alives unanswered: see
            stall_at_end.
        budget_idle_restart_ns: Time lost to idle restarts.
        budget_application_ns: Time in which the sender had nothing to send, as far as the packets show.
        budget_responder_ns: Time between the arrival of a request and the first byte of the answer.
        budget_requester_ns: Time between an answer or the handshake and the next request, if it came within 30 s.
        budget_round_trip_ns: Time in which requests and the last bytes of answers were in transit.
        budget_idle_ns: Time without a request: before requests that came more than 30 s after the previous answer, and
            after the last answer.
        budget_send_buffer_ns: Time in round trips whose flight stayed constant below all other limits, probably because
            of the send buffer.
        budget_path_ns: Time in round trips at the rate of the path's bottleneck, or with a queue that never emptied:
            the path's capacity.
        budget_policer_ns: Time in round trips at the rate of a policer, which drops excess traffic instead of queueing
            it.
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
    window_low_acked_bytes: int
    loss_times: int
    loss_times_unread: int
    loss_unread_share: float | None
    loss_unread_arrived_share: float | None
    loss_unread_chance: float | None
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
    work_p50_ns: int | None
    work_p95_ns: int | None
    work_max_ns: int | None
    nagle_delays: int
    nagle_delay_ns: int
    nagle_waits: int
    nagle_wait_ns: int
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
    budget_responder_ns: int
    budget_requester_ns: int
    budget_round_trip_ns: int
    budget_idle_ns: int
    budget_send_buffer_ns: int
    budget_path_ns: int
    budget_policer_ns: int
    budget_closed_ns: int
    budget_unknown_ns: int
