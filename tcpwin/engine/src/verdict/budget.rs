//! Corrections of a direction's time budget by the kernel's counters and by the other end's capture.

use crate::tables::budget_item::{Group, ItemTrait, SenderState, SENDER_STATES};

/// Nanoseconds of each item, in the order of [`SenderState::ALL`].
pub type Items = [i64; SENDER_STATES];

/// Items of a busy sender whose time may belong to another item.
const GROWING: [SenderState; 3] = [
    SenderState::SlowStart,
    SenderState::AfterLoss,
    SenderState::Unknown,
];

pub fn sum_of(items_ns: &Items, wanted: ItemTrait) -> i64 {
    let having = SenderState::ALL.into_iter().filter(|item| item.has(wanted));
    having.map(|item| items_ns[item as usize]).sum()
}

/// Correct the items by the kernel's chronographs (Linux `tcp_chrono_start`, net/ipv4/tcp_output.c).
///
/// The kernel knows how long it waited for the window; the packets show how that time divides among the window's items.
/// The kernel counts a state, not a cause: with a standing queue both the window and the path are full, and a larger
/// window would gain nothing. The kernel counts time limited by the send buffer only while the whole buffer is in
/// flight and the writer sleeps; the packets show that the buffer limits the flight for longer.
pub fn corrected_by_kernel(items_ns: &Items, window_ns: i64, buffer_ns: i64) -> Items {
    let mut items = *items_ns;
    let has_ns = sum_of(&items, ItemTrait::Window);
    if has_ns <= window_ns {
        let others = [
            SenderState::Congestion,
            SenderState::Reader,
            SenderState::SendBuffer,
        ];
        claim(
            &mut items,
            SenderState::WindowFull,
            window_ns - has_ns,
            &[&others[..], &GROWING[..]].concat(),
        );
    } else {
        for item in SenderState::ALL
            .into_iter()
            .filter(|item| item.has(ItemTrait::Window))
        {
            let spent_ns = items[item as usize];
            let confirmed_ns = part(spent_ns, window_ns, has_ns);
            items[SenderState::Congestion as usize] += spent_ns - confirmed_ns;
            items[item as usize] = confirmed_ns;
        }
    }
    let missing_ns = buffer_ns - items[SenderState::SendBuffer as usize];
    claim(
        &mut items,
        SenderState::SendBuffer,
        missing_ns,
        &[&[SenderState::Congestion][..], &GROWING[..]].concat(),
    );
    items
}

/// Move up to `missing_ns` to an item from the others, in order.
fn claim(items: &mut Items, item: SenderState, missing_ns: i64, others: &[SenderState]) {
    let mut missing_ns = missing_ns;
    for other in others {
        let moved_ns = missing_ns.min(items[*other as usize]).max(0);
        items[*other as usize] -= moved_ns;
        items[item as usize] += moved_ns;
        missing_ns -= moved_ns;
    }
}

/// Divide the sender's wait for its receiver in the proportions of the receiver's capture, which has the windows' true
/// times.
pub fn corrected_by_receiver(items_ns: &Items, shown_ns: &Items) -> Items {
    let waits: Vec<usize> = SenderState::ALL
        .into_iter()
        .filter(|item| item.row().group == Group::Receiver)
        .map(|item| item as usize)
        .collect();
    let [whole_ns, shown_whole_ns] =
        [items_ns, shown_ns].map(|items| waits.iter().map(|item| items[*item]).sum::<i64>());
    let mut items = *items_ns;
    if whole_ns == 0 || shown_whole_ns == 0 {
        return items;
    }
    let mut left_ns = whole_ns;
    let mut largest = waits[0];
    for item in waits {
        items[item] = part(whole_ns, shown_ns[item], shown_whole_ns);
        left_ns -= items[item];
        if items[item] > items[largest] {
            largest = item;
        }
    }
    items[largest] += left_ns;
    items
}

/// Return `whole * share / of`, rounded down, without overflow.
fn part(whole: i64, share: i64, of: i64) -> i64 {
    (i128::from(whole) * i128::from(share)).div_euclid(i128::from(of)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(times: &[(SenderState, i64)]) -> Items {
        let mut items = [0; SENDER_STATES];
        times
            .iter()
            .for_each(|(item, ns)| items[*item as usize] = *ns);
        items
    }

    #[test]
    fn a_kernel_that_waited_less_for_the_window_waited_for_its_congestion_window() {
        let seen = items(&[
            (SenderState::WindowFull, 150),
            (SenderState::ZeroWindow, 50),
        ]);
        let expected = items(&[
            (SenderState::WindowFull, 75),
            (SenderState::ZeroWindow, 25),
            (SenderState::Congestion, 100),
        ]);
        assert_eq!(corrected_by_kernel(&seen, 100, 0), expected);
    }

    #[test]
    fn the_paths_time_is_never_a_windows_or_a_buffers() {
        let seen = items(&[
            (SenderState::Path, 500),
            (SenderState::Congestion, 100),
            (SenderState::Application, 50),
        ]);
        let expected = items(&[
            (SenderState::Path, 500),
            (SenderState::WindowFull, 100),
            (SenderState::Application, 50),
        ]);
        assert_eq!(corrected_by_kernel(&seen, 900, 900), expected);
    }

    #[test]
    fn the_receivers_capture_divides_its_senders_waits() {
        let seen = items(&[(SenderState::WindowFull, 101), (SenderState::Path, 7)]);
        let shown = items(&[(SenderState::ZeroWindow, 10), (SenderState::Reader, 10)]);
        let expected = items(&[
            (SenderState::ZeroWindow, 51),
            (SenderState::Reader, 50),
            (SenderState::Path, 7),
        ]);
        assert_eq!(corrected_by_receiver(&seen, &shown), expected);
    }
}
