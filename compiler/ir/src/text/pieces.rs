//! The small pieces of the text form: attributes, strings, types, locations.

use rtc_source::{FileId, Span};

use super::lexer::{Token, float_bits, unescape};
use super::parse::{MAX_DEPTH, Read, Reader};
use crate::{AttrValue, Elem, Loc, LocData, Shape, SharedType, TileType, Type};

impl Reader<'_> {
    pub(super) fn attrs(&mut self) -> Read<Vec<(String, AttrValue)>> {
        self.expect(Token::OpenBrace)?;
        let mut attrs: Vec<(String, AttrValue)> = Vec::new();
        while !self.eat(Token::CloseBrace) {
            if !attrs.is_empty() {
                self.expect(Token::Comma)?;
            }
            let name = self.word()?;
            if attrs.iter().any(|(n, _)| n == name) {
                return self.fail(format!("`{name}` is given twice"));
            }
            self.expect(Token::Equals)?;
            attrs.push((name.to_string(), self.attr_value(0)?));
        }
        Ok(attrs)
    }

    pub(super) fn attr_value(&mut self, depth: u32) -> Read<AttrValue> {
        let value = match self.peek() {
            Some(Token::Int(text)) => text.parse().ok().map(AttrValue::Int),
            Some(Token::Float(text)) => float_bits(text).map(AttrValue::Float),
            Some(Token::Word("inf")) => Some(AttrValue::Float(f64::INFINITY.to_bits())),
            Some(Token::Word(word)) | Some(Token::Type(word)) => Some(AttrValue::Word(word.to_string())),
            Some(Token::Str(_)) => return Ok(AttrValue::Str(self.string()?)),
            Some(Token::OpenList) if depth < MAX_DEPTH => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.eat(Token::CloseList) {
                    if !items.is_empty() {
                        self.expect(Token::Comma)?;
                    }
                    items.push(self.attr_value(depth + 1)?);
                }
                return Ok(AttrValue::List(items));
            }
            _ => None,
        };
        match value {
            Some(value) => {
                self.at += 1;
                Ok(value)
            }
            None => self.expected("an attribute"),
        }
    }

    pub(super) fn string(&mut self) -> Read<String> {
        match self.peek() {
            Some(Token::Str(quoted)) => match unescape(quoted) {
                Some(text) => {
                    self.at += 1;
                    Ok(text)
                }
                None => self.fail("the string has a wrong escape"),
            },
            _ => self.expected("a string"),
        }
    }

    pub(super) fn ty(&mut self) -> Read<Type> {
        let ty = match self.peek() {
            Some(Token::Word("token")) => Some(Type::Token),
            Some(Token::Word(word)) => word.parse().ok().map(Type::Scalar),
            Some(Token::Type(text)) => self.bracketed_type(text),
            _ => None,
        };
        match ty {
            Some(ty) => {
                self.at += 1;
                Ok(ty)
            }
            None => self.expected("a type"),
        }
    }

    pub(super) fn bracketed_type(&self, text: &str) -> Option<Type> {
        let shared = text.strip_prefix("shared<");
        let Some(inner) = shared.or_else(|| text.strip_prefix("tile<")) else {
            return text.parse().ok().map(Type::Scalar);
        };
        let inner = inner.strip_suffix('>')?;
        let (body, layout) = match inner.split_once(',') {
            Some((body, layout)) => (body, Some(*self.layouts.get(layout.trim())?)),
            None => (inner, None),
        };
        let mut dims = Vec::new();
        let mut rest = body.trim();
        while rest.starts_with(|c: char| c.is_ascii_digit()) {
            let (size, tail) = rest.split_once('x')?;
            dims.push(size.parse().ok()?);
            rest = tail;
        }
        let elem: Elem = rest.parse().ok()?;
        let shape = Shape::new(&dims).filter(|s| s.rank() > 0)?;
        Some(match shared {
            Some(_) => Type::Shared(SharedType { elem, shape }),
            None => Type::Tile(TileType { elem, shape, layout }),
        })
    }

    pub(super) fn loc(&mut self) -> Read<Loc> {
        let Some(Token::Loc(text)) = self.peek() else { return Ok(self.kernel.no_loc()) };
        let mut caller = None;
        for part in text.rsplit(" from ") {
            let span = match part.trim() {
                "none" => None,
                part => match read_span(part) {
                    Some(span) => Some(span),
                    None => return self.fail("expected a location such as `0:12..34`"),
                },
            };
            caller = Some(self.kernel.intern_loc(LocData { span, caller }));
        }
        self.at += 1;
        Ok(caller.unwrap_or(self.kernel.no_loc()))
    }
}

fn read_span(text: &str) -> Option<Span> {
    let (file, range) = text.split_once(':')?;
    let (start, end) = range.split_once("..")?;
    let (start, end) = (start.parse::<u32>().ok()?, end.parse::<u32>().ok()?);
    Some(Span { file: FileId(file.parse().ok()?), start, end })
}
