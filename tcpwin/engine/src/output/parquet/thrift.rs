//! Thrift's compact protocol, as far as Parquet's metadata needs it.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure being written; its fields must be given in order.
#[derive(Default)]
pub struct Fields {
    pub bytes: Vec<u8>,
    last: u8,
}

impl Fields {
    fn begin(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    pub fn i32(&mut self, id: u8, value: i32) -> &mut Self {
        self.begin(id, I32);
        push_varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    pub fn i64(&mut self, id: u8, value: u64) -> &mut Self {
        self.begin(id, I64);
        push_varint(&mut self.bytes, zigzag(value as i64));
        self
    }

    pub fn binary(&mut self, id: u8, value: &[u8]) -> &mut Self {
        self.begin(id, BINARY);
        push_binary(&mut self.bytes, value);
        self
    }

    pub fn structure(&mut self, id: u8, value: &mut Fields) -> &mut Self {
        self.begin(id, STRUCT);
        self.bytes.extend_from_slice(value.end());
        self
    }

    pub fn integers(&mut self, id: u8, values: &[i32]) -> &mut Self {
        self.list(id, I32, values.len());
        for value in values {
            push_varint(&mut self.bytes, zigzag((*value).into()));
        }
        self
    }

    pub fn text_in_list(&mut self, id: u8, text: &str) -> &mut Self {
        self.list(id, BINARY, 1);
        push_binary(&mut self.bytes, text.as_bytes());
        self
    }

    pub fn structures(
        &mut self,
        id: u8,
        values: impl ExactSizeIterator<Item = Fields>,
    ) -> &mut Self {
        self.list(id, STRUCT, values.len());
        for mut value in values {
            self.bytes.extend_from_slice(value.end());
        }
        self
    }

    fn list(&mut self, id: u8, kind: u8, length: usize) {
        self.begin(id, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            push_varint(&mut self.bytes, length as u64);
        }
    }

    /// Return the fields written so far, and start a new struct.
    pub fn take(&mut self) -> Fields {
        std::mem::take(self)
    }

    /// End the structure, and return its bytes.
    pub fn end(&mut self) -> &[u8] {
        self.bytes.push(0);
        &self.bytes
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

pub fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn push_binary(bytes: &mut Vec<u8>, value: &[u8]) {
    push_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}
