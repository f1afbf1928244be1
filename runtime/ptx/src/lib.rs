//! PTX text as data.
//!
//! `parse` reads PTX as LLVM's NVPTX back end prints it, and as people write it; `print` writes it back. One table
//! ([`table`]) says what an instruction is: what it does not list is an error with the line and the text, never
//! silently ignored. Executing PTX is the emulator's part.
//!
//! ```
//! let text = ".version 8.3 .target sm_90a .address_size 64 .visible .entry f() { .reg .b32 %r<2>; mov.b32 %r1, 7; ret; }";
//! let module = rtc_ptx::parse(text)?;
//! assert_eq!(module.functions[0].name, "f");
//! assert_eq!(rtc_ptx::parse(&rtc_ptx::print(&module))?, module);
//! # Ok::<(), rtc_ptx::ParseError>(())
//! ```

mod lexer;
pub mod modifier;
pub mod module;
mod parse;
mod print;
pub mod table;
pub mod types;

pub use modifier::Modifier;
pub use module::Module;
pub use parse::{ParseError, parse};
pub use print::print;
pub use table::Opcode;
