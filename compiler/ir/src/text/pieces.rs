//! The small pieces of the text form: attributes, strings, types, locations.

use rtc_source::{FileId, Span};

use super::lexer::{Token, float_bits, unescape};
use super::parse::{MAX_DEPTH, Read, Reader};
use crate::{AttrValue, BlockPtrType, DescType, Elem, Loc, LocData, Shape, SharedType, TileType, Type};

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
        let (word, inner) = text.split_once('<')?;
        if word == "ptr" {
            return text.parse().ok().map(Type::Scalar);
        }
        let mut parts = inner.strip_suffix('>')?.split(',').map(str::trim);
        let body = parts.next()?;
        let mut parts = parts.peekable();
        match word {
            "barrier" if parts.peek().is_none() => Some(Type::Barrier { slots: body.parse().ok()? }),
            "tile" => {
                let (shape, elem) = shape_and_elem(body)?;
                let layout = match parts.next() {
                    Some(name) => Some(*self.layouts.get(name)?),
                    None => None,
                };
                parts.next().is_none().then_some(Type::Tile(TileType { elem, shape, layout }))
            }
            "desc" => {
                let (shape, elem) = shape_and_elem(body)?;
                let swizzle = parts.next().map_or(Ok(0), str::parse).ok()?;
                parts.next().is_none().then_some(Type::Desc(DescType { elem: elem.num()?, shape, swizzle }))
            }
            "block_ptr" => {
                let (shape, elem) = shape_and_elem(body)?;
                parts.next().is_none().then_some(Type::BlockPtr(BlockPtrType { elem: elem.num()?, shape }))
            }
            "shared" => {
                let (shape, elem) = shape_and_elem(body)?;
                let layout = match parts.next_if(|part| part.starts_with('#')) {
                    Some(name) => Some(*self.shared_layouts.get(name)?),
                    None => None,
                };
                let slots = parts.next().map_or(Ok(1), str::parse).ok()?;
                parts.next().is_none().then_some(Type::Shared(SharedType { elem, shape, layout, slots }))
            }
            _ => None,
        }
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

/// The sizes and the element in `16x32xf16`.
fn shape_and_elem(text: &str) -> Option<(Shape, Elem)> {
    let mut dims = Vec::new();
    let mut rest = text;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let (size, tail) = rest.split_once('x')?;
        dims.push(size.parse().ok()?);
        rest = tail;
    }
    let shape = Shape::new(&dims).filter(|s| s.rank() > 0)?;
    Some((shape, rest.parse().ok()?))
}

fn read_span(text: &str) -> Option<Span> {
    let (file, range) = text.split_once(':')?;
    let (start, end) = range.split_once("..")?;
    let (start, end) = (start.parse::<u32>().ok()?, end.parse::<u32>().ok()?);
    Some(Span { file: FileId(file.parse().ok()?), start, end })
}
