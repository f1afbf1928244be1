//! The kernels whose compilation is measured: those of the examples, and an addition with configurations.

use rtc_compiler::{ArgSpec, Program, Signature, Source, Spec};

/// A kernel and what it is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The computation.
    pub name: &'static str,
    text: &'static str,
    function: &'static str,
    signature: &'static str,
    warps: u32,
}

/// From an addition to attention.
pub const KERNELS: &[Kernel] = &[
    Kernel {
        name: "add",
        text: include_str!("../../examples/vector_add/vector_add.rt"),
        function: "add_kernel",
        signature: "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024",
        warps: 4,
    },
    Kernel {
        name: "softmax",
        text: include_str!("../../examples/softmax/softmax.rt"),
        function: "softmax_kernel",
        signature: "*fp32:16, *fp32:16, i32:16, i32:16, i32:16, i32, 1024, 2",
        warps: 4,
    },
    Kernel {
        name: "matmul",
        text: include_str!("../../examples/matmul/matmul.rt"),
        function: "matmul_kernel",
        signature: "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 1, 128, 128, 64, 8, \
                    ACTIVATION=None",
        warps: 4,
    },
    Kernel {
        name: "attention",
        text: include_str!("../../examples/attention/attention.rt"),
        function: "attention_kernel",
        signature: "*fp16:16, *fp16:16, *fp16:16, *fp16:16, fp32, i32:16, 128, 64, 64",
        warps: 4,
    },
];

impl Kernel {
    /// Its source, read.
    pub fn program(&self) -> Program {
        Program::parse(&[Source::new(format!("{}.rt", self.name), self.text)])
    }

    /// The specialization.
    pub fn spec(&self) -> Spec {
        let program = self.program();
        let params = program.kernel(Some(self.function)).map(|info| info.params.clone()).unwrap_or_default();
        let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
        let args = Signature::parse(self.signature).and_then(|signature| signature.bind(&names));
        let mut spec = Spec {
            kernel: Some(self.function.into()),
            args: args.unwrap_or_else(|error| panic!("{}: {error}", self.name)),
            ..Spec::default()
        };
        spec.options.num_warps = self.warps;
        spec
    }

    /// An addition with twelve configurations.
    pub fn tuned_add() -> &'static str {
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b in (128, 256, 512) for w in (1, 2, 4, 8)], key=['n'])\n\
         @triton.jit\n\
         def add(x, y, out, n, BLOCK: tl.constexpr):\n    \
             i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
             mask = i < n\n    \
             tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)\n"
    }

    /// The arguments of that addition, without those set by its configurations.
    pub fn add_args() -> Vec<ArgSpec> {
        let signature = Signature::parse("*fp32:16, *fp32:16, *fp32:16, i32:16");
        signature.and_then(|s| s.bind(&["x", "y", "out", "n"])).unwrap_or_else(|error| panic!("add: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_fit_their_signatures() {
        for kernel in KERNELS {
            let program = kernel.program();
            assert!(!program.has_errors() && kernel.spec().specialize(&program).is_ok(), "{}", kernel.name);
        }
        assert!(!Program::parse(&[Source::new("add.rt", Kernel::tuned_add())]).has_errors());
        assert_eq!(Kernel::add_args().len(), 4);
    }
}
