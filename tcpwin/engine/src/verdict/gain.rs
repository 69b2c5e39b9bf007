//! Estimates the gain of lifting a limit: its time, less the time that the same bytes take under the next limit.
//!
//! In: the time of each limit in a direction's life, and what the direction carried. A lifted path carries four times
//! as much, as in `tcpwin lab lift`. After any other lift the path's rate still applies and, unless the receive window
//! is lifted, so does a limit of one window per round trip. Bytes are spread evenly over the time that the path's rate
//! does not explain, except silence. docs/time-budget.md compares the estimates with the lab's lifts of 200 random
//! worlds.

use crate::tables::budget_item::{ItemTrait, SenderState};
use crate::tables::limit::{Limit, LIMITS};
use crate::verdict::budget::Items;
use crate::verdict::division::Times;
use crate::verdict::facts::Facts;

/// Rate of a lifted path, as a multiple of its original rate.
const PATH_FACTOR: f64 = 4.0;
/// Gain as a share of the time in which a buffer, a pacing writer or a policer held the sender below an unknown path rate.
/// Any true gain between 44 % and 100 % is within a factor of 1.5 of it, as most were in docs/worlds.md.
const HELD_GAIN: f64 = 2.0 / 3.0;
/// Share of the life above which an application limit means paced writes; below, pauses that carry nothing.
const PACED_SHARE: f64 = 0.8;
const MOST_DOUBLINGS: u32 = 24;
/// Ten segments (RFC 6928): a smaller first flight means less data to send, or an older stack.
const INITIAL_WINDOW_BYTES: i64 = 14_600;

/// What a direction carried, and the properties of its path; 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Carried {
    pub bytes: i64,
    /// Rate of the bottleneck.
    pub path_bps: f64,
    /// Largest receive window.
    pub window_bytes: i64,
    /// Initial receive window.
    pub first_window_bytes: i64,
    /// Bytes sent before the first ACK.
    pub first_flight_bytes: i64,
    /// Minimum RTT of the path.
    pub round_trip_ns: i64,
    /// Sender pauses longer than a retransmission timeout.
    pub paused_ns: i64,
    /// Exchanges of a conversation.
    pub exchanges: i64,
    /// Part of the larger of its path's and its responder's time in which the other passed, too.
    pub overlapped_ns: i64,
}

impl Carried {
    pub fn of(facts: &Facts) -> Carried {
        let data = &facts.data;
        Carried {
            bytes: data.acked_bytes,
            path_bps: data.path_rate_bps,
            window_bytes: data.receive_window_max_bytes.unwrap_or(0),
            first_window_bytes: data.receive_window_initial_bytes,
            first_flight_bytes: data.initial_flight_bytes,
            round_trip_ns: facts.connection.path_rtt_ns,
            paused_ns: data.idle_ns,
            exchanges: facts.connection.exchanges,
            overlapped_ns: facts.connection.overlapped_turns_ns,
        }
    }
}

/// How much sooner a transfer would have ended, with bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    pub likely_ns: i64,
    pub low_ns: i64,
    pub high_ns: i64,
    /// Bytes carried in the limit's time; 0 if the path's rate is unknown.
    pub carried_bytes: f64,
}

/// A direction's life, divided by limit.
#[derive(Clone, Copy, Debug)]
pub struct Life<'a> {
    pub times_ns: &'a Times,
    /// Time of each limit in which nothing got through.
    pub silent_ns: &'a Times,
    pub carried: Carried,
    /// Whether the congestion window was still growing for most of its time.
    pub is_growing: bool,
}

/// Sum the time of each limit in which nothing got through.
pub fn silent_by_limit(items_ns: &Items, is_slow: bool) -> Times {
    let mut silent_ns = [0; LIMITS];
    for item in SenderState::ALL
        .into_iter()
        .filter(|item| item.has(ItemTrait::Silent))
    {
        silent_ns[item.limit(is_slow) as usize] += items_ns[item as usize];
    }
    silent_ns
}

impl Life<'_> {
    /// Estimate the gain of lifting this limit alone.
    pub fn gain(&self, limit: Limit) -> Gain {
        let gain = self.gain_of_time(limit);
        let time = |limit: Limit| self.times_ns[limit as usize];
        let is_hidden = match limit {
            Limit::RoundTrips => time(Limit::RoundTrips) > time(Limit::SenderApplication),
            Limit::SenderApplication => time(Limit::SenderApplication) >= time(Limit::RoundTrips),
            _ => false,
        };
        let overlapped_ns = if is_hidden {
            self.carried.overlapped_ns
        } else {
            0
        };
        Gain {
            likely_ns: (gain.likely_ns - overlapped_ns).max(0),
            low_ns: (gain.low_ns - overlapped_ns).max(0),
            ..gain
        }
    }

    fn gain_of_time(&self, limit: Limit) -> Gain {
        let carried = &self.carried;
        let time = |limit: Limit| self.times_ns[limit as usize];
        let total_ns: i64 = self.times_ns.iter().sum();
        let first_ns = time(limit);
        match limit {
            // A window that grows for each answer, or after a loss, grows by round trips, too.
            Limit::RoundTrips => {
                let silent_ns = self.silent_ns[Limit::PathLoss as usize];
                let repair_ns = (time(Limit::PathLoss) - silent_ns).max(0);
                let growing_ns = time(Limit::CongestionControl) + repair_ns;
                return of_round_trips(first_ns + growing_ns, carried.exchanges);
            }
            Limit::Idle => return Gain::default(),
            _ => {}
        }
        let moving_ns = total_ns - time(Limit::Handshake) - time(Limit::None);
        let path_ns = time(Limit::PathRate) + time(Limit::PathPolicer);
        let is_path = matches!(limit, Limit::PathRate | Limit::PathPolicer);
        let is_held = matches!(
            limit,
            Limit::SenderApplication | Limit::SendBuffer | Limit::PathPolicer
        );
        let is_modelled = is_held
            || matches!(
                limit,
                Limit::ReceiverWindow
                    | Limit::ReceiverApplication
                    | Limit::ReceiverMemory
                    | Limit::PathRate
                    | Limit::PathLoss
                    | Limit::CongestionControl
            );
        let mut silent_sum_ns = 0;
        for (ns, most_ns) in self.silent_ns.iter().zip(self.times_ns) {
            silent_sum_ns += ns.min(most_ns);
        }
        let silent_ns = self.silent_ns[limit as usize].min(first_ns);
        let carrying_ns = first_ns - silent_ns;
        let is_app = limit == Limit::SenderApplication;
        if !(carried.path_bps > 0.0 && is_modelled) {
            // Silence is gained in full; the rest by the path's factor, or by the middle estimate for a held sender.
            let paused_ns = if is_app {
                carried.paused_ns.min(carrying_ns)
            } else {
                0
            };
            let part = match limit {
                _ if is_held => HELD_GAIN,
                Limit::PathRate => 1.0 - 1.0 / PATH_FACTOR,
                _ => 1.0,
            };
            let likely_ns =
                (silent_ns + paused_ns) as f64 + (carrying_ns - paused_ns) as f64 * part;
            return Gain {
                likely_ns: likely_ns as i64,
                low_ns: if is_modelled { silent_ns } else { first_ns },
                high_ns: first_ns,
                carried_bytes: 0.0,
            };
        }
        // Bytes per nanosecond.
        let path = carried.path_bps / 8e9;
        let mut up_to = if is_path { PATH_FACTOR * path } else { path };
        if carried.window_bytes > 0 && carried.round_trip_ns > 0 && limit != Limit::ReceiverWindow {
            let window = carried.window_bytes as f64 / carried.round_trip_ns as f64;
            up_to = if window < up_to { window } else { up_to };
        }
        let bytes = carried.bytes as f64;
        let rest = at_least_0(bytes - path * path_ns as f64);
        let others_ns = moving_ns - path_ns - silent_sum_ns;
        let even = rest
            * if others_ns > 0 {
                carrying_ns as f64 / others_ns as f64
            } else {
                f64::from(u8::from(carrying_ns > 0))
            };
        let own = if is_path {
            path * first_ns as f64
        } else if is_app && (first_ns as f64) < PACED_SHARE * total_ns as f64 {
            at_least_0(bytes - path * (moving_ns - first_ns) as f64)
        } else {
            even
        };
        let most = if is_path || carrying_ns == 0 || rest <= own {
            own
        } else {
            rest
        };
        let is_congestion = limit == Limit::CongestionControl;
        let is_ramp = is_congestion && self.is_growing;
        let ramp_ns = if is_ramp {
            carried.round_trip_ns as f64
        } else {
            0.0
        };
        let mut likely_ns = at_least_0(first_ns as f64 - own / up_to - ramp_ns);
        let low_ns = first_ns as f64 - most / up_to - ramp_ns;
        let low_ns = if low_ns > silent_ns as f64 {
            low_ns
        } else {
            silent_ns as f64
        };
        if is_ramp {
            // A congestion window that starts wide open is limited by the receive window, which also starts small and
            // doubles each round trip (`tcp_rcv_space_adjust`, net/ipv4/tcp_input.c): the gain is the number of round
            // trips that slow start needs to reach the initial receive window.
            let most_ns = (carried.doublings() * carried.round_trip_ns as f64) as i64;
            if most_ns > 0 && (most_ns as f64) < likely_ns {
                likely_ns = most_ns as f64;
            }
        }
        if !is_congestion {
            // Every transfer begins with slow start, whose time cannot be gained.
            let room_ns = (moving_ns - carried.slow_start_ns()).max(0);
            // Silence can always be gained, even if the model leaves less room.
            let room_ns = room_ns.max(silent_ns) as f64;
            likely_ns = if likely_ns > room_ns {
                room_ns
            } else {
                likely_ns
            };
        }
        Gain {
            likely_ns: likely_ns as i64,
            low_ns: if low_ns > likely_ns {
                likely_ns
            } else {
                low_ns
            } as i64,
            high_ns: first_ns,
            carried_bytes: own,
        }
    }
}

impl Carried {
    /// Return the base-2 logarithm of the initial window divided by the first flight, interpolated linearly between
    /// whole numbers.
    fn doublings(&self) -> f64 {
        let (flight, window) = (self.first_flight_bytes, self.first_window_bytes);
        let mut ratio = if flight > 0 && window > flight {
            window as f64 / flight as f64
        } else {
            1.0
        };
        let mut count = 0.0;
        for _ in 0..MOST_DOUBLINGS {
            if ratio >= 2.0 {
                count += 1.0;
                ratio /= 2.0;
            }
        }
        count + ratio - 1.0
    }

    /// Return the minimum time to carry the bytes in slow start, doubling each round trip; 0 if the start is unknown.
    fn slow_start_ns(&self) -> i64 {
        if self.first_flight_bytes <= 0 || self.round_trip_ns <= 0 {
            return 0;
        }
        let mut flight = self.first_flight_bytes.max(INITIAL_WINDOW_BYTES);
        let (mut rounds, mut sent) = (0, 0);
        while rounds < i64::from(MOST_DOUBLINGS) && sent < self.bytes {
            rounds += 1;
            sent += flight;
            flight *= 2;
        }
        rounds * self.round_trip_ns
    }
}

/// Estimate the gain of carrying the same exchanges in a single round trip; the lower bound is half of that.
fn of_round_trips(time_ns: i64, exchanges: i64) -> Gain {
    let at_once_ns = (i128::from(time_ns) * i128::from((exchanges - 1).max(0))
        / i128::from(exchanges.max(1))) as i64;
    Gain {
        likely_ns: at_once_ns,
        low_ns: at_once_ns / 2,
        high_ns: time_ns,
        carried_bytes: 0.0,
    }
}

/// Scale the gain of a limit to part of its time.
pub fn part_of(gained_ns: i64, part_ns: i64, time_ns: i64) -> i64 {
    (gained_ns as f64 * (part_ns as f64 / time_ns as f64)) as i64
}

fn at_least_0(value: f64) -> f64 {
    if value > 0.0 {
        value
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    /// 100 MB over a path of 10 MB/s and 100 ms, with a window of 32 MB.
    const CARRIED: Carried = Carried {
        bytes: 100_000_000,
        path_bps: 80e6,
        window_bytes: 32_000_000,
        first_window_bytes: 65_536,
        first_flight_bytes: 14_480,
        round_trip_ns: S / 10,
        paused_ns: 0,
        exchanges: 0,
        overlapped_ns: 0,
    };

    fn lifted(limit: Limit, times: &[(Limit, i64)], carried: Carried) -> Gain {
        let mut times_ns = [0; LIMITS];
        times
            .iter()
            .for_each(|(limit, ns)| times_ns[*limit as usize] = *ns);
        let silent_ns = &[0; LIMITS];
        Life {
            times_ns: &times_ns,
            silent_ns,
            carried,
            is_growing: false,
        }
        .gain(limit)
    }

    #[test]
    fn lifting_a_limit_leaves_the_path_rate() {
        // judgement.md section 1: only time by which the transfer would end sooner is a cost. The path needs 10 s.
        for limit in [
            Limit::ReceiverWindow,
            Limit::ReceiverApplication,
            Limit::SendBuffer,
            Limit::PathLoss,
        ] {
            let gain = lifted(limit, &[(limit, 40 * S)], CARRIED);
            assert_eq!((gain.likely_ns, gain.high_ns), (30 * S, 40 * S));
            assert_eq!(lifted(limit, &[(limit, 9 * S)], CARRIED).likely_ns, 0);
        }
    }

    #[test]
    fn a_lifted_path_is_limited_by_the_window() {
        assert_eq!(
            lifted(Limit::PathRate, &[(Limit::PathRate, 10 * S)], CARRIED).likely_ns,
            75 * S / 10
        );
        let twice = Carried {
            window_bytes: 2_000_000,
            ..CARRIED
        };
        assert_eq!(
            lifted(Limit::PathRate, &[(Limit::PathRate, 10 * S)], twice).likely_ns,
            5 * S
        );
    }

    #[test]
    fn a_held_sender_costs_two_thirds_of_its_time_if_the_path_rate_is_unknown() {
        let unknown = Carried {
            path_bps: 0.0,
            ..CARRIED
        };
        let gain = lifted(Limit::SendBuffer, &[(Limit::SendBuffer, 39 * S)], unknown);
        assert_eq!(
            (gain.likely_ns, gain.low_ns, gain.high_ns),
            (26 * S, 0, 39 * S)
        );
    }

    #[test]
    fn slow_start_cannot_be_gained() {
        let scaled = Carried {
            bytes: 10_000_000,
            path_bps: 1e9,
            window_bytes: 65_535,
            first_window_bytes: 65_535,
            round_trip_ns: 85_000_000,
            ..CARRIED
        };
        let times = [
            (Limit::ReceiverWindow, 126 * S / 10),
            (Limit::Handshake, 85_000_000),
        ];
        let gain = lifted(Limit::ReceiverWindow, &times, scaled);
        assert_eq!(gain.likely_ns, 126 * S / 10 - 10 * 85_000_000);
    }
}
