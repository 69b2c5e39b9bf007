//! The targets of HTTP requests: method and path from the payload of given frames (RFC 9112 §3).

use std::collections::HashMap;

use crate::capture::{MergedReader, Packet};
use crate::output::headers::header_len;

/// Packets between two calls of the progress function.
const REPORT_EVERY: u64 = 1 << 14;
/// Longer targets are reported as unknown.
const MOST_TARGET_BYTES: usize = 256;
/// Maximum number of distinct targets; further targets are reported as unknown.
const MOST_TARGETS: usize = 1 << 14;
/// RFC 9110 §9.3, RFC 5789, and the most frequent methods of WebDAV and UPnP.
const METHODS: [&str; 14] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "PROPFIND",
    "REPORT",
    "SEARCH",
    "SUBSCRIBE",
    "NOTIFY",
];
pub const UNKNOWN: u32 = u32::MAX;

/// The target of each frame as an index of `words`, or [`UNKNOWN`].
#[derive(Debug, Default)]
pub struct Targets {
    pub codes: Vec<u32>,
    pub words: Vec<String>,
}

/// Read the targets of `frames`, which are sorted. `report` is called periodically with the bytes read so far; returning
/// false stops.
pub fn request_targets(
    input: &mut MergedReader,
    frames: &[u64],
    mut report: impl FnMut(u64) -> bool,
) -> Targets {
    let mut found = Targets {
        codes: vec![UNKNOWN; frames.len()],
        words: Vec::new(),
    };
    let mut known: HashMap<String, u32> = HashMap::new();
    let (mut place, mut packets) = (0, 0_u64);
    while place < frames.len() {
        packets += 1;
        if packets % REPORT_EVERY == 0 && !report(input.bytes_read()) {
            break;
        }
        let Some(packet) = input.next_packet() else {
            break;
        };
        while frames.get(place).is_some_and(|next| *next < packet.frame) {
            place += 1;
        }
        let first = place;
        while frames.get(place) == Some(&packet.frame) {
            place += 1;
        }
        let Some(wanted) = found
            .codes
            .get_mut(first..place)
            .filter(|codes| !codes.is_empty())
        else {
            continue;
        };
        let Some(target) = payload(&packet).and_then(target) else {
            continue;
        };
        if let Some(code) = known.get(&target) {
            wanted.fill(*code);
        } else if found.words.len() < MOST_TARGETS {
            let code = found.words.len() as u32;
            wanted.fill(code);
            found.words.push(target.clone());
            known.insert(target, code);
        }
    }
    found
}

/// Return the captured bytes after the TCP header.
fn payload<'p>(packet: &Packet<'p>) -> Option<&'p [u8]> {
    packet.captured.get(header_len(packet)..)
}

/// Return method and path of a request line, without the query; None if the capture truncates the path.
fn target(payload: &[u8]) -> Option<String> {
    let space = payload.iter().take(16).position(|byte| *byte == b' ')?;
    let method = METHODS
        .into_iter()
        .find(|method| method.as_bytes() == &payload[..space])?;
    let rest = payload.get(space + 1..)?;
    let end = rest
        .iter()
        .take(MOST_TARGET_BYTES + 1)
        .position(|byte| matches!(byte, b' ' | b'?' | b'#'))?;
    let path = std::str::from_utf8(&rest[..end]).ok()?;
    let is_printable = !path.is_empty() && path.bytes().all(|byte| byte.is_ascii_graphic());
    // The absolute form, as proxies receive it (RFC 9112 §3.2.2).
    let path = match path.split_once("://") {
        Some((_, after)) => after.find('/').map_or("/", |slash| &after[slash..]),
        None => path,
    };
    is_printable.then(|| format!("{method} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_has_a_method_and_a_path() {
        for (payload, wanted) in [
            ("GET /items/7?page=2 HTTP/1.1\r\n", Some("GET /items/7")),
            ("POST /login HTTP/1.0\r\nHost: x", Some("POST /login")),
            ("GET http://example.com/a HTTP/1.1\r\n", Some("GET /a")),
            ("GET http://example.com HTTP/1.1\r\n", Some("GET /")),
            ("GET /cut-by-the-capt", None),
            ("GETTING /x HTTP/1.1", None),
            ("GET  HTTP/1.1", None),
            ("GET /\u{7} HTTP/1.1", None),
            ("HTTP/1.1 200 OK\r\n", None),
            ("", None),
        ] {
            assert_eq!(target(payload.as_bytes()).as_deref(), wanted, "{payload}");
        }
        let long = format!("GET /{} HTTP/1.1", "x".repeat(MOST_TARGET_BYTES));
        assert_eq!(target(long.as_bytes()), None);
    }
}
