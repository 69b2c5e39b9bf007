//! Identify files in unsupported formats, so that the error can suggest what to do.

/// The section header's type contains line endings to detect this: draft-ietf-opsawg-pcapng §4.1.
const TEXT_MODE: &str =
    "a pcapng file whose line endings were changed by a text-mode transfer; transfer it again as binary";

/// Return a description of the format that `head` starts with, if it is a known one.
pub(super) fn name_foreign(head: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 22] = [
        (
            b"snoop\0\0\0",
            "a snoop capture (RFC 1761); convert it with editcap",
        ),
        (b"btsnoop\0", "a btsnoop (Bluetooth) capture"),
        (
            b"RTSS",
            "a Microsoft Network Monitor 1 capture; convert it with editcap",
        ),
        (
            b"GMBU",
            "a Microsoft Network Monitor 2 capture; convert it with editcap",
        ),
        (
            b"TRSNIFF data    \x1a",
            "a Sniffer capture; convert it with editcap",
        ),
        (
            b"XCP\0",
            "a NetXRay or Sniffer capture; convert it with editcap",
        ),
        (
            b"\x05VNF",
            "a Visual Networks capture; convert it with editcap",
        ),
        (
            b"iptrace ",
            "an AIX iptrace capture; convert it with editcap",
        ),
        (b"\x0d\x0a\x0d\x0d\x0d\x0a", TEXT_MODE),
        (b"\x0a\x0d\x0a", TEXT_MODE),
        (b"\xfd7zXZ\0", "an xz archive; decompress it with xz -d"),
        (b"BZh", "a bzip2 archive; decompress it with bzip2 -d"),
        (
            b"\x1f\x9d",
            "a compress (.Z) archive; decompress it with gzip -d",
        ),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
        (b"\x89LZO\0", "an lzop archive; decompress it with lzop -d"),
        (b"\x7fELF", "an executable"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"\x89PNG", "a PNG picture"),
        (b"%PDF", "a PDF document"),
        (b"<?xml", "an XML document"),
        (b"<!DOCTYPE", "an HTML page; the download may have failed"),
    ];
    let known = KNOWN
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, name)| *name);
    known.or_else(|| is_text(head).then_some("a text file"))
}

fn is_text(head: &[u8]) -> bool {
    !head.is_empty()
        && head
            .iter()
            .all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_magics_are_named() {
        assert_eq!(
            name_foreign(b"snoop\0\0\0\0\0\0\x02"),
            Some("a snoop capture (RFC 1761); convert it with editcap")
        );
        assert_eq!(
            name_foreign(b"GMBU\x00\x02"),
            Some("a Microsoft Network Monitor 2 capture; convert it with editcap")
        );
        assert_eq!(name_foreign(b"time,bytes\r\n1,"), Some("a text file"));
        assert_eq!(name_foreign(b"\x01\x02\x03\x04"), None);
        assert_eq!(name_foreign(b""), None);
    }
}
