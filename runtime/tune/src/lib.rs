//! The autotuner: finds the fastest configuration of a kernel for the arguments of a launch.
//!
//! A [`Tuner`] reads the configurations that the source names (`@triton.autotune`, `@triton.heuristics`), drops those that
//! cannot run, puts the others in order by a cost model, compiles them in parallel and times them on the GPU by
//! successive halving. Results are kept in a cache by device, kernel and key, and written to `tuned.json`. Without a GPU the
//! cost model alone decides.
//!
//! | file | holds |
//! | --- | --- |
//! | `tuner.rs` | [`Tuner`]: the order of steps |
//! | `grid.rs` | [`Grid`]: programs of a configuration |
//! | `candidate.rs`, `space.rs` | configurations, and those beyond the ones that are written |
//! | `machine.rs`, `model.rs` | what a GPU has, and the cost model |
//! | `parallel.rs`, `load.rs` | all processors, with a progress bar; compiling and loading |
//! | `halving.rs` | successive halving over a [`halving::Timer`] |
//! | `device_timer.rs` | the timer of a device: events, L2 flushed, the user's tensors put back |
//! | `team.rs` | several devices as one timer |
//! | `finals.rs` | the last comparison: the fastest on one device, as launches get them |
//! | `tuned.rs`, `store.rs` | results as a file and in the cache |
//! | `report.rs`, `plot.rs` | what came out: a table, an SVG |

mod candidate;
mod device_timer;
mod error;
mod finals;
mod grid;
pub mod halving;
mod load;
mod machine;
pub mod model;
mod parallel;
mod plot;
mod report;
mod space;
mod store;
mod team;
mod tuned;
mod tuner;

pub use candidate::Candidate;
pub use error::Error;
pub use grid::Grid;
pub use machine::Machine;
pub use report::{Decision, Phases, Report};
pub use tuned::{Entry, Record, Setting, Tuned};
pub use tuner::Tuner;
