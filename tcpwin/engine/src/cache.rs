//! Prefetches data into the CPU cache. Never changes results.

pub const LINE_BYTES: usize = 64;

/// Prefetch all of a value.
#[inline(always)]
pub fn ask_for_all<T>(value: &T) {
    for line in 0..size_of::<T>().div_ceil(LINE_BYTES) {
        ask_for(from(value).wrapping_add(line * LINE_BYTES));
    }
}

/// Prefetch all of a slice.
#[inline(always)]
pub fn ask_for_items<T>(values: &[T]) {
    let start = values.as_ptr().cast::<u8>();
    for line in 0..size_of_val(values).div_ceil(LINE_BYTES) {
        ask_for(start.wrapping_add(line * LINE_BYTES));
    }
}

#[inline(always)]
pub fn from<T>(value: &T) -> *const u8 {
    std::ptr::from_ref(value).cast()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ask_for(at: *const u8) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    #[allow(unsafe_code)]
    // SAFETY: a prefetch is a hint: it reads nothing and cannot fault, whatever the address (Intel SDM, PREFETCHh).
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn ask_for(_: *const u8) {}
