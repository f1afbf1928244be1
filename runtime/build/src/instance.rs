//! What is compiled of one kernel: a signature, and the values and specializations that are declared for it.

use rtc_abi::spec::LaunchOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One kernel for one signature, and for the finitely many specializations that are declared: nothing else is ever compiled.
///
/// ```
/// use rtc_build::Instance;
/// Instance::new("add_kernel", "*{T}, *{T}, *{T}, i32")
///     .types("T", ["fp32", "fp16"])         // add_kernel::<f32, ..>, add_kernel::<f16, ..>
///     .values("BLOCK", ["256", "1024"])     // add_kernel::<.., 256>, add_kernel::<.., 1024>
///     .specialize("x_ptr:16, y_ptr:16, out_ptr:16, n:16"); // taken by each launch in which that holds
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub(crate) kernel: String,
    pub(crate) signature: String,
    pub(crate) name: Option<String>,
    pub(crate) options: LaunchOptions,
    #[serde(default)]
    pub(crate) types: Vec<Choice>,
    #[serde(default)]
    pub(crate) values: Vec<Choice>,
    #[serde(default)]
    pub(crate) specializations: Vec<Special>,
    #[serde(default)]
    pub(crate) tuned: Vec<PathBuf>,
}

/// A name and what may stand for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) name: String,
    pub(crate) options: Vec<String>,
}

/// A specialization, and the condition under which a launch takes it beside what it promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Special {
    pub(crate) condition: Option<String>,
    pub(crate) what: String,
}

impl Instance {
    /// The kernel of that name with arguments as the signature says.
    pub fn new(kernel: impl Into<String>, signature: impl Into<String>) -> Instance {
        Instance {
            kernel: kernel.into(),
            signature: signature.into(),
            name: None,
            options: LaunchOptions::default(),
            types: Vec::new(),
            values: Vec::new(),
            specializations: Vec::new(),
            tuned: Vec::new(),
        }
    }

    /// The name of the Rust function; that of the kernel by default. Two instances of one kernel need it.
    pub fn named(mut self, name: impl Into<String>) -> Instance {
        self.name = Some(name.into());
        self
    }

    /// Element types for which the kernel is compiled: `{name}` stands for them in the signature. The Rust function is
    /// generic over the element type, and takes these alone.
    pub fn types<T: Into<String>>(mut self, name: impl Into<String>, types: impl IntoIterator<Item = T>) -> Instance {
        self.types.push(Choice { name: name.into(), options: types.into_iter().map(Into::into).collect() });
        self
    }

    /// Values of a constexpr for which the kernel is compiled. Integers and truth values become a const generic of the Rust
    /// function, which takes these values alone; others (`"gelu"`, `None`, `relu`, `tl.float16`) an enum.
    pub fn values<T: Into<String>>(
        mut self,
        param: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Instance {
        self.values.push(Choice { name: param.into(), options: values.into_iter().map(Into::into).collect() });
        self
    }

    /// Also compiles it for arguments of which more is known: `x_ptr:16, n:16` for addresses and numbers that are multiples of
    /// 16, `stride:1` for a number that is 1. A launch takes the first specialization, in the order in which they are
    /// declared, whose promises its arguments keep, and the signature itself if there is none.
    pub fn specialize(mut self, promises: impl Into<String>) -> Instance {
        self.specializations.push(Special { condition: None, what: promises.into() });
        self
    }

    /// Also compiles it in a configuration that launches take under a condition on their integer arguments, such as
    /// `"n >= 4096"`: `"BLOCK=2048, num_warps=8"`. The grid of the launch is then a function of the configuration.
    ///
    /// ```
    /// use rtc_build::Instance;
    /// Instance::new("add_kernel", "*fp32, *fp32, *fp32, i32, BLOCK=1024").configure("n >= 1000000", "BLOCK=4096, num_warps=8");
    /// ```
    pub fn configure(mut self, condition: impl Into<String>, configuration: impl Into<String>) -> Instance {
        self.specializations.push(Special { condition: Some(condition.into()), what: configuration.into() });
        self
    }

    /// Also compiles it in the configurations that `rtc tune -o FILE` found the fastest: each for its target, and for launches
    /// whose arguments are those of its key and keep the promises that it was tuned with. Other launches take the signature,
    /// in which parameters that the results set may be left out: those of the first result count then. The grid of the
    /// launch is a function of the configuration.
    ///
    /// ```
    /// use rtc_build::Instance;
    /// Instance::new("matmul", "*fp16:16, *fp16:16, *fp16:16, i32, i32, i32").tuned("tuned.json");
    /// ```
    pub fn tuned(mut self, file: impl Into<PathBuf>) -> Instance {
        self.tuned.push(file.into());
        self
    }

    /// Warps per program.
    ///
    /// ```
    /// use rtc_build::{Instance, LaunchOptions};
    /// let matmul = Instance::new("matmul", "*fp16, *fp16, *fp16, i32, i32, i32").num_warps(8).num_stages(4);
    /// assert_eq!(matmul.clone().max_instructions(100_000), matmul.options(LaunchOptions {
    ///     num_warps: 8,
    ///     num_stages: 4,
    ///     max_instructions: 100_000,
    ///     ..LaunchOptions::default()
    /// }));
    /// ```
    pub fn num_warps(mut self, num_warps: u32) -> Instance {
        self.options.num_warps = num_warps;
        self
    }

    /// Depth of software pipelines.
    pub fn num_stages(mut self, num_stages: u32) -> Instance {
        self.options.num_stages = num_stages;
        self
    }

    /// The most instructions of a thread, as estimated: a longer kernel is refused.
    pub fn max_instructions(mut self, max_instructions: u64) -> Instance {
        self.options.max_instructions = max_instructions;
        self
    }

    /// All launch options.
    pub fn options(mut self, options: LaunchOptions) -> Instance {
        self.options = options;
        self
    }
}
