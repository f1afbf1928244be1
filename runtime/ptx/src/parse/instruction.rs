//! Instructions and their operands, checked against the table.

use super::{ParseError, Parser, Result};
use crate::lexer::TokenKind;
use crate::modifier::Modifier;
use crate::module::*;
use crate::table::{Opcode, OperandKind};

impl Parser<'_> {
    pub(super) fn instruction(&mut self) -> Result<Instruction> {
        let line = self.line();
        let text = self.line_text();
        let fail = |message: String| Err(ParseError { line, message });
        let mut guard = None;
        if self.eat('@') {
            let negated = self.eat('!');
            guard = Some(Guard { register: self.name()?, negated });
        }
        let TokenKind::Name(first) = self.peek() else { return self.expected("an instruction") };
        self.at += 1;
        let mut words = vec![first];
        while let TokenKind::Dot(word) = self.peek() {
            self.at += 1;
            words.push(word);
        }
        let mnemonic = words.join(".");
        let Some((opcode, used)) = Opcode::find(&words) else {
            return fail(format!("unknown instruction `{mnemonic}` in `{text}`"));
        };
        let mut modifiers = Vec::with_capacity(words.len() - used);
        for word in &words[used..] {
            match Modifier::from_text(word) {
                Some(modifier) => modifiers.push(modifier),
                None => return fail(format!("unknown modifier `.{word}` of `{}` in `{text}`", opcode.text())),
            }
        }
        if !opcode.allows(&modifiers) {
            return fail(format!(
                "the modifiers of `{mnemonic}` are not a known form of `{}` in `{text}`",
                opcode.text()
            ));
        }
        let mut operands = Vec::new();
        if self.peek() != TokenKind::Sign(';') {
            loop {
                operands.push(self.operand()?);
                if !self.eat(',') {
                    break;
                }
            }
        }
        self.expect(';')?;
        if !fits(opcode, &operands) {
            return fail(format!("the operands do not fit `{}` in `{text}`", opcode.text()));
        }
        Ok(Instruction { guard, opcode, modifiers, operands, line: Line(line) })
    }

    pub(super) fn operand(&mut self) -> Result<Operand> {
        let first = self.simple_operand()?;
        if self.eat('|') {
            let second = self.simple_operand()?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    pub(super) fn simple_operand(&mut self) -> Result<Operand> {
        match self.peek() {
            TokenKind::Sign('[') => {
                self.at += 1;
                let address = match self.peek() {
                    TokenKind::Name(_) => {
                        let base = Some(self.register_or_symbol()?);
                        Address { base, offset: self.offset()? }
                    }
                    TokenKind::Number(_) => Address { base: None, offset: self.integer()? as i64 },
                    _ => return self.expected("an address"),
                };
                if self.eat(',') {
                    let coordinates = self.operands('{', '}')?;
                    self.expect(']')?;
                    return Ok(Operand::TensorAddress(address, coordinates));
                }
                self.expect(']')?;
                Ok(Operand::Address(address))
            }
            TokenKind::Sign('{') => Ok(Operand::Vector(self.operands('{', '}')?)),
            TokenKind::Sign('(') => Ok(Operand::List(self.operands('(', ')')?)),
            TokenKind::Sign('!') => {
                self.at += 1;
                Ok(Operand::Not(self.name()?))
            }
            TokenKind::Name("_") => {
                self.at += 1;
                Ok(Operand::Sink)
            }
            TokenKind::Name(_) => {
                let name = self.register_or_symbol()?;
                if !name.starts_with('%') && matches!(self.peek(), TokenKind::Sign('+' | '-')) {
                    let offset = self.offset()?;
                    return Ok(Operand::Offset(name, offset));
                }
                Ok(Operand::Name(name))
            }
            TokenKind::Number(_) | TokenKind::Sign('-') => Ok(Operand::Immediate(self.immediate()?)),
            _ => self.expected("an operand"),
        }
    }

    pub(super) fn operands(&mut self, open: char, close: char) -> Result<Vec<Operand>> {
        self.expect(open)?;
        let mut list = Vec::new();
        while !self.eat(close) {
            list.push(self.operand()?);
            if !self.eat(',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(list)
    }

    /// A name; `%tid.x` is one name.
    pub(super) fn register_or_symbol(&mut self) -> Result<String> {
        let mut name = self.name()?;
        if name.starts_with('%')
            && let TokenKind::Dot(part @ ("x" | "y" | "z" | "w")) = self.peek()
        {
            self.at += 1;
            name.push('.');
            name.push_str(part);
        }
        Ok(name)
    }
}

/// Whether the operands have the kinds and number of the table.
fn fits(opcode: Opcode, operands: &[Operand]) -> bool {
    let fits_kind = |kind: OperandKind, operand: &Operand| match kind {
        OperandKind::Destination => matches!(operand, Operand::Name(_) | Operand::Sink | Operand::Vector(_)),
        OperandKind::DestinationPair => matches!(operand, Operand::Name(_) | Operand::Sink | Operand::Pair(..)),
        OperandKind::Source => matches!(
            operand,
            Operand::Name(_) | Operand::Not(_) | Operand::Offset(..) | Operand::Immediate(_) | Operand::Vector(_)
        ),
        OperandKind::Address => matches!(operand, Operand::Address(_)),
        OperandKind::Label => matches!(operand, Operand::Name(_)),
        OperandKind::List => matches!(operand, Operand::List(_)),
        OperandKind::TensorAddress => matches!(operand, Operand::TensorAddress(..)),
    };
    let mut rest = operands.iter().peekable();
    for place in opcode.places() {
        match rest.peek() {
            Some(operand) if fits_kind(place.kind, operand) => {
                rest.next();
            }
            _ if place.optional => {}
            _ => return false,
        }
    }
    rest.next().is_none()
}
