//! Reduces a failing kernel: removes statements and replaces expressions by constants, as long as the rest fails in the
//! same way.

use crate::written::Written;

/// The kind of a failure: the words of the stage that reported it, without numbers, names and values.
fn kind(error: &str) -> String {
    let first = error.lines().next().unwrap_or_default();
    let words =
        ["panic", "the sanitizer", "codegen", "finding", "fault", "differs", "reads back", "fixed point", "spills"];
    match words.into_iter().find(|word| error.contains(word)) {
        // A panic is the same if it comes from the same place.
        Some(word @ ("panic" | "the sanitizer")) => {
            let words: String = first.chars().filter(|c| !c.is_ascii_digit()).take(80).collect();
            format!("{word} {words}")
        }
        Some(word) => word.to_string(),
        None => first.chars().filter(|c| !c.is_ascii_digit()).take(40).collect(),
    }
}

/// Whether a candidate fails as it must.
type Fails<'f> = &'f dyn Fn(&[String]) -> bool;

/// The text of a kernel in tile IR that fails with `error`, as small as it gets.
pub fn tile_ir(text: &str, error: &str, judge: &dyn Fn(&str) -> Result<(), String>) -> String {
    let wanted = kind(error);
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    let fails = |lines: &[String]| judge(&lines.join("\n")).is_err_and(|e| kind(&e) == wanted);
    let end_of_block = |lines: &[String], at: usize| {
        let mut depth = 0i32;
        for (i, line) in lines.iter().enumerate().skip(at) {
            depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            if depth <= 0 {
                return i + 1;
            }
        }
        lines.len()
    };
    let constant = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let ty = rest.rsplit_once(" : ")?.1;
        let is_plain = !rest.contains("constant") && !ty.contains(['{', ',', '*', '(']) && !ty.contains("ptr");
        is_plain.then(|| format!("{name} = constant {{value = 1}} : {ty}"))
    };
    shrink(lines, &fails, &end_of_block, &constant).join("\n")
}

/// A kernel in the kernel language that fails with `error`, as small as it gets.
pub fn written(kernel: &Written, error: &str, judge: &dyn Fn(&Written) -> Result<(), String>) -> Written {
    let wanted = kind(error);
    let with = |lines: &[String]| kernel.with(lines);
    let fails = |lines: &[String]| judge(&with(lines)).is_err_and(|e| kind(&e) == wanted);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let end_of_block = |lines: &[String], at: usize| {
        let own = indent(&lines[at]);
        (at + 1..lines.len()).find(|i| indent(&lines[*i]) <= own).unwrap_or(lines.len())
    };
    // `name = expression  # float32[16, 32]`
    let constant = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let (expression, comment) = rest.split_once("  # ")?;
        let (dtype, shape) = comment.split_once('[')?;
        let is_plain = !expression.starts_with("tl.full(");
        is_plain.then(|| format!("{name} = tl.full([{shape}, 1, tl.{dtype})  # {comment}"))
    };
    with(&shrink(kernel.body.clone(), &fails, &end_of_block, &constant))
}

/// Takes statements out, the last ones first, and many at once before single ones; then makes constants of others.
fn shrink(
    mut lines: Vec<String>,
    fails: Fails<'_>,
    end_of_block: &dyn Fn(&[String], usize) -> usize,
    constant: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    loop {
        let before = lines.clone();
        let mut count = lines.len() / 2;
        while count > 0 {
            let mut at = lines.len();
            while at > 0 {
                at = at.saturating_sub(count);
                let to = (at + count).min(lines.len());
                let mut fewer = lines.clone();
                fewer.drain(at..to);
                if to > at && fails(&fewer) {
                    lines = fewer;
                }
            }
            count /= 2;
        }
        let mut at = lines.len();
        while at > 0 {
            at -= 1;
            if at >= lines.len() {
                continue;
            }
            let mut fewer = lines.clone();
            fewer.drain(at..end_of_block(&lines, at));
            if fails(&fewer) {
                lines = fewer;
                continue;
            }
            let Some(simple) = constant(&lines[at]) else { continue };
            let mut simpler = lines.clone();
            simpler[at] = simple;
            if fails(&simpler) {
                lines = simpler;
            }
        }
        if lines == before {
            return lines;
        }
    }
}
