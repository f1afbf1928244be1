//! Lines of the source, by number.

use rtc_emulator::SourceLocation;
use rtc_source::{FileId, SourceMap, Span};
use std::collections::HashMap;

use crate::model::File;

/// The places that lines refer to. Files of the standard library are not in the source map: their lines have the places of
/// the calls.
pub struct Places<'s> {
    sources: &'s SourceMap,
    places: Vec<(u32, u32)>,
    known: HashMap<(u32, u32), u32>,
}

impl<'s> Places<'s> {
    /// None yet.
    pub fn new(sources: &'s SourceMap) -> Places<'s> {
        Places { sources, places: Vec::new(), known: HashMap::new() }
    }

    /// The place of a line of a file, from 1.
    fn line(&mut self, file: FileId, line: u32) -> Option<u32> {
        // `.loc` has line 0 where there is no place.
        self.sources.get(file).filter(|_| line > 0)?;
        let place = (file.0, line);
        Some(*self.known.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        }))
    }

    /// The place of the first byte of a span.
    pub fn span(&mut self, span: Span) -> Option<u32> {
        self.sources.get(span.file)?;
        let line = self.sources.position(span).line;
        self.line(span.file, line)
    }

    /// The place of a line of a file that is given by name.
    pub fn named(&mut self, name: &str, line: u32) -> Option<u32> {
        let (id, _) = self.sources.files().find(|(_, file)| file.name == name)?;
        self.line(id, line)
    }

    /// The place of a location, then those of the calls that it was inlined at.
    pub fn location(&mut self, location: &SourceLocation) -> Vec<u32> {
        let own = (location.file.as_str(), location.line);
        let calls = location.inlined_at.iter().map(|(file, line, _)| (file.as_str(), *line));
        let all: Vec<(&str, u32)> = std::iter::once(own).chain(calls).collect();
        let mut found: Vec<u32> = all.into_iter().filter_map(|(file, line)| self.named(file, line)).collect();
        found.dedup();
        found
    }

    /// The files.
    pub fn files(&self) -> Vec<File> {
        let files = self.sources.files();
        files
            .map(|(_, file)| File { name: file.name.clone(), text: file.text.lines().map(str::to_owned).collect() })
            .collect()
    }

    /// All places.
    pub fn finish(self) -> Vec<(u32, u32)> {
        self.places
    }
}
