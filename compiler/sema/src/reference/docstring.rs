//! Docstrings: a sentence, what each parameter takes, paragraphs, examples.

/// The contents of a docstring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doc {
    /// One sentence.
    pub summary: String,
    /// The text of each parameter, by name.
    pub params: Vec<(String, String)>,
    /// The result.
    pub returns: String,
    /// Codes of the diagnostics for arguments that do not fit.
    pub errors: Vec<String>,
    /// Paragraphs.
    pub text: Vec<String>,
    /// Examples: lines of code without the `>>>` before them.
    pub examples: Vec<Vec<String>>,
}

impl Doc {
    /// Reads a docstring of a function with these parameters.
    pub(super) fn parse(text: &str, parameters: &[&str]) -> Doc {
        let mut doc = Doc::default();
        let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
        for line in text.lines().map(str::trim) {
            match blocks.last_mut() {
                Some(block) if !line.is_empty() => block.push(line),
                Some(block) if block.is_empty() => {}
                _ => blocks.push(Vec::new()),
            }
        }
        blocks.retain(|b| !b.is_empty());
        for (number, block) in blocks.iter().enumerate() {
            if block[0].starts_with(">>>") {
                doc.examples.push(block.iter().map(|l| code(l)).collect());
            } else if number == 0 {
                doc.summary = block.join(" ");
            } else if field(block[0], parameters).is_some() {
                doc.fields(block, parameters);
            } else {
                doc.text.push(block.join(" "));
            }
        }
        doc
    }

    /// `NAME: text` lines; a line that begins with no known name goes on with the one before.
    fn fields(&mut self, block: &[&str], parameters: &[&str]) {
        let mut found: Vec<(String, String)> = Vec::new();
        for line in block {
            match (field(line, parameters), found.last_mut()) {
                (Some((name, rest)), _) => found.push((name.to_string(), rest.to_string())),
                (None, Some((_, text))) => {
                    text.push(' ');
                    text.push_str(line);
                }
                (None, None) => {}
            }
        }
        for (name, text) in found {
            match name.as_str() {
                "returns" => self.returns = text,
                "errors" => self.errors = text.split(',').map(|c| c.trim().to_string()).collect(),
                // Several parameters may share a line.
                _ => self.params.extend(name.split(", ").map(|n| (n.to_string(), text.clone()))),
            }
        }
    }

    /// Inherits missing parts.
    pub(super) fn fill(&mut self, other: &Doc) {
        let take = |own: &mut String, theirs: &String| {
            if own.is_empty() {
                own.clone_from(theirs);
            }
        };
        take(&mut self.summary, &other.summary);
        take(&mut self.returns, &other.returns);
        if self.params.is_empty() {
            self.params.clone_from(&other.params);
        }
        if self.examples.is_empty() {
            self.examples.clone_from(&other.examples);
        }
    }
}

fn code(line: &str) -> String {
    let rest = line.strip_prefix(">>>").unwrap_or(line);
    rest.strip_prefix(' ').unwrap_or(rest).to_string()
}

/// The parts of `name: text` or `a, b: text`, if the names are parameters, `returns` or `errors`.
fn field<'t>(line: &'t str, parameters: &[&str]) -> Option<(&'t str, &'t str)> {
    let (names, text) = line.split_once(": ")?;
    let known = |name: &str| name == "returns" || name == "errors" || parameters.contains(&name);
    names.split(", ").all(known).then_some((names, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_told_apart() {
        let text = "One sentence\nover two lines.\n\nx, y: numbers\n  of any kind\nreturns: their sum\nerrors: a, b\n\n\
                    A note: this.\n\n>>> a = 1\n>>> f(a, 2)\n";
        let doc = Doc::parse(text, &["x", "y"]);
        assert_eq!(doc.summary, "One sentence over two lines.");
        let numbers = "numbers of any kind".to_string();
        assert_eq!(doc.params, [("x".to_string(), numbers.clone()), ("y".to_string(), numbers)]);
        assert_eq!(doc.returns, "their sum");
        assert_eq!(doc.errors, ["a", "b"]);
        assert_eq!(doc.text, ["A note: this."]);
        assert_eq!(doc.examples, [["a = 1", "f(a, 2)"]]);
    }
}
