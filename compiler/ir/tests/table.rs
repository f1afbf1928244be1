//! The table of operations: what does not say in its row what it computes is known to the interpreter by name.

use rtc_ir::{Evaluate, SPECS};

/// Operations with an arm of their own in `interp/machine.rs`.
const STRUCTURED: &[&str] = &[
    "constant",
    "program_id",
    "num_programs",
    "arange",
    "splat",
    "expand_dims",
    "broadcast",
    "reshape",
    "trans",
    "join",
    "split",
    "cat",
    "unsplat",
    "convert_layout",
    "load",
    "store",
    "atomic_rmw",
    "atomic_cas",
    "dot",
    "reduce",
    "scan",
    "map_elements",
    "gather",
    "histogram",
    "sort",
    "for_range",
    "while_loop",
    "if_else",
    "yields",
    "condition",
    "ret",
    "assume",
    "barrier",
    "print",
    "assertion",
    "inline_asm",
    "extern_call",
    "special",
    "grid_dependency",
    "alloc_shared",
];

#[test]
fn every_operation_is_evaluated() {
    for spec in SPECS {
        let by_name = STRUCTURED.contains(&spec.mnemonic);
        let by_row = matches!(spec.eval, Evaluate::Each(_));
        assert!(by_name != by_row, "{}: by name {by_name}, by its row {by_row}", spec.mnemonic);
    }
}
