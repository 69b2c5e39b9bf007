//! The table of limits: names, labels and properties of everything that can limit a transfer.

use crate::tables::budget_item::{Group, SenderState};

/// Who can change a limit, with the ends' roles left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOwner {
    SenderHost,
    SenderApplication,
    ReceiverHost,
    ReceiverApplication,
    /// The application of the side that asks.
    RequesterApplication,
    Network,
    Nobody,
}

pub struct LimitRow {
    /// Name in JSON, columns and rules.
    pub name: &'static str,
    /// Label: at most 18 characters, so that two columns of a legend fit a phone.
    pub label: &'static str,
    /// Phrase after *limited by*, with placeholders for the ends' roles.
    pub phrase: &'static str,
    /// The group whose colour and symbol it uses.
    pub group: Group,
    /// Who can usually change it; `Seen::opinion` decides from the connection where that is not enough.
    pub owner: LimitOwner,
    /// Whether somebody can lift it; other limits work as designed or are unknown. A handshake can be improved only if it
    /// was disturbed.
    pub is_mendable: bool,
    /// Items whose time may belong to this limit, likeliest first.
    pub held_by: &'static [SenderState],
}

macro_rules! limits {
    ($($limit:ident $name:literal $label:literal $phrase:literal $group:ident $owner:ident $mendable:ident [$($item:ident)*];)*) => {
        /// The limits of a transfer, in the order of machine formats.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Limit { $($limit),* }

        const ROWS: &[LimitRow] = &[$(LimitRow {
            name: $name,
            label: $label,
            phrase: $phrase,
            group: Group::$group,
            owner: LimitOwner::$owner,
            is_mendable: limits!(@ $mendable),
            held_by: &[$(SenderState::$item),*],
        }),*];

        impl Limit {
            pub const ALL: &'static [Limit] = &[$(Limit::$limit),*];
        }
    };
    (@ mendable) => { true };
    (@ designed) => { false };
}

#[rustfmt::skip]
limits! {
    ReceiverWindow      "receiver_window"      "receive window"    "the {receiver}'s receive window"                Receiver         ReceiverHost        mendable [WindowFull SmallWindow Reader ZeroWindow];
    ReceiverApplication "receiver_application" "slow reader"       "a slow reader on the {receiver}"                Receiver         ReceiverApplication mendable [ZeroWindow SmallWindow WindowFull Reader];
    SenderApplication   "sender_application"   "nothing to send"   "the {sender}'s application"                     Application      SenderApplication   designed [Application Responder];
    RequesterApplication "requester_application" "late requests" "the {requester}'s application, which asked late"  Turns            RequesterApplication designed [Requester];
    RoundTrips          "round_trips"         "round trips"       "round trips"                                    Turns            RequesterApplication mendable [RoundTrip];
    Idle                "idle"                "nothing asked"     "nothing"                                        Turns            Nobody              designed [Idle];
    SendBuffer          "send_buffer"          "send buffer"       "the {sender}'s send buffer"                     SendBuffer       SenderHost          mendable [SendBuffer Congestion];
    PathRate            "path_rate"            "path rate"         "the path's rate"                                Path             Nobody              designed [Path Congestion Application];
    PathLoss            "path_loss"            "loss on the path"  "loss on the path"                               Loss             Network             mendable [FastRecovery Tail Timeout AfterLoss];
    PathPolicer         "path_policer"         "policer"           "a policer on the path"                          Path             Network             mendable [Policer FastRecovery Tail Timeout AfterLoss Path Congestion];
    CongestionControl   "congestion_control"   "congestion window" "the {sender}'s congestion window"               CongestionWindow Nobody              designed [SlowStart Congestion AfterLoss];
    IdleRestart         "idle_restart"         "idle restart"      "idle restarts (slow start again after a pause)" IdleRestart      SenderHost          mendable [IdleRestart SlowStart];
    RetransmissionTimer "retransmission_timer" "timeout"           "the {sender}'s retransmission timeouts"         Loss             SenderHost          mendable [Timeout Tail];
    DelayedAck          "delayed_ack"          "delayed ACKs"      "the {receiver}'s delayed ACKs"                  Application      SenderApplication   mendable [Application WindowFull SmallWindow Congestion SlowStart Path SendBuffer];
    Nagle               "nagle"               "Nagle's algorithm" "Nagle's algorithm on the {sender}"              Application      SenderApplication   mendable [Application WindowFull SmallWindow Congestion SlowStart Path SendBuffer];
    Handshake           "handshake"            "handshake"         "the handshake"                                  Handshake        Nobody              designed [Handshake];
    PeerSilent          "peer_silent"          "silent peer"       "a silent peer, the {receiver}"                  SilentPeer       Network             mendable [PeerSilent FastRecovery Tail Timeout AfterLoss ZeroWindow SmallWindow WindowFull Unknown];
    PathMtu             "path_mtu"             "path MTU"          "packets larger than the path carries"           Loss             Network             mendable [FastRecovery Tail Timeout AfterLoss PeerSilent Congestion Application SlowStart Unknown Path SendBuffer Responder Requester RoundTrip];
    PathOutage          "path_outage"          "path outage"       "an outage of the path"                          Loss             Network             mendable [Timeout Tail FastRecovery AfterLoss PeerSilent ZeroWindow WindowFull SmallWindow Application Unknown Responder Requester RoundTrip];
    Middlebox           "middlebox"            "middlebox"         "a device on the path"                           SilentPeer       Network             mendable [PeerSilent Timeout Tail FastRecovery AfterLoss WindowFull SmallWindow ZeroWindow Reader Application Congestion SlowStart SendBuffer Path Handshake Unknown Closed Responder Requester RoundTrip Idle];
    ReceiverMemory      "receiver_memory"      "receiver's memory" "data that the {receiver}'s kernel dropped"      Receiver         ReceiverHost        mendable [FastRecovery Timeout Tail AfterLoss PeerSilent ZeroWindow WindowFull SmallWindow Reader];
    Capture             "capture"              "not known"         "data missing from the capture"                  Unknown          Nobody              designed [Unknown];
    None                "none"                 "nothing"           "nothing"                                        Closed           Nobody              designed [];
}

pub const LIMITS: usize = Limit::ALL.len();

impl Limit {
    pub const fn row(self) -> &'static LimitRow {
        &ROWS[self as usize]
    }

    /// Return whether something is broken, rather than slow by its size: only findings attribute time to it.
    pub const fn is_fault(self) -> bool {
        matches!(
            self,
            Limit::PathMtu | Limit::PathOutage | Limit::Middlebox | Limit::ReceiverMemory
        )
    }

    /// Return whether a finding makes it the limit even if it took no time: a fault, or an idle connection closed under a
    /// request.
    pub const fn is_reportable(self) -> bool {
        self.is_fault() || matches!(self, Limit::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let labels = Limit::ALL.iter().map(|limit| limit.row().label);
        assert_eq!(labels.filter(|label| label.len() > 18).count(), 0);
    }

    #[test]
    fn the_limit_of_an_item_may_hold_its_time() {
        for item in SenderState::ALL
            .iter()
            .filter(|item| **item != SenderState::Closed)
        {
            let limit = item.row().limit;
            assert!(limit.row().held_by.contains(item), "{}", item.row().name);
        }
    }
}
