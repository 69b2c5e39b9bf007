//! Detects BBR's probes for more rate: the flight rises by about a quarter for a few rounds and falls back without loss.

/// BBR sends a quarter more than it has measured for one round in eight, and falls back without a loss.
const RISE: std::ops::RangeInclusive<f32> = 1.12..=1.5;
const RETURN: std::ops::RangeInclusive<f32> = 0.85..=1.08;
const MOST_ROUNDS: u32 = 4;
const LEAST_SEGMENTS: f32 = 16.0;

/// Progress of a flight from one rise to the next.
#[derive(Clone, Copy, Debug)]
pub enum RateProbe {
    None,
    From(f32),
    Up { base: f32, top: f32, rounds: u32 },
}

impl RateProbe {
    /// Add a round of this many segments that only the congestion window limited. Return true if it ends a probe.
    pub fn take(&mut self, now: f32) -> bool {
        if now < LEAST_SEGMENTS {
            return false;
        }
        let mut is_probe = false;
        *self = match *self {
            RateProbe::From(base) if RISE.contains(&(now / base)) => RateProbe::Up {
                base,
                top: now,
                rounds: 0,
            },
            RateProbe::From(base) if (*RETURN.start()..*RISE.start()).contains(&(now / base)) => {
                RateProbe::From(base.min(now))
            }
            RateProbe::Up { base, top, rounds } => {
                let (top, rounds) = (top.max(now), rounds + 1);
                if top > base * RISE.end() || rounds > MOST_ROUNDS {
                    RateProbe::From(now)
                } else if RETURN.contains(&(now / base)) {
                    is_probe = true;
                    RateProbe::From(now)
                } else {
                    RateProbe::Up { base, top, rounds }
                }
            }
            _ => RateProbe::From(now),
        };
        is_probe
    }
}
