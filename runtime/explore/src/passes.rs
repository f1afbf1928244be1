//! Tile IR after each pass: its lines, with places and values, and the difference that the pass makes.

use rtc_ir::text::{Parsed, parse_with_spans};
use rtc_ir::{Kernel, Loc, Op};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::HashMap;

use crate::layouts::Layouts;
use crate::model::{Line, Pass};
use crate::places::Places;

/// Passes and their lines.
pub struct Passes {
    pub lines: Vec<Line>,
    pub passes: Vec<Pass>,
}

/// The lines of all passes that change something.
pub fn passes(texts: &[(&str, String)], places: &mut Places<'_>, layouts: &mut Layouts) -> Passes {
    let (mut lines, mut passes): (Vec<Line>, Vec<Pass>) = Default::default();
    let mut known: HashMap<Line, u32> = HashMap::new();
    let mut before: Vec<String> = Vec::new();
    for (name, text) in texts {
        let found = lines_of(text, places, layouts);
        let plain: Vec<String> = found.iter().map(|line| without_numbers(&line.text)).collect();
        let changes = difference(&before, &plain);
        if !passes.is_empty() && changes.iter().all(|(kind, _)| *kind == 0) {
            continue;
        }
        let mut index = |line: Line| {
            *known.entry(line.clone()).or_insert_with(|| {
                lines.push(line);
                lines.len() as u32 - 1
            })
        };
        passes.push(Pass { name: (*name).to_owned(), lines: found.into_iter().map(&mut index).collect(), changes });
        before = plain;
    }
    // The first kernel is no change of another.
    if let Some(first) = passes.first_mut() {
        first.changes.clear();
    }
    Passes { lines, passes }
}

/// The lines of a kernel. A text that cannot be read has no places and values.
fn lines_of(text: &str, places: &mut Places<'_>, layouts: &mut Layouts) -> Vec<Line> {
    let mut lines: Vec<Line> = text
        .lines()
        .map(|line| Line { text: without_location(line).into_owned(), places: Vec::new(), values: Vec::new() })
        .collect();
    let Ok(Parsed { kernel, spans }) = parse_with_spans(text) else { return lines };
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    for op in rtc_ir::walk(&kernel) {
        let number = starts.partition_point(|start| *start <= spans[op].start) - 1;
        let Some(line) = lines.get_mut(number) else { continue };
        line.places = places_of(&kernel, kernel.op(op).loc, places);
        line.values = values_of(&kernel, op, &line.text, layouts);
    }
    lines
}

/// The places of a location, from the innermost.
fn places_of(kernel: &Kernel, loc: Loc, places: &mut Places<'_>) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = Some(loc);
    while let Some(loc) = next {
        let data = kernel.loc(loc);
        found.extend(data.span.and_then(|span| places.span(span)));
        next = data.caller;
    }
    found.dedup();
    found
}

/// The values that an operation defines, arguments of its blocks included, in the order of their names in its line.
fn values_of(kernel: &Kernel, op: Op, line: &str, layouts: &mut Layouts) -> Vec<(String, u32)> {
    let data = kernel.op(op);
    let (left, right) = line.split_once(" = ").filter(|_| !data.results.is_empty()).unwrap_or(("", line));
    let results = left.split(',').map(|name| name.trim().trim_start_matches('%').to_owned());
    let mut values: Vec<(String, u32)> = results
        .zip(&data.results)
        .map(|(name, value)| (name, layouts.value_type(kernel, kernel.value_type(*value))))
        .collect();
    // Only the arguments of the first block are in the operation's own line.
    if let (Some(block), Some((_, arguments))) = (data.blocks.first(), right.split_once("^(")) {
        let names =
            arguments.split('%').skip(1).filter_map(|part| part.split_once(':')).map(|(name, _)| name.to_owned());
        let args = &kernel.block(*block).args;
        values
            .extend(names.zip(args).map(|(name, value)| (name, layouts.value_type(kernel, kernel.value_type(*value)))));
    }
    values
}

/// A line without ` loc(..)` behind its types.
fn without_location(line: &str) -> std::borrow::Cow<'_, str> {
    let Some(start) = line.find(" loc(") else { return line.into() };
    match line[start..].find(')') {
        Some(end) => format!("{}{}", &line[..start], &line[start + end + 1..]).into(),
        None => line.into(),
    }
}

/// A line without the numbers of names and layouts: these differ after every pass.
fn without_numbers(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut in_name = false;
    for c in line.chars() {
        match c {
            '%' | '#' => in_name = true,
            '0'..='9' | '_' if in_name => continue,
            c if !c.is_alphanumeric() => in_name = false,
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Runs of kept (0), removed (1) and added (2) lines.
fn difference(before: &[String], after: &[String]) -> Vec<(u8, u32)> {
    let mut runs: Vec<(u8, u32)> = Vec::new();
    let mut add = |kind: u8, count: usize| {
        if count > 0 {
            runs.push((kind, count as u32));
        }
    };
    for op in capture_diff_slices(Algorithm::Patience, before, after) {
        match op {
            DiffOp::Equal { len, .. } => add(0, len),
            DiffOp::Delete { old_len, .. } => add(1, old_len),
            DiffOp::Insert { new_len, .. } => add(2, new_len),
            DiffOp::Replace { old_len, new_len, .. } => {
                add(1, old_len);
                add(2, new_len);
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_source::SourceMap;

    #[test]
    fn numbers_of_names_are_no_difference() {
        assert_eq!(
            without_numbers("%addi12 = addi %x_1, %c : tile<64xi32, #l7>"),
            "%addi = addi %x, %c : tile<64xi32, #l>"
        );
        assert_eq!(difference(&["a".into(), "b".into()], &["a".into(), "c".into()]), [(0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn lines_have_places_and_values() {
        let mut sources = SourceMap::new();
        sources.add("k.rt", "first\nsecond\n");
        let (mut places, mut layouts) = (Places::new(&sources), Layouts::default());
        let text = "kernel @k(%x: ptr<f32> {sig = \"*fp32\"}) warps 1 phase tile {\n  \
                    %one = constant {value = 1.0} : f32 loc(0:6..9)\n  store %x, %one\n  ret\n}\n";
        let found = passes(&[("sema", text.into()), ("cse", text.into())], &mut places, &mut layouts);
        assert_eq!(found.passes.len(), 1, "a pass without a change is left out");
        let line = &found.lines[1];
        assert_eq!((line.text.as_str(), &line.places), ("  %one = constant {value = 1.0} : f32", &vec![0]));
        assert_eq!(line.values, [("one".to_owned(), 0)]);
        assert_eq!((layouts.types[0].dtype.as_str(), places.finish()), ("f32", vec![(0, 2)]));
    }
}
