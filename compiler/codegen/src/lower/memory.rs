//! Loads from and stores to global memory.
//!
//! An access without wishes and without condition is a plain `llvm.load` or `llvm.store`, which LLVM understands. One
//! with a condition is predicated assembly: a branch around a vector load would cost more than the load.

use rtc_ir::{CacheModifier, Elem, Eviction, Op, view};

use super::{Lowering, coordinates::register};
use crate::{
    emit::{AccessAttrs, Cmpi, LoadKind, Value},
    error::{CodegenError, Result},
};

/// Wishes of an access that change the instruction.
#[derive(Clone, Copy)]
pub(super) struct Modifiers {
    pub cache: CacheModifier,
    pub evict: Eviction,
    pub volatile: bool,
}

impl Modifiers {
    fn plain(self) -> bool {
        self.cache == CacheModifier::None && self.evict == Eviction::Normal
    }

    /// The instruction up to the vector width. PTX has a cache operator or an eviction priority, not both.
    fn instruction(self, name: &str) -> String {
        if self.volatile {
            return format!("{name}.volatile.global");
        }
        let cache = match (name, self.cache) {
            (_, CacheModifier::None) | ("ld", CacheModifier::Wb | CacheModifier::Wt) => "",
            ("st", CacheModifier::Ca | CacheModifier::Cv) => "",
            (_, CacheModifier::Ca) => ".ca",
            (_, CacheModifier::Cg) => ".cg",
            (_, CacheModifier::Cs) => ".cs",
            (_, CacheModifier::Cv) => ".cv",
            (_, CacheModifier::Wb) => ".wb",
            (_, CacheModifier::Wt) => ".wt",
        };
        let evict = match self.evict {
            Eviction::First if cache.is_empty() => ".L1::evict_first",
            Eviction::Last if cache.is_empty() => ".L1::evict_last",
            Eviction::First | Eviction::Last | Eviction::Normal => "",
        };
        format!("{name}.global{cache}{evict}")
    }
}

/// How the elements of one access fill machine words.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Bits of a word: 8 to 64.
    pub bits: u32,
    /// How many words.
    pub count: u32,
}

impl Words {
    /// The words of `elements` elements of `bits` bits: words of 32 bits where elements are narrower and fill one.
    pub fn new(elements: u32, bits: u32) -> Words {
        let total = elements * bits;
        let word = if bits >= 32 { bits } else { total.min(32) };
        Words { bits: word, count: total / word }
    }

    /// The vector suffix of an instruction.
    fn vector(self) -> String {
        if self.count == 1 { String::new() } else { format!(".v{}", self.count) }
    }

    /// The letter of the register class in assembly constraints. A byte travels in a 16-bit register.
    fn class(self) -> &'static str {
        match self.bits {
            64 => "l",
            32 => "r",
            _ => "h",
        }
    }

    /// Operands `$first..` of an assembly text, in braces if there are several.
    fn list(self, first: u32) -> String {
        let names: Vec<_> = (first..first + self.count).map(|i| format!("${i}")).collect();
        if self.count == 1 { names.concat() } else { format!("{{{}}}", names.join(", ")) }
    }
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn load(&self, op: Op, modifiers: Modifiers, once: bool, vector: Option<u32>) -> Result<()> {
        let load = view::Load::at(self.kernel, op);
        let pointers = self.get(load.pointer())?;
        let (mask, other) = (self.present(load.mask())?, self.present(load.other())?);
        let result = self.kernel.result(op, 0);
        let elem = self.elem(result)?;
        let width = self.access_width(op, vector, pointers.len(), elem)?;
        let copies = self.kernel.layout_of(result).filter(|_| once).map_or(0, |layout| layout.copies().warps);
        let reads = self.thread_bits_clear(copies << 5);
        let mut values: Vec<Value<'c>> = Vec::with_capacity(pointers.len());
        let mut accesses: Vec<Vec<Value<'c>>> = Vec::new();
        for (first, pointer) in pointers.iter().enumerate().step_by(width) {
            let masked = mask.as_ref().map(|mask| mask[first]);
            let fill: Vec<_> = match &other {
                Some(other) => (first..first + width).map(|i| register(other, i)).collect(),
                None => vec![self.literal(elem, rtc_ir::Literal::Int(0)); width],
            };
            // One access for the registers of one address.
            let access: Vec<_> = [*pointer].into_iter().chain(masked).chain(fill.iter().copied()).collect();
            let before = accesses.iter().position(|other| *other == access).filter(|_| !modifiers.volatile);
            accesses.push(access);
            if let Some(before) = before {
                values.extend_from_within(before * width..(before + 1) * width);
                continue;
            }
            let condition = self.both(masked, reads);
            if condition.is_none() && modifiers.plain() {
                let kind = if modifiers.volatile { LoadKind::Volatile } else { LoadKind::Plain };
                values.extend(self.plain_load(*pointer, elem, width as u32, kind));
                continue;
            }
            values.extend(self.predicated_load(*pointer, elem, condition, &fill, modifiers));
        }
        self.define(op, values);
        Ok(())
    }

    pub(super) fn store(&self, op: Op, modifiers: Modifiers, vector: Option<u32>) -> Result<()> {
        let store = view::Store::at(self.kernel, op);
        let (pointers, values) = (self.get(store.pointer())?, self.get(store.value())?);
        let mask = self.present(store.mask())?;
        let stored = store.value();
        let elem = self.elem(stored)?;
        let width = self.access_width(op, vector, pointers.len(), elem)?;
        let holders = self.holders(stored)?;
        for (first, pointer) in pointers.iter().enumerate().step_by(width) {
            if first as u32 & holders.copied_registers != 0 {
                continue;
            }
            let condition = self.both(mask.as_ref().map(|mask| mask[first]), holders.thread);
            let group = &values[first..first + width];
            if condition.is_none() && modifiers.plain() {
                let group: Vec<_> = group.iter().map(|value| self.in_memory(elem, *value)).collect();
                let access = AccessAttrs { align: width as u32 * elem.bytes(), ..AccessAttrs::default() };
                self.e.store(self.e.pack(&group), *pointer, access);
            } else {
                self.predicated_store(*pointer, elem, condition, group, modifiers);
            }
        }
        Ok(())
    }

    /// The registers of one access, checked against what an instruction can do.
    fn access_width(&self, op: Op, vector: Option<u32>, registers: usize, elem: Elem) -> Result<usize> {
        let width = vector.unwrap_or(1);
        let fits = width.is_power_of_two() && width * elem.bytes() <= 16 && registers.is_multiple_of(width as usize);
        if fits {
            return Ok(width as usize);
        }
        let name = self.kernel.op(op).kind.spec().mnemonic;
        Err(CodegenError::lowering(format!(
            "`{name}` of {width} elements of {elem} at a time, of {registers} registers"
        )))
    }

    /// A value as it is stored in memory: booleans are bytes.
    pub(super) fn in_memory(&self, elem: Elem, value: Value<'c>) -> Value<'c> {
        if elem == Elem::I1 { self.e.extui(value, self.e.ty.i8) } else { value }
    }

    fn plain_load(&self, pointer: Value<'c>, elem: Elem, width: u32, kind: LoadKind) -> Vec<Value<'c>> {
        let e = self.e;
        let ty = if elem == Elem::I1 { e.ty.i8 } else { self.element(elem) };
        let whole = if width == 1 { ty } else { e.vector_type(width, ty) };
        let loaded = e.load(pointer, whole, AccessAttrs { align: width * elem.bytes(), kind });
        let values = e.unpack(loaded, width, ty);
        if elem == Elem::I1 { values.into_iter().map(|byte| self.byte_to_truth(byte)).collect() } else { values }
    }

    fn predicated_load(
        &self,
        pointer: Value<'c>,
        elem: Elem,
        condition: Option<Value<'c>>,
        fill: &[Value<'c>],
        modifiers: Modifiers,
    ) -> Vec<Value<'c>> {
        let e = self.e;
        let words = Words::new(fill.len() as u32, elem.bytes() * 8);
        let class = words.class();
        let count = words.count;
        // Operands: the results, the pointer, the condition, and the fill, which starts in the results' registers.
        let outputs = vec![format!("={class}"); count as usize].join(",");
        let mut constraints = format!("{outputs},l");
        let mut operands = vec![pointer];
        let mut text = String::new();
        if let Some(condition) = condition {
            constraints.push_str(",b");
            operands.push(condition);
            text = format!("@${} ", count + 1);
            operands.extend(self.to_words(elem, fill, words));
            (0..count).for_each(|i| constraints.push_str(&format!(",{i}")));
        }
        let instruction = modifiers.instruction("ld");
        text += &format!("{instruction}{}.b{} {}, [${count}];", words.vector(), words.bits, words.list(0));
        let results = vec![self.word_type(words); count as usize];
        let loaded = e.assembly(&text, &constraints, &operands, &results, true);
        self.from_words(elem, &loaded, words, fill.len() as u32)
    }

    fn predicated_store(
        &self,
        pointer: Value<'c>,
        elem: Elem,
        condition: Option<Value<'c>>,
        values: &[Value<'c>],
        modifiers: Modifiers,
    ) {
        let words = Words::new(values.len() as u32, elem.bytes() * 8);
        let mut operands = vec![pointer];
        operands.extend(self.to_words(elem, values, words));
        let mut constraints = String::from("l");
        (0..words.count).for_each(|_| constraints.push_str(&format!(",{}", words.class())));
        let mut text = String::new();
        if let Some(condition) = condition {
            operands.push(condition);
            constraints.push_str(",b");
            text = format!("@${} ", words.count + 1);
        }
        let instruction = modifiers.instruction("st");
        text += &format!("{instruction}{}.b{} [$0], {};", words.vector(), words.bits, words.list(1));
        self.e.assembly(&text, &constraints, &operands, &[], true);
    }

    /// The MLIR type that holds a word in a register.
    fn word_type(&self, words: Words) -> crate::emit::Type<'c> {
        match words.bits {
            64 => self.e.ty.i64,
            32 => self.e.ty.i32,
            _ => self.e.ty.i16,
        }
    }

    /// Elements packed into words, the first in the low bits.
    pub(super) fn to_words(&self, elem: Elem, values: &[Value<'c>], words: Words) -> Vec<Value<'c>> {
        let e = self.e;
        let per_word = values.len() / words.count as usize;
        let word = |group: &[Value<'c>]| {
            let group: Vec<_> = group.iter().map(|value| self.in_memory(elem, *value)).collect();
            if elem.is_ptr() {
                return e.ptrtoint(group[0], e.ty.i64);
            }
            let bits = e.bitcast(e.pack(&group), e.integer_type(words.bits));
            if words.bits == 8 { e.extui(bits, e.ty.i16) } else { bits }
        };
        values.chunks(per_word).map(word).collect()
    }

    /// The elements of words.
    pub(super) fn from_words(&self, elem: Elem, words: &[Value<'c>], form: Words, count: u32) -> Vec<Value<'c>> {
        let e = self.e;
        let per_word = count / form.count;
        let ty = if elem == Elem::I1 { e.ty.i8 } else { self.element(elem) };
        let elements = |word: &Value<'c>| {
            if elem.is_ptr() {
                return vec![e.inttoptr(*word, ty)];
            }
            let word = if form.bits == 8 { e.trunci(*word, e.ty.i8) } else { *word };
            let group = if per_word == 1 { ty } else { e.vector_type(per_word, ty) };
            e.unpack(e.bitcast(word, group), per_word, ty)
        };
        let values = words.iter().flat_map(elements);
        if elem == Elem::I1 { values.map(|byte| self.byte_to_truth(byte)).collect() } else { values.collect() }
    }

    pub(super) fn assume(&self, op: Op) -> Result<()> {
        let condition = self.scalar(view::Assume::at(self.kernel, op).condition())?;
        self.e.assume(condition);
        Ok(())
    }

    /// Whether an integer register is zero.
    pub(super) fn is_zero(&self, value: Value<'c>) -> Value<'c> {
        self.e.cmpi(Cmpi::Eq, value, self.e.int(crate::emit::type_of(value), 0))
    }
}
