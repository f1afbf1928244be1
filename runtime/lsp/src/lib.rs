//! The language server of `rtc`.
//!
//! [`Session`] is the logic: the open files, and the answers about them in the types of the protocol. It has no threads and
//! reads files only through [`Files`], so that other programs can use it, too. [`serve`] is the server on standard input and
//! output (feature `server`).
//!
//! | file | content |
//! | --- | --- |
//! | `session.rs` | the open files, and those that they import |
//! | `analysis.rs` | the analysis of a file, kernel by kernel |
//! | `specialize.rs`, `assume.rs` | the types and sizes that a kernel is analysed for |
//! | `names.rs` | names and the definitions that they refer to, without types |
//! | `reference.rs` | the functions of the language and their documentation |
//! | one file per request | `diagnostics.rs`, `hover.rs`, `definition.rs`, ... |
//! | `server.rs` | the protocol |

mod analysis;
mod assume;
mod calls;
mod completion;
mod definition;
mod diagnostics;
mod hover;
mod inlay;
mod lines;
mod names;
mod reference;
#[cfg(feature = "server")]
mod server;
mod session;
mod specialize;
mod symbols;

pub use definition::Place;
pub use lines::Lines;
#[cfg(feature = "server")]
pub use server::{serve, serve_stdio};
pub use session::{Files, Session};
pub use specialize::Origin;
pub use symbols::{TOKEN_MODIFIERS, TOKEN_TYPES};
