//! Names of the events at a segment, in the fixed order of the `events` column.

/// A set of events at one segment, as bits in the order of [`NAMES`].
pub type Events = u32;

/// Each event's constant and name, in the order of their bits, lowest first.
macro_rules! events {
    ($($event:ident $name:literal,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place {
            $($event,)*
        }
        $(pub const $event: Events = 1 << Place::$event as u32;)*
        pub const NAMES: [&str; [$($name),*].len()] = [$($name),*];
    };
}

events! {
    ZERO_WINDOW "zero_window",
    WINDOW_FULL "window_full",
    WINDOW_UPDATE "window_update",
    ZERO_WINDOW_PROBE "zero_window_probe",
    ZERO_WINDOW_PROBE_ACK "zero_window_probe_ack",
    KEEP_ALIVE "keep_alive",
    KEEP_ALIVE_ACK "keep_alive_ack",
    DUPLICATE_ACK "duplicate_ack",
    OUT_OF_ORDER "out_of_order",
    PREVIOUS_SEGMENT_MISSING "previous_segment_missing",
    ACKED_UNSEEN "acked_unseen",
    RETRANSMISSION "retransmission",
    FAST_RETRANSMISSION "fast_retransmission",
    RTO_RETRANSMISSION "rto_retransmission",
    TAIL_LOSS_PROBE "tail_loss_probe",
    SPURIOUS_RETRANSMISSION "spurious_retransmission",
    SYN_RETRANSMISSION "syn_retransmission",
    CAPTURE_DUPLICATE "capture_duplicate",
    WINDOW_SHRINK "window_shrink",
    SUB_MSS_WINDOW "sub_mss_window",
    IDLE_RESTART "idle_restart",
    DSACK "dsack",
    PARTIAL_ACK "partial_ack",
    DELAYED_ACK "delayed_ack",
    CAPTURE_REORDERED "capture_reordered",
    // These three only accompany a plain retransmission.
    RECOVERY_RETRANSMISSION "recovery_retransmission",
    GO_BACK_N "go_back_n",
    LOST_RETRANSMISSION "lost_retransmission",
    CONGESTION_EXPERIENCED "congestion_experienced",
    CONGESTION_ECHO "congestion_echo",
    WINDOW_REDUCED "window_reduced",
}

/// Every kind of retransmitted data.
pub const RESENT: Events = RETRANSMISSION
    | FAST_RETRANSMISSION
    | RTO_RETRANSMISSION
    | TAIL_LOSS_PROBE
    | SPURIOUS_RETRANSMISSION;

/// Kinds of retransmission, with the qualifiers of a plain one.
pub const MAIN_KINDS: Events =
    RESENT | SYN_RETRANSMISSION | RECOVERY_RETRANSMISSION | GO_BACK_N | LOST_RETRANSMISSION;

/// Events that carry evidence of their cause.
pub const WITH_EVIDENCE: Events = RESENT | OUT_OF_ORDER | CAPTURE_REORDERED;

/// Number of occurrences of each event.
pub type Counts = [u32; NAMES.len()];

/// Add one to the count of each event in the set.
pub fn count(counts: &mut Counts, mut events: Events) {
    while events != 0 {
        let position = events.trailing_zeros() as usize;
        if let Some(count) = counts.get_mut(position) {
            *count = count.saturating_add(1);
        }
        events &= events - 1;
    }
}

/// Sum the occurrences of the events in the set.
#[inline]
pub fn counted(counts: &Counts, mut events: Events) -> u32 {
    let mut sum = 0;
    while events != 0 {
        sum += counts
            .get(events.trailing_zeros() as usize)
            .copied()
            .unwrap_or(0);
        events &= events - 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_bits() {
        for (bit, name) in [
            (ZERO_WINDOW, "zero_window"),
            (KEEP_ALIVE, "keep_alive"),
            (ACKED_UNSEEN, "acked_unseen"),
            (SPURIOUS_RETRANSMISSION, "spurious_retransmission"),
            (CAPTURE_DUPLICATE, "capture_duplicate"),
            (IDLE_RESTART, "idle_restart"),
            (LOST_RETRANSMISSION, "lost_retransmission"),
            (WINDOW_REDUCED, "window_reduced"),
        ] {
            assert_eq!(NAMES[bit.trailing_zeros() as usize], name);
        }
        let mut counts = Counts::default();
        count(&mut counts, ZERO_WINDOW | IDLE_RESTART);
        assert_eq!(
            (counts[0], counts[20], counts.iter().sum::<u32>()),
            (1, 1, 2)
        );
    }
}
