//! The per-segment table as a Parquet file (parquet.apache.org, File Format), one row group at a time.
//!
//! In: rows. Out: the file's bytes, which a thread encodes and writes while the next group is filled. A column is written
//! as codes of its distinct values, or as its values if there are many. Knows nothing of Python.

mod cell;
mod thrift;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::{Builder, JoinHandle};

use zstd::bulk::Compressor;

use self::cell::{Cell, EventSet, Interner, Side};
use self::thrift::{push_varint, Fields};
use crate::output::columns::RowColumns;
use crate::output::pass::Sink;
use crate::output::rows::{ChosenColumns, RowSink};
use crate::tcp::connection::state::Connection;
use crate::tcp::tracker::Annotation;
use crate::wire::Segment;

/// Rows of a group, which are in memory together.
const GROUP_ROWS: usize = 1 << 16;
/// Groups between who fills and who writes them.
const WAITING: usize = 1;
/// zstd's fastest ordinary level: higher ones take twice the time for a file a few per cent smaller.
const LEVEL: i32 = 1;
const MAGIC: &[u8] = b"PAR1";

// Numbers of parquet.thrift.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const ZSTD: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;

/// Collects rows and passes each group to the thread that writes it.
pub struct ParquetWriter {
    rows: RowColumns,
    count: u64,
    /// None once the file is over.
    writing: Option<(SyncSender<RowColumns>, JoinHandle<io::Result<()>>)>,
}

impl ParquetWriter {
    /// `only` restricts the table to one connection.
    pub fn new(
        out: impl Write + Send + 'static,
        only: Option<u32>,
        chosen: ChosenColumns,
    ) -> io::Result<Self> {
        let (groups, queued) = sync_channel(WAITING);
        let thread = Builder::new().spawn(move || write_file(out, chosen, &queued))?;
        Ok(ParquetWriter {
            rows: RowColumns::of(only),
            count: 0,
            writing: Some((groups, thread)),
        })
    }

    /// Return false if nothing more can be written.
    fn hand_over(&mut self) -> bool {
        let next = RowColumns::of(self.rows.only);
        let rows = std::mem::replace(&mut self.rows, next);
        self.count += rows.len() as u64;
        let writing = self.writing.as_ref();
        writing.is_some_and(|(groups, _)| groups.send(rows).is_ok())
    }
}

impl Sink for ParquetWriter {
    fn take(
        &mut self,
        segment: &Segment,
        annotation: &Annotation,
        connection: &Connection,
    ) -> bool {
        self.rows.take(segment, annotation, connection);
        self.rows.len() < GROUP_ROWS || self.hand_over()
    }
}

impl RowSink for ParquetWriter {
    fn finish(&mut self) -> io::Result<u64> {
        if !self.rows.is_empty() {
            self.hand_over();
        }
        if let Some((groups, thread)) = self.writing.take() {
            drop(groups);
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        Ok(self.count)
    }
}

/// Write groups until there are no more, then the metadata.
fn write_file(
    mut out: impl Write,
    chosen: ChosenColumns,
    queued: &Receiver<RowColumns>,
) -> io::Result<()> {
    out.write_all(MAGIC)?;
    let mut file = Encoder::new(chosen)?;
    let (mut groups, mut count) = (Vec::new(), 0);
    for rows in queued {
        file.encode(&rows)?;
        out.write_all(&file.bytes)?;
        let (size, row_count) = (file.bytes.len() as u64, rows.len() as u64);
        let mut group = Fields::default();
        group.structures(1, file.chunks.drain(..));
        groups.push(group.i64(2, size).i64(3, row_count).take());
        count += row_count;
    }
    let mut schema = Fields::default();
    schema
        .binary(4, b"schema")
        .i32(5, file.elements.len() as i32);
    file.elements.insert(0, schema);
    let mut metadata = Fields::default();
    metadata.i32(1, 1).structures(2, file.elements.drain(..));
    metadata.i64(3, count).structures(4, groups.drain(..));
    let footer = metadata.binary(6, b"tcpwin").end();
    out.write_all(footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)?;
    out.flush()
}

/// Encodes groups of rows; its fields are numbered as in parquet.thrift.
struct Encoder {
    chosen: ChosenColumns,
    /// The group's pages.
    bytes: Vec<u8>,
    /// Position of the row group in the file.
    offset: u64,
    page: Vec<u8>,
    interner: Interner,
    compressor: Compressor<'static>,
    /// Metadata of the group's columns.
    chunks: Vec<Fields>,
    /// The schema's columns.
    elements: Vec<Fields>,
}

impl Encoder {
    fn new(chosen: ChosenColumns) -> io::Result<Self> {
        let mut encoder = Encoder {
            chosen,
            bytes: Vec::new(),
            offset: MAGIC.len() as u64,
            page: Vec::new(),
            interner: Interner::default(),
            compressor: Compressor::new(LEVEL)?,
            chunks: Vec::new(),
            elements: Vec::new(),
        };
        // Encode no rows for the schema, which a file without rows needs as well.
        encoder.encode(&RowColumns::default())?;
        encoder.chunks.clear();
        encoder.bytes.clear();
        Ok(encoder)
    }

    fn encode(&mut self, rows: &RowColumns) -> io::Result<()> {
        self.offset += self.bytes.len() as u64;
        self.bytes.clear();
        macro_rules! columns {
            ($($name:literal $write:ident $values:expr;)*) => {
                $(if self.chosen.has_name($name) {
                    self.$write($name, $values)?;
                })*
            };
        }
        // In the order of COLUMNS.
        columns! {
            "frame" whole rows.frame.iter().copied();
            "time_ns" whole rows.time_ns.iter().copied();
            "connection" whole rows.connection.iter().copied();
            "direction" whole rows.is_from_initiator.iter().copied().map(Side);
            "src" whole rows.endpoints.iter().map(|ends| ends.0);
            "sport" whole rows.endpoints.iter().map(|ends| ends.1);
            "dst" whole rows.endpoints.iter().map(|ends| ends.2);
            "dport" whole rows.endpoints.iter().map(|ends| ends.3);
            "seq" whole rows.seq.iter().copied();
            "ack" whole rows.ack.iter().copied();
            "length" whole rows.length.iter().copied();
            "flags" whole rows.flags.iter().copied();
            "window_raw" whole rows.window_raw.iter().copied();
            "window" optional &rows.window;
            "shift" optional &rows.shift;
            "bytes_in_flight" optional &rows.bytes_in_flight;
            "pipe" optional &rows.pipe;
            "rtt_ns" optional &rows.rtt_ns;
            "events" whole rows.events.iter().copied().map(EventSet);
        }
        Ok(())
    }

    fn whole<T: Cell>(&mut self, name: &str, values: impl Iterator<Item = T>) -> io::Result<()> {
        self.page.clear();
        let values: Vec<T> = values.collect();
        self.column(name, &values, values.len(), REQUIRED)
    }

    fn optional<T: Cell>(&mut self, name: &str, values: &[Option<T>]) -> io::Result<()> {
        self.page.clear();
        self.page.extend_from_slice(&[0; 4]);
        pack(
            &mut self.page,
            values.iter().map(|it| it.is_some().into()),
            1,
        );
        let length = self.page.len() as u32 - 4;
        self.page[..4].copy_from_slice(&length.to_le_bytes());
        let present: Vec<T> = values.iter().copied().flatten().collect();
        self.column(name, &present, values.len(), OPTIONAL)
    }

    /// Write a column whose page begins with the definition levels of `count` cells, of which `values` are not null.
    fn column<T: Cell>(
        &mut self,
        name: &str,
        values: &[T],
        count: usize,
        repetition: i32,
    ) -> io::Result<()> {
        let (begin, mut size) = (self.bytes.len(), 0);
        let begin_at = self.offset + begin as u64;
        let mut chunk = Fields::default();
        chunk.i32(1, T::PHYSICAL);
        chunk
            .integers(2, &[PLAIN, RLE, RLE_DICTIONARY])
            .text_in_list(3, name);
        chunk.i32(4, ZSTD).i64(5, count as u64);
        let mut has_dictionary = false;
        let mut encoding = PLAIN;
        if let Some((distinct, codes)) = self.interner.intern(values) {
            has_dictionary = true;
            let mut page = Vec::new();
            distinct.iter().for_each(|value| value.put(&mut page));
            let mut about = Fields::default();
            about.i32(1, distinct.len() as i32).i32(2, PLAIN);
            size += self.page(DICTIONARY_PAGE, 7, about, &page)?;
            encoding = RLE_DICTIONARY;
            let width = (usize::BITS - distinct.len().saturating_sub(1).leading_zeros()).max(1);
            self.page.push(width as u8);
            pack(&mut self.page, codes.iter().copied(), width);
        } else {
            values.iter().for_each(|value| value.put(&mut self.page));
        }
        let data_at = self.offset + self.bytes.len() as u64;
        let mut about = Fields::default();
        about.i32(1, count as i32).i32(2, encoding);
        about.i32(3, RLE).i32(4, RLE);
        let page = std::mem::take(&mut self.page);
        size += self.page(DATA_PAGE, 5, about, &page)?;
        self.page = page;
        chunk.i64(6, size).i64(7, (self.bytes.len() - begin) as u64);
        chunk.i64(9, data_at);
        if has_dictionary {
            chunk.i64(11, begin_at);
        }
        let mut statistics = Fields::default();
        statistics.i64(3, (count - values.len()) as u64);
        if let (true, Some(most), Some(least)) =
            (T::IS_NUMBER, values.iter().max(), values.iter().min())
        {
            for (id, value) in [(5, most), (6, least)] {
                let mut bytes = Vec::new();
                value.put(&mut bytes);
                statistics.binary(id, &bytes);
            }
        }
        chunk.structure(12, &mut statistics);
        let mut column = Fields::default();
        self.chunks
            .push(column.i64(2, begin_at).structure(3, &mut chunk).take());
        if self.elements.len() < self.chosen.count() {
            let mut element = Fields::default();
            element.i32(1, T::PHYSICAL).i32(3, repetition);
            element.binary(4, name.as_bytes()).i32(6, T::CONVERTED);
            self.elements.push(element);
        }
        Ok(())
    }

    /// Compress and append a page whose header has `about` as the field `id`. Return its size before compression.
    fn page(&mut self, kind: i32, id: u8, mut about: Fields, page: &[u8]) -> io::Result<u64> {
        let compressed = self.compressor.compress(page)?;
        let mut header = Fields::default();
        header.i32(1, kind).i32(2, page.len() as i32);
        header.i32(3, compressed.len() as i32);
        let header = header.structure(id, &mut about).end();
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(&compressed);
        Ok((header.len() + page.len()) as u64)
    }
}

/// Append numbers of `width` bits as a single bit-packed run of the RLE hybrid.
fn pack(out: &mut Vec<u8>, numbers: impl ExactSizeIterator<Item = u32>, width: u32) {
    let groups = numbers.len().div_ceil(8);
    push_varint(out, (groups << 1 | 1) as u64);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut count) = (0u64, 0);
    for number in numbers {
        bits |= u64::from(number) << count;
        count += width;
        if count >= u32::BITS {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= u32::BITS;
            count -= u32::BITS;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes());
    out.resize(end, 0);
}
