//! Lines of PTX and of machine code, with their places.

use crate::model::Line;
use crate::places::Places;
use rtc_emulator::SourceLocation;
use std::collections::HashMap;

/// The lines of PTX, by its `.loc`.
pub fn ptx(text: &str, places: &mut Places<'_>) -> Vec<Line> {
    let line = |(line, location): (&str, Option<SourceLocation>)| {
        let word = line.trim();
        // Inline assembly may be a block in one line.
        let is_code = !matches!(word, "" | "{" | "}") && !word.starts_with(['.', '/']) && !word.ends_with(':');
        Line {
            text: line.replace('\t', "    "),
            places: location.filter(|_| is_code).map_or(Vec::new(), |location| places.location(&location)),
            values: Vec::new(),
        }
    };
    text.lines().zip(locations(text)).map(line).collect()
}

/// The place of each line of PTX: that of the `.loc` before it.
pub fn locations(text: &str) -> Vec<Option<SourceLocation>> {
    let mut files: HashMap<u32, String> = HashMap::new();
    for line in text.lines() {
        if let Some((number, name)) =
            line.trim().strip_prefix(".file").and_then(|rest| rest.trim().split_once(char::is_whitespace))
            && let (Ok(number), Some(name)) = (number.parse(), name.split('"').nth(1))
        {
            files.insert(number, name.to_owned());
        }
    }
    let mut current = None;
    let line = |line: &str| {
        let word = line.trim();
        if let Some(rest) = word.strip_prefix(".loc") {
            current = location(rest, &files);
        } else if word == "}" {
            current = None;
        }
        current.clone()
    };
    text.lines().map(line).collect()
}

/// `file line column` and perhaps `, function_name .., inlined_at file line column`.
fn location(text: &str, files: &HashMap<u32, String>) -> Option<SourceLocation> {
    let numbers = |text: &str| {
        let mut numbers = text.split_whitespace().map_while(|word| word.trim_end_matches(',').parse::<u32>().ok());
        Some((files.get(&numbers.next()?)?.clone(), numbers.next()?, numbers.next().unwrap_or(0)))
    };
    let (file, line, column) = numbers(text)?;
    let inlined_at = text.split("inlined_at").nth(1).and_then(numbers).into_iter().collect();
    Some(SourceLocation { file, line, column, inlined_at })
}

/// The lines of machine code as `nvdisasm -g -c` prints it: `//## File "name", line 12` stands above the instructions of a
/// line, with `inlined at "name", line 3` for calls.
pub fn sass(text: &str, places: &mut Places<'_>) -> Vec<Line> {
    let mut current: Vec<u32> = Vec::new();
    let mut is_chain = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let word = line.trim();
        if let Some(rest) = word.strip_prefix("//## File") {
            if !is_chain {
                current.clear();
            }
            let parts = rest.split("inlined at").map(|part| {
                let name = part.split('"').nth(1)?;
                let line =
                    part.split("line").nth(1)?.trim().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
                places.named(name, line)
            });
            current.extend(parts.flatten());
            current.dedup();
            is_chain = true;
            continue;
        }
        is_chain = false;
        // Instructions: `/*0010*/  LDC R1, c[0x0][0x28] ;`
        if let Some(rest) = word.strip_prefix("/*") {
            let text = rest.split_once("*/").map_or(word, |(_, rest)| rest.trim());
            lines.push(Line { text: text.to_owned(), places: current.clone(), values: Vec::new() });
        } else if word.starts_with(".L_") {
            lines.push(Line { text: word.to_owned(), places: Vec::new(), values: Vec::new() });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_source::SourceMap;

    #[test]
    fn ptx_lines_have_the_places_of_their_loc() {
        let mut sources = SourceMap::new();
        sources.add("k.rt", "a\nb\nc\n");
        let mut places = Places::new(&sources);
        let text = "\t.loc\t1 0 5\n\tret;\n\t.loc\t1 2 5\n$L0:\n\t{ .reg .pred p; add.s32 %r1; }\n\t.loc\t2 1 1, function_name $x, inlined_at 1 3 7\n\tmul;\n.file 1 \"k.rt\"\n.file 2 \"<math>\"\n";
        let lines = ptx(text, &mut places);
        let found: Vec<&[u32]> = lines.iter().map(|line| line.places.as_slice()).collect();
        // The library's file is not in the source map.
        assert_eq!(found[3..8], [[].as_slice(), &[0], &[], &[1], &[]], "{lines:?}");
        assert_eq!(places.finish(), [(0, 2), (0, 3)]);
    }

    #[test]
    fn machine_code_has_the_places_of_its_comments() {
        let mut sources = SourceMap::new();
        sources.add("k.rt", "a\nb\nc\n");
        let mut places = Places::new(&sources);
        let text = "\t.section .text.k\n.text.k:\n\t//## File \"k.rt\", line 2\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n\
                    \t//## File \"k.rt\", line 1 inlined at \"k.rt\", line 3\n        /*0010*/                   EXIT ;\n";
        let lines = sass(text, &mut places);
        assert_eq!(lines[0], Line { text: "LDC R1, c[0x0][0x28] ;".into(), places: vec![0], values: Vec::new() });
        assert_eq!(lines[1].places, [1, 2]);
        assert_eq!(places.finish(), [(0, 2), (0, 1), (0, 3)]);
    }
}
