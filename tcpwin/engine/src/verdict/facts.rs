//! The statistics that a verdict is based on. In: a connection's record. Out: Facts, read once.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::output::field::{ConnectionField, ConnectionView, DirectionField, DirectionView, Value};
use crate::output::fields::{connection_field, direction_field};
use crate::tcp::connection::state::Connection;
use crate::verdict::owner::End;

/// Conversion of a field's value to a fact.
trait Fact: Default {
    fn of(value: Value) -> Self;
}

impl Fact for i64 {
    fn of(value: Value) -> i64 {
        match value {
            Value::Int(number) => number,
            Value::Bool(is_so) => i64::from(is_so),
            _ => 0,
        }
    }
}

impl Fact for f64 {
    fn of(value: Value) -> f64 {
        match value {
            Value::Real(number) => number,
            Value::Int(number) => number as f64,
            _ => 0.0,
        }
    }
}

impl Fact for bool {
    fn of(value: Value) -> bool {
        value == Value::Bool(true)
    }
}

impl Fact for &'static str {
    fn of(value: Value) -> &'static str {
        match value {
            Value::Text(Cow::Borrowed(text)) => text,
            _ => "",
        }
    }
}

impl<T: Fact> Fact for Option<T> {
    fn of(value: Value) -> Option<T> {
        (value != Value::None).then(|| T::of(value))
    }
}

macro_rules! facts {
    ($(#[$doc:meta])* $facts:ident $view:ident $field:ident $find:ident; $($name:ident: $kind:ty,)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $facts { $(pub $name: $kind),* }

        impl $facts {
            pub fn read(view: &$view) -> $facts {
                static FIELDS: OnceLock<Vec<&'static $field>> = OnceLock::new();
                let fields = FIELDS.get_or_init(|| {
                    let names = [$(stringify!($name)),*];
                    names.into_iter().filter_map($find).collect()
                });
                let mut values = fields.iter().map(|field| (field.get)(view));
                $facts { $($name: values.next().map_or_else(Default::default, Fact::of)),* }
            }
        }
    };
}

facts! {
    /// Facts of the connection; 0 and empty if there is no value.
    ConnectionFacts ConnectionView ConnectionField connection_field;
    initiator_known: bool,
    sampled: bool,
    multipath: bool,
    a_port: i64,
    b_port: i64,
    path_rtt_ns: i64,
    close: &'static str,
    turns_state: &'static str,
    exchanges: i64,
    overlapped_turns_ns: i64,
    duration_ns: i64,
    end_ns: i64,
}

facts! {
    /// Facts of the direction; 0 and empty if there is no value.
    DirectionFacts DirectionView DirectionField direction_field;
    zero_window_episode_count: i64,
    zero_window_ns: i64,
    nagle_delays: i64,
    window_limited_ns: i64,
    receive_window_max_bytes: Option<i64>,
    receive_window_mean_bytes: Option<f64>,
    window_low_acked_bytes: i64,
    receive_window_initial_bytes: i64,
    initial_flight_bytes: i64,
    window_scale_state: &'static str,
    window_scale_disabled_by: &'static str,
    view: &'static str,
    stall_at_end: &'static str,
    syn_retransmissions: i64,
    acked_bytes: i64,
    missed_bytes: i64,
    payload_bytes: i64,
    unique_bytes: i64,
    data_segments: i64,
    retransmissions: i64,
    mss_bytes: i64,
    max_payload_bytes: i64,
    queue_mean_ns: f64,
    rtt_min_ns: f64,
    rtt_smoothed_ns: Option<f64>,
    goodput_bps: Option<f64>,
    path_rate_bps: f64,
    turns: i64,
    first_byte_p50_ns: i64,
    work_p50_ns: i64,
    work_max_ns: i64,
    idle_ns: i64,
    last_data_ns: Option<i64>,
}

facts! {
    /// Facts of the opposite direction.
    BackFacts DirectionView DirectionField direction_field;
    syn_retransmissions: i64,
    last_data_ns: Option<i64>,
    turns: i64,
    work_p50_ns: i64,
    work_max_ns: i64,
}

facts! {
    /// Facts about the sender's congestion control.
    AlgorithmFacts DirectionView DirectionField direction_field;
    sender_algorithm: &'static str,
    sender_algorithm_confidence: &'static str,
    window_cuts: i64,
    window_cut_mean: Option<f64>,
    rate_probes: i64,
}

/// Facts of a connection, seen from one direction.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub connection: ConnectionFacts,
    pub data: DirectionFacts,
    pub back: BackFacts,
    /// Whether the direction is from b to a.
    pub is_back: bool,
    /// Bytes carried from a and from b; acknowledged data counts even if the capture lacks it.
    pub carried_bytes: [u64; 2],
}

impl Facts {
    pub fn read(id: u32, connection: &Connection, is_back: bool) -> Facts {
        let [there, back] =
            [!is_back, is_back].map(|is_from_a| DirectionView::new(connection, is_from_a));
        let mut carried_bytes = [there.carried_bytes(), back.carried_bytes()];
        if is_back {
            carried_bytes.reverse();
        }
        Facts {
            connection: ConnectionFacts::read(&ConnectionView { id, connection }),
            data: DirectionFacts::read(&there),
            back: BackFacts::read(&back),
            is_back,
            carried_bytes,
        }
    }

    pub fn sender(&self) -> End {
        End::ALL[usize::from(self.is_back)]
    }

    /// Return whether more data went from b to a.
    pub fn is_back_main(&self) -> bool {
        self.carried_bytes[1] > self.carried_bytes[0]
    }

    pub fn has_data(&self) -> bool {
        self.carried_bytes != [0, 0]
    }

    /// Return whether a handshake segment was retransmitted or never answered.
    pub fn is_handshake_disturbed(&self) -> bool {
        self.data.syn_retransmissions > 0
            || self.back.syn_retransmissions > 0
            || self.connection.close == "unanswered"
    }

    /// Return whether the capture or a reset ended the connection in a stall.
    pub fn is_stalled(&self) -> bool {
        !self.data.stall_at_end.is_empty()
    }
}
