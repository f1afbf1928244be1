//! The text form of kernels: printer, reader.
//!
//! ```text
//! #l0 = linear(shape [128], reg [], lane [[1], [2], [4], [8], [16]], warp [[32], [64]])
//! kernel @add(%x: ptr<f32> {sig = "*fp32", align = 16}, %n: i32 {sig = "i32"}) warps 4 phase laid {
//!   %pid = program_id {axis = 0} : i32
//!   %lane = arange {start = 0, end = 128} : tile<128xi32, #l0>
//!   %a = load %p, mask = %m, other = %zero {cache = cg} : tile<128xf32, #l0>
//!   %sum = reduce (%a) {axis = 0} : f32 ^(%l: f32, %r: f32) {
//!     %addf0 = addf %l, %r : f32
//!     yields (%addf0)
//!   }
//!   ret
//! }
//! ```
//!
//! One operation per line: results, mnemonic, named operands, optional operands as `name = %value`, the operands of
//! variadic operations in parentheses, attributes that are not at their default in braces, result types, and nested
//! blocks as `^(arguments) { .. }`. `// ..` is a comment. Floats read back to the same bits: `-0.0`, `inf`,
//! `nan(0x7ff8000000000000)`.
//!
//! Names depend on the kernel alone, not on its history: the source name where there is one, else the mnemonic and a
//! counter in print order; a name that is taken gets a suffix. Only layouts in use are printed, in order of appearance.
//! With [`PrintOptions::locs`] the origin follows the types: `loc(0:120..131 from 0:400..420)`, file and bytes, then
//! the calls that were inlined.

mod lexer;
mod names;
mod parse;
mod pieces;
pub(crate) mod print;
#[cfg(test)]
mod tests;

pub use parse::{ParseError, Parsed, parse, parse_with_spans};
pub use print::{PrintOptions, print, print_with};
pub(crate) use print::{Printer, indent};
