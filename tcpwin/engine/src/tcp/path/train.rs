//! A train: data delivered back to back, whose ACKs follow each other closely.

/// Length of a train: this many segments, or this share of the flight if that is less.
const TRAIN_SEGMENTS: u32 = 24;
const TRAIN_OF_FLIGHT: (u32, u32) = (2, 5);
/// Minimum segments of a train: delayed ACKs cover two segments each.
const LEAST_TRAIN_SEGMENTS: u32 = 3;
/// Value of [`Train::from_ns`] while no train is followed.
const NO_TRAIN: i64 = i64::MIN;

/// Start of the current train, and the delivery that ends it. Every ACK reads it.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// ACKs this far apart belong to different trains.
    pub gap_ns: i64,
    last_ns: i64,
    /// Bytes delivered so far.
    bytes: u64,
    from_ns: i64,
    from_bytes: u64,
    until_bytes: u64,
}

impl Train {
    pub const NONE: Train = Train {
        gap_ns: i64::MAX,
        last_ns: NO_TRAIN,
        bytes: 0,
        from_ns: NO_TRAIN,
        from_bytes: 0,
        until_bytes: 0,
    };

    /// Note the bytes delivered so far; return whether they increased, and whether that ends the train.
    #[inline(always)]
    pub fn take(&mut self, delivered_bytes: u64, now_ns: i64) -> (bool, bool) {
        if delivered_bytes <= self.bytes {
            return (false, false);
        }
        let since_ns = now_ns.wrapping_sub(self.last_ns);
        (self.bytes, self.last_ns) = (delivered_bytes, now_ns);
        if since_ns > self.gap_ns {
            self.end();
        }
        (true, delivered_bytes >= self.until_bytes)
    }

    /// Return whether a train is being followed, or could begin with this flight.
    #[inline(always)]
    pub fn is_possible(&self, flight_bytes: u32, mss: u32) -> bool {
        (self.from_ns != NO_TRAIN) | is_train(flight_bytes, mss)
    }

    /// Begin the next train, unless the flight is too small. Return bytes and nanoseconds of the finished one.
    pub fn next(
        &mut self,
        delivered_bytes: u64,
        flight_bytes: u32,
        mss: u32,
        now_ns: i64,
    ) -> Option<(u64, i64)> {
        let elapsed_ns = now_ns.saturating_sub(self.from_ns);
        let over = (self.from_ns != NO_TRAIN && elapsed_ns > 0)
            .then(|| (delivered_bytes - self.from_bytes, elapsed_ns));
        let is_train = is_train(flight_bytes, mss);
        let length = part_of(flight_bytes).min(mss.max(1).saturating_mul(TRAIN_SEGMENTS));
        self.from_ns = if is_train { now_ns } else { NO_TRAIN };
        self.from_bytes = delivered_bytes;
        self.until_bytes = delivered_bytes + u64::from(if is_train { length } else { 1 });
        over
    }

    /// End the train: nothing is in flight, and later data is not part of it.
    #[inline]
    pub fn end(&mut self) {
        (self.from_ns, self.until_bytes) = (NO_TRAIN, 0);
    }
}

fn part_of(flight_bytes: u32) -> u32 {
    flight_bytes / TRAIN_OF_FLIGHT.1 * TRAIN_OF_FLIGHT.0
}

/// Return whether the part of a flight is long enough for a train.
#[inline(always)]
fn is_train(flight_bytes: u32, mss: u32) -> bool {
    part_of(flight_bytes) >= mss.max(1).saturating_mul(LEAST_TRAIN_SEGMENTS)
}
