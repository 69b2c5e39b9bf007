//! Large pages for the records of many connections.
//!
//! Each segment accesses about six places in its connection's record and the memory that it points to. With thousands
//! of connections each place is on a different page, and translating the addresses costs as much as reading the data.
//! This module only advises the kernel about memory that is not in use yet.

use std::hint::black_box;

/// Memory needed for a few hundred connections.
const ROOM_BYTES: usize = 8 << 20;

/// Let the heap's next `ROOM_BYTES` use large pages if the system permits it (Linux `transparent_hugepage`: `madvise`
/// or `always`). No memory is used before it is written.
pub fn prepare() {
    // glibc returns a block of this size to the kernel, and from then on allocates such blocks from the heap like
    // smaller ones (mallopt(3), M_MMAP_THRESHOLD, "dynamic").
    drop(black_box(Vec::<u8>::with_capacity(ROOM_BYTES)));
    let room = black_box(Vec::<u8>::with_capacity(ROOM_BYTES));
    advise(&room);
}

#[cfg(target_os = "linux")]
fn advise(room: &Vec<u8>) {
    const PAGE_BYTES: usize = 4096;
    let skipped = room.as_ptr().align_offset(PAGE_BYTES);
    let len = room.capacity().saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
    let start = room.as_ptr().wrapping_add(skipped).cast_mut();
    // On failure, the pages remain small.
    #[allow(unsafe_code)]
    // SAFETY: the span is within the block, and the advice changes no byte of it (madvise(2), MADV_HUGEPAGE).
    unsafe {
        libc::madvise(start.cast(), len, libc::MADV_HUGEPAGE)
    };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &Vec<u8>) {}
