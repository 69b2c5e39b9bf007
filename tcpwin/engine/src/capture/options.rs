//! Options of a pcapng block (draft-ietf-opsawg-pcapng §3.5): bytes after a block's fixed fields → code and value.
//! Iteration ends at `opt_endofopt`, at the end of the block, or at an option that runs past it.

use super::endian::Endian;

const END_OF_OPTIONS: u16 = 0;

/// Iterates over options; afterwards `overrun` is true if one ran past the block.
pub(super) struct Options<'a> {
    rest: &'a [u8],
    endian: Endian,
    pub overrun: bool,
}

impl<'a> Options<'a> {
    pub fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self {
            rest: bytes,
            endian,
            overrun: false,
        }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        let Some(([c0, c1, l0, l1], values)) = rest.split_first_chunk::<4>() else {
            self.overrun = true;
            return None;
        };
        let code = self.endian.u16([*c0, *c1]);
        let len = usize::from(self.endian.u16([*l0, *l1]));
        if code == END_OF_OPTIONS {
            return None;
        }
        let Some(value) = values.get(..len) else {
            self.overrun = true;
            return None;
        };
        self.rest = values.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], endian: Endian) -> (Vec<(u16, Vec<u8>)>, bool) {
        let mut options = Options::new(bytes, endian);
        let found = options.by_ref().map(|(c, v)| (c, v.to_vec())).collect();
        (found, options.overrun)
    }

    #[test]
    fn values_are_padded_to_four_bytes() {
        let bytes = [
            2, 0, 5, 0, b'e', b't', b'h', b'1', b'2', 0, 0, 0, 9, 0, 1, 0, 6, 0, 0, 0,
        ];
        let expected = vec![(2, b"eth12".to_vec()), (9, vec![6])];
        assert_eq!(all(&bytes, Endian::Little), (expected, false));
    }

    #[test]
    fn big_endian() {
        assert_eq!(
            all(&[0, 9, 0, 1, 6, 0, 0, 0], Endian::Big),
            (vec![(9, vec![6])], false)
        );
    }

    #[test]
    fn end_of_options_ends() {
        assert_eq!(
            all(&[0, 0, 0, 0, 9, 0, 1, 0, 6, 0, 0, 0], Endian::Little),
            (vec![], false)
        );
    }

    #[test]
    fn options_before_an_overrun_are_returned() {
        let bytes = [9, 0, 1, 0, 6, 0, 0, 0, 2, 0, 5, 0, b'e', b't', b'h', b'0'];
        assert_eq!(all(&bytes, Endian::Little), (vec![(9, vec![6])], true));
        assert_eq!(all(&[9, 0, 1], Endian::Little), (vec![], true));
    }

    #[test]
    fn missing_padding_at_the_end_is_not_an_overrun() {
        assert_eq!(
            all(&[9, 0, 1, 0, 6], Endian::Little),
            (vec![(9, vec![6])], false)
        );
    }
}
