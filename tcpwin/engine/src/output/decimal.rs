//! Numbers in decimal, eight digits at a time without a loop.

const EIGHT_DIGITS: u64 = 100_000_000;

/// Something to append digits to.
pub trait Text {
    /// Append the first `count` bytes, which are digits.
    fn push_digits(&mut self, digits: [u8; 8], count: usize);
}

impl Text for String {
    #[inline(always)]
    fn push_digits(&mut self, digits: [u8; 8], count: usize) {
        let length = self.len();
        self.push_str(std::str::from_utf8(&digits).unwrap_or_default());
        self.truncate(length + count);
    }
}

/// Append a number in decimal.
#[inline(always)]
pub fn push_decimal(text: &mut impl Text, number: u64) {
    let (high, low) = (number / EIGHT_DIGITS, number % EIGHT_DIGITS);
    if high == 0 {
        push_first(text, low);
        return;
    }
    let (highest, high) = (high / EIGHT_DIGITS, high % EIGHT_DIGITS);
    if highest == 0 {
        push_first(text, high);
    } else {
        push_first(text, highest);
        text.push_digits(ascii(digits(high)).to_le_bytes(), 8);
    }
    text.push_digits(ascii(digits(low)).to_le_bytes(), 8);
}

/// Append a number below 10^8 without leading zeros.
#[inline(always)]
fn push_first(text: &mut impl Text, number: u64) {
    let digits = digits(number);
    // 0 has a digit, too.
    let zeros = (digits | (1 << 56)).trailing_zeros() / 8;
    let first = ascii(digits) >> (8 * zeros);
    text.push_digits(first.to_le_bytes(), 8 - zeros as usize);
}

/// Return the eight digits of a number below 10^8, the first one in the lowest byte.
#[inline(always)]
fn digits(number: u64) -> u64 {
    // Two lanes of four digits become four of two, and eight of one. A multiplication and a shift divide all lanes by
    // 100 or 10 at once, exactly for numbers of that size.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0xf_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

#[inline(always)]
fn ascii(digits: u64) -> u64 {
    digits | 0x3030_3030_3030_3030
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(number: u64) -> String {
        let mut text = String::new();
        push_decimal(&mut text, number);
        text
    }

    #[test]
    fn every_count_of_digits_is_written() {
        assert_eq!(written(0), "0");
        for digits in 0..20 {
            let power = 10u64.pow(digits);
            for number in [power - 1, power, power + 1] {
                assert_eq!(written(number), number.to_string());
            }
        }
        assert_eq!(written(u64::MAX), u64::MAX.to_string());
    }

    /// Each lane divides every number that it can hold.
    #[test]
    fn every_four_digits_are_written() {
        for number in 0..10_000 {
            assert_eq!(written(number), number.to_string());
            assert_eq!(
                written(number * 10_000 + 7),
                (number * 10_000 + 7).to_string()
            );
        }
    }

    proptest! {
        #[test]
        fn any_number_is_written_as_the_formatter_does(number: u64, bits in 0u32..64) {
            prop_assert_eq!(written(number >> bits), (number >> bits).to_string());
        }
    }
}
