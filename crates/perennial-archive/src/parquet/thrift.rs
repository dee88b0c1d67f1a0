//! Fields -> Thrift's compact protocol.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct under construction. Its fields must be written in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct ThriftStruct {
    bytes: Vec<u8>,
    last: i16,
}

impl ThriftStruct {
    /// The bytes with the end marker.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(&mut self, number: i16, kind: u8) {
        // Field numbers of this format never differ by more than 15.
        self.bytes.push(((number - self.last) as u8) << 4 | kind);
        self.last = number;
    }

    /// A 32-bit integer, or an enum.
    pub(super) fn i32(&mut self, number: i16, value: i32) -> &mut ThriftStruct {
        self.field(number, I32);
        varint(&mut self.bytes, zigzag(i64::from(value)));
        self
    }

    pub(super) fn i64(&mut self, number: i16, value: i64) -> &mut ThriftStruct {
        self.field(number, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    /// A boolean, stored in the field's type.
    pub(super) fn truth(&mut self, number: i16, value: bool) -> &mut ThriftStruct {
        self.field(number, if value { 1 } else { 2 });
        self
    }

    /// A string or bytes.
    pub(super) fn binary(&mut self, number: i16, value: &[u8]) -> &mut ThriftStruct {
        self.field(number, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    /// A nested struct.
    pub(super) fn inner(&mut self, number: i16, value: ThriftStruct) -> &mut ThriftStruct {
        self.field(number, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    /// A list of integers or enums.
    pub(super) fn i32s(&mut self, number: i16, values: &[i32]) -> &mut ThriftStruct {
        self.field(number, LIST);
        list(&mut self.bytes, values.len(), I32);
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag(i64::from(*value))));
        self
    }

    /// A list with one string.
    pub(super) fn one_binary(&mut self, number: i16, value: &[u8]) -> &mut ThriftStruct {
        self.field(number, LIST);
        list(&mut self.bytes, 1, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    /// A list of structs.
    pub(super) fn structs(
        &mut self,
        number: i16,
        values: impl IntoIterator<Item = ThriftStruct>,
    ) -> &mut ThriftStruct {
        let values: Vec<ThriftStruct> = values.into_iter().collect();
        self.field(number, LIST);
        list(&mut self.bytes, values.len(), STRUCT);
        values.into_iter().for_each(|value| self.bytes.extend(value.end()));
        self
    }
}

fn list(out: &mut Vec<u8>, n: usize, kind: u8) {
    match n {
        0..=14 => out.push((n as u8) << 4 | kind),
        n => {
            out.push(0xf0 | kind);
            varint(out, n as u64);
        }
    }
}

fn binary(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Seven bits per byte, lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
