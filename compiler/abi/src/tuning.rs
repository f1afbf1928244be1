//! The configurations in `@triton.autotune` and `@triton.heuristics` of a kernel, evaluated for the arguments of a
//! launch.
//!
//! Plain data between the semantic analysis, which reads it from the source, and the autotuner.
//! [`Choice::apply`] turns a specialization that leaves the tuned parameters out into that of one configuration.
//!
//! ```
//! use rtc_abi::spec::{ArgKind, ConstValue, LaunchOptions, Specialization};
//! use rtc_abi::tuning::Choice;
//! let choice = Choice {
//!     values: vec![("BLOCK".into(), ConstValue::Int(512))],
//!     options: vec![("num_warps".into(), 8)],
//!     ..Choice::default()
//! };
//! let mut spec = Specialization { kernel: "add".into(), args: vec![], options: LaunchOptions::default() };
//! choice.apply(&mut spec.args, &mut spec.options);
//! assert_eq!(spec.arg("BLOCK").unwrap().kind, ArgKind::Constexpr(ConstValue::Int(512)));
//! assert_eq!(spec.options.num_warps, 8);
//! assert_eq!(choice.value("BLOCK"), Some(&ConstValue::Int(512)));
//! assert_eq!(choice.to_string(), "BLOCK=512 num_warps=8");
//! ```

use crate::DType;
use crate::spec::{ArgKind, ArgSpec, ConstValue, LaunchOptions};
use std::fmt;

/// An argument of a launch, as functions of the host see it.
///
/// ```
/// use rtc_abi::{DType, tuning::HostValue};
/// let x = HostValue::Tensor { dtype: DType::Fp32, shape: Some(vec![1024, 1024]) };
/// assert_ne!(x, HostValue::Unknown);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum HostValue {
    /// A number, string, bool, None, dtype, function or tuple of them.
    Value(ConstValue),
    /// A tensor.
    Tensor {
        /// The value.
        dtype: DType,
        /// Its sizes, outermost first, where they are known.
        shape: Option<Vec<u64>>,
    },
    /// A tensor descriptor made by the host.
    Descriptor {
        /// The element type of the tensor.
        dtype: DType,
        /// Its sizes, outermost first, where they are known.
        shape: Option<Vec<u64>>,
        /// The block that one access moves, before hooks.
        block_shape: Vec<u32>,
    },
    /// An unknown number, such as an argument of a kernel that is compiled without a launch.
    Unknown,
}

/// The contents of the decorators above a kernel.
///
/// ```
/// use rtc_abi::tuning::{Choice, Tuning};
/// let choice = Choice { options: vec![("num_warps".into(), 8)], ..Choice::default() };
/// let tuning = Tuning { choices: vec![choice], is_tuned: true, written: 1, key: vec!["n".into()], ..Tuning::default() };
/// assert_eq!(tuning.choices[0].option("num_warps"), Some(8));
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Tuning {
    /// The configurations that are left after `prune_configs_by`, in the order of the source or, with a `perf_model`, the
    /// fastest first. A kernel with heuristics alone has one.
    pub choices: Vec<Choice>,
    /// Whether there is an `autotune`, even with one configuration.
    pub is_tuned: bool,
    /// How many configurations the source has.
    pub written: usize,
    /// The arguments whose values decide which configuration is the best.
    pub key: Vec<String>,
    /// Tensors that are zeroed before each run, those of `pre_hook` included.
    pub reset_to_zero: Vec<String>,
    /// Tensors whose content is put back after each run.
    pub restore_value: Vec<String>,
    /// Milliseconds of warm-up, where the source says so.
    pub warmup: Option<f64>,
    /// Milliseconds of measurement, where the source says so.
    pub rep: Option<f64>,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Choice {
    /// Values of constexpr parameters: those of the configuration, then those of heuristics.
    pub values: Vec<(String, ConstValue)>,
    /// Launch options: `num_warps`, `num_stages`, `num_ctas`, `maxnreg`.
    pub options: Vec<(String, u32)>,
    /// Tensors that the `pre_hook` of this configuration zeroes before every launch.
    pub zeroed: Vec<String>,
    /// The blocks that the `pre_hook` of this configuration gives to tensor descriptors.
    pub blocks: Vec<(String, Vec<u32>)>,
    /// The time that the source's `perf_model` expects.
    pub expected: Option<f64>,
}

impl Choice {
    /// Sets the parameters and options that the configuration has a say in.
    pub fn apply(&self, args: &mut Vec<ArgSpec>, options: &mut LaunchOptions) {
        for (name, value) in &self.values {
            let kind = ArgKind::Constexpr(value.clone());
            match args.iter_mut().find(|arg| arg.name == *name) {
                Some(arg) => arg.kind = kind,
                None => args.push(ArgSpec { name: name.clone(), kind }),
            }
        }
        for (name, block) in &self.blocks {
            let own = args.iter_mut().find(|arg| arg.name == *name).map(|arg| &mut arg.kind);
            if let Some(ArgKind::Descriptor { block_shape, .. }) = own {
                block_shape.clone_from(block);
            }
        }
        for (name, value) in &self.options {
            match name.as_str() {
                "num_warps" => options.num_warps = *value,
                "num_stages" => options.num_stages = *value,
                "num_ctas" => options.num_ctas = *value,
                "maxnreg" => options.maxnreg = Some(*value),
                _ => {}
            }
        }
    }

    /// The value of a parameter.
    pub fn value(&self, name: &str) -> Option<&ConstValue> {
        self.values.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The value of a launch option.
    pub fn option(&self, name: &str) -> Option<u32> {
        self.options.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }
}

/// `BLOCK_M=128 num_warps=8`.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.iter().map(|(name, value)| format!("{name}={value}"));
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        f.write_str(&values.chain(options).collect::<Vec<_>>().join(" "))
    }
}
