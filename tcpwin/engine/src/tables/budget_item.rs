//! The table of the time budget's items and groups: the states that a sender can be in.

use crate::tables::limit::Limit;

pub struct ItemRow {
    /// Name in JSON, columns and rules.
    pub name: &'static str,
    /// Label: at most 18 characters, so that two columns of a legend fit a phone.
    pub label: &'static str,
    pub group: Group,
    /// The limit that its time is attributed to, from the packets alone.
    pub limit: Limit,
    pub traits: &'static [ItemTrait],
    /// How it is judged, for the documentation: `certain` is read from sequence numbers, windows and timers.
    pub basis: &'static str,
    /// Documentation of the item's field.
    pub doc: &'static str,
}

/// A property shared by several items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemTrait {
    /// The receive window limits the sender; the receiver's application is to blame if it reads slowly.
    Window,
    /// A loss is being repaired.
    Recovery,
    /// Nothing got through: lifting the limit gains all of the time.
    Silent,
    /// Judged by the data in flight as the sender sees it.
    Flight,
}

macro_rules! groups {
    ($($group:ident $name:literal $label:literal;)*) => {
        /// Groups of items by cause: time in a window reduced by losses belongs to the losses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Group { $($group),* }

        impl Group {
            pub const ALL: &'static [Group] = &[$(Group::$group),*];

            pub const fn name(self) -> &'static str {
                match self { $(Group::$group => $name),* }
            }

            pub const fn label(self) -> &'static str {
                match self { $(Group::$group => $label),* }
            }
        }
    };
}

groups! {
    Handshake "handshake" "handshake";
    Receiver "receiver" "receiver";
    CongestionWindow "congestion window" "congestion window";
    Loss "loss" "loss";
    SilentPeer "silent peer" "silent peer";
    IdleRestart "idle restart" "idle restart";
    Application "application" "nothing to send";
    Turns "turns" "other side's turn";
    SendBuffer "send buffer" "send buffer";
    Path "path" "path";
    Closed "closed" "connection closed";
    Unknown "unknown" "not known";
}

macro_rules! items {
    ($($item:ident $name:literal $label:literal $group:ident $limit:ident [$($trait:ident)*] $basis:literal $doc:literal;)*) => {
        /// The state of a sender at an instant, ordered by group.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum SenderState { $($item),* }

        pub const SENDER_STATES: usize = [$(SenderState::$item),*].len();

        const ROWS: [ItemRow; SENDER_STATES] = [$(ItemRow {
            name: $name,
            label: $label,
            group: Group::$group,
            limit: Limit::$limit,
            traits: &[$(ItemTrait::$trait),*],
            basis: $basis,
            doc: $doc,
        }),*];

        impl SenderState {
            pub const ALL: [SenderState; SENDER_STATES] = [$(SenderState::$item),*];

            /// Name of the item's field in a direction.
            pub const fn field(self) -> &'static str {
                match self { $(SenderState::$item => concat!("budget_", $name, "_ns")),* }
            }
        }

        macro_rules! each_item {
            ($callback:ident) => { $callback! { $($item)* } };
        }
        pub(crate) use each_item;
    };
}

#[rustfmt::skip]
items! {
    Handshake    "handshake"     "handshake"         Handshake        Handshake           []                "certain"                    "Time from the first segment to the end of the handshake.";
    ZeroWindow   "zero_window"   "window closed"     Receiver         ReceiverApplication [Window Silent]   "certain"                    "Time in which the receiver's window was closed.";
    SmallWindow  "small_window"  "window too small"  Receiver         ReceiverWindow      [Window Flight]   "certain"                    "Time in which nothing was in flight and the window did not hold a full segment.";
    WindowFull   "window_full"   "window full"       Receiver         ReceiverWindow      [Window Flight]   "certain with a known scale" "Time in which data was in flight and the window did not hold another full segment.";
    Reader       "reader"        "slow reader"       Receiver         ReceiverApplication [Flight]          "by all rounds"              "Time limited by the receiver's application, which did not read: unread data kept the window small, ACKs waited for the application, data that had already arrived was still being read, or the receiver had shrunk its window and refused data.";
    SlowStart    "slow_start"    "slow start"        CongestionWindow CongestionControl   [Flight]          "by the round"               "Time in round trips whose flight grew by at least a third: slow start.";
    Congestion   "congestion"    "congestion window" CongestionWindow CongestionControl   [Flight]          "by elimination"             "Time in round trips limited by the congestion window and by no other item.";
    AfterLoss    "after_loss"    "cwnd after loss"   Loss             PathLoss            [Flight]          "by the round"               "Time in round trips after a loss, until the flight before it was regained.";
    FastRecovery "fast_recovery" "fast recovery"     Loss             PathLoss            [Recovery]        "certain"                    "Time in fast recovery.";
    Timeout      "timeout"       "timeout"           Loss             PathLoss            [Recovery Silent] "certain"                    "Silence before retransmission timeouts, and recovery after them.";
    Tail         "tail"          "tail loss"         Loss             PathLoss            [Recovery Silent] "certain"                    "Silence before tail loss probes.";
    PeerSilent   "peer_silent"   "silent peer"       SilentPeer       PeerSilent          [Silent]          "certain"                    "Time at the end in which the peer left data, probes or keep-alives unanswered: see stall_at_end.";
    IdleRestart  "idle_restart"  "idle restart"      IdleRestart      IdleRestart         [Flight]          "by the pattern"             "Time lost to idle restarts.";
    Application  "application"   "nothing to send"   Application      SenderApplication   [Flight]          "estimated"                  "Time in which the sender had nothing to send, as far as the packets show.";
    Responder    "responder"     "answer awaited"    Turns            SenderApplication    [Silent]          "by turns"                   "Time between the arrival of a request and the first byte of the answer.";
    Requester    "requester"     "request awaited"   Turns            RequesterApplication [Silent]          "by turns"                   "Time between an answer or the handshake and the next request, if it came within 30 s.";
    RoundTrip    "round_trip"    "round trips"       Turns            RoundTrips           [Silent]          "by turns"                   "Time in which requests and the last bytes of answers were in transit.";
    Idle         "idle"          "nothing asked"     Turns            Idle                 []                "by turns"                   "Time without a request: before requests that came more than 30 s after the previous answer, and after the last answer.";
    SendBuffer   "send_buffer"   "send buffer"       SendBuffer       SendBuffer          [Flight]          "suspected"                  "Time in round trips whose flight stayed constant below all other limits, probably because of the send buffer.";
    Path         "path"          "path"              Path             PathRate            [Flight]          "by all rounds"              "Time in round trips at the rate of the path's bottleneck, or with a queue that never emptied: the path's capacity.";
    Policer      "policer"       "policer"           Path             PathPolicer         [Flight]          "by all rounds"              "Time in round trips at the rate of a policer, which drops excess traffic instead of queueing it.";
    Closed       "closed"        "connection closed" Closed           None                []                "certain"                    "Time after the sender had closed and all was acknowledged, or after a reset.";
    Unknown      "unknown"       "not known"         Unknown          Capture             []                "–"                          "Time that the capture does not explain.";
}

impl SenderState {
    pub const fn row(self) -> &'static ItemRow {
        &ROWS[self as usize]
    }

    pub const fn has(self, wanted: ItemTrait) -> bool {
        let traits = self.row().traits;
        let mut place = 0;
        while place < traits.len() {
            if traits[place] as u8 == wanted as u8 {
                return true;
            }
            place += 1;
        }
        false
    }

    /// Return the limit that its time is attributed to. `is_slow`: the receiver's application reads slowly.
    pub const fn limit(self, is_slow: bool) -> Limit {
        if is_slow && self.has(ItemTrait::Window) {
            Limit::ReceiverApplication
        } else {
            self.row().limit
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_follow_their_groups_and_labels_are_short() {
        let places: Vec<u8> = SenderState::ALL.map(|item| item.row().group as u8).to_vec();
        assert!(places.is_sorted());
        assert!(SenderState::ALL
            .iter()
            .all(|item| item.row().label.len() <= 18));
        assert!(Group::ALL.iter().all(|group| group.label().len() <= 18));
    }

    #[test]
    fn a_slow_reader_is_the_limit_of_a_full_window_only() {
        assert_eq!(SenderState::WindowFull.limit(false), Limit::ReceiverWindow);
        assert_eq!(
            SenderState::WindowFull.limit(true),
            Limit::ReceiverApplication
        );
        assert_eq!(SenderState::Timeout.limit(true), Limit::PathLoss);
    }
}
