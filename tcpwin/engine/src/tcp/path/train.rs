//! A train: data delivered in one go, whose ACKs follow each other closely.

/// Length of a train: this many segments, or this share of the flight if that is less.
const TRAIN_SEGMENTS: u32 = 24;
const TRAIN_OF_FLIGHT: (u32, u32) = (2, 5);
/// Fewer segments do not make a train: delayed ACKs come one for two.
const LEAST_TRAIN_SEGMENTS: u32 = 3;
/// [`Train::from_ns`] while none is followed.
const NO_TRAIN: i64 = i64::MIN;

/// Start of the current train, and the delivery that ends it. Every ACK reads it.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// ACKs so far apart are not of one train.
    pub gap_ns: i64,
    last_ns: i64,
    /// Delivered so far.
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

    /// So much was delivered so far: whether that is more than before, and whether it ends the train.
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

    /// Whether a train is being followed, or could begin with such a flight.
    #[inline(always)]
    pub fn is_possible(&self, flight_bytes: u32, mss: u32) -> bool {
        (self.from_ns != NO_TRAIN) | is_train(flight_bytes, mss)
    }

    /// Begin the next one, or none where the flight is too small. Gives bytes and nanoseconds of the one that is over.
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

/// Whether the part of such a flight is long enough.
#[inline(always)]
fn is_train(flight_bytes: u32, mss: u32) -> bool {
    part_of(flight_bytes) >= mss.max(1).saturating_mul(LEAST_TRAIN_SEGMENTS)
}
