//! The arithmetic of instructions: for each a function over all 32 lanes, chosen once when the program is loaded.
//!
//! A register is 32 lanes of 64 bits; a narrower value is zero-extended. The functions compute every lane, active or
//! not (nothing here can fail), and the caller keeps the results of the active ones. Modifiers that do not select the
//! function are passed as a constant in the fourth source, see [`Flags`].

mod bits;
mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod mixed;

pub use compare::second as setp_second;
pub use integer::carry;
use rtc_ptx::Modifier;
use rtc_ptx::Opcode;
use rtc_ptx::module::Instruction;

use crate::numeric::format::Round;

/// One register of a warp.
pub type Lanes = [u64; 32];

/// An operation over all lanes: sources, destination.
pub type AluFn = fn(&[&Lanes; 4], &mut Lanes);

/// How an instruction computes its destination from its sources.
pub struct Form {
    /// The function.
    pub function: AluFn,
    /// Type of the destination.
    pub destination: Modifier,
    /// Types of the sources.
    pub sources: Vec<Modifier>,
    /// The constant in the fourth source, where fewer than four are used.
    pub flags: Flags,
}

impl Form {
    fn new(function: AluFn, destination: Modifier, sources: &[Modifier]) -> Option<Form> {
        Some(Form { function, destination, sources: sources.to_vec(), flags: Flags(0) })
    }

    fn flagged(self, flags: Flags) -> Form {
        Form { flags, ..self }
    }
}

/// Modifiers that an [`AluFn`] reads from its fourth source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u64);

impl Flags {
    const FTZ: u64 = 1;
    const SAT: u64 = 2;
    const RELU: u64 = 4;
    const NAN: u64 = 8;
    const XORSIGN_ABS: u64 = 16;
    const MAX: u64 = 32;
    const FINITE: u64 = 64;
    const INTEGRAL: u64 = 128;
    const ROUND_SHIFT: u32 = 8;
    const SOURCE_SHIFT: u32 = 16;
    const DESTINATION_SHIFT: u32 = 24;

    fn of(instruction: &Instruction) -> Flags {
        use Modifier::*;
        let mut bits = 0;
        let mut set = |modifier, flag| {
            if instruction.has(modifier) {
                bits |= flag;
            }
        };
        set(Ftz, Flags::FTZ);
        set(Sat, Flags::SAT);
        set(Relu, Flags::RELU);
        set(Nan, Flags::NAN);
        set(Xorsign, Flags::XORSIGN_ABS);
        set(Satfinite, Flags::FINITE);
        let (round, integral) = match instruction.one_of(&[Rn, Rz, Rm, Rp, Rna, Rni, Rzi, Rmi, Rpi]) {
            Some(Rz) => (Round::Zero, false),
            Some(Rm) => (Round::Down, false),
            Some(Rp) => (Round::Up, false),
            Some(Rna) => (Round::Away, false),
            Some(Rni) => (Round::Nearest, true),
            Some(Rzi) => (Round::Zero, true),
            Some(Rmi) => (Round::Down, true),
            Some(Rpi) => (Round::Up, true),
            _ => (Round::Nearest, false),
        };
        if integral {
            bits |= Flags::INTEGRAL;
        }
        Flags(bits | (round as u64) << Flags::ROUND_SHIFT)
    }

    fn with(self, flag: u64) -> Flags {
        Flags(self.0 | flag)
    }

    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    fn round(self) -> Round {
        match self.0 >> Flags::ROUND_SHIFT & 0xff {
            1 => Round::Zero,
            2 => Round::Down,
            3 => Round::Up,
            4 => Round::Away,
            _ => Round::Nearest,
        }
    }
}

macro_rules! f1 {
    (|$a:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            for i in 0..32 {
                let $a = s[0][i];
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
    (flags |$g:ident, $a:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            let $g = $crate::alu::Flags(s[3][0]);
            for i in 0..32 {
                let $a = s[0][i];
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
}

macro_rules! f2 {
    (|$a:ident, $b:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            for i in 0..32 {
                let ($a, $b) = (s[0][i], s[1][i]);
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
    (flags |$g:ident, $a:ident, $b:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            let $g = $crate::alu::Flags(s[3][0]);
            for i in 0..32 {
                let ($a, $b) = (s[0][i], s[1][i]);
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
}

macro_rules! f3 {
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            for i in 0..32 {
                let ($a, $b, $c) = (s[0][i], s[1][i], s[2][i]);
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
    (flags |$g:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            let $g = $crate::alu::Flags(s[3][0]);
            for i in 0..32 {
                let ($a, $b, $c) = (s[0][i], s[1][i], s[2][i]);
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
}

macro_rules! f4 {
    (|$a:ident, $b:ident, $c:ident, $d:ident| $e:expr) => {{
        fn over_lanes(s: &[&$crate::alu::Lanes; 4], o: &mut $crate::alu::Lanes) {
            for i in 0..32 {
                let ($a, $b, $c, $d) = (s[0][i], s[1][i], s[2][i], s[3][i]);
                o[i] = $e;
            }
        }
        over_lanes as $crate::alu::AluFn
    }};
}

pub(crate) use {f1, f2, f3, f4};

/// The form of an instruction whose only effect is one destination; `None` for every other instruction, and for
/// forms that are not executed.
pub fn form(instruction: &Instruction) -> Option<Form> {
    use Opcode::*;
    match instruction.opcode {
        Add | Sub | Mul | Mad | Fma | Div | Abs | Neg | Min | Max => {
            let mixed = integer::form(instruction).or_else(|| mixed::form(instruction));
            mixed.or_else(|| float::form(instruction)).or_else(|| half::form(instruction))
        }
        Rem | Sad | Dp4a | Dp2a | Mul24 | Addc | Subc | Madc => integer::form(instruction),
        Rcp | Sqrt | Rsqrt | Lg2 | Sin | Cos | Copysign | Testp => float::form(instruction),
        Ex2 | Tanh => float::form(instruction).or_else(|| half::form(instruction)),
        And | Or | Xor | Not | Cnot | Shl | Shr | Shf | Lop3 | Prmt | Bfe | Bfi | Bfind | Brev | Clz | Popc => {
            bits::form(instruction)
        }
        Setp | Set | Selp | Slct => compare::form(instruction),
        Cvt | CvtPack => convert::form(instruction),
        _ => None,
    }
}

/// Sign-extends the low `bits` bits.
pub fn sign_extend(bits: u32) -> AluFn {
    match bits {
        8 => f1!(|a| a as i8 as i64 as u64),
        16 => f1!(|a| a as i16 as i64 as u64),
        _ => f1!(|a| a as i32 as i64 as u64),
    }
}

/// Keeps the low `bits` bits.
pub fn zero_extend(bits: u32) -> AluFn {
    match bits {
        1 => f1!(|a| a & 1),
        8 => f1!(|a| a as u8 as u64),
        16 => f1!(|a| a as u16 as u64),
        32 => f1!(|a| a as u32 as u64),
        _ => f1!(|a| a),
    }
}

/// `a` or, in lanes where it is 0, 1: the negation of a predicate.
pub fn negate_predicate() -> AluFn {
    f1!(|a| (a & 1) ^ 1)
}
