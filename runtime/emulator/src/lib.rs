//! Executes PTX on the CPU: an independent judge of compiled kernels, and the device of machines without a GPU.
//!
//! It depends on PTX only. Warps run in lock step with divergence; shared memory, barriers, shuffles, atomics, matrix
//! instructions and asynchronous copies follow the PTX manual; narrow floating-point formats round like hardware.
//! Accesses outside allocations, misaligned ones, divergent barriers and deadlocks are faults with kernel, block,
//! thread, PTX line and, through `.loc`, the source line. An address that overflowed in 32 bits is a finding.
//!
//! Asynchronous instructions (`cp.async`, mbarriers, bulk and tensor copies, `wgmma`) execute as late as PTX allows, or
//! with [`Schedule::Random`] at random moments. Programs with such instructions are checked: memory or registers used
//! before a wait, buffers reused too early, missing fences, barriers that cannot complete, and accesses of shared
//! memory by two warps without a barrier are faults, regardless of the schedule. Tensor maps are passed as
//! [`tensor_map::TensorMap`].
//!
//! ```
//! use rtc_emulator::{LaunchConfig, Memory, Program};
//! let ptx = "
//! .version 8.3
//! .target sm_80
//! .address_size 64
//! .visible .entry square(.param .u64 x) {
//!     .reg .b32 %r<3>;
//!     .reg .b64 %rd<4>;
//!     ld.param.b64 %rd1, [x];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     mul.lo.s32 %r2, %r1, %r1;
//!     st.global.b32 [%rd3], %r2;
//!     ret;
//! }";
//! let program = Program::load(ptx).expect("legal PTX");
//! let mut memory = Memory::new();
//! let x = memory.alloc(32 * 4, 16, "x");
//! let params = x.to_le_bytes();
//! let config = LaunchConfig { params: &params, ..LaunchConfig::new("square") };
//! program.launch(&mut memory, &config).expect("no fault");
//! assert_eq!(memory.read(x + 4 * 7, 4).expect("in bounds"), 49u32.to_le_bytes());
//! ```

mod alu;
mod code;
pub mod counters;
mod decode;
mod exec;
pub mod fault;
pub mod finding;
pub mod launch;
pub mod memory;
mod numeric;
mod program;
pub mod sanitize;
pub mod tensor_map;
pub mod timeline;

pub use fault::{Access, AccessError, Fault, FaultKind, Near, Site, SourceLocation, Space};
pub use finding::{Finding, FindingKind};
pub use launch::{LaunchConfig, LaunchReport, Schedule};
pub use memory::Memory;
pub use program::{LoadError, Program};
