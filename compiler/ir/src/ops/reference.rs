//! The reference of all operations, made from the table.

use std::fmt::Write;

use super::table::SPECS;

/// A Markdown table of all operations: name, operands, attributes, what it does.
pub fn reference() -> String {
    let mut out = String::from("| operation | operands | attributes | what it does |\n| --- | --- | --- | --- |\n");
    for spec in SPECS {
        let operands: Vec<String> =
            spec.operands.iter().map(|o| o.to_string()).chain(spec.optional.iter().map(|o| format!("[{o}]"))).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            spec.mnemonic,
            operands.join(", "),
            spec.attrs.join(", "),
            spec.doc
        );
    }
    out
}
