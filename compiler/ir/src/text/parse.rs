//! The reader: a recursive descent over the tokens, driven by the table of operations.
//!
//! It checks form, not meaning: a kernel that was read may still be refused by the verifier, which is how the verifier
//! is tested. Names may be used before they are defined in the text. No text makes it panic; nesting is limited.

use std::collections::HashMap;
use std::ops::Range;

use cranelift_entity::SecondaryMap;
use logos::Logos;
use rtc_abi::{ParamType, Persistent};
use rtc_layout::{Layout, SharedLayout};
use smallvec::SmallVec;

use super::lexer::Token;
use super::names::is_automatic;
use crate::metadata::{default_param_type, param_type};
use crate::{
    AttrValue, Block, Hidden, Kernel, KernelOptions, LayoutId, Op, OpData, OpKind, OpSpec, Param, Phase, Position,
    SPECS, SharedLayoutId, Traits, Value,
};

/// Deepest nesting of blocks and of lists.
pub(super) const MAX_DEPTH: u32 = 64;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// Byte offset in the text.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// One plain sentence.
    pub message: String,
}

/// A kernel and the text positions of its operations.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The kernel.
    pub kernel: Kernel,
    /// The bytes of each operation's first line, from its first token to the last one before its blocks.
    pub spans: SecondaryMap<Op, Range<usize>>,
}

/// Reads a kernel.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    parse_with_spans(text).map(|parsed| parsed.kernel)
}

/// Reads a kernel and keeps the positions of its operations.
pub fn parse_with_spans(text: &str) -> Result<Parsed, ParseError> {
    read(text).map_err(|Wrong { offset, message }| {
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        ParseError { offset, line, column, message }
    })
}

/// The error message and its position.
pub(super) struct Wrong {
    offset: usize,
    message: String,
}

pub(super) type Read<T> = Result<T, Wrong>;

fn read(text: &str) -> Read<Parsed> {
    let mut tokens = Vec::new();
    for (token, range) in Token::lexer(text).spanned() {
        match token {
            Ok(token) => tokens.push((token, range)),
            Err(()) => return Err(Wrong { offset: range.start, message: "this is no token".into() }),
        }
    }
    let mut reader = Reader {
        tokens,
        at: 0,
        end: text.len(),
        kernel: Kernel::new("", KernelOptions::default()),
        layouts: HashMap::new(),
        shared_layouts: HashMap::new(),
        values: HashMap::new(),
        pending: Vec::new(),
        spans: SecondaryMap::new(),
    };
    reader.kernel()?;
    reader.resolve()?;
    Ok(Parsed { kernel: reader.kernel, spans: reader.spans })
}

/// The state of the reader.
pub(super) struct Reader<'t> {
    tokens: Vec<(Token<'t>, Range<usize>)>,
    pub(super) at: usize,
    end: usize,
    pub(super) kernel: Kernel,
    pub(super) layouts: HashMap<&'t str, LayoutId>,
    pub(super) shared_layouts: HashMap<&'t str, SharedLayoutId>,
    values: HashMap<&'t str, Value>,
    /// Operands by name, put in once all values are known.
    pending: Vec<(Op, Vec<Named<'t>>)>,
    spans: SecondaryMap<Op, Range<usize>>,
}

/// A name and its position.
type Named<'t> = (&'t str, usize);

/// The operands of an operation, as in the text.
#[derive(Default)]
struct Operands<'t> {
    named: Vec<Named<'t>>,
    optional: Vec<(&'t str, Named<'t>)>,
    variadic: Option<Vec<Named<'t>>>,
}

impl<'t> Reader<'t> {
    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(_, range)| range.start)
    }

    fn previous_end(&self) -> usize {
        self.at.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(0, |(_, range)| range.end)
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Read<T> {
        Err(Wrong { offset: self.offset(), message: message.into() })
    }

    pub(super) fn expected<T>(&self, what: &str) -> Read<T> {
        match self.peek() {
            Some(token) => self.fail(format!("expected {what}, found {token}")),
            None => self.fail(format!("expected {what}, found the end")),
        }
    }

    pub(super) fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).map(|(token, _)| *token)
    }

    pub(super) fn eat(&mut self, token: Token<'_>) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, token: Token<'_>) -> Read<()> {
        if self.eat(token) { Ok(()) } else { self.expected(&token.to_string()) }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        self.eat(Token::Word(word))
    }

    pub(super) fn word(&mut self) -> Read<&'t str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.expected("a word"),
        }
    }

    fn value_name(&mut self) -> Read<Named<'t>> {
        let offset = self.offset();
        match self.peek() {
            Some(Token::Value(name)) => {
                self.at += 1;
                Ok((name, offset))
            }
            _ => self.expected("a value"),
        }
    }

    fn number(&mut self) -> Read<u32> {
        match self.peek() {
            Some(Token::Int(text)) => match text.parse() {
                Ok(n) => {
                    self.at += 1;
                    Ok(n)
                }
                Err(_) => self.fail(format!("{text} is out of range")),
            },
            _ => self.expected("a number"),
        }
    }

    fn define(&mut self, (name, offset): Named<'t>, value: Value) -> Read<()> {
        match self.values.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(Wrong { offset, message: format!("`%{name}` is defined twice") }),
        }
    }

    fn kernel(&mut self) -> Read<()> {
        while let Some(Token::LayoutDef(text)) = self.peek() {
            self.layout(text)?;
            self.at += 1;
        }
        if !self.eat_word("kernel") {
            return self.expected("`kernel`");
        }
        self.kernel.name = match self.peek() {
            Some(Token::Symbol(name)) => {
                self.at += 1;
                name.to_string()
            }
            _ => {
                self.expect(Token::At)?;
                self.string()?
            }
        };
        self.expect(Token::Open)?;
        while !self.eat(Token::Close) {
            if !self.kernel.params.is_empty() {
                self.expect(Token::Comma)?;
            }
            self.param()?;
        }
        self.options()?;
        self.expect(Token::OpenBrace)?;
        self.block(self.kernel.body(), 0)?;
        if self.at < self.tokens.len() { self.expected("the end") } else { Ok(()) }
    }

    fn layout(&mut self, text: &'t str) -> Read<()> {
        let (name, rest) = text.split_once('=').unwrap_or((text, ""));
        let (name, rest) = (name.trim(), rest.split("//").next().unwrap_or_default().trim());
        let defined = if name.starts_with("#s") {
            rest.parse::<SharedLayout>().map(|layout| {
                let id = self.kernel.intern_shared_layout(layout);
                self.shared_layouts.insert(name, id).is_some()
            })
        } else {
            rest.parse::<Layout>().map(|layout| {
                let id = self.kernel.intern_layout(layout);
                self.layouts.insert(name, id).is_some()
            })
        };
        match defined {
            Ok(false) => Ok(()),
            Ok(true) => self.fail(format!("`{name}` is defined twice")),
            Err(e) => self.fail(e.to_string()),
        }
    }

    fn param(&mut self) -> Read<()> {
        let name = self.value_name()?;
        self.expect(Token::Colon)?;
        let ty = self.ty()?;
        let (mut param, mut hidden) = ((name.0.to_string(), None, 1), None);
        if self.peek() == Some(Token::OpenBrace) {
            let mut attrs = self.attrs()?;
            hidden = match Hidden::from_attrs(&mut attrs) {
                Ok(hidden) => hidden,
                Err(message) => return self.fail(message),
            };
            for (key, value) in attrs {
                match (key.as_str(), value) {
                    ("sig", AttrValue::Str(s)) => match param_type(&s) {
                        Some(ty) => param.1 = Some(ty),
                        None => return self.fail(format!("`{s}` is no type of a parameter")),
                    },
                    ("name", AttrValue::Str(s)) => param.0 = s,
                    ("align", AttrValue::Int(n)) if u32::try_from(n).is_ok() => param.2 = n as u32,
                    _ => return self.fail(format!("`{key}` is no attribute of a parameter, or has the wrong form")),
                }
            }
        }
        let of_map = matches!(hidden, Some(Hidden::TensorMap(_))).then_some(ParamType::TensorMap);
        let Some(param_ty) = param.1.or(of_map).or_else(|| default_param_type(ty)) else {
            return self.fail(format!("a parameter cannot be a {ty}"));
        };
        let value = self.kernel.add_arg(self.kernel.body(), ty, Some(name.0.to_string()));
        self.kernel.params.push(Param { name: param.0, ty: param_ty, divisible_by: param.2, value, hidden });
        self.define(name, value)
    }

    fn options(&mut self) -> Read<()> {
        while self.peek() != Some(Token::OpenBrace) {
            match self.word()? {
                "warps" => self.kernel.options.num_warps = self.number()?,
                "given" => self.kernel.options.given_warps = Some(self.number()?),
                "stages" => self.kernel.options.num_stages = self.number()?,
                "ctas" => self.kernel.options.num_ctas = self.number()?,
                "maxnreg" => self.kernel.options.maxnreg = Some(self.number()?),
                "persistent" => {
                    let blocks_per_multiprocessor = self.number()?;
                    self.kernel.persistent = Some(Persistent { blocks_per_multiprocessor, uneven: false });
                }
                "uneven" => match &mut self.kernel.persistent {
                    Some(persistent) => persistent.uneven = true,
                    None => return self.fail("`uneven` follows `persistent`"),
                },
                "no_fp_fusion" => self.kernel.options.fp_fusion = false,
                "shared" => self.kernel.shared_bytes = self.number()?,
                "phase" => {
                    self.kernel.phase = match self.word()? {
                        "tile" => Phase::Tile,
                        "laid" => Phase::Laid,
                        "scheduled" => Phase::Scheduled,
                        other => return self.fail(format!("there is no phase `{other}`")),
                    }
                }
                other => return self.fail(format!("a kernel has no option `{other}`")),
            }
        }
        Ok(())
    }

    /// Operations up to the closing brace.
    fn block(&mut self, block: Block, depth: u32) -> Read<()> {
        if depth > MAX_DEPTH {
            return self.fail("blocks are nested too deeply");
        }
        while !self.eat(Token::CloseBrace) {
            self.op(block, depth)?;
        }
        Ok(())
    }

    fn op(&mut self, block: Block, depth: u32) -> Read<()> {
        let start = self.offset();
        let mut results = Vec::new();
        if matches!(self.peek(), Some(Token::Value(_))) {
            results.push(self.value_name()?);
            while self.eat(Token::Comma) {
                results.push(self.value_name()?);
            }
            self.expect(Token::Equals)?;
        }
        let mnemonic_offset = self.offset();
        let mnemonic = self.word()?;
        let Some(spec) = SPECS.iter().find(|spec| spec.mnemonic == mnemonic) else {
            return Err(Wrong { offset: mnemonic_offset, message: format!("there is no operation `{mnemonic}`") });
        };
        let operands = self.operands(spec)?;
        let attrs = if self.peek() == Some(Token::OpenBrace) { self.attrs()? } else { Vec::new() };
        let kind =
            OpKind::from_attrs(mnemonic, &attrs).map_err(|message| Wrong { offset: mnemonic_offset, message })?;
        let mut types = Vec::new();
        if self.eat(Token::Colon) {
            types.push(self.ty()?);
            while self.eat(Token::Comma) {
                types.push(self.ty()?);
            }
        }
        if types.len() != results.len() {
            let message = format!("there are {} results and {} result types", results.len(), types.len());
            return Err(Wrong { offset: mnemonic_offset, message });
        }
        let loc = self.loc()?;
        let (optional, names) =
            arrange(&kind, operands).map_err(|message| Wrong { offset: mnemonic_offset, message })?;
        let span = start..self.previous_end();
        let mut blocks: SmallVec<[Block; 2]> = SmallVec::new();
        while self.eat(Token::Caret) {
            let nested = self.kernel.new_block();
            blocks.push(nested);
            self.nested_args(nested)?;
            self.expect(Token::OpenBrace)?;
            self.block(nested, depth + 1)?;
        }
        let data =
            OpData { kind, operands: SmallVec::new(), optional, results: SmallVec::new(), blocks, loc, parent: None };
        let op = self.kernel.make_op(data, &types);
        self.kernel.insert_op(op, Position::End(block));
        for (i, name) in results.into_iter().enumerate() {
            let value = self.kernel.result(op, i);
            if !is_automatic(name.0, mnemonic) {
                self.kernel.name_value(value, name.0);
            }
            self.define(name, value)?;
        }
        self.pending.push((op, names));
        self.spans[op] = span;
        Ok(())
    }

    fn nested_args(&mut self, block: Block) -> Read<()> {
        self.expect(Token::Open)?;
        while !self.eat(Token::Close) {
            if !self.kernel.block(block).args.is_empty() {
                self.expect(Token::Comma)?;
            }
            let name = self.value_name()?;
            self.expect(Token::Colon)?;
            let ty = self.ty()?;
            let kept = (!is_automatic(name.0, "arg")).then(|| name.0.to_string());
            let value = self.kernel.add_arg(block, ty, kept);
            self.define(name, value)?;
        }
        Ok(())
    }

    fn operands(&mut self, spec: &OpSpec) -> Read<Operands<'t>> {
        let mut operands = Operands::default();
        // An operation without operands may be followed by another operation, which starts alike.
        match self.peek() {
            Some(Token::Value(_)) if !spec.operands.is_empty() => {}
            Some(Token::Word(name)) if spec.optional.contains(&name) => {}
            Some(Token::Open) => {}
            _ => return Ok(operands),
        }
        loop {
            match self.peek() {
                Some(Token::Value(_)) => operands.named.push(self.value_name()?),
                Some(Token::Word(name)) => {
                    self.at += 1;
                    self.expect(Token::Equals)?;
                    operands.optional.push((name, self.value_name()?));
                }
                Some(Token::Open) if operands.variadic.is_none() => {
                    self.at += 1;
                    let mut list = Vec::new();
                    while !self.eat(Token::Close) {
                        if !list.is_empty() {
                            self.expect(Token::Comma)?;
                        }
                        list.push(self.value_name()?);
                    }
                    operands.variadic = Some(list);
                }
                _ => return self.expected("an operand"),
            }
            if !self.eat(Token::Comma) {
                return Ok(operands);
            }
        }
    }

    fn resolve(&mut self) -> Read<()> {
        for (op, names) in std::mem::take(&mut self.pending) {
            for (name, offset) in names {
                match self.values.get(name) {
                    Some(value) => self.kernel.push_operand(op, *value),
                    None => return Err(Wrong { offset, message: format!("`%{name}` is not defined") }),
                }
            }
        }
        Ok(())
    }
}

/// The operands in their order in the operation, and which optional ones are there.
fn arrange<'t>(kind: &OpKind, operands: Operands<'t>) -> Result<(u8, Vec<Named<'t>>), String> {
    let spec = kind.spec();
    let Operands { named: mut all, optional, variadic } = operands;
    if all.len() != spec.operands.len() {
        return Err(format!("`{}` takes {} operands, not {}", spec.mnemonic, spec.operands.len(), all.len()));
    }
    for (i, (name, _)) in optional.iter().enumerate() {
        if !spec.optional.contains(name) {
            return Err(format!("`{}` has no operand `{name}`", spec.mnemonic));
        }
        if optional[..i].iter().any(|(n, _)| n == name) {
            return Err(format!("operand `{name}` is given twice"));
        }
    }
    let mut present = 0;
    for (i, name) in spec.optional.iter().enumerate() {
        if let Some((_, value)) = optional.iter().find(|(n, _)| n == name) {
            present |= 1 << i;
            all.push(*value);
        }
    }
    if let Some(variadic) = variadic {
        if !spec.traits.has(Traits::VARIADIC) {
            return Err(format!("`{}` takes no further operands", spec.mnemonic));
        }
        all.extend(variadic);
    }
    Ok((present, all))
}
