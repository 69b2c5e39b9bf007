//! The fuzzer's bytes as numbers. After the end, all numbers are zero.

pub struct Tape<'a>(pub &'a [u8]);

impl Tape<'_> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// Return an element of `some`, which must not be empty.
    pub fn one_of<T: Copy>(&mut self, some: &[T]) -> T {
        some[usize::from(self.byte()) % some.len()]
    }
}
