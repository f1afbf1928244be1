//! Scratch memory: an operation's own buffer in shared memory, through which values pass from thread to thread.

use rtc_ir::{Elem, Op};
use rtc_layout::{AccessKind, Layout, SharedAccess as TileAccess};

use super::{Lowering, coordinates::Spot, memory::Words};
use crate::{
    emit::{AccessAttrs, Value},
    error::{CodegenError, Result},
};

/// One store of a thread.
enum Stored<'c> {
    /// Address, value, alignment.
    Elements(Value<'c>, Value<'c>, u32),
    /// Address, words, whether by columns.
    Matrices(Value<'c>, Vec<Value<'c>>, bool),
}

impl<'c> Lowering<'_, 'c> {
    /// The address of an operation's scratch buffer.
    pub(super) fn scratch(&self, op: Op) -> Result<Value<'c>> {
        let buffer = self.kernel.scratch(op).ok_or_else(|| {
            CodegenError::lowering(format!("`{}` without scratch memory", self.kernel.op(op).kind.spec().mnemonic))
        })?;
        self.scalar(buffer)
    }

    /// The address `base + (spot ^ constant)` in bytes, where `constant` depends on the register.
    ///
    /// Bits of the constant that no thread touches become an immediate offset.
    pub(super) fn shared_address(&self, base: Value<'c>, spot: Spot<'c>, constant: u32) -> Value<'c> {
        let (mixed, immediate) = spot.split(constant);
        let start = if spot.is_constant() { base } else { self.e.byte_offset(base, self.at(spot, mixed)) };
        self.e.constant_offset(start, immediate as i32)
    }

    /// Stores registers of a tile to shared memory as an access plan says. Each element is written by one thread.
    pub(super) fn store_tile(&self, base: Value<'c>, access: &TileAccess, elem: Elem, registers: &[Value<'c>]) {
        let spot = self.access_spot(access);
        let bytes = access.bits / 8;
        let stores: Vec<Stored<'c>> = access
            .steps
            .iter()
            .map(|step| {
                let address = self.shared_address(base, spot, step.offset * bytes);
                let values: Vec<_> = step.registers.iter().map(|register| registers[*register as usize]).collect();
                match access.kind {
                    AccessKind::Vector => Stored::Elements(address, self.packed(elem, &values), access.width * bytes),
                    AccessKind::Matrix { transposed } => {
                        let words = self.to_words(elem, &values, Words { bits: 32, count: access.matrices });
                        Stored::Matrices(address, words, transposed)
                    }
                }
            })
            .collect();
        self.by_holders(access, || stores.iter().for_each(|stored| self.store_one(stored)));
    }

    /// Makes only those threads store that hold the first copy of an element.
    pub(super) fn by_holders(&self, access: &TileAccess, store: impl FnOnce()) {
        // Matrices are stored by whole warps.
        let lanes = if access.kind == AccessKind::Vector { access.copies.lanes } else { 0 };
        self.when(self.thread_bits_clear(lanes | access.copies.warps << 5), store);
    }

    fn store_one(&self, stored: &Stored<'c>) {
        match stored {
            Stored::Elements(address, value, align) => {
                self.e.store(*value, *address, AccessAttrs { align: *align, ..AccessAttrs::default() });
            }
            Stored::Matrices(address, words, transposed) => self.matrix_store(*address, words, *transposed),
        }
    }

    /// Loads the registers of a tile from shared memory as an access plan says.
    pub(super) fn load_tile(&self, base: Value<'c>, access: &TileAccess, elem: Elem) -> Vec<Value<'c>> {
        let spot = self.access_spot(access);
        let bytes = access.bits / 8;
        let mut found = vec![None; access.source.len()];
        for step in &access.steps {
            let address = self.shared_address(base, spot, step.offset * bytes);
            let count = step.registers.len() as u32;
            let values = match access.kind {
                AccessKind::Vector => self.load_shared(address, elem, count, access.width * bytes),
                AccessKind::Matrix { transposed } => {
                    let words = self.matrix_load(address, access.matrices, transposed);
                    self.from_words(elem, &words, Words { bits: 32, count: access.matrices }, count)
                }
            };
            for (register, value) in step.registers.iter().zip(values) {
                found[*register as usize] = Some(value);
            }
        }
        let zero = self.literal(elem, rtc_ir::Literal::Int(0));
        access.source.iter().map(|source| found[*source as usize].unwrap_or(zero)).collect()
    }

    /// The thread's part of an access's addresses, in bytes.
    fn access_spot(&self, access: &TileAccess) -> Spot<'c> {
        let bases: Vec<u32> = access.lane.iter().chain(&access.warp).map(|basis| basis * access.bits / 8).collect();
        self.spot(&bases)
    }

    /// Stores elements side by side; `align` is the alignment of the address in bytes.
    pub(super) fn store_shared(&self, address: Value<'c>, elem: Elem, values: &[Value<'c>], align: u32) {
        self.e.store(self.packed(elem, values), address, AccessAttrs { align, ..AccessAttrs::default() });
    }

    /// Elements side by side as one value.
    pub(super) fn packed(&self, elem: Elem, values: &[Value<'c>]) -> Value<'c> {
        let words = Words::new(values.len() as u32, elem.bytes() * 8);
        let packed = self.to_words(elem, values, words);
        let packed: Vec<_> = packed.into_iter().map(|word| self.narrow_word(word, words)).collect();
        self.e.pack(&packed)
    }

    /// Loads elements that lie side by side.
    pub(super) fn load_shared(&self, address: Value<'c>, elem: Elem, count: u32, align: u32) -> Vec<Value<'c>> {
        let e = self.e;
        let words = Words::new(count, elem.bytes() * 8);
        let word = e.integer_type(words.bits);
        let ty = if words.count == 1 { word } else { e.vector_type(words.count, word) };
        let loaded = e.load(address, ty, AccessAttrs { align, ..AccessAttrs::default() });
        let loaded = e.unpack(loaded, words.count, word);
        let loaded: Vec<_> =
            loaded.into_iter().map(|value| if words.bits == 8 { e.extui(value, e.ty.i16) } else { value }).collect();
        self.from_words(elem, &loaded, words, count)
    }

    fn narrow_word(&self, word: Value<'c>, words: Words) -> Value<'c> {
        if words.bits == 8 { self.e.trunci(word, self.e.ty.i8) } else { word }
    }

    /// Stores a whole tile row-major, each element once.
    pub(super) fn store_row_major(&self, base: Value<'c>, layout: &Layout, elem: Elem, registers: &[Value<'c>]) {
        let access = TileAccess::vector(&rtc_layout::SharedLayout::row_major(layout.shape()), layout, elem.bytes() * 8);
        self.store_tile(base, &access, elem, registers);
    }

    /// Loads a whole tile that lies row-major.
    pub(super) fn load_row_major(&self, base: Value<'c>, layout: &Layout, elem: Elem) -> Vec<Value<'c>> {
        let access = TileAccess::vector(&rtc_layout::SharedLayout::row_major(layout.shape()), layout, elem.bytes() * 8);
        self.load_tile(base, &access, elem)
    }

    fn matrix_load(&self, address: Value<'c>, matrices: u32, transposed: bool) -> Vec<Value<'c>> {
        let trans = if transposed { ".trans" } else { "" };
        let e = self.e;
        let name = format!("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{matrices}{trans}.b16.p3");
        if matrices == 1 {
            return vec![e.intrinsic(&name, &[address], e.ty.i32)];
        }
        let fields = vec![e.ty.i32; matrices as usize];
        let whole = e.intrinsic(&name, &[address], e.struct_type(&fields));
        e.unpack_struct(whole, &fields)
    }

    fn matrix_store(&self, address: Value<'c>, words: &[Value<'c>], transposed: bool) {
        let trans = if transposed { ".trans" } else { "" };
        let name = format!("llvm.nvvm.stmatrix.sync.aligned.m8n8.x{}{trans}.b16.p3", words.len());
        let mut operands = vec![address];
        operands.extend_from_slice(words);
        self.e.intrinsic_effect(&name, &operands);
    }
}
