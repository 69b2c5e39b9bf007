//! Compares two binary messages of the same layout and writes the changes as members of a JSON object.
//!
//! In: a layout with the offsets of numbers, and the bytes of both messages. Out: text. Knows no protocol: the caller
//! supplies the offsets and the meaning of numbers. Bytes outside the layout may change freely.

use std::fmt::Write;
use std::ops::Range;

/// A number of 1, 2, 4 or 8 bytes in native byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    pub at: usize,
    pub size: usize,
}

impl Number {
    fn read(&self, message: &[u8]) -> u64 {
        let bytes = &message[self.at..self.at + self.size];
        match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }
}

/// A named number: unknown above `most`, and at 0 unless `zero` makes 0 a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub number: Number,
    pub factor: u64,
    pub zero: bool,
    pub most: u64,
}

impl Field {
    fn write(&self, message: &[u8], out: &mut String) {
        let number = self.number.read(message);
        // Writing to a String cannot fail.
        let _ = if (number != 0 || self.zero) && number <= self.most {
            match number.checked_mul(self.factor) {
                Some(value) => write!(out, ",\"{}\":{value}", self.name),
                None => {
                    let value = u128::from(number) * u128::from(self.factor);
                    write!(out, ",\"{}\":{value}", self.name)
                }
            }
        } else {
            write!(out, ",\"{}\":null", self.name)
        };
    }
}

/// A named byte: true if a bit of `mask` is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    pub name: String,
    pub at: usize,
    pub mask: u8,
}

/// The layout of messages of `length` bytes.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub length: usize,
    /// If any of these differ, the whole message must be sent.
    pub steady: Vec<Range<usize>>,
    /// If one of these is 0, the whole message must be sent.
    pub measured: Vec<Number>,
    /// A difference here is a change whose value is not reported.
    pub watched: Vec<Range<usize>>,
    pub fields: Vec<Field>,
    pub flags: Vec<Flag>,
    /// Reported with every change, but not changes by themselves.
    pub running: Vec<Field>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// The whole message must be sent.
    Whole,
    None,
    /// Comma-separated `"name":value` pairs; empty if only watched bytes changed and no field is running.
    Members(String),
}

impl Layout {
    /// Return whether the layout lies within a message and all numbers have a supported size.
    pub fn is_sound(&self) -> bool {
        let numbers = self.fields.iter().chain(&self.running).map(|f| &f.number);
        let is_number = |n: &Number| matches!(n.size, 1 | 2 | 4 | 8) && self.holds(n.at, n.size);
        let is_range = |r: &Range<usize>| r.start <= r.end && r.end <= self.length;
        numbers.chain(&self.measured).all(is_number)
            && self.steady.iter().chain(&self.watched).all(is_range)
            && self.flags.iter().all(|flag| self.holds(flag.at, 1))
    }

    fn holds(&self, at: usize, size: usize) -> bool {
        at.checked_add(size).is_some_and(|end| end <= self.length)
    }

    /// Compare two messages. Messages of another length must be sent whole.
    pub fn changes(&self, before: &[u8], after: &[u8]) -> Change {
        if before.len() != self.length || after.len() != self.length {
            return Change::Whole;
        }
        let differs = |range: &Range<usize>| before[range.clone()] != after[range.clone()];
        if self.steady.iter().any(differs) {
            return Change::Whole;
        }
        let is_zero = |n: &Number| n.read(before) == 0 || n.read(after) == 0;
        let mut out = String::new();
        for field in &self.fields {
            if differs(&(field.number.at..field.number.at + field.number.size)) {
                field.write(after, &mut out);
            }
        }
        for flag in &self.flags {
            if before[flag.at] != after[flag.at] {
                let _ = write!(
                    out,
                    ",\"{}\":{}",
                    flag.name,
                    after[flag.at] & flag.mask != 0
                );
            }
        }
        if out.is_empty() && !self.watched.iter().any(differs) {
            return Change::None;
        }
        if self.measured.iter().any(is_zero) {
            return Change::Whole;
        }
        for field in &self.running {
            field.write(after, &mut out);
        }
        if !out.is_empty() {
            out.remove(0);
        }
        Change::Members(out)
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use super::*;

    fn field(name: &str, at: usize, size: usize) -> Field {
        Field {
            name: name.into(),
            number: Number { at, size },
            factor: 1000,
            zero: false,
            most: 249,
        }
    }

    /// Byte 0 is steady, 1 a flag, 2 a field, 3 watched, 4 free, 5 running, 6 measured, 8 to 15 a long number.
    fn layout() -> Layout {
        Layout {
            length: 16,
            steady: once(0..1).collect(),
            measured: vec![Number { at: 6, size: 1 }],
            watched: once(3..4).collect(),
            fields: vec![
                field("small", 2, 1),
                Field {
                    zero: true,
                    most: u64::MAX,
                    ..field("long", 8, 8)
                },
            ],
            flags: vec![Flag {
                name: "flag".into(),
                at: 1,
                mask: 2,
            }],
            running: vec![field("since", 5, 1)],
        }
    }

    fn message(edits: &[(usize, u8)]) -> [u8; 16] {
        let mut message = [7; 16];
        for &(at, value) in edits {
            message[at] = value;
        }
        message
    }

    fn change_of(edits: &[(usize, u8)]) -> Change {
        layout().changes(&message(&[]), &message(edits))
    }

    fn members(text: &str) -> Change {
        Change::Members(text.into())
    }

    #[test]
    fn free_and_running_bytes_are_not_changes() {
        assert_eq!(change_of(&[]), Change::None);
        assert_eq!(change_of(&[(4, 1), (5, 1), (7, 1)]), Change::None);
    }

    #[test]
    fn changed_fields_and_flags_include_running_fields() {
        assert_eq!(
            change_of(&[(2, 9)]),
            members("\"small\":9000,\"since\":7000")
        );
        assert_eq!(
            change_of(&[(1, 5), (5, 0)]),
            members("\"flag\":false,\"since\":null")
        );
        assert_eq!(
            change_of(&[(1, 2)]),
            members("\"flag\":true,\"since\":7000")
        );
        assert_eq!(change_of(&[(3, 0)]), members("\"since\":7000"));
    }

    #[test]
    fn unknown_numbers_are_null() {
        assert_eq!(
            change_of(&[(2, 0)]),
            members("\"small\":null,\"since\":7000")
        );
        assert_eq!(
            change_of(&[(2, 249)]),
            members("\"small\":249000,\"since\":7000")
        );
        assert_eq!(
            change_of(&[(2, 250)]),
            members("\"small\":null,\"since\":7000")
        );
    }

    #[test]
    fn a_long_number_is_exact_after_its_factor() {
        let mut after = message(&[]);
        after[8..].copy_from_slice(&u64::MAX.to_ne_bytes());
        let text = format!("\"long\":{},\"since\":7000", u128::from(u64::MAX) * 1000);
        assert_eq!(layout().changes(&message(&[]), &after), members(&text));
        after[8..].copy_from_slice(&0u64.to_ne_bytes());
        assert_eq!(
            layout().changes(&message(&[]), &after),
            members("\"long\":0,\"since\":7000")
        );
    }

    #[test]
    fn some_changes_need_the_whole_message() {
        assert_eq!(change_of(&[(0, 0)]), Change::Whole);
        assert_eq!(change_of(&[(2, 9), (6, 0)]), Change::Whole);
        assert_eq!(layout().changes(&message(&[]), &[7; 15]), Change::Whole);
    }

    #[test]
    fn a_layout_beyond_the_message_is_not_sound() {
        assert!(layout().is_sound());
        assert!(!Layout {
            length: 15,
            ..layout()
        }
        .is_sound());
        let fields = vec![field("uneven", 2, 3)];
        assert!(!Layout { fields, ..layout() }.is_sound());
        let flags = vec![Flag {
            name: "far".into(),
            at: usize::MAX,
            mask: 1,
        }];
        assert!(!Layout { flags, ..layout() }.is_sound());
    }
}
