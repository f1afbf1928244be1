//! Functions: parameters, directives, statements.

use super::{Parser, Result};
use crate::lexer::TokenKind;
use crate::module::*;

impl Parser<'_> {
    pub(super) fn function(&mut self, linkage: Linkage, entry: bool) -> Result<Function> {
        let line = Line(self.line());
        let returns = if !entry && self.peek() == TokenKind::Sign('(') { self.params()? } else { Vec::new() };
        let name = self.name()?;
        let params = if self.peek() == TokenKind::Sign('(') { self.params()? } else { Vec::new() };
        let mut directives = Vec::new();
        while let TokenKind::Dot(word) = self.peek() {
            const KNOWN: &[&str] = &[
                "reqntid",
                "maxntid",
                "maxnreg",
                "minnctapersm",
                "maxnctapersm",
                "noreturn",
                "explicitcluster",
                "reqnctapercluster",
                "maxclusterrank",
                "blocksareclusters",
            ];
            if !KNOWN.contains(&word) {
                return self.error(format!("unknown directive `.{word}` of function `{name}`"));
            }
            self.at += 1;
            let mut values = Vec::new();
            if matches!(self.peek(), TokenKind::Number(_)) {
                values.push(self.small()?);
                while self.eat(',') {
                    values.push(self.small()?);
                }
            }
            directives.push(Directive { name: word.to_string(), values });
        }
        let body = if self.eat(';') {
            None
        } else {
            self.expect('{')?;
            Some(self.body()?)
        };
        Ok(Function { linkage, entry, name, returns, params, directives, body, line })
    }

    pub(super) fn params(&mut self) -> Result<Vec<Variable>> {
        self.expect('(')?;
        let mut list = Vec::new();
        while !self.eat(')') {
            list.push(self.variable(Linkage::Internal)?);
            if !self.eat(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(list)
    }

    pub(super) fn body(&mut self) -> Result<Vec<Statement>> {
        let mut list = Vec::new();
        let mut depth = 0;
        loop {
            match self.peek() {
                TokenKind::Sign('{') => {
                    self.at += 1;
                    depth += 1;
                    list.push(Statement::Open);
                }
                TokenKind::Sign('}') => {
                    self.at += 1;
                    if depth == 0 {
                        return Ok(list);
                    }
                    depth -= 1;
                    list.push(Statement::Close);
                }
                TokenKind::Sign(';') => self.at += 1,
                TokenKind::Dot(_) => self.body_directive(&mut list)?,
                TokenKind::Name(name) if self.peek_second() == TokenKind::Sign(':') => {
                    self.at += 2;
                    if self.eat_dot("branchtargets") {
                        let mut targets = vec![self.name()?];
                        while self.eat(',') {
                            targets.push(self.name()?);
                        }
                        self.expect(';')?;
                        list.push(Statement::BranchTargets { name: name.to_string(), targets });
                    } else {
                        list.push(Statement::Label(name.to_string()));
                    }
                }
                TokenKind::Name(_) | TokenKind::Sign('@') => {
                    let instruction = self.instruction()?;
                    list.push(Statement::Instruction(instruction));
                }
                _ => return self.expected("a statement"),
            }
        }
    }

    pub(super) fn body_directive(&mut self, list: &mut Vec<Statement>) -> Result<()> {
        let TokenKind::Dot(word) = self.peek() else { return self.expected("a directive") };
        match word {
            "loc" => {
                self.at += 1;
                let loc = self.loc()?;
                list.push(Statement::Loc(loc));
            }
            "reg" => {
                self.at += 1;
                let ty = self.ty()?;
                let mut names = Vec::new();
                loop {
                    let name = self.name()?;
                    let count = if self.eat('<') {
                        let n = self.small()?;
                        self.expect('>')?;
                        Some(n)
                    } else {
                        None
                    };
                    names.push((name, count));
                    if !self.eat(',') {
                        break;
                    }
                }
                self.expect(';')?;
                list.push(Statement::Registers { ty, names });
            }
            "pragma" => {
                self.at += 1;
                let TokenKind::Text(text) = self.next() else { return self.expected("a string") };
                self.expect(';')?;
                list.push(Statement::Pragma(text.to_string()));
            }
            "local" | "shared" | "param" | "global" | "const" => {
                let mut variables = Vec::new();
                self.variables(Linkage::Internal, &mut variables)?;
                list.extend(variables.into_iter().map(Statement::Variable));
            }
            _ => return self.error(format!("unknown directive `.{word}` in `{}`", self.line_text())),
        }
        Ok(())
    }

    pub(super) fn loc(&mut self) -> Result<Loc> {
        let (file, line, column) = (self.small()?, self.small()?, self.small()?);
        let mut inlined = None;
        if self.eat(',') {
            let TokenKind::Name("function_name") = self.next() else { return self.expected("`function_name`") };
            let name = self.name()?;
            let offset = if self.eat('+') { self.integer()? } else { 0 };
            self.expect(',')?;
            let TokenKind::Name("inlined_at") = self.next() else { return self.expected("`inlined_at`") };
            let at = (self.small()?, self.small()?, self.small()?);
            inlined = Some(Inlined { function: (name, offset), at });
        }
        Ok(Loc { file, line, column, inlined })
    }
}
