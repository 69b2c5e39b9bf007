//! SunATM: <https://www.tcpdump.org/linktypes/LINKTYPE_SUNATM.html>.

use super::outcome::Outcome;
use super::view::{Layer, Step, View};

/// Direction and traffic kind, virtual path, two bytes of virtual circuit, then the reassembled frame.
pub(super) fn sun(view: View<'_>) -> Step<'_> {
    const KIND: u8 = 0x0F;
    const LAN_EMULATION: u8 = 1;
    const LLC: u8 = 2;
    /// The LAN Emulation client ID before each emulated frame.
    const CLIENT_ID_LEN: usize = 2;
    let frame = view.skip(4)?;
    match view.u8(0)? & KIND {
        LAN_EMULATION => Ok((Layer::Ethernet, frame.skip(CLIENT_ID_LEN)?)),
        LLC => Ok((Layer::Llc, frame)),
        _ => Err(Outcome::NotTcp),
    }
}
