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
//! | `laid.rs`, `picture.rs` | layouts of values, by the passes that assign them |
//! | one file per request | `diagnostics.rs`, `hover.rs`, `definition.rs`, `uses.rs`, ... |
//! | `server.rs` | the protocol; `server/exchange.rs`: without a stream, for other transports |

mod analysis;
mod assume;
mod calls;
mod completion;
mod definition;
mod diagnostics;
mod hover;
mod inlay;
mod laid;
mod lines;
mod names;
mod picture;
mod reference;
#[cfg(feature = "server")]
mod server;
mod session;
mod specialize;
mod symbols;
mod uses;

pub use definition::Place;
pub use lines::Lines;
#[cfg(feature = "server")]
pub use server::{Exchange, address_of, serve, serve_stdio};
pub use session::{Files, Session};
pub use specialize::{Chosen, Origin};
pub use symbols::{TOKEN_MODIFIERS, TOKEN_TYPES};
