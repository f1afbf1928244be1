//! A specialization: the types or values of a kernel's arguments and the launch options.
//!
//! Plain data between the requester of a kernel (command line, SPEC.json, an embedding program) and the semantic
//! analysis. Reading it from JSON or from a signature string is part of the crate `rtc-program`.
//!
//! Invariants: argument names are unique; a constexpr holds a Python-level value, never a run-time type; only pointers
//! and integers have `divisible_by`.
//!
//! ```
//! use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue, LaunchOptions, Specialization};
//! use rtc_abi::{DType, ValueType};
//! let spec = Specialization {
//!     kernel: "copy".into(),
//!     args: vec![
//!         ArgSpec::value("x", ValueType::parse("*fp32").unwrap(), Some(16)),
//!         ArgSpec::constexpr("BLOCK", ConstValue::Int(1024)),
//!     ],
//!     options: LaunchOptions::default(),
//! };
//! assert_eq!(spec.arg("x").unwrap().kind.to_string(), "*fp32:16");
//! assert!(matches!(spec.args[0].kind, ArgKind::Value { ty: ValueType::Pointer { pointee: DType::Fp32, .. }, .. }));
//! ```

pub use crate::{DType, Plan, Structure, ValueType};
use std::fmt;

/// One instance of a kernel: its name, its arguments, and its launch options.
#[derive(Clone, Debug, PartialEq)]
pub struct Specialization {
    /// Name of the kernel function.
    pub kernel: String,
    /// Arguments by name, in the order given; parameters that are absent take their default.
    pub args: Vec<ArgSpec>,
    /// Launch options.
    pub options: LaunchOptions,
}

impl Specialization {
    /// The argument of that name.
    pub fn arg(&self, name: &str) -> Option<&ArgSpec> {
        self.args.iter().find(|a| a.name == name)
    }
}

/// The compile-time knowledge about one argument.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgSpec {
    /// Name of the parameter.
    pub name: String,
    /// Its type or value.
    pub kind: ArgKind,
}

impl ArgSpec {
    /// A run-time value.
    pub fn value(name: impl Into<String>, ty: ValueType, divisible_by: Option<u32>) -> ArgSpec {
        ArgSpec { name: name.into(), kind: ArgKind::Value { ty, divisible_by } }
    }

    /// A compile-time constant.
    pub fn constexpr(name: impl Into<String>, value: ConstValue) -> ArgSpec {
        ArgSpec { name: name.into(), kind: ArgKind::Constexpr(value) }
    }
}

/// Type or value of an argument or of an element of a tuple argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgKind {
    /// A scalar or pointer known only at launch.
    Value {
        /// Its type.
        ty: ValueType,
        /// A factor that the integer, or the address in bytes, is known to have.
        divisible_by: Option<u32>,
    },
    /// A compile-time constant.
    Constexpr(ConstValue),
    /// A tuple, element by element; `fields` names the elements of a named tuple.
    Tuple {
        /// The elements.
        items: Vec<ArgKind>,
        /// One name per element, or none.
        fields: Option<Vec<String>>,
    },
    /// A tensor descriptor made by the host.
    Descriptor {
        /// Element type.
        element: DType,
        /// Shape of the block that one access moves, outermost first.
        block_shape: Vec<u32>,
    },
}

/// A value of the Python level.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstValue {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// `True` or `False`.
    Bool(bool),
    /// A string.
    Str(String),
    /// `None`.
    None,
    /// A tuple or list; `fields` names the elements of a named tuple.
    Tuple {
        /// The elements.
        items: Vec<ConstValue>,
        /// One name per element, or none.
        fields: Option<Vec<String>>,
    },
    /// A dtype, or a pointer type as a value.
    DType(ValueType),
    /// A function of the source file, by name.
    Function(String),
    /// A host object that means nothing to a kernel, by its printed form; any use of it is an error.
    Opaque(String),
}

macro_rules! constant_from {
    ($($ty:ty => $variant:ident;)*) => {
        $(impl From<$ty> for ConstValue {
            fn from(value: $ty) -> ConstValue {
                ConstValue::$variant(value.into())
            }
        })*
    };
}

constant_from! {
    i32 => Int;
    u32 => Int;
    i64 => Int;
    u64 => Int;
    f32 => Float;
    f64 => Float;
    bool => Bool;
    &str => Str;
    DType => DType;
}

/// How a kernel is launched and compiled, as far as the launch decides it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct LaunchOptions {
    /// Warps that compute; a power of two.
    pub num_warps: u32,
    /// Depth of software pipelines.
    pub num_stages: u32,
    /// Blocks of a cluster.
    pub num_ctas: u32,
    /// Upper bound of registers per thread.
    pub maxnreg: Option<u32>,
    /// `a * b + c` may become one operation.
    pub enable_fp_fusion: bool,
    /// All blocks run at once.
    pub launch_cooperative_grid: bool,
    /// Programmatic dependent launch.
    pub launch_pdl: bool,
    /// Launches may start while previous ones on the stream end, for whose results they wait (from sm_90 on). A kernel
    /// with an explicit wait is left alone.
    pub overlap_launches: bool,
    /// `device_assert` and overflow checks are active.
    pub debug: bool,
    /// With `debug`: check integer arithmetic for overflow.
    pub sanitize_overflow: bool,
    /// Debuggers are given the variables of the kernel. NVIDIA's assembler does not optimize such code.
    pub debug_info: bool,
    /// Library functions flush denormals.
    pub enable_reflect_ftz: bool,
    /// Input precision of a `dot` that names none.
    pub default_dot_input_precision: String,
    /// Input precisions that `dot` accepts.
    pub allowed_dot_input_precisions: Vec<String>,
    /// Products that an fp8 `dot` may sum in reduced precision; `None`: the target's default.
    pub max_num_imprecise_acc_default: Option<u32>,
    /// Whether the warps of a kernel may be divided into some that copy and some that compute, and its blocks loop over
    /// programs, where that is faster.
    pub warp_specialize: bool,
    /// How products in loops get their operands.
    pub structure: Structure,
    /// Decisions about the schedule that are given.
    #[serde(skip_serializing_if = "is_open")]
    pub plan: Plan,
    /// PTX version, `87` for 8.7; `None`: what the target needs.
    pub ptx_version: Option<u32>,
    /// The most instructions of a thread, as estimated before they are made: longer kernels are refused.
    pub max_instructions: u64,
    /// Of how many blocks the warps record when they come to copies, waits and dots ([`crate::records`]); 0: no record.
    #[serde(skip_serializing_if = "is_zero")]
    pub instrument: u32,
}

fn is_open(plan: &Plan) -> bool {
    *plan == Plan::default()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The limit of [`LaunchOptions::max_instructions`] where none is given. How long such a kernel takes to compile is said
/// in `rtc_passes::place::limit_size`.
///
/// ```
/// use rtc_abi::spec::{LaunchOptions, MAX_INSTRUCTIONS};
/// assert_eq!(LaunchOptions::default().max_instructions, MAX_INSTRUCTIONS);
/// ```
pub const MAX_INSTRUCTIONS: u64 = 500_000;

impl Default for LaunchOptions {
    fn default() -> LaunchOptions {
        LaunchOptions {
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            maxnreg: None,
            enable_fp_fusion: true,
            launch_cooperative_grid: false,
            launch_pdl: false,
            overlap_launches: true,
            debug: false,
            sanitize_overflow: true,
            debug_info: false,
            enable_reflect_ftz: true,
            default_dot_input_precision: "tf32".into(),
            allowed_dot_input_precisions: ["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"].map(String::from).into(),
            max_num_imprecise_acc_default: None,
            warp_specialize: true,
            structure: Structure::Auto,
            plan: Plan::default(),
            ptx_version: None,
            max_instructions: MAX_INSTRUCTIONS,
            instrument: 0,
        }
    }
}

impl fmt::Display for ArgKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgKind::Value { ty, divisible_by: Some(n) } => write!(f, "{ty}:{n}"),
            ArgKind::Value { ty, divisible_by: None } => write!(f, "{ty}"),
            ArgKind::Constexpr(value) => write!(f, "{value}"),
            ArgKind::Tuple { items, fields } => write_tuple(f, items, fields.as_deref()),
            ArgKind::Descriptor { element, block_shape } => {
                let shape: Vec<String> = block_shape.iter().map(u32::to_string).collect();
                write!(f, "tensordesc<{element}[{}]>", shape.join(","))
            }
        }
    }
}

/// Python's spelling of the value.
impl fmt::Display for ConstValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConstValue::Int(v) => write!(f, "{v}"),
            ConstValue::Float(v) if v.is_nan() => f.write_str("float(\"nan\")"),
            ConstValue::Float(v) if v.is_infinite() => {
                f.write_str(if *v > 0.0 { "float(\"inf\")" } else { "float(\"-inf\")" })
            }
            ConstValue::Float(v) => write!(f, "{v:?}"),
            ConstValue::Bool(v) => f.write_str(if *v { "True" } else { "False" }),
            ConstValue::Str(v) => write!(f, "{v:?}"),
            ConstValue::None => f.write_str("None"),
            ConstValue::Tuple { items, fields } => write_tuple(f, items, fields.as_deref()),
            ConstValue::DType(ty) => write!(f, "{ty}"),
            ConstValue::Function(name) => f.write_str(name),
            ConstValue::Opaque(text) => write!(f, "<{text}>"),
        }
    }
}

fn write_tuple<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T], fields: Option<&[String]>) -> fmt::Result {
    f.write_str("(")?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        if let Some(name) = fields.and_then(|names| names.get(i)) {
            write!(f, "{name}=")?;
        }
        write!(f, "{item}")?;
    }
    f.write_str(if items.len() == 1 { ",)" } else { ")" })
}
