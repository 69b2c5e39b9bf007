//! IP addresses as text.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Write an address in canonical form (RFC 5952 for IPv6).
pub fn write_address(out: &mut impl Write, address: &[u8; 16]) -> fmt::Result {
    match address {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => {
            write!(out, "{}", Ipv4Addr::new(*a, *b, *c, *d))
        }
        _ => write!(out, "{}", Ipv6Addr::from(*address)),
    }
}

pub fn address_text(address: &[u8; 16]) -> String {
    let mut text = String::with_capacity(15);
    // Writing to a String cannot fail.
    let _ = write_address(&mut text, address);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_address_families() {
        let mut v4 = [0u8; 16];
        v4[10..].copy_from_slice(&[0xff, 0xff, 10, 9, 1, 255]);
        assert_eq!(address_text(&v4), "10.9.1.255");
        let mut v6 = [0u8; 16];
        (v6[0], v6[1], v6[15]) = (0x20, 0x01, 1);
        assert_eq!(address_text(&v6), "2001::1");
    }
}
