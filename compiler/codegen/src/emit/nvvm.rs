//! GPU intrinsics: special registers, shuffles, votes, barriers.

use super::{Emitter, Type, Value, type_of};

/// Which lane a shuffle reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShuffleKind {
    /// The lane whose number differs in the bits of the operand.
    Butterfly,
    /// The lane with the given number.
    Index,
}

impl<'c> Emitter<'c> {
    /// A special register of 32 bits by its name: `tid.x`, `ctaid.y`, `nctaid.z`, `laneid`.
    pub fn special_register(&self, name: &str) -> Value<'c> {
        self.value(&format!("nvvm.read.ptx.sreg.{name}"), &[], self.ty.i32, &[])
    }

    /// Exchanges a value of any width up to 64 bits between the lanes of the warp.
    ///
    /// `source` is a mask or a lane, as `kind` says. All lanes take part.
    pub fn shuffle(&self, kind: ShuffleKind, value: Value<'c>, source: Value<'c>) -> Value<'c> {
        let ty = type_of(value);
        if ty == self.ty.i32 || ty == self.ty.f32 {
            return self.shuffle_word(kind, value, source);
        }
        if ty == self.ty.i64 || ty == self.ty.f64 {
            let pair = self.vector_type(2, self.ty.i32);
            let words = self.unpack(self.bitcast(value, pair), 2, self.ty.i32);
            let moved: Vec<_> = words.into_iter().map(|word| self.shuffle_word(kind, word, source)).collect();
            return self.bitcast(self.pack(&moved), ty);
        }
        if ty == self.ty.global {
            let moved = self.shuffle(kind, self.ptrtoint(value, self.ty.i64), source);
            return self.inttoptr(moved, ty);
        }
        let bits = self.to_word(value);
        self.from_word(self.shuffle_word(kind, bits, source), ty)
    }

    fn shuffle_word(&self, kind: ShuffleKind, value: Value<'c>, source: Value<'c>) -> Value<'c> {
        let kind = match kind {
            ShuffleKind::Butterfly => self.attribute("#nvvm<shfl_kind bfly>"),
            ShuffleKind::Index => self.attribute("#nvvm<shfl_kind idx>"),
        };
        // The last operand packs the segment mask (none) and the bound, the last lane.
        let operands = [self.i32(-1), value, source, self.i32(31)];
        self.value("nvvm.shfl.sync", &operands, type_of(value), &[("kind", kind)])
    }

    /// The bits of a value of at most 32 bits, zero-extended to a 32-bit integer.
    pub fn to_word(&self, value: Value<'c>) -> Value<'c> {
        let ty = type_of(value);
        if ty == self.ty.f16 || ty == self.ty.bf16 {
            self.extui(self.bitcast(value, self.ty.i16), self.ty.i32)
        } else if self.is_integer(ty) {
            self.extui(value, self.ty.i32)
        } else {
            self.bitcast(value, self.ty.i32)
        }
    }

    /// A value of a type of at most 32 bits from the low bits of a 32-bit integer.
    pub fn from_word(&self, word: Value<'c>, ty: Type<'c>) -> Value<'c> {
        if ty == self.ty.f16 || ty == self.ty.bf16 {
            self.bitcast(self.trunci(word, self.ty.i16), ty)
        } else if self.is_integer(ty) {
            self.trunci(word, ty)
        } else {
            self.bitcast(word, ty)
        }
    }

    /// Waits until every thread of the block has come here; shared memory is then in order.
    pub fn barrier(&self) {
        self.effect("nvvm.barrier0", &[], &[]);
    }

    /// Waits until `threads` threads, this one among them, have come to the barrier numbered `id`.
    pub fn named_barrier(&self, id: Value<'c>, threads: Value<'c>) {
        self.assembly("bar.sync $0, $1;", "r,r,~{memory}", &[id, threads], &[], true);
    }

    /// Waits until every lane of the warp has come here; shared memory is then in order among them.
    pub fn warp_barrier(&self) {
        self.effect("nvvm.bar.warp.sync", &[self.i32(-1)], &[]);
    }

    /// Sets the number of registers of each thread of the warp group: to more than it has, or to fewer.
    pub fn set_registers(&self, count: u32, more: bool) {
        let direction = if more { "inc" } else { "dec" };
        let text = format!("setmaxnreg.{direction}.sync.aligned.u32 {count};");
        self.assembly(&text, "~{memory}", &[], &[], true);
    }
}
