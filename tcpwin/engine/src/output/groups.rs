//! Groups of consecutive fields. JSON contains a group completely, or omits it if nothing in it occurred.

use crate::output::field::{ConnectionField, DirectionField, Field};
use crate::output::fields::{direction_fields, CONNECTION_FIELDS};

/// A group, identified by its first field; it ends before the next group's first field.
pub struct Group {
    pub name: &'static str,
    first: &'static str,
    pub doc: &'static str,
}

macro_rules! groups {
    ($($name:ident from $first:ident $doc:literal;)*) => {
        &[$(Group { name: stringify!($name), first: stringify!($first), doc: $doc }),*]
    };
}

pub const CONNECTION_GROUPS: &[Group] = groups! {
    identity from id "Number, ends, frames and times.";
    handshake from syn_ns "Times and round trips of the handshake, and the capture point.";
    conversation from turns_state "Exchanges, and time by whose turn it was.";
    close from close "How the connection ended.";
    ecn from ecn "Negotiated congestion notification.";
    stalls from stall_count "Silences in which a side waited, and pauses.";
    closed_by from closed_first "Who closed or reset the connection.";
};

pub const DIRECTION_GROUPS: &[Group] = groups! {
    data from segments "Segments, payload, rates and segment sizes.";
    syn from syn_mss "Options of the sender's SYN.";
    window_scale from window_scale_state "Scale of the receiver's windows, with its evidence.";
    receive_window from receive_window_initial_bytes "The receive window.";
    flight from flight_max_bytes "Bytes in flight, and the time that the window limited them.";
    window_events from window_full "Full windows, overruns, updates and shrinks.";
    zero_window from zero_window_segments "Closed windows, with each episode.";
    keep_alive from keep_alives "Keep-alives.";
    end_stall from stall_at_end "What the sender waits for at the end.";
    fin_rst from fin "FIN and RST.";
    loss from retransmissions "Retransmissions by cause, needless ones, recoveries.";
    reordering from out_of_order "Segments out of order.";
    capture_gaps from previous_segment_missing "Segments that the capture lacks.";
    acks from duplicate_acks "Duplicate and partial ACKs, DSACKs.";
    ecn_marks from ce_segments "Congestion marks and their reports.";
    delayed_acks_and_gaps from delayed_acks "Delayed, stretched, missing and compressed ACKs.";
    copies from capture_duplicates "Packets that the capture holds twice.";
    recovery from recovery_share "Share of the transfer in recovery.";
    initial_flight from initial_flight_bytes "The first flight.";
    capture_point from view "Where the direction was captured.";
    round_trip from rtt_min_ns "Round trips.";
    path from path_rate_bps "The path's rate and queue.";
    timeout from rto_ns "Retransmission timeout.";
    sender_view from sender_flight_max_bytes "Flight and congestion window as the sender saw them.";
    algorithm from sender_algorithm "Congestion control; for the connection: that of each sender.";
    clock_step from clock_step_ns "Adjustment of the capture's clock.";
    slow_start from slow_start_ns "Slow start.";
    idle from idle_gaps "Idle gaps and restarts.";
    messages_and_turns from messages "Messages, their delays, and answers.";
    nagle from nagle_delays "Small segments that waited.";
    budget from budget_handshake_ns "Time budget without items of 0; for the connection: corrected by the kernels' counters.";
};

/// Members of a connection that are not fields.
pub const MEMBERS: &[(&str, &str)] = &[("verdict", "The verdict.")];

/// Return the fields of each group.
fn runs<'a, Get>(
    groups: &'static [Group],
    fields: impl Iterator<Item = &'static Field<Get>> + 'a,
) -> Vec<(&'static Group, Vec<&'static Field<Get>>)> {
    let mut runs = Vec::with_capacity(groups.len());
    let mut next = groups.iter().peekable();
    for field in fields {
        if let Some(group) = next.next_if(|group| group.first == field.name) {
            runs.push((group, Vec::new()));
        }
        if let Some((_, run)) = runs.last_mut() {
            run.push(field);
        }
    }
    runs
}

pub type ConnectionRuns = Vec<(&'static Group, Vec<&'static ConnectionField>)>;
pub type DirectionRuns = Vec<(&'static Group, Vec<&'static DirectionField>)>;

pub fn connection_groups() -> ConnectionRuns {
    runs(CONNECTION_GROUPS, CONNECTION_FIELDS.iter())
}

pub fn direction_groups() -> DirectionRuns {
    runs(DIRECTION_GROUPS, direction_fields())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_in_one_group_and_no_word_means_two_things() {
        let connection = connection_groups();
        let direction = direction_groups();
        assert_eq!(connection.len(), CONNECTION_GROUPS.len());
        assert_eq!(direction.len(), DIRECTION_GROUPS.len());
        let count = |runs: &DirectionRuns| runs.iter().map(|(_, run)| run.len()).sum::<usize>();
        assert_eq!(count(&direction), direction_fields().count());
        let count: usize = connection.iter().map(|(_, run)| run.len()).sum();
        assert_eq!(count, CONNECTION_FIELDS.len());
        let fields: Vec<_> = (CONNECTION_FIELDS.iter().map(|field| field.name))
            .chain(direction_fields().map(|field| field.name))
            .collect();
        for (group, run) in &direction {
            assert!(!fields.contains(&group.name), "{}", group.name);
            assert!(!run.is_empty());
        }
        for (group, run) in &connection {
            let is_same = run.len() == 1 && run[0].name == group.name;
            assert!(is_same || !fields.contains(&group.name), "{}", group.name);
        }
    }
}
