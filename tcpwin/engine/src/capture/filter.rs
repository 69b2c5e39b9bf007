//! Classic BPF programs, the target of libpcap's filter compiler: validated once, then run on packets.
//!
//! Steven McCanne and Van Jacobson, "The BSD Packet Filter" (1993), and libpcap's bpf_filter.c: on a load beyond the
//! captured bytes, or a division by zero, the packet is rejected. Jumps only go forward, so every program terminates.

use super::packet::Packet;

/// Maximum instructions in a program: more than any hand-written expression compiles to.
pub const MAX_INSTRUCTIONS: usize = 1 << 16;
const MEMORY: usize = 16;

/// The fields of `struct bpf_insn`: opcode, jump offsets if the condition is true and if it is false, operand.
pub type Raw = (u16, u8, u8, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Word,
    Half,
    Byte,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    K(u32),
    X,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Or,
    And,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Load(Size, u32),
    LoadFromX(Size, u32),
    LoadConstant(u32),
    LoadLength,
    LoadMemory(usize),
    XConstant(u32),
    XLength,
    XMemory(usize),
    /// Load four times the low nibble of a byte: the length of an IPv4 header.
    XHeaderLength(u32),
    Store(usize),
    StoreX(usize),
    Calculate(Arithmetic, Operand),
    Negate,
    XFromA,
    AFromX,
    Jump(usize),
    JumpIf(Condition, Operand, usize, usize),
    Return(u32),
    ReturnA,
}

/// A validated program: it terminates and accesses only the packet and its scratch memory.
#[derive(Clone, Debug)]
pub struct Program(Vec<Step>);

impl Program {
    /// Validate a program; `None` if it is malformed or might not terminate.
    pub fn new(raw: &[Raw]) -> Option<Self> {
        if raw.is_empty() || raw.len() > MAX_INSTRUCTIONS {
            return None;
        }
        let is_within = |step: &Step| match *step {
            Step::Jump(to) => to < raw.len(),
            Step::JumpIf(_, _, yes, no) => yes < raw.len() && no < raw.len(),
            _ => true,
        };
        let steps = raw.iter().zip(1..).map(|(raw, next)| read(*raw, next));
        let steps: Vec<Step> = steps
            .map(|step| step.filter(is_within))
            .collect::<Option<_>>()?;
        let ends = matches!(steps.last(), Some(Step::Return(_) | Step::ReturnA));
        ends.then_some(Self(steps))
    }

    /// Return true if the packet passes the filter.
    pub fn matches(&self, packet: &Packet<'_>) -> bool {
        self.run(packet.captured, packet.original_len)
            .is_some_and(|answer| answer != 0)
    }

    fn run(&self, data: &[u8], wire_len: u32) -> Option<u32> {
        let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; MEMORY]);
        let mut at = 0;
        loop {
            let step = *self.0.get(at)?;
            at += 1;
            let value = |operand: Operand| match operand {
                Operand::K(k) => k,
                Operand::X => x,
            };
            match step {
                Step::Load(size, index) => a = load(data, size, index)?,
                Step::LoadFromX(size, k) => a = load(data, size, x.checked_add(k)?)?,
                Step::LoadConstant(k) => a = k,
                Step::LoadLength => a = wire_len,
                Step::LoadMemory(cell) => a = *memory.get(cell)?,
                Step::XConstant(k) => x = k,
                Step::XLength => x = wire_len,
                Step::XMemory(cell) => x = *memory.get(cell)?,
                Step::XHeaderLength(index) => x = (load(data, Size::Byte, index)? & 15) << 2,
                Step::Store(cell) => *memory.get_mut(cell)? = a,
                Step::StoreX(cell) => *memory.get_mut(cell)? = x,
                Step::Calculate(operation, operand) => a = calculate(operation, a, value(operand))?,
                Step::Negate => a = a.wrapping_neg(),
                Step::XFromA => x = a,
                Step::AFromX => a = x,
                Step::Jump(to) => at = to,
                Step::JumpIf(condition, operand, yes, no) => {
                    let other = value(operand);
                    let is_true = match condition {
                        Condition::Equal => a == other,
                        Condition::Greater => a > other,
                        Condition::GreaterOrEqual => a >= other,
                        Condition::AnyBit => a & other != 0,
                    };
                    at = if is_true { yes } else { no };
                }
                Step::Return(k) => return Some(k),
                Step::ReturnA => return Some(a),
            }
        }
    }
}

fn load(data: &[u8], size: Size, index: u32) -> Option<u32> {
    let rest = data.get(index as usize..)?;
    Some(match size {
        Size::Word => u32::from_be_bytes(*rest.first_chunk()?),
        Size::Half => u16::from_be_bytes(*rest.first_chunk()?).into(),
        Size::Byte => (*rest.first()?).into(),
    })
}

fn calculate(operation: Arithmetic, a: u32, other: u32) -> Option<u32> {
    Some(match operation {
        Arithmetic::Add => a.wrapping_add(other),
        Arithmetic::Subtract => a.wrapping_sub(other),
        Arithmetic::Multiply => a.wrapping_mul(other),
        Arithmetic::Divide => a.checked_div(other)?,
        Arithmetic::Modulo => a.checked_rem(other)?,
        Arithmetic::Or => a | other,
        Arithmetic::And => a & other,
        Arithmetic::Xor => a ^ other,
        Arithmetic::ShiftLeft => a.checked_shl(other).unwrap_or(0),
        Arithmetic::ShiftRight => a.checked_shr(other).unwrap_or(0),
    })
}

/// Decode the instruction before index `next`, using the constants of libpcap's pcap/bpf.h.
fn read((code, if_true, if_false, k): Raw, next: usize) -> Option<Step> {
    let size = match code & 0x18 {
        0x00 => Some(Size::Word),
        0x08 => Some(Size::Half),
        0x10 => Some(Size::Byte),
        _ => None,
    };
    let cell = usize::try_from(k).ok().filter(|cell| *cell < MEMORY);
    let operand = if code & 0x08 == 0 {
        Operand::K(k)
    } else {
        Operand::X
    };
    // Addressing modes: constant, packet at a fixed offset, packet at X, memory, packet length, IPv4 header length.
    Some(match (code & 0x07, code & 0xe0) {
        (0x00, 0x00) => Step::LoadConstant(k),
        (0x00, 0x20) => Step::Load(size?, k),
        (0x00, 0x40) => Step::LoadFromX(size?, k),
        (0x00, 0x60) => Step::LoadMemory(cell?),
        (0x00, 0x80) => Step::LoadLength,
        (0x01, 0x00) => Step::XConstant(k),
        (0x01, 0x60) => Step::XMemory(cell?),
        (0x01, 0x80) => Step::XLength,
        (0x01, 0xa0) if size == Some(Size::Byte) => Step::XHeaderLength(k),
        (0x02, _) => Step::Store(cell?),
        (0x03, _) => Step::StoreX(cell?),
        (0x04, _) => calculation(code, operand)?,
        (0x05, _) => jump(code, operand, next, (if_true, if_false, k))?,
        (0x06, _) if code & 0x18 == 0x10 => Step::ReturnA,
        (0x06, _) if code & 0x18 == 0 => Step::Return(k),
        (0x07, _) if code & 0xf8 == 0x80 => Step::AFromX,
        (0x07, _) if code & 0xf8 == 0 => Step::XFromA,
        _ => return None,
    })
}

fn calculation(code: u16, operand: Operand) -> Option<Step> {
    let operation = match code & 0xf0 {
        0x00 => Arithmetic::Add,
        0x10 => Arithmetic::Subtract,
        0x20 => Arithmetic::Multiply,
        0x30 => Arithmetic::Divide,
        0x40 => Arithmetic::Or,
        0x50 => Arithmetic::And,
        0x60 => Arithmetic::ShiftLeft,
        0x70 => Arithmetic::ShiftRight,
        0x80 => return Some(Step::Negate),
        0x90 => Arithmetic::Modulo,
        0xa0 => Arithmetic::Xor,
        _ => return None,
    };
    Some(Step::Calculate(operation, operand))
}

fn jump(code: u16, operand: Operand, next: usize, to: (u8, u8, u32)) -> Option<Step> {
    let (if_true, if_false, k) = to;
    let condition = match code & 0xf0 {
        0x00 => return Some(Step::Jump(next.checked_add(usize::try_from(k).ok()?)?)),
        0x10 => Condition::Equal,
        0x20 => Condition::Greater,
        0x30 => Condition::GreaterOrEqual,
        0x40 => Condition::AnyBit,
        _ => return None,
    };
    let (yes, no) = (next + usize::from(if_true), next + usize::from(if_false));
    Some(Step::JumpIf(condition, operand, yes, no))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(raw: &[Raw], data: &[u8]) -> Option<u32> {
        Program::new(raw).unwrap().run(data, 100)
    }

    /// `tcpdump -y EN10MB -ddd 'ip and tcp port 443'`, compiled by libpcap 1.10.
    const PORT: [Raw; 13] = [
        (40, 0, 0, 12),
        (21, 0, 10, 2048),
        (48, 0, 0, 23),
        (21, 0, 8, 6),
        (40, 0, 0, 20),
        (69, 6, 0, 8191),
        (177, 0, 0, 14),
        (72, 0, 0, 14),
        (21, 2, 0, 443),
        (72, 0, 0, 16),
        (21, 0, 1, 443),
        (6, 0, 0, 262_144),
        (6, 0, 0, 0),
    ];

    fn segment(port: u16, header_len: u8) -> Vec<u8> {
        let mut data = vec![0; 14 + usize::from(header_len) + 20];
        data[12] = 8;
        data[14] = 0x40 | (header_len / 4);
        data[23] = 6;
        let tcp = 14 + usize::from(header_len);
        data[tcp + 2..tcp + 4].copy_from_slice(&port.to_be_bytes());
        data
    }

    #[test]
    fn matches_a_port_after_a_header_of_any_length() {
        assert_eq!(answer(&PORT, &segment(443, 20)), Some(262_144));
        assert_eq!(answer(&PORT, &segment(443, 60)), Some(262_144));
        assert_eq!(answer(&PORT, &segment(444, 20)), Some(0));
    }

    #[test]
    fn loads_beyond_the_captured_bytes_reject() {
        let whole = segment(443, 20);
        let ends: Vec<usize> = (0..whole.len())
            .filter(|end| answer(&PORT, &whole[..*end]).is_some_and(|found| found != 0))
            .collect();
        // The destination port ends at byte 38.
        assert_eq!(ends, (38..whole.len()).collect::<Vec<_>>());
    }

    #[test]
    fn arithmetic_matches_libpcap() {
        let of = |code: u16, a: u32, x: u32| {
            answer(
                &[(0, 0, 0, a), (1, 0, 0, x), (code, 0, 0, 0), (22, 0, 0, 0)],
                &[],
            )
        };
        assert_eq!(of(0x0c, u32::MAX, 2), Some(1));
        assert_eq!(of(0x1c, 1, 2), Some(u32::MAX));
        assert_eq!(of(0x3c, 7, 2), Some(3));
        assert_eq!(of(0x3c, 7, 0), None);
        assert_eq!(of(0x9c, 7, 4), Some(3));
        assert_eq!(of(0x9c, 7, 0), None);
        assert_eq!(of(0x6c, 1, 31), Some(1 << 31));
        assert_eq!(of(0x6c, 1, 32), Some(0));
        assert_eq!(of(0x7c, 1 << 31, 40), Some(0));
        assert_eq!(of(0xac, 6, 3), Some(5));
        assert_eq!(of(0x84, 1, 0), Some(u32::MAX));
    }

    #[test]
    fn memory_length_and_registers() {
        // A ← length; M[3] ← A; X ← M[3]; A ← 5; A ← X.
        let raw = [
            (0x80, 0, 0, 0),
            (0x02, 0, 0, 3),
            (0x61, 0, 0, 3),
            (0, 0, 0, 5),
            (0x87, 0, 0, 0),
            (22, 0, 0, 0),
        ];
        assert_eq!(answer(&raw, &[]), Some(100));
    }

    #[test]
    fn rejects_programs_that_loop_or_access_out_of_bounds() {
        let ends = (6, 0, 0, 0);
        for raw in [
            &[][..],
            &[(0, 0, 0, 1)],                 // does not end with a return
            &[(5, 0, 0, u32::MAX), ends],    // a backward jump, as in libpcap's protochain
            &[(5, 0, 0, 1), ends],           // jumps beyond the end
            &[(21, 0, 1, 0), ends],          // jumps beyond the end
            &[(0x60, 0, 0, 16), ends],       // memory out of range
            &[(0x02, 0, 0, u32::MAX), ends], // memory out of range
            &[(0xffff, 0, 0, 0), ends],      // invalid opcode
            &vec![ends; MAX_INSTRUCTIONS + 1],
        ] {
            assert!(Program::new(raw).is_none(), "{:?}", raw.first());
        }
    }
}
