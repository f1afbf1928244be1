//! A page as blocks of code and the lines between them.

/// A fenced block of code.
#[derive(Debug)]
pub struct Block {
    /// The line of its opening fence, from 1.
    pub line: usize,
    /// The word behind the opening fence.
    pub language: String,
    /// Key and value of the comment `<!-- key: value -->` in the line above the fence.
    pub marker: Option<(String, String)>,
    /// The lines between the fences.
    pub body: String,
}

/// A page; `blocks` may be changed.
pub struct Page {
    /// The text before each block, with its opening fence; one more than there are blocks.
    between: Vec<String>,
    pub blocks: Vec<Block>,
}

impl Page {
    pub fn parse(text: &str) -> Result<Page, String> {
        let mut page = Page { between: vec![String::new()], blocks: Vec::new() };
        let mut open: Option<Block> = None;
        let mut marker = None;
        for (number, line) in text.lines().enumerate() {
            match (&mut open, line.strip_prefix("```")) {
                (Some(_), Some(_)) => {
                    page.blocks.extend(open.take());
                    page.between.push(format!("{line}\n"));
                }
                (Some(block), None) => block.body += &format!("{line}\n"),
                (None, fence) => {
                    page.between.last_mut().into_iter().for_each(|text| *text += &format!("{line}\n"));
                    if let Some(language) = fence {
                        let (line, language, body) = (number + 1, language.to_owned(), String::new());
                        open = Some(Block { line, language, marker: marker.take(), body });
                    }
                    let comment = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                    let pair = comment.and_then(|inside| inside.split_once(": "));
                    marker = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
                }
            }
        }
        match open {
            Some(block) => Err(format!("the block of line {} has no end", block.line)),
            None => Ok(page),
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (at, between) in self.between.iter().enumerate() {
            text += between;
            text += self.blocks.get(at).map_or("", |block| &block.body);
        }
        text
    }
}

/// A command of a console block with the output below it.
#[derive(Debug)]
pub struct Command {
    /// The lines of the command as the page has them.
    pub source: String,
    /// The command for the shell.
    pub words: String,
    pub output: String,
}

/// The commands of a console block: lines after `$ `, continued where they end with a backslash.
pub fn commands(body: &str) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    let mut is_continued = false;
    for line in body.lines() {
        let start = line.strip_prefix("$ ");
        if let Some(words) = start.filter(|_| !is_continued) {
            commands.push(Command { source: String::new(), words: words.to_owned(), output: String::new() });
        }
        let command = commands.last_mut().ok_or("a console block begins with `$ `")?;
        if is_continued {
            command.words += &format!("\n{line}");
        }
        if is_continued || start.is_some() {
            command.source += &format!("{line}\n");
            is_continued = line.ends_with('\\');
        } else {
            command.output += &format!("{line}\n");
        }
    }
    if commands.is_empty() { Err("a console block without a command".to_owned()) } else { Ok(commands) }
}

#[test]
fn a_page_is_read_and_written() {
    let text = "a\n<!-- status: 1 -->\n```console\n$ x \\\n    y\nout\n$ z\n```\nb\n";
    let page = Page::parse(text).unwrap();
    assert_eq!(page.text(), text);
    assert_eq!(page.blocks[0].marker, Some(("status".to_owned(), "1".to_owned())));
    let commands = commands(&page.blocks[0].body).unwrap();
    assert_eq!((commands[0].words.as_str(), commands[0].output.as_str()), ("x \\\n    y", "out\n"));
    assert_eq!((commands[1].words.as_str(), commands[1].output.as_str()), ("z", ""));
    assert!(Page::parse("```sh\n").is_err());
}
