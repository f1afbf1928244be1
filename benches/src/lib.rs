//! Common parts of the benchmarks: kernels that do nothing, launched by this project and by a bare call of the driver,
//! and kernels whose compilation is measured.

pub mod bare;
pub mod kernels;

use std::fmt::Write;

/// PTX and metadata of a kernel that returns immediately, with `pointers` pointers to fp32 (`:16`), the last of which
/// is written, and then `integers` i32, the first of which bounds the extents.
pub fn empty_kernel(pointers: usize, integers: usize) -> (String, String) {
    let mut declared = Vec::new();
    let mut params = Vec::new();
    for index in 0..pointers + integers {
        let pointer = index < pointers;
        let (ty, name, size) = if pointer { (".u64", "*fp32", 8) } else { (".u32", "i32", 4) };
        let offset = 8 * index.min(pointers) + 4 * index.saturating_sub(pointers);
        declared.push(format!("    .param {ty} empty_param_{index}"));
        let promise = match (pointer, integers) {
            (true, 0) => r#", "divisible_by": 16"#.to_owned(),
            // A row for each program: what the extent of a pointer usually is.
            (true, _) => format!(
                r#", "divisible_by": 16, "access": "{}", "extent": "min(p{pointers}, 64 * grid.0)", "extent_needs": ["p{pointers}"]"#,
                if index + 1 == pointers { "write" } else { "read" }
            ),
            (false, _) => String::new(),
        };
        params
            .push(format!(r#"{{"name": "p{index}", "type": "{name}", "offset": {offset}, "size": {size}{promise}}}"#));
    }
    let mut ptx = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    // Writing to a string does not fail.
    let _ = write!(ptx, ".visible .entry empty(\n{}\n)\n.reqntid 32\n{{\n    ret;\n}}\n", declared.join(",\n"));
    let metadata = format!(
        r#"{{"kernel": "empty", "symbol": "empty", "arch": "sm_80", "ptx_version": 80, "num_warps": 1, "num_ctas": 1,
        "threads_per_block": 32, "shared_bytes": 0, "global_scratch_bytes": 0, "global_scratch_align": 1,
        "cluster": [1, 1, 1], "params": [{}], "constexprs": {{}}, "source_hash": "", "compiler_version": ""}}"#,
        params.join(", ")
    );
    (ptx, metadata)
}
