//! Decompresses a file in another thread, some blocks ahead of its reader.

use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::input::{copy_prefix, Stream};

const BLOCK_BYTES: usize = 256 * 1024;
/// Blocks between the threads.
const WAITING: usize = 4;

struct Block {
    bytes: Vec<u8>,
    /// Length of what was decompressed, 0 at the end; or the error that ended it.
    outcome: io::Result<usize>,
    /// Bytes read from the file by then.
    bytes_on_disk: u64,
}

struct Ahead {
    blocks: Receiver<Block>,
    /// Blocks that are free again.
    emptied: Sender<Vec<u8>>,
    block: Vec<u8>,
    taken: usize,
    len: usize,
    is_over: bool,
    bytes_on_disk: Arc<AtomicU64>,
    /// Dropped last: the thread ends once nobody receives its blocks.
    _thread: Joined,
}

/// A thread that ends, and closes the file, before its reader is gone.
struct Joined(Option<JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Return a stream with the same data and errors, and the bytes of the file that were read for what it has returned;
/// `counted` are those that `stream` has read. Without another thread it is `stream` itself.
pub fn ahead(stream: Stream, counted: Arc<AtomicU64>) -> (Stream, Arc<AtomicU64>) {
    let (give, given) = channel::<Stream>();
    let (blocks, queued) = sync_channel(WAITING);
    let (emptied, empty) = channel();
    let counted_there = Arc::clone(&counted);
    let work = move || {
        if let Ok(stream) = given.recv() {
            decompress_all(stream, &counted_there, &blocks, &empty);
        }
    };
    let Ok(thread) = Builder::new().spawn(work) else {
        return (stream, counted);
    };
    let bytes_on_disk = Arc::new(AtomicU64::new(counted.load(Ordering::Relaxed)));
    // The thread waits for it.
    let _ = give.send(stream);
    let reader = Ahead {
        blocks: queued,
        emptied,
        block: Vec::new(),
        taken: 0,
        len: 0,
        is_over: false,
        bytes_on_disk: Arc::clone(&bytes_on_disk),
        _thread: Joined(Some(thread)),
    };
    (Box::new(reader), bytes_on_disk)
}

/// Decompress until the end, an error, or until nobody reads any more.
fn decompress_all(
    mut stream: Stream,
    counted: &AtomicU64,
    blocks: &SyncSender<Block>,
    empty: &Receiver<Vec<u8>>,
) {
    let mut is_over = false;
    while !is_over {
        let mut bytes = (empty.try_recv()).unwrap_or_else(|_| vec![0; BLOCK_BYTES]);
        let outcome = loop {
            match stream.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        is_over = !matches!(outcome, Ok(1..));
        let block = Block {
            bytes,
            outcome,
            bytes_on_disk: counted.load(Ordering::Relaxed),
        };
        is_over |= blocks.send(block).is_err();
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.len && !self.is_over && !out.is_empty() {
            let block = self.blocks.recv().map_err(io::Error::other)?;
            self.bytes_on_disk
                .store(block.bytes_on_disk, Ordering::Relaxed);
            self.is_over = !matches!(block.outcome, Ok(1..));
            (self.taken, self.len) = (0, block.outcome?);
            let free = std::mem::replace(&mut self.block, block.bytes);
            if !free.is_empty() {
                // After the last block the thread is gone.
                let _ = self.emptied.send(free);
            }
        }
        let rest = self.block.get(self.taken..self.len).unwrap_or_default();
        let count = copy_prefix(rest, out);
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// A file without an end that takes its time to close.
    struct Endless(Arc<AtomicBool>);

    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            Ok(out.len())
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            sleep(Duration::from_millis(100));
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_file_is_closed_once_its_reader_is_gone() {
        let is_closed = Arc::new(AtomicBool::new(false));
        let (mut reader, _) = ahead(Box::new(Endless(Arc::clone(&is_closed))), Arc::default());
        assert_eq!(reader.read(&mut [0; 10]).unwrap(), 10);
        assert!(!is_closed.load(Ordering::Relaxed));
        drop(reader);
        assert!(is_closed.load(Ordering::Relaxed));
    }
}
