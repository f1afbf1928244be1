//! Messages, traps, inline assembly, special registers.

use melior::{Context, ir::Module};
use rtc_ir::{Elem, Op, Scalar, Text as IrText, interp::full_prefix, view};

use super::{Lowering, memory::Words};
use crate::{
    emit::{self, AccessAttrs, Space, Type, Types, Value},
    error::{CodegenError, Result},
};

/// A string in constant memory, to be defined in the module.
pub(super) struct Text {
    symbol: String,
    bytes: String,
}

impl Text {
    pub fn define(&self, context: &Context, module: &Module<'_>) {
        emit::constant_text(context, module, &self.symbol, &self.bytes);
    }
}

/// A function to be declared in the module: one of the driver's, or of a library of bitcode.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum External {
    /// `int vprintf(const char *format, void *arguments)`.
    Print,
    /// `void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t char)`.
    AssertFail,
    /// A function of the library.
    Library { symbol: String, parameters: Vec<Elem>, result: Elem },
}

impl External {
    fn symbol(&self) -> &str {
        match self {
            External::Print => "vprintf",
            External::AssertFail => "__assertfail",
            External::Library { symbol, .. } => symbol,
        }
    }

    pub fn declare<'c>(&self, context: &'c Context, module: &Module<'c>) {
        let ty = Types::new(context);
        let (parameters, result): (Vec<Type<'c>>, _) = match self {
            External::Print => (vec![ty.generic, ty.generic], Some(ty.i32)),
            External::AssertFail => (vec![ty.generic, ty.generic, ty.i32, ty.generic, ty.i64], None),
            External::Library { parameters, result, .. } => {
                let parameters = parameters.iter().map(|elem| super::element_type(&ty, *elem));
                (parameters.collect(), Some(super::element_type(&ty, *result)))
            }
        };
        emit::external_function(context, module, self.symbol(), &parameters, result);
    }
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn special_register(&self, op: Op, name: &IrText) -> Result<()> {
        let result = self.kernel.result(op, 0);
        let (class, ty) = match self.elem(result)? {
            Elem::Num(Scalar::I64) => ("=l", "u64"),
            Elem::Num(Scalar::I32) => ("=r", "u32"),
            other => return Err(CodegenError::lowering(format!("a special register of type {other}"))),
        };
        let text = format!("mov.{ty} $0, %{};", name.0);
        let ty = self.element(self.elem(result)?);
        self.define(op, self.e.assembly(&text, class, &[], &[ty], true));
        Ok(())
    }

    pub(super) fn grid_dependency(&self, wait: bool) {
        let text = if wait { "griddepcontrol.wait;" } else { "griddepcontrol.launch_dependents;" };
        self.e.assembly(text, "~{memory}", &[], &[], true);
    }

    pub(super) fn inline_asm(&self, op: Op, text: &IrText, constraints: &IrText, pure: bool, pack: u32) -> Result<()> {
        let data = self.kernel.op(op);
        let operands: Vec<_> =
            data.operands.iter().map(|value| Ok((self.elem(*value)?, self.get(*value)?))).collect::<Result<_>>()?;
        let results: Vec<Elem> = data.results.iter().map(|value| self.elem(*value)).collect::<Result<_>>()?;
        let count = match data.results.first() {
            Some(result) => self.register_count(*result)?,
            None => operands.first().map_or(1, |(_, registers)| registers.len()),
        };
        let pack = (pack as usize).max(1);
        let mut outputs: Vec<Vec<Value<'c>>> = vec![Vec::new(); results.len()];
        for first in (0..count).step_by(pack) {
            // Where fewer registers are left than one execution takes, the last one fills up.
            let group = |registers: &[Value<'c>]| -> Vec<Value<'c>> {
                (first..first + pack).map(|i| registers[i.min(registers.len() - 1)]).collect()
            };
            let mut inputs = Vec::new();
            for (elem, registers) in &operands {
                inputs.extend(self.asm_words(*elem, &group(registers)));
            }
            let mut types = Vec::new();
            for elem in &results {
                let (words, ty) = self.asm_form(*elem, pack as u32);
                types.extend(vec![ty; words as usize]);
            }
            let produced = self.e.assembly(&text.0, &constraints.0, &inputs, &types, !pure);
            let mut produced = produced.as_slice();
            for (output, elem) in outputs.iter_mut().zip(&results) {
                let (words, _) = self.asm_form(*elem, pack as u32);
                let (own, rest) = produced.split_at(words as usize);
                output.extend(self.asm_elements(*elem, own, pack as u32));
                produced = rest;
            }
        }
        for (result, mut values) in data.results.iter().zip(outputs) {
            values.truncate(count);
            self.set(*result, values);
        }
        Ok(())
    }

    /// The words of a value, out of a statement that LLVM does not look into.
    pub(super) fn opaque(&self, op: Op) -> Result<()> {
        let bits = self.elem(view::Opaque::at(self.kernel, op).value())?.bits().clamp(8, 32);
        self.inline_asm(op, &"mov.b32 $0, $1;".into(), &"=r,r".into(), false, 32 / bits)
    }

    /// Calls a function of the library for each register.
    pub(super) fn extern_call(&self, op: Op, symbol: &str, to: Elem) -> Result<()> {
        let data = self.kernel.op(op);
        let parameters: Vec<Elem> = data.operands.iter().map(|value| self.elem(*value)).collect::<Result<_>>()?;
        let operands: Vec<_> = data.operands.iter().map(|value| self.get(*value)).collect::<Result<_>>()?;
        let result = [self.element(to)];
        let count = self.register_count(data.results[0])?;
        let call = |register: usize| {
            let arguments: Vec<Value<'c>> = operands.iter().map(|registers| registers[register]).collect();
            let value = self.e.call(symbol, &arguments, &result);
            value.ok_or_else(|| CodegenError::lowering("a call without a result"))
        };
        let results = (0..count).map(call).collect::<Result<_>>()?;
        self.define(op, results);
        self.external(External::Library { symbol: symbol.to_owned(), parameters, result: to });
        Ok(())
    }

    /// How many machine words `pack` elements take in assembly, and their type: narrow elements share 32-bit words
    /// where there are several; a single one has a register of its own width.
    fn asm_form(&self, elem: Elem, pack: u32) -> (u32, Type<'c>) {
        let e = self.e;
        let bits = elem.bytes() * 8;
        match bits {
            64 | 32 => (pack, if elem.is_ptr() { e.ty.i64 } else { self.element(elem) }),
            _ if pack * bits >= 32 => (pack * bits / 32, e.ty.i32),
            _ if pack == 1 && bits == 16 => (1, e.ty.i16),
            _ => (1, e.ty.i32),
        }
    }

    fn asm_words(&self, elem: Elem, values: &[Value<'c>]) -> Vec<Value<'c>> {
        let e = self.e;
        let bits = elem.bytes() * 8;
        let count = values.len() as u32;
        match bits {
            64 | 32 if !elem.is_ptr() => values.to_vec(),
            64 | 32 => values.iter().map(|value| e.ptrtoint(*value, e.ty.i64)).collect(),
            _ if count * bits >= 32 => self.to_words(elem, values, Words { bits: 32, count: count * bits / 32 }),
            _ => {
                let total = count * bits;
                let word = self.to_words(elem, values, Words { bits: total, count: 1 })[0];
                vec![if count == 1 && bits == 16 { word } else { e.extui(word, e.ty.i32) }]
            }
        }
    }

    fn asm_elements(&self, elem: Elem, words: &[Value<'c>], count: u32) -> Vec<Value<'c>> {
        let e = self.e;
        let bits = elem.bytes() * 8;
        match bits {
            64 | 32 if !elem.is_ptr() => words.to_vec(),
            64 | 32 => words.iter().map(|word| e.inttoptr(*word, self.element(elem))).collect(),
            _ if count * bits >= 32 => {
                self.from_words(elem, words, Words { bits: 32, count: words.len() as u32 }, count)
            }
            _ => {
                let total = count * bits;
                let word = e.trunci(words[0], e.integer_type(if total == 8 { 16 } else { total }));
                self.from_words(elem, &[word], Words { bits: total, count: 1 }, count)
            }
        }
    }

    pub(super) fn assertion(&self, op: Op, message: &IrText, file: &IrText, line: u32) -> Result<()> {
        let asserted = view::Assertion::at(self.kernel, op);
        let e = self.e;
        let (conditions, mask) = (self.get(asserted.condition())?, self.present(asserted.mask())?);
        let mut failed: Option<Value<'c>> = None;
        for (register, condition) in conditions.iter().enumerate() {
            let mut bad = e.xori(*condition, e.bool(true));
            if let Some(mask) = &mask {
                bad = e.andi(bad, super::coordinates::register(mask, register));
            }
            failed = Some(failed.map_or(bad, |before| e.ori(before, bad)));
        }
        let Some(failed) = failed else { return Ok(()) };
        self.external(External::AssertFail);
        let texts = [self.text(&message.0), self.text(&file.0), self.text(&self.kernel.name)];
        e.if_then(failed, || {
            let [message, file, function] = texts.map(|symbol| self.text_address(&symbol));
            let line = e.i32(line as i32);
            e.call(External::AssertFail.symbol(), &[message, file, line, function, e.i64(1)], &[]);
            e.assembly("trap;", "", &[], &[], true);
        });
        Ok(())
    }

    pub(super) fn print(&self, op: Op, prefix: &IrText, hex: bool, signed: &[u32]) -> Result<()> {
        let operands = self.kernel.op(op).operands.clone();
        self.external(External::Print);
        let prefix = escaped(&full_prefix(&prefix.0, !operands.is_empty()));
        if operands.is_empty() {
            let holder = self.thread_bits_clear(u32::MAX);
            return self.print_line(holder, &prefix, &[], &[]);
        }
        for (index, operand) in operands.iter().enumerate() {
            let elem = self.elem(*operand)?;
            let registers = self.get(*operand)?;
            let holders = self.holders(*operand)?;
            let is_signed = signed.get(index).is_none_or(|signed| *signed != 0);
            let number = if operands.len() > 1 { format!("(operand {index}) ") } else { String::new() };
            let text = format!("{prefix}{number}{}", placeholder(elem, hex, is_signed));
            let layout = self.kernel.layout_of(*operand);
            for (register, value) in registers.iter().enumerate() {
                if register as u32 & holders.copied_registers != 0 {
                    continue;
                }
                let coordinates: Vec<Value<'c>> = match layout {
                    None => Vec::new(),
                    Some(layout) => (0..layout.rank())
                        .map(|axis| {
                            let shift: u32 = layout.shape()[axis + 1..].iter().map(|size| size.trailing_zeros()).sum();
                            let mask = layout.shape()[axis] - 1;
                            let spot = self.layout_spot(layout, |flat| flat >> shift & mask);
                            self.at(spot, layout.index(register as u32, 0, 0) >> shift & mask)
                        })
                        .collect(),
                };
                let argument = self.print_argument(elem, *value, hex, is_signed);
                self.print_line(holders.thread, &text, &coordinates, &[argument])?;
            }
        }
        Ok(())
    }

    /// Prints `pid (x, y, z)`, for a value `idx (i, ..)`, and the text under a condition; every argument takes eight
    /// bytes.
    fn print_line(
        &self,
        condition: Option<Value<'c>>,
        text: &str,
        coordinates: &[Value<'c>],
        values: &[Value<'c>],
    ) -> Result<()> {
        let e = self.e;
        let indices = vec!["%llu"; coordinates.len()].join(", ");
        let place = if values.is_empty() { String::new() } else { format!(" idx ({indices})") };
        let format = self.text(&format!("pid (%llu, %llu, %llu){place}{text}\n"));
        let slots = 3 + coordinates.len() + values.len();
        let buffer = e.local(e.ty.i64, slots as i32, 8);
        self.when(condition, || {
            let programs = ["ctaid.x", "ctaid.y", "ctaid.z"].map(|name| e.special_register(name));
            let wide = programs.iter().chain(coordinates).map(|value| e.extui(*value, e.ty.i64));
            for (slot, value) in wide.chain(values.iter().copied()).enumerate() {
                let place = e.constant_offset(buffer, 8 * slot as i32);
                e.store(value, place, AccessAttrs { align: 8, ..AccessAttrs::default() });
            }
            e.call(External::Print.symbol(), &[self.text_address(&format), buffer], &[e.ty.i32]);
        });
        Ok(())
    }

    /// A value as `printf` takes it: 64 bits.
    fn print_argument(&self, elem: Elem, value: Value<'c>, hex: bool, signed: bool) -> Value<'c> {
        let e = self.e;
        match elem {
            Elem::Ptr(_) => e.ptrtoint(value, e.ty.i64),
            Elem::Num(_) if hex => e.extui(e.bitcast(value, e.integer_type(elem.bits())), e.ty.i64),
            Elem::Num(scalar) if scalar.is_fp8() => {
                let half = self.from_byte_floats(&[value], scalar)[0];
                e.extf(half, e.ty.f64)
            }
            Elem::Num(scalar) if scalar.is_float() => e.extf(value, e.ty.f64),
            Elem::Num(scalar) if signed && scalar != Scalar::I1 => e.extsi(value, e.ty.i64),
            Elem::Num(_) => e.extui(value, e.ty.i64),
        }
    }

    /// Registers a string and returns its symbol; equal strings share one.
    fn text(&self, text: &str) -> String {
        let mut texts = self.texts.borrow_mut();
        if let Some(known) = texts.iter().find(|known| known.bytes == text) {
            return known.symbol.clone();
        }
        let symbol = format!("rtc_text_{}", texts.len());
        texts.push(Text { symbol: symbol.clone(), bytes: text.to_owned() });
        symbol
    }

    fn text_address(&self, symbol: &str) -> Value<'c> {
        self.e.addrspacecast(self.e.address_of(symbol, Space::Global), self.e.ty.generic)
    }

    fn external(&self, function: External) {
        let mut externals = self.externals.borrow_mut();
        if !externals.contains(&function) {
            externals.push(function);
        }
    }
}

fn placeholder(elem: Elem, hex: bool, signed: bool) -> String {
    match elem {
        Elem::Ptr(_) => "0x%016llx".to_owned(),
        Elem::Num(_) if hex => format!("0x%0{}llx", elem.bits().div_ceil(4)),
        Elem::Num(scalar) if scalar.is_float() => "%f".to_owned(),
        Elem::Num(_) if signed => "%lld".to_owned(),
        Elem::Num(_) => "%llu".to_owned(),
    }
}

/// Text that `printf` prints literally.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}
