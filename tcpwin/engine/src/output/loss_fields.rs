//! Fields of a direction: loss, reordering, acknowledgments.

use crate::event;
use crate::output::field::{count, fields, int, optional, DirectionField, DirectionView, Value};
use crate::tcp::path::pace::Pace;
use crate::tcp::recovery::episode::Episode;

impl DirectionView<'_> {
    fn episode(&self) -> Option<&Episode> {
        self.cold_state()?.episode()
    }

    fn of_episode(&self, get: fn(&Episode) -> i64) -> Value {
        Value::Int(self.episode().map_or(0, get))
    }

    /// Return the time in recovery. The last ACK of a recovery takes effect at the sender one shift later than it was
    /// captured.
    pub(super) fn recovery_ns(&self) -> i64 {
        let shift_ns = self.shift_ns().unwrap_or(0);
        let connection = self.connection;
        self.episode().map_or(0, |episode| {
            let stretches = i64::from(episode.stretches);
            episode
                .recovery_ns
                .saturating_add(shift_ns.saturating_mul(stretches))
                // The end may fall after the last packet.
                .min(connection.end_ns.saturating_sub(connection.start_ns))
        })
    }

    /// Return the number of retransmissions that were lost as well, less those that a DSACK disproved.
    fn lost_retransmissions(&self) -> u32 {
        let disproved = self.episode().map_or(0, |episode| episode.lost_disproved);
        self.sent_events(event::LOST_RETRANSMISSION)
            .saturating_sub(disproved)
    }

    fn ace_marks(&self) -> Value {
        let counted = self
            .cold_state()
            .and_then(|cold_state| cold_state.ace.as_ref()?.counted());
        counted.map_or(Value::None, count)
    }

    fn ack_loss(&self, get: fn((u32, u32)) -> u32) -> Value {
        let judged = self
            .data()
            .pace()
            .and_then(|pace| pace.late.ack_ids.judge());
        optional(judged.map(get))
    }

    pub(super) fn of_pace(&self, get: fn(&Pace) -> i64) -> Value {
        Value::Int(self.data().pace().map_or(0, get))
    }
}

pub const LOSS_FIELDS: &[DirectionField] = fields! {
    retransmissions Int list brief "Retransmitted segments, whatever the cause, including SYN and FIN." @sent event::RESENT;
    resent_segments Int "Retransmitted segments with data or FIN." @cold_state |c| i64::from(c.resent_segments);
    resent_bytes Int "Retransmitted payload, by overlap with payload seen before." |v| count(v.resent_bytes());
    fast_retransmissions Int "Retransmissions that opened a fast recovery: after three duplicate ACKs (RFC 5681), or by SACK (RFC 6675, RFC 8985)." @sent event::FAST_RETRANSMISSION;
    recovery_retransmissions Int "Later retransmissions of a fast recovery, by SACK or a partial ACK, including those of lost retransmissions." @sent event::RECOVERY_RETRANSMISSION;
    lost_retransmissions Int "Recovery retransmissions of bytes whose earlier retransmission in the same recovery was lost, minus those that a later DSACK shows was not lost (RFC 2883)." |v| int(v.lost_retransmissions());
    rto_retransmissions Int brief "Retransmissions by the timer: no acknowledgment during the retransmission timeout (RFC 6298)." @sent event::RTO_RETRANSMISSION;
    go_back_n_retransmissions Int "Retransmissions, after a timeout, of data sent before it." @sent event::GO_BACK_N;
    tail_loss_probes Int "Retransmissions of the last segment after about two round trips without an ACK (RFC 8985 section 7)." @sent event::TAIL_LOSS_PROBE;
    spurious_retransmissions Int brief "Retransmissions of data that had already been acknowledged at the capture point." @sent event::SPURIOUS_RETRANSMISSION;
    syn_retransmissions Int "Retransmitted SYNs or SYN/ACKs." @sent event::SYN_RETRANSMISSION;
    fin_retransmissions Int "Retransmitted FINs without data." @episode |e| i64::from(e.fin);
    fast_open_retransmissions Int "Retransmissions of a SYN's data that the SYN/ACK did not acknowledge: neither loss nor timeout (RFC 7413 section 4.2)." @episode |e| i64::from(e.fast_open);
    zero_window_retransmissions Int "Retransmissions into a closed window: probes (Linux tcp_retransmit_timer)." @episode |e| i64::from(e.zero_window);
    unknown_retransmissions Int "Retransmissions explained by neither a timer nor an ACK." @episode |e| i64::from(e.unknown);
    spurious_by_dsack Int "Retransmissions that the receiver later reported as duplicates (RFC 2883)." @episode |e| i64::from(e.by_dsack);
    spurious_by_timestamps Int "Retransmissions whose ACK echoed the original's timestamp (Eifel, RFC 3522)." @episode |e| i64::from(e.by_timestamps);
    spurious_by_frto Int "Timeouts after which the first ACK covered data sent only once (F-RTO, RFC 5682), if timestamps do not decide." @episode |e| i64::from(e.by_frto);
    recoveries Int "Fast recoveries." @episode |e| i64::from(e.recoveries);
    recovery_ns Int "Time in recovery, fast or after a timeout, as seen by the sender: until everything sent before its start was acknowledged." |v| int(v.recovery_ns());
    out_of_order Int list brief "Segments that arrived after segments sent later." @sent event::OUT_OF_ORDER;
    reordering_max_bytes Int "Maximum bytes that overtook a segment." @episode |e| i64::from(e.reordering_max_bytes);
    reordering_max_ns Int "Longest delay of a segment behind the first one that overtook it." @episode |e| e.reordering_max_ns;
    capture_reordered Int "Segments that the capture recorded late although its timestamps put them earlier." @sent event::CAPTURE_REORDERED;
    previous_segment_missing Int "Segments before which sequence numbers were skipped." @sent event::PREVIOUS_SEGMENT_MISSING;
    missed_bytes Int "Payload acknowledged but missing from the capture, so lost by the capture." @cold_state |c| c.missed.bytes() as i64;
    acked_unseen Int "ACKs of data missing from the capture." @answered event::ACKED_UNSEEN;
    duplicate_acks Int "Duplicate ACKs from the receiver." @answered event::DUPLICATE_ACK;
    dsacks Int "ACKs from the receiver that report data received twice (RFC 2883)." @answered event::DSACK;
    dsack_bytes Int "Bytes that DSACKs reported as received twice." @episode |e| e.dsack_bytes as i64;
    partial_acks Int "ACKs within a fast recovery that did not end it (RFC 6582)." @answered event::PARTIAL_ACK;
    ce_segments Int "Segments marked congestion experienced (RFC 3168 section 5). Visible only if captured after the marking router." @sent event::CONGESTION_EXPERIENCED;
    ece_acks Int "ACKs from the receiver that report a congestion mark (ECE), if the SYNs negotiated RFC 3168; with AccECN the flag is part of a counter." @answered event::CONGESTION_ECHO;
    ace_marks Int nullable "Marked packets counted by the receiver in AccECN's three flags (RFC 9768 section 3.2.2): a lower bound, as eight marks look like zero; none if AccECN was not negotiated or never used." |v| v.ace_marks();
    cwr_segments Int "Segments in which the sender reports that it reduced its window because of a mark (CWR), if the SYNs negotiated RFC 3168." @sent event::WINDOW_REDUCED;
    delayed_acks Int "ACKs of a single segment that came 40 to 500 ms later than the fastest." @answered event::DELAYED_ACK;
    stretch_acks Int "ACKs of more than two full segments (RFC 2525 section 2.13)." @pace |p| i64::from(p.stretch);
    acks_missing Int nullable "ACKs from the receiver that did not reach the capture point, by gaps in its IP IDs; none if the IDs do not count this connection's packets." |v| v.ack_loss(|(missing, _)| missing);
    stretch_acks_after_loss Int nullable "Stretch ACKs directly after missing ACKs; none if acks_missing is none." |v| v.ack_loss(|(_, stretched)| stretched);
    compressed_acks Int "ACKs whose spacing is less than a quarter of that of the segments they acknowledge: they were queued on the path." @pace |p| i64::from(p.compressed);
    capture_duplicates Int "Packets that the capture holds twice; excluded from all other counts." @sent event::CAPTURE_DUPLICATE;
    recovery_share Real nullable "Share of the time from the first to the last data in which the sender was in recovery." |v| recovery_share(v);
    initial_flight_bytes Int nullable "Bytes sent before the first acknowledgment of data reached the sender: the initial window in use; none if it cannot be determined." |v| initial_flight(v);
};

fn recovery_share(view: &DirectionView<'_>) -> Value {
    match view.transfer_ns() {
        0 => Value::None,
        ns => Value::Real((view.recovery_ns() as f64 / ns as f64).min(1.0)),
    }
}

fn initial_flight(view: &DirectionView<'_>) -> Value {
    let data = view.data();
    if data.data_segments == 0 || !data.has_syn || !data.flight.is_acked {
        return Value::None;
    }
    let pace = data.pace();
    let first = match pace.and_then(|pace| pace.view.as_deref()) {
        Some(view) if view.initial_bytes == Some(0) => return Value::None,
        Some(view) => view.initial_bytes.or(Some(view.max_bytes)),
        None => match pace {
            Some(pace) if pace.is_initial_missed => return Value::None,
            Some(pace) => pace.initial_flight,
            None => None,
        },
    };
    int(first.unwrap_or(data.flight_max_bytes()))
}
