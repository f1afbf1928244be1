//! The reference of all operations, made from the table and from what the type rules say of themselves.

use std::fmt::Write;

use super::effects::{Effect, EffectKind, On, Space, When};
use super::table::SPECS;
use super::{Evaluate, OpSpec, Traits};

/// Traits as the reference names them, and what they promise.
const TRAITS: &[(Traits, &str, &str)] = &[
    (Traits::PURE, "pure", "no effect beside the results; may be removed, repeated, moved"),
    (Traits::ELEMENTWISE, "element-wise", "works on each element alone"),
    (Traits::COMMUTATIVE, "commutative", "the first two operands may be exchanged"),
    (Traits::EXACT, "exact", "the same bits on every device; folded on constants"),
    (Traits::VARIADIC, "variadic", "takes any number of operands after the named ones"),
    (Traits::TERMINATOR, "terminator", "ends a block"),
    (Traits::EXPLICIT_TYPE, "stated type", "its result types stand in the text, as nothing else gives them"),
    (Traits::FREE_LAYOUT, "free layout", "a pass chooses the layout of the result"),
    (Traits::CONVERGENT, "convergent", "all threads of a block, or of its partition, must reach it together"),
    (Traits::FORWARDS, "forwards", "its result consists of elements of its operand, which are not changed"),
    (Traits::NESTED, "nested", "holds blocks of its own"),
    (Traits::TILE_PHASE, "tile phase", "stands in phase `Tile` only; a pass lowers it"),
    (
        Traits::BEFORE_WAITS,
        "before waits",
        "names what it waits for; `insert-waits` replaces it, so it is not in phase `Scheduled`",
    ),
    (Traits::MORE_BLOCKS, "more blocks", "takes any number of nested blocks after those that it must have"),
];

/// The operations of the tile IR as Markdown: the traits, then each operation under the heading of its group.
pub fn reference() -> String {
    let mut out = String::from(
        "The operations that kernels are made of between the front end and the code generator. `rtc emit --stage tile` \
         prints them. An operand in brackets may be absent. Attributes are written in braces after the operands and are left \
         out where they have their default.\n\n| trait | means |\n| --- | --- |\n",
    );
    for (_, name, meaning) in TRAITS {
        let _ = writeln!(out, "| {name} | {meaning} |");
    }
    let groups = groups();
    for spec in SPECS {
        if let Some((_, title)) = groups.iter().find(|(first, _)| *first == spec.mnemonic) {
            let _ = writeln!(out, "\n## {title}");
        }
        entry(&mut out, spec);
    }
    out
}

fn entry(out: &mut String, spec: &OpSpec) {
    let _ = writeln!(out, "\n### `{}`\n\n{}\n", spec.mnemonic, spec.doc);
    let named = spec.operands.iter().map(|o| format!("`{o}`"));
    let mut operands: Vec<String> = named.chain(spec.optional.iter().map(|o| format!("[`{o}`]"))).collect();
    if spec.traits.has(Traits::VARIADIC) {
        operands.push("..".into());
    }
    if !operands.is_empty() {
        let _ = writeln!(out, "- operands: {}", operands.join(", "));
    }
    let attrs: Vec<String> = spec.attrs.iter().zip(spec.attr_types).map(|(n, ty)| format!("`{n}: {ty}`")).collect();
    if !attrs.is_empty() {
        let _ = writeln!(out, "- attributes: {}", attrs.join(", "));
    }
    if spec.blocks > 0 {
        let more = if spec.traits.has(Traits::MORE_BLOCKS) { ", .." } else { "" };
        let _ = writeln!(out, "- blocks: {}{more}", spec.blocks);
    }
    if let Some(rule) = rule(spec.rule) {
        let _ = writeln!(out, "- types: {rule}");
    }
    let traits: Vec<&str> = TRAITS.iter().filter(|(t, ..)| spec.traits.has(*t)).map(|(_, name, _)| *name).collect();
    if !traits.is_empty() {
        let _ = writeln!(out, "- traits: {}", traits.join(", "));
    }
    let effects: Vec<String> = spec.effects.iter().map(effect).collect();
    if !effects.is_empty() {
        let _ = writeln!(out, "- effects: {}", effects.join(", "));
    }
    let evaluated = match spec.eval {
        Evaluate::Each(_) => "by its row of the table, element by element",
        Evaluate::Structured => "by code of its own",
    };
    let _ = writeln!(out, "- interpreted: {evaluated}");
}

/// An effect in words.
fn effect(effect: &Effect) -> String {
    let Effect { space, access, on, when } = effect;
    let place = match (space, on) {
        (Space::Global, _) => "global memory",
        (Space::Shared, _) => "shared memory",
        (Space::Barrier, _) => "a barrier",
        (Space::Outside, _) => return "is seen outside of the kernel".into(),
    };
    let verb = match access {
        EffectKind::Read => "reads",
        EffectKind::Write => "writes",
        EffectKind::Exchange => "passes values between threads through",
    };
    let through = match on {
        On::Operand(name) => format!(" (`{name}`)"),
        On::Result => " (the result)".into(),
        On::Anything => String::new(),
    };
    let later = if *when == When::Async { ", later" } else { "" };
    format!("{verb} {place}{through}{later}")
}

/// The comment above a type rule.
fn rule(name: &str) -> Option<&'static str> {
    let files = [
        include_str!("infer.rs"),
        include_str!("infer_shared.rs"),
        include_str!("infer_async.rs"),
        include_str!("infer_atomic.rs"),
        include_str!("infer_blocks.rs"),
    ];
    let before = files.iter().find_map(|text| Some(text.split_once(&format!("\npub(super) fn {name}("))?.0))?;
    before.rsplit('\n').next()?.strip_prefix("/// ")
}

/// The first operation of each group of the table, with the comment above it.
fn groups() -> Vec<(&'static str, &'static str)> {
    let mut groups = Vec::new();
    let mut title = None;
    for line in include_str!("table.rs").lines() {
        match line.strip_prefix("    // ") {
            Some(comment) => title = comment.split('.').next(),
            None => {
                let first = line.trim_start().split(' ').next().unwrap_or_default();
                if let Some(title) = title.take().filter(|_| !first.is_empty()) {
                    groups.push((first, title));
                }
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_group_and_says_its_rule() {
        let text = reference();
        for spec in SPECS {
            assert!(rule(spec.rule).is_some(), "the type rule `{}` has no comment in infer.rs", spec.rule);
            assert!(text.contains(&format!("### `{}`", spec.mnemonic)));
        }
        assert_eq!(groups().first(), Some(&("constant", "Creation")));
        assert!(groups().len() >= 8, "{:?}", groups());
        assert_eq!(text.matches("- types: ").count(), SPECS.len());
    }
}
