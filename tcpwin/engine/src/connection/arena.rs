//! Connections in fixed blocks: growth never moves or doubles what is there.

use crate::connection::room;
use crate::connection::state::Connection;

const BLOCK: usize = 512;
/// Below this the connections stand on few pages.
const MANY: u32 = 64;

#[derive(Default)]
pub struct Arena {
    blocks: Vec<Vec<Connection>>,
    len: u32,
}

impl Arena {
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn get(&self, index: u32) -> Option<&Connection> {
        self.blocks
            .get(index as usize / BLOCK)?
            .get(index as usize % BLOCK)
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.blocks
            .get_mut(index as usize / BLOCK)?
            .get_mut(index as usize % BLOCK)
    }

    pub fn push(&mut self, connection: Connection) -> u32 {
        if self.len == MANY || (self.len > 0 && self.len as usize % BLOCK == 0) {
            room::prepare();
        }
        if self.len as usize % BLOCK == 0 {
            // The first block grows as it is needed: most captures hold a few connections.
            self.blocks
                .push(Vec::with_capacity(if self.len == 0 { 4 } else { BLOCK }));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(connection);
        }
        self.len += 1;
        self.len - 1
    }

    pub fn blocks(&self) -> impl Iterator<Item = &[Connection]> + '_ {
        self.blocks.iter().map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Connection> + '_ {
        self.blocks.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> + '_ {
        self.blocks.iter_mut().flatten()
    }
}
