//! The autotuner: finds the fastest configuration of a kernel for the arguments of a launch.
//!
//! A [`Tuner`] reads the configurations that the source names (`@triton.autotune`, `@triton.heuristics`), drops those that
//! cannot run, puts the others in order by a cost model, compiles them in parallel and times them on the GPU by
//! successive halving. Results are kept in a cache by device, kernel and key, and written to `tuned.json`. Without a GPU the
//! cost model alone decides.
//!
//! ```
//! // The crates whose types stand in the interface are here in the version that it takes.
//! use rtc_tune::cache::{Cache, CacheConfig};
//! use rtc_tune::compiler::{HostValue, Program, Signature, Source, Spec};
//! use rtc_tune::runtime::{Device, args};
//! use rtc_tune::{Assembler, Decision, GridFn, Tuner};
//! use std::time::Duration;
//! # let directory = std::env::temp_dir().join(format!("rtc-tune-{}", std::process::id()));
//! let text = "@triton.autotune([triton.Config({'B': b}) for b in (32, 128)], key=['n'])\n\
//!             @triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n    \
//!             tl.store(x + i, 1.0, mask=i < n)\n";
//! let program = Program::parse(&[Source::new("fill.rt", text)]);
//! let spec = Spec { args: Signature::parse("*fp32:16, i32:16")?.bind(&["x", "n"])?, ..Spec::default() };
//! let cache = Cache::open(CacheConfig::new(&directory))?;
//! let tuner = Tuner::new(&program, spec)
//!     .argument("n", HostValue::Value(256.into()))
//!     .grid(GridFn::new(["cdiv(n, B)".parse()?, 1.into(), 1.into()]))
//!     .budget(Duration::from_secs(60))
//!     .widen_search() // configurations beyond those of the source, too
//!     .ignore_cached_times() // also those of which the cache has times
//!     .show_progress() // where standard error is a terminal
//!     .cache(&cache)
//!     .allow_untimed_devices(); // here the emulator, whose times say nothing of a GPU
//! let tuner = tuner.assembler(None::<Assembler>); // the PTX as it is
//! assert_eq!(tuner.decorators("sm_90a")?.choices.len(), 2);
//! // SAFETY: the kernel writes `n` elements of `x`, which has as many.
//! let tuner = unsafe { tuner.assume_in_bounds() };
//! let device = Device::emulator();
//! let mut x = device.zeros::<f32>(256)?;
//! let report = tuner.tune(&device, &args![&mut x, 256])?;
//! assert_eq!(report.decision, Decision::Timed);
//! assert!(Tuner::is_alike(&device, &Device::emulator()));
//! println!("{report}");
//! # std::fs::remove_dir_all(directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | `tuner.rs`, `tuner/` | [`Tuner`]: the order of steps, its settings, times of before, compiling ahead |
//! | `grid.rs` | [`GridFn`]: programs of a configuration |
//! | `candidate.rs`, `space.rs` | configurations, and those beyond the ones that are written |
//! | `machine.rs`, `model.rs` | what a GPU has, and the cost model |
//! | `parallel.rs`, `load.rs` | all processors, with a progress bar; compiling and loading |
//! | `halving.rs` | successive halving over a timer |
//! | `device_timer.rs` | the timer of a device: events, L2 flushed, the user's tensors put back |
//! | `counted.rs` | the emulator's counters as a clock |
//! | `team.rs` | several devices as one timer |
//! | `finals.rs` | the last comparison: the fastest on one device, as launches get them |
//! | `tuned.rs`, `store.rs` | results as a file and in the cache |
//! | `shard.rs`, `merge.rs`, `records.rs` | tuning in parts on several machines: a part and its file, all parts together, single times in the cache |
//! | `speed/` | what bounds the speed of one launch, and which change would help most |
//! | `report.rs`, `plot.rs` | what came out: a table, an SVG |
#![warn(clippy::missing_errors_doc)]

mod candidate;
mod counted;
mod device_timer;
mod devices;
mod error;
mod finals;
mod grid;
mod halving;
mod json;
mod load;
mod machine;
mod merge;
pub mod model;
mod parallel;
mod plot;
mod records;
mod report;
mod shard;
mod space;
pub mod speed;
mod store;
mod team;
mod tuned;
mod tuner;

pub use candidate::Candidate;
pub use error::Error;
pub use grid::GridFn;
pub use halving::RunTimes;
pub use machine::Machine;
pub use merge::Merged;
pub use report::{Decision, Phases, TuningReport};
pub use rtc_build::Assembler;
pub use rtc_cache as cache;
pub use rtc_compiler as compiler;
pub use rtc_runtime as runtime;
pub use shard::{Dropped, Shard, ShardFile};
pub use tuned::{Entry, Record, Setting, Tuned};
pub use tuner::Tuner;
