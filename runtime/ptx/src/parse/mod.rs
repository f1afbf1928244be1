//! PTX text to a [`Module`]. Every opcode and modifier must be in the table; errors carry the line and the text.

mod body;
mod instruction;

use crate::lexer::{Token, TokenKind, tokens};
use crate::modifier::Modifier;
use crate::module::*;

/// Text that is not PTX according to the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// The error, with the text concerned.
    pub message: String,
}

/// Reads a whole PTX text.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    let tokens = tokens(text).map_err(|(line, message)| ParseError { line, message })?;
    let mut parser = Parser { text, tokens, at: 0 };
    let mut module = Module::default();
    while parser.peek() != TokenKind::End {
        parser.item(&mut module)?;
    }
    Ok(module)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

impl<'a> Parser<'a> {
    fn peek(&self) -> TokenKind<'a> {
        self.tokens[self.at].kind
    }

    fn peek_second(&self) -> TokenKind<'a> {
        self.tokens.get(self.at + 1).map_or(TokenKind::End, |t| t.kind)
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    fn next(&mut self) -> TokenKind<'a> {
        let kind = self.peek();
        if kind != TokenKind::End {
            self.at += 1;
        }
        kind
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ParseError { line: self.line(), message: message.into() })
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        self.error(format!("expected {what}, found {} in `{}`", self.peek(), self.line_text()))
    }

    /// The text of the present line, for messages.
    fn line_text(&self) -> &'a str {
        self.text.lines().nth(self.line() as usize - 1).unwrap_or("").trim()
    }

    fn eat(&mut self, sign: char) -> bool {
        let found = self.peek() == TokenKind::Sign(sign);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    fn eat_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == TokenKind::Dot(word);
        if found {
            self.at += 1;
        }
        found
    }

    fn name(&mut self) -> Result<String> {
        match self.peek() {
            TokenKind::Name(name) => {
                self.at += 1;
                Ok(name.to_string())
            }
            _ => self.expected("a name"),
        }
    }

    fn integer(&mut self) -> Result<u64> {
        match self.peek() {
            TokenKind::Number(text) => match integer_bits(text) {
                Some(value) => {
                    self.at += 1;
                    Ok(value)
                }
                None => self.expected("an integer"),
            },
            _ => self.expected("an integer"),
        }
    }

    fn small(&mut self) -> Result<u32> {
        let value = self.integer()?;
        u32::try_from(value).or_else(|_| self.error(format!("{value} is too large here")))
    }

    // ---- module level ----

    fn item(&mut self, module: &mut Module) -> Result<()> {
        let start = self.at;
        let mut linkage = Linkage::Internal;
        loop {
            let TokenKind::Dot(word) = self.peek() else {
                if self.eat(';') {
                    return Ok(());
                }
                return self.expected("a directive");
            };
            self.at += 1;
            match word {
                "visible" => linkage = Linkage::Visible,
                "extern" => linkage = Linkage::Extern,
                "weak" => linkage = Linkage::Weak,
                "common" => linkage = Linkage::Common,
                "version" => return self.version(module),
                "target" => return self.target(module),
                "address_size" => {
                    module.address_size = self.small()?;
                    return Ok(());
                }
                "file" => return self.file(module),
                "section" => return self.section(module),
                "entry" | "func" => {
                    let function = self.function(linkage, word == "entry")?;
                    module.functions.push(function);
                    return Ok(());
                }
                "global" | "shared" | "const" | "local" => {
                    self.at -= 1;
                    self.variables(linkage, &mut module.globals)?;
                    return Ok(());
                }
                _ => {
                    self.at = start.max(self.at - 1);
                    return self.error(format!("unknown directive `.{word}`"));
                }
            }
        }
    }

    fn version(&mut self, module: &mut Module) -> Result<()> {
        let TokenKind::Number(text) = self.peek() else { return self.expected("a version") };
        let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let Some(version) = parts else { return self.expected("a version as 8.3") };
        self.at += 1;
        module.version = version;
        Ok(())
    }

    fn target(&mut self, module: &mut Module) -> Result<()> {
        loop {
            module.target.push(self.name()?);
            if !self.eat(',') {
                return Ok(());
            }
        }
    }

    fn file(&mut self, module: &mut Module) -> Result<()> {
        let index = self.small()?;
        let TokenKind::Text(name) = self.peek() else { return self.expected("a file name") };
        self.at += 1;
        // An optional time stamp and size follow.
        for _ in 0..2 {
            if self.eat(',') {
                self.integer()?;
            }
        }
        module.files.push(File { index, name: name.to_string() });
        Ok(())
    }

    fn section(&mut self, module: &mut Module) -> Result<()> {
        let name = match self.next() {
            TokenKind::Dot(name) => format!(".{name}"),
            TokenKind::Name(name) => name.to_string(),
            _ => return self.expected("a section name"),
        };
        let start = self.tokens[self.at].start + 1;
        self.expect('{')?;
        while !matches!(self.peek(), TokenKind::Sign('}') | TokenKind::End) {
            self.at += 1;
        }
        let text = self.text[start..self.tokens[self.at].start].trim().to_string();
        self.expect('}')?;
        module.sections.push(Section { name, text });
        Ok(())
    }

    fn ty(&mut self) -> Result<Modifier> {
        let TokenKind::Dot(word) = self.peek() else { return self.expected("a type") };
        match Modifier::from_text(word).filter(|m| crate::types::bits(*m).is_some()) {
            Some(ty) => {
                self.at += 1;
                Ok(ty)
            }
            None => self.error(format!("unknown type `.{word}` in `{}`", self.line_text())),
        }
    }

    fn space(&mut self) -> Option<StateSpace> {
        let TokenKind::Dot(word) = self.peek() else { return None };
        let space = match word {
            "global" => StateSpace::Global,
            "shared" => StateSpace::Shared,
            "local" => StateSpace::Local,
            "const" => StateSpace::Const,
            "param" => StateSpace::Param,
            "reg" => StateSpace::Reg,
            _ => return None,
        };
        self.at += 1;
        Some(space)
    }

    /// `.space [.align n] .type name[dims] [= init] {, name…} ;`
    fn variables(&mut self, linkage: Linkage, list: &mut Vec<Variable>) -> Result<()> {
        let first = self.variable(linkage)?;
        let (space, align, ty) = (first.space, first.align, first.ty);
        list.push(first);
        while self.eat(',') {
            let line = Line(self.line());
            let mut variable = Variable {
                linkage,
                space,
                align,
                ty,
                pointer: None,
                name: self.name()?,
                dimensions: Vec::new(),
                initial: Vec::new(),
                line,
            };
            self.dimensions_and_initial(&mut variable)?;
            list.push(variable);
        }
        self.expect(';')
    }

    fn variable(&mut self, linkage: Linkage) -> Result<Variable> {
        let line = Line(self.line());
        let Some(space) = self.space() else { return self.expected("a state space") };
        let mut align = None;
        if self.eat_dot("align") {
            align = Some(self.small()?);
        }
        let ty = self.ty()?;
        let mut pointer = None;
        if self.eat_dot("ptr") {
            let mut found = Pointer { space: self.space(), align: None };
            if self.eat_dot("align") {
                found.align = Some(self.small()?);
            }
            pointer = Some(found);
        }
        if self.eat_dot("align") {
            align = Some(self.small()?);
        }
        let name = self.name()?;
        let mut variable =
            Variable { linkage, space, align, ty, pointer, name, dimensions: Vec::new(), initial: Vec::new(), line };
        self.dimensions_and_initial(&mut variable)?;
        Ok(variable)
    }

    fn dimensions_and_initial(&mut self, variable: &mut Variable) -> Result<()> {
        while self.eat('[') {
            if self.eat(']') {
                variable.dimensions.push(None);
            } else {
                variable.dimensions.push(Some(self.integer()?));
                self.expect(']')?;
            }
        }
        if self.eat('=') {
            self.initial(&mut variable.initial)?;
        }
        Ok(())
    }

    fn initial(&mut self, list: &mut Vec<Initial>) -> Result<()> {
        if self.eat('{') {
            while !self.eat('}') {
                self.initial(list)?;
                if !self.eat(',') {
                    self.expect('}')?;
                    break;
                }
            }
            return Ok(());
        }
        if let TokenKind::Name(name) = self.peek() {
            self.at += 1;
            let generic = name == "generic" && self.eat('(');
            let name = if generic { self.name()? } else { name.to_string() };
            if generic {
                self.expect(')')?;
            }
            let offset = self.offset()?;
            list.push(Initial::Symbol { name, offset, generic });
        } else {
            list.push(Initial::Immediate(self.immediate()?));
        }
        Ok(())
    }

    /// `+ n`, `- n` or nothing.
    fn offset(&mut self) -> Result<i64> {
        if self.eat('+') {
            let negative = self.eat('-');
            let value = self.integer()? as i64;
            Ok(if negative { value.wrapping_neg() } else { value })
        } else if self.eat('-') {
            Ok((self.integer()? as i64).wrapping_neg())
        } else {
            Ok(0)
        }
    }

    fn immediate(&mut self) -> Result<Immediate> {
        let negative = self.eat('-');
        let TokenKind::Number(text) = self.peek() else { return self.expected("a number") };
        let lower = text.to_ascii_lowercase();
        let value = if let Some(hex) = lower.strip_prefix("0f") {
            u32::from_str_radix(hex, 16)
                .ok()
                .filter(|_| hex.len() == 8)
                .map(|bits| Immediate::Single(bits ^ sign32(negative)))
        } else if let Some(hex) = lower.strip_prefix("0d") {
            u64::from_str_radix(hex, 16)
                .ok()
                .filter(|_| hex.len() == 16)
                .map(|bits| Immediate::Double(bits ^ sign64(negative)))
        } else if text.contains('.') {
            text.parse::<f64>().ok().map(|x| Immediate::Double(x.to_bits() ^ sign64(negative)))
        } else {
            integer_bits(text)
                .map(|bits| Immediate::Integer { bits: if negative { bits.wrapping_neg() } else { bits }, negative })
        };
        match value {
            Some(value) => {
                self.at += 1;
                Ok(value)
            }
            None => self.expected("a number"),
        }
    }
}

fn integer_bits(text: &str) -> Option<u64> {
    let text = text.strip_suffix('U').unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(binary) = text.strip_prefix("0b").or_else(|| text.strip_prefix("0B")) {
        return u64::from_str_radix(binary, 2).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return u64::from_str_radix(&text[1..], 8).ok();
    }
    text.parse().ok()
}

fn sign32(negative: bool) -> u32 {
    u32::from(negative) << 31
}

fn sign64(negative: bool) -> u64 {
    u64::from(negative) << 63
}
