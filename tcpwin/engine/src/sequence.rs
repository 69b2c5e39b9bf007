//! TCP sequence numbers: 32 bits, compared modulo 2^32 (RFC 9293 §3.4).

use std::ops::Add;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seq(pub u32);

impl Seq {
    /// Return the signed distance from `self` to `other`: positive when `other` comes later.
    #[inline]
    pub fn to(self, other: Seq) -> i32 {
        other.0.wrapping_sub(self.0) as i32
    }

    #[inline]
    pub fn is_before(self, other: Seq) -> bool {
        self.to(other) > 0
    }

    #[inline]
    pub fn is_after(self, other: Seq) -> bool {
        self.to(other) < 0
    }

    #[inline]
    pub fn max(self, other: Seq) -> Seq {
        if self.is_before(other) {
            other
        } else {
            self
        }
    }

    #[inline]
    pub fn minus(self, count: u32) -> Seq {
        Seq(self.0.wrapping_sub(count))
    }
}

impl Add<u32> for Seq {
    type Output = Seq;

    #[inline]
    fn add(self, count: u32) -> Seq {
        Seq(self.0.wrapping_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_wraps() {
        let late = Seq(0xffff_fff0);
        let wrapped = late + 0x20;
        assert_eq!(wrapped, Seq(0x10));
        assert!(late.is_before(wrapped) && wrapped.is_after(late));
        assert_eq!(late.to(wrapped), 0x20);
        assert_eq!(wrapped.to(late), -0x20);
        assert_eq!(late.max(wrapped), wrapped);
        assert_eq!(wrapped.minus(0x20), late);
    }
}
