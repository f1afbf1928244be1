//! Attribute types of operations and their text form.

use std::fmt;
use std::sync::Arc;

use crate::{Elem, Scalar};

/// An attribute as in the text form.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// A whole number.
    Int(i64),
    /// A float, by its bits.
    Float(u64),
    /// A bare word such as `cg` or `ptr<f32>`.
    Word(String),
    /// A quoted string.
    Str(String),
    /// A bracketed list.
    List(Vec<AttrValue>),
}

/// A type of values in `{name = value}` of an operation.
pub trait Attr: Sized {
    /// Its text form; `None` if it is the default, which is left out.
    fn to_value(&self) -> Option<AttrValue>;
    /// Reads it back; `None` if `value` does not fit.
    fn from_value(value: &AttrValue) -> Option<Self>;
    /// The default; `None` if it must be given.
    fn absent() -> Option<Self> {
        None
    }
}

impl Attr for bool {
    fn to_value(&self) -> Option<AttrValue> {
        self.then(|| AttrValue::Word("true".into()))
    }
    fn from_value(value: &AttrValue) -> Option<bool> {
        match value {
            AttrValue::Word(w) if w == "true" => Some(true),
            AttrValue::Word(w) if w == "false" => Some(false),
            _ => None,
        }
    }
    fn absent() -> Option<bool> {
        Some(false)
    }
}

macro_rules! int_attr {
    ($($ty:ty),*) => {$(
        impl Attr for $ty {
            fn to_value(&self) -> Option<AttrValue> {
                Some(AttrValue::Int(i64::from(*self)))
            }
            fn from_value(value: &AttrValue) -> Option<$ty> {
                match value {
                    AttrValue::Int(i) => <$ty>::try_from(*i).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
int_attr!(u8, u32, i32, i64);

impl<T: Attr> Attr for Option<T> {
    fn to_value(&self) -> Option<AttrValue> {
        self.as_ref().and_then(Attr::to_value)
    }
    fn from_value(value: &AttrValue) -> Option<Option<T>> {
        T::from_value(value).map(Some)
    }
    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: Attr> Attr for Vec<T> {
    fn to_value(&self) -> Option<AttrValue> {
        Some(AttrValue::List(self.iter().filter_map(Attr::to_value).collect()))
    }
    fn from_value(value: &AttrValue) -> Option<Vec<T>> {
        match value {
            AttrValue::List(items) => items.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}

impl Attr for Elem {
    fn to_value(&self) -> Option<AttrValue> {
        Some(AttrValue::Word(self.to_string()))
    }
    fn from_value(value: &AttrValue) -> Option<Elem> {
        match value {
            AttrValue::Word(w) => w.parse().ok(),
            _ => None,
        }
    }
}

/// Text of a message or of inline assembly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text(pub Arc<str>);

impl Attr for Text {
    fn to_value(&self) -> Option<AttrValue> {
        Some(AttrValue::Str(self.0.to_string()))
    }
    fn from_value(value: &AttrValue) -> Option<Text> {
        match value {
            AttrValue::Str(s) => Some(Text(s.as_str().into())),
            _ => None,
        }
    }
}

impl From<&str> for Text {
    fn from(s: &str) -> Text {
        Text(s.into())
    }
}

/// The number of a `constant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// An integer; reduced to the width of the element.
    Int(i64),
    /// A float by the bits of its `f64` form; rounded to the element.
    Float(u64),
}

impl Literal {
    /// A float literal.
    pub fn float(x: f64) -> Literal {
        Literal::Float(x.to_bits())
    }
}

impl Attr for Literal {
    fn to_value(&self) -> Option<AttrValue> {
        Some(match self {
            Literal::Int(i) => AttrValue::Int(*i),
            Literal::Float(bits) => AttrValue::Float(*bits),
        })
    }
    fn from_value(value: &AttrValue) -> Option<Literal> {
        match value {
            AttrValue::Int(i) => Some(Literal::Int(*i)),
            AttrValue::Float(bits) => Some(Literal::Float(*bits)),
            _ => None,
        }
    }
}

macro_rules! word_attr {
    ($(#[doc = $doc:literal])+ $name:ident $(default $default:ident)? { $($(#[doc = $vdoc:literal])+ $variant:ident = $text:literal,)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $vdoc])+ $variant,)*
        }

        impl $name {
            /// Every variant with its word.
            pub const WORDS: &[($name, &'static str)] = &[$(($name::$variant, $text),)*];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $text,)* })
            }
        }

        impl Attr for $name {
            fn to_value(&self) -> Option<AttrValue> {
                $(if *self == $name::$default { return None; })?
                Some(AttrValue::Word(self.to_string()))
            }
            fn from_value(value: &AttrValue) -> Option<$name> {
                match value {
                    AttrValue::Word(w) => $name::WORDS.iter().find(|(_, t)| t == w).map(|(v, _)| *v),
                    _ => None,
                }
            }
            fn absent() -> Option<$name> {
                $(return Some($name::$default);)?
                #[allow(unreachable_code)]
                None
            }
        }
    };
}

word_attr! {
    /// Comparison of two numbers. Float comparisons are ordered (false on NaN) but for `Ne`.
    Predicate {
        /// Equal.
        Eq = "eq",
        /// Not equal; true on NaN.
        Ne = "ne",
        /// Less (signed).
        Lt = "lt",
        /// Less or equal (signed).
        Le = "le",
        /// Greater (signed).
        Gt = "gt",
        /// Greater or equal (signed).
        Ge = "ge",
        /// Less, unsigned; integers only.
        Ult = "ult",
        /// Less or equal, unsigned; integers only.
        Ule = "ule",
        /// Greater, unsigned; integers only.
        Ugt = "ugt",
        /// Greater or equal, unsigned; integers only.
        Uge = "uge",
    }
}

word_attr! {
    /// Rounding of a narrowing float cast.
    Rounding default NearestEven {
        /// To the nearest, ties to even.
        NearestEven = "rtne",
        /// Toward zero.
        TowardZero = "rtz",
    }
}

word_attr! {
    /// Rounding of one operation.
    RoundingMode {
        /// To the nearest, ties to even.
        Nearest = "rn",
        /// Toward zero.
        Zero = "rz",
        /// Toward negative infinity.
        Down = "rd",
        /// Toward positive infinity.
        Up = "ru",
    }
}

word_attr! {
    /// Caching of a load or store.
    CacheModifier default None {
        /// No wish.
        None = "none",
        /// All levels.
        Ca = "ca",
        /// Global level (L2).
        Cg = "cg",
        /// Streaming.
        Cs = "cs",
        /// Do not cache, fetch again.
        Cv = "cv",
        /// Write back.
        Wb = "wb",
        /// Write through.
        Wt = "wt",
    }
}

word_attr! {
    /// Eviction priority of a load or store.
    Eviction default Normal {
        /// No wish.
        Normal = "normal",
        /// Evict first.
        First = "evict_first",
        /// Evict last.
        Last = "evict_last",
    }
}

word_attr! {
    /// Memory order of an atomic operation.
    MemSemantic {
        /// No order.
        Relaxed = "relaxed",
        /// Acquire.
        Acquire = "acquire",
        /// Release.
        Release = "release",
        /// Acquire and release.
        AcqRel = "acq_rel",
    }
}

word_attr! {
    /// Who sees the order of an atomic operation.
    MemScope {
        /// The block.
        Cta = "cta",
        /// The device.
        Gpu = "gpu",
        /// The system.
        Sys = "sys",
    }
}

word_attr! {
    /// The operation of an atomic read-modify-write.
    RmwOp {
        /// Integer sum.
        Add = "add",
        /// Float sum.
        FAdd = "fadd",
        /// Maximum of 16-bit floats; a NaN loses to a number.
        FMax = "fmax",
        /// Minimum of 16-bit floats; a NaN loses to a number.
        FMin = "fmin",
        /// Signed maximum.
        Max = "max",
        /// Signed minimum.
        Min = "min",
        /// Unsigned maximum.
        UMax = "umax",
        /// Unsigned minimum.
        UMin = "umin",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Exchange.
        Xchg = "xchg",
    }
}

word_attr! {
    /// The value of a load through a block pointer for elements outside of the tensor.
    Padding default Unspecified {
        /// Nothing is said; they are 0.
        Unspecified = "unspecified",
        /// 0.
        Zero = "zero",
        /// NaN.
        Nan = "nan",
    }
}

word_attr! {
    /// How fp32 operands of a `dot` are multiplied. Sema writes the split forms out, so passes see only these two.
    Precision default Tf32 {
        /// Tensor cores on the upper 19 bits.
        Tf32 = "tf32",
        /// Fused FMAs in fp32.
        Ieee = "ieee",
    }
}

word_attr! {
    /// The machine form of a `dot`, chosen by `accelerate_dot`.
    DotKind default Unset {
        /// Not chosen yet.
        Unset = "unset",
        /// Fused FMAs in each thread, operands whole in registers.
        Fma = "fma",
        /// Fused FMAs in each thread, in a loop that loads the operands from shared memory.
        FmaShared = "fma_shared",
        /// `mma.sync` m8n8k4 or m16n8k4 on `f64`, in a loop that loads the operands from shared memory.
        MmaF64 = "mma_f64",
        /// `mma.sync` m16n8kX.
        MmaV2 = "mma_v2",
        /// `wgmma`: `stage_operands` puts the operands into shared memory and makes it an `mma`.
        Wgmma = "wgmma",
    }
}

word_attr! {
    /// The fact that a `hint` states, per dimension.
    HintKind {
        /// The first of each contiguous run is a multiple of this.
        MultipleOf = "multiple_of",
        /// Runs of this many consecutive values.
        MaxContiguous = "max_contiguous",
        /// Runs of this many equal values.
        MaxConstancy = "max_constancy",
    }
}

/// Wishes for a loop; none changes results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct LoopHints {
    /// Depth of software pipelining.
    pub num_stages: Option<u32>,
    /// Unroll factor.
    pub unroll: Option<u32>,
    /// Keep loop-invariant operations inside.
    pub disable_licm: bool,
    /// Slots of the rings that the loop copies its operands into, set by `stage_operands` and `schedule_loop`: with more
    /// than one, `expand_loop` is to begin the copies of an iteration ahead of time.
    pub slots: Option<u32>,
    /// By how many iterations, set by `schedule_loop`; without `slots` it is loads into registers that are issued ahead.
    pub ahead: Option<u32>,
    /// How many `wgmma` dots are then in flight from one iteration to the next, set by `schedule_loop`.
    pub pending: Option<u32>,
}

impl Attr for LoopHints {
    fn to_value(&self) -> Option<AttrValue> {
        let mut words = Vec::new();
        let mut push = |name: &str, value: i64| {
            words.push(AttrValue::List(vec![AttrValue::Word(name.into()), AttrValue::Int(value)]))
        };
        if let Some(n) = self.num_stages {
            push("num_stages", n.into());
        }
        if let Some(n) = self.unroll {
            push("unroll", n.into());
        }
        for (name, count) in [("slots", self.slots), ("ahead", self.ahead), ("pending", self.pending)] {
            if let Some(n) = count {
                push(name, n.into());
            }
        }
        if self.disable_licm {
            push("disable_licm", 1);
        }
        (!words.is_empty()).then_some(AttrValue::List(words))
    }
    fn from_value(value: &AttrValue) -> Option<LoopHints> {
        let AttrValue::List(items) = value else { return None };
        let mut hints = LoopHints::default();
        for item in items {
            let AttrValue::List(pair) = item else { return None };
            let [AttrValue::Word(name), AttrValue::Int(n)] = pair.as_slice() else { return None };
            let count = u32::try_from(*n).ok();
            match name.as_str() {
                "num_stages" => hints.num_stages = count,
                "unroll" => hints.unroll = count,
                "slots" => hints.slots = count,
                "ahead" => hints.ahead = count,
                "pending" => hints.pending = count,
                "disable_licm" => hints.disable_licm = true,
                _ => return None,
            }
        }
        Some(hints)
    }
    fn absent() -> Option<LoopHints> {
        Some(LoopHints::default())
    }
}

impl Literal {
    /// The bits of the literal as an element of type `scalar`.
    pub fn bits(self, scalar: Scalar) -> u64 {
        crate::ops::eval::literal_bits(self, scalar)
    }
}
