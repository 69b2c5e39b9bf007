//! Window scale, receive window, bytes in flight and zero-window episodes of one direction.

pub mod filled;
pub mod flight;
pub mod receive;
pub mod scale;
pub mod sender_view;
pub mod zero;

/// Return the maximum time span, which replaces impossible ones. A separate function keeps the branch cold.
#[cold]
fn longest_ns() -> i64 {
    i64::MAX
}

/// Return the nanoseconds from `since_ns` to a later time; None if time stands still or runs backwards.
#[inline(always)]
fn elapsed_ns(since_ns: i64, now_ns: i64) -> Option<i64> {
    (now_ns > since_ns).then(|| now_ns.checked_sub(since_ns).unwrap_or_else(longest_ns))
}

#[inline(always)]
fn add_ns(sum_ns: i64, span_ns: i64) -> i64 {
    sum_ns.checked_add(span_ns).unwrap_or_else(longest_ns)
}
