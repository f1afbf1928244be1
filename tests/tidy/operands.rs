//! Operands are named: how often code still picks one by a literal number, folder by folder. The numbers may only fall.

use std::fs;

use super::{files, root, shown};

/// The folders, and how many literal operand numbers each may have. Type rules (`ops/infer*.rs`) come before the
/// operation exists and are not counted.
const MOST: &[(&str, usize)] = &[
    ("compiler/ir/src", 7),
    ("compiler/lints/src", 0),
    ("compiler/codegen/src", 10),
    ("compiler/passes/src/tile", 6),
    ("compiler/passes/src/rules", 0),
    ("compiler/passes/src/laid", 2),
    ("compiler/passes/src/place", 0),
    ("compiler/passes/src/work", 0),
    ("compiler/passes/src/access", 24),
    ("compiler/passes/src/schedule", 78),
];

/// How often a text has `.operand(.., 0)`, `.optional(.., 0)` or `operands[0]`, with any number.
fn literal_operands(text: &str) -> usize {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let called = [".operand(", ".optional("].iter().flat_map(|call| text.split(call).skip(1)).filter(|rest| {
        let args = rest.split(')').next().unwrap_or("");
        args.rsplit_once(", ").is_some_and(|(_, last)| is_number(last))
    });
    let indexed = text.split("operands[").skip(1).filter(|rest| is_number(rest.split(']').next().unwrap_or("")));
    called.count() + indexed.count()
}

#[test]
fn operands_are_picked_by_name() {
    assert_eq!(literal_operands("kernel.operand(op, 0) + kernel.optional(op, 12) + data.operands[1]"), 3);
    assert_eq!(literal_operands("kernel.operand(op, index) + data.operands[at] + view.lhs()"), 0);
    for (folder, most) in MOST {
        let mut found = Vec::new();
        files(&root().join(folder), ".rs", &mut found);
        let counted = found.iter().filter(|path| !shown(path).contains("/ops/infer"));
        let count: usize = counted.map(|path| literal_operands(&fs::read_to_string(path).expect("readable"))).sum();
        assert!(count <= *most, "{folder}: {count} operands by number, {most} before; `rtc_ir::view` names them");
    }
}
