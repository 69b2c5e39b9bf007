//! Stores connections in fixed blocks, so that growth never moves or copies them.

use std::mem::take;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{scope, Builder, ScopedJoinHandle};

use crate::tcp::connection::large_pages;
use crate::tcp::connection::state::Connection;

const BLOCK: usize = 512;
/// Fewer connections fit in a few pages.
const MANY: u32 = 64;
/// Number of connections that justify another thread.
const WORTH_A_THREAD: u32 = 20_000;

/// Freeing this many connections takes longer than the rest of a command.
const SLOW_TO_FREE: u32 = 100_000;

#[derive(Default)]
pub struct Arena {
    blocks: Vec<Vec<Connection>>,
    len: u32,
    /// Place of each connection in an arena joined from others.
    places: Option<Vec<u32>>,
    /// Maximum number of threads for walking over the connections.
    walkers: u32,
}

/// Frees many connections in another thread: nobody waits for it, and an exiting process skips it.
impl Drop for Arena {
    fn drop(&mut self) {
        if self.len >= SLOW_TO_FREE {
            let blocks = take(&mut self.blocks);
            // If no thread starts, dropping the closure frees them here.
            let _ = Builder::new().spawn(move || drop(blocks));
        }
    }
}

impl Arena {
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Join arenas in the order of the frames that opened their connections, which accompany each arena. Moves no
    /// connection.
    pub fn joined(parts: Vec<(Arena, Vec<u64>)>) -> Self {
        let len = parts.iter().map(|(part, _)| part.len()).sum();
        let walkers = parts.len() as u32;
        let mut places = Vec::with_capacity(len as usize);
        let mut first_block = 0;
        let mut left = Vec::with_capacity(parts.len());
        for (part, frames) in &parts {
            left.push((first_block * BLOCK as u32, frames.as_slice()));
            first_block += part.blocks.len() as u32;
        }
        while let Some((place, frames)) = left
            .iter_mut()
            .filter(|(_, frames)| !frames.is_empty())
            .min_by_key(|(_, frames)| frames.first().copied())
        {
            places.push(*place);
            *place += 1;
            *frames = frames.get(1..).unwrap_or_default();
        }
        Arena {
            blocks: parts
                .into_iter()
                .flat_map(|(mut part, _)| take(&mut part.blocks))
                .collect(),
            len,
            places: Some(places),
            walkers,
        }
    }

    /// Walk over ranges of the connections and return the results in order. Uses several threads for many connections
    /// if several tracked them.
    pub fn walk<T: Send>(&self, walk: impl Fn(Range<u32>) -> T + Sync) -> Vec<T> {
        self.walk_in(0..self.len, WORTH_A_THREAD, walk)
    }

    /// Like [`Arena::walk`] for the connections with these indices. `worth_a_thread`: number of connections that
    /// justifies another thread.
    pub fn walk_in<T: Send>(
        &self,
        indices: Range<u32>,
        worth_a_thread: u32,
        walk: impl Fn(Range<u32>) -> T + Sync,
    ) -> Vec<T> {
        let count = indices.end.saturating_sub(indices.start);
        let walkers = self.walkers.clamp(1, count / worth_a_thread.max(1) + 1);
        let share = count.div_ceil(walkers);
        let parts = (0..walkers).map(|nth| {
            let first = indices.start + count.min(nth * share);
            first..indices.end.min(first + share)
        });
        if walkers == 1 {
            return parts.map(walk).collect();
        }
        let walk = &walk;
        scope(|threads| {
            let begun: Vec<_> = parts
                .map(|part| threads.spawn(move || walk(part)))
                .collect();
            let ended = begun.into_iter().map(ScopedJoinHandle::join);
            ended
                .map(|found| found.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }

    #[inline(always)]
    fn place(&self, index: u32) -> Option<usize> {
        match &self.places {
            None => Some(index as usize),
            Some(places) => places.get(index as usize).map(|place| *place as usize),
        }
    }

    #[inline]
    pub fn get(&self, index: u32) -> Option<&Connection> {
        let place = self.place(index)?;
        self.blocks.get(place / BLOCK)?.get(place % BLOCK)
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Connection> {
        let place = self.place(index)?;
        self.blocks.get_mut(place / BLOCK)?.get_mut(place % BLOCK)
    }

    pub fn push(&mut self, connection: Connection) -> u32 {
        if self.len == MANY || (self.len > 0 && self.len as usize % BLOCK == 0) {
            large_pages::prepare();
        }
        if self.len as usize % BLOCK == 0 {
            // The first block grows on demand: most captures contain few connections.
            self.blocks
                .push(Vec::with_capacity(if self.len == 0 { 4 } else { BLOCK }));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(connection);
        }
        self.len += 1;
        self.len - 1
    }

    pub fn iter(&self) -> impl Iterator<Item = &Connection> + '_ {
        self.range(0..self.len)
    }

    /// Iterate over the connections with these indices.
    pub fn range(&self, indices: Range<u32>) -> impl Iterator<Item = &Connection> + '_ {
        indices.filter_map(|index| self.get(index))
    }

    /// Iterate over the connections with these indices in groups, each with its first index.
    pub fn chunks(
        &self,
        indices: Range<u32>,
        size: usize,
    ) -> impl Iterator<Item = (u32, Vec<&Connection>)> + '_ {
        let end = indices.end.min(self.len);
        indices.step_by(size).map(move |first| {
            let after = end.min(first.saturating_add(size as u32));
            (first, self.range(first..after).collect())
        })
    }
}
