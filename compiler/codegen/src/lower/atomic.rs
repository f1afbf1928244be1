//! Atomic operations on global memory.
//!
//! Each element is worked on once, by the thread that holds it first. Where other threads hold copies and the result
//! is used, it reaches them through scratch memory.

use std::convert::Infallible;

use rtc_abi::Feature;
use rtc_ir::{Elem, MemScope, MemSemantic, Op, RmwOp, Scalar, view};

use super::Lowering;
use crate::{
    emit::{Cmpi, Emitter, Value},
    error::{CodegenError, Result},
};

/// The new value of an element, of its old one and the operand.
type Update<'c> = fn(&Emitter<'c>, Value<'c>, Value<'c>) -> Value<'c>;

/// The parts of an atomic instruction that its element and order decide.
pub(super) struct AtomicForm {
    /// `atom.global.gpu.acq_rel`.
    pub(super) start: String,
    /// Bits of an operand.
    pub(super) bits: u32,
    /// Its register class in assembly constraints.
    pub(super) class: &'static str,
}

impl<'c> Lowering<'_, 'c> {
    pub(super) fn atomic_rmw(&self, op: Op, rmw: RmwOp, sem: MemSemantic, scope: MemScope, vector: u32) -> Result<()> {
        let atomic = view::AtomicRmw::at(self.kernel, op);
        let values = self.get(atomic.value())?;
        let elem = self.elem(atomic.value())?;
        let form = form(elem, sem, scope)?;
        if let Some(update) = self.by_exchange(rmw, elem) {
            return self.atomic(op, elem, 1, |pointer, register, condition| {
                let update = |old| update(self.e, old, values[register]);
                vec![self.exchange_until_done(&form, elem, pointer, &update, condition)]
            });
        }
        if vector > 1 {
            return self.atomic_vectors(op, elem, sem, scope, vector);
        }
        let action = action(rmw, elem)?;
        let text = format!("{}.{action} $0, [$1], $2;", form.start);
        let constraints = format!("={0},l,{0}", form.class);
        self.atomic(op, elem, 1, |pointer, register, condition| {
            let operands = vec![pointer, self.atomic_operand(elem, values[register])];
            vec![self.atomic_instruction(&form, elem, &text, &constraints, operands, condition)]
        })
    }

    /// Atomic additions of `vector` neighbours at once. If the old values are unused, one fence before all of them and
    /// one after implement `sem`, instead of one with each.
    fn atomic_vectors(&self, op: Op, elem: Elem, sem: MemSemantic, scope: MemScope, vector: u32) -> Result<()> {
        let e = self.e;
        let values = self.get(view::AtomicRmw::at(self.kernel, op).value())?;
        let count = vector as usize;
        let single = form(elem, sem, scope)?;
        let word = e.integer_type(single.bits);
        let scope = scope_name(scope);
        let pair = elem == Elem::F16 && !self.target.has(Feature::VectorAtomics);
        let suffix = match elem {
            _ if pair => "noftz.f16x2".to_owned(),
            Elem::F32 => format!("v{vector}.f32"),
            Elem::F16 => format!("noftz.v{vector}.f16"),
            Elem::BF16 => format!("noftz.v{vector}.bf16"),
            _ => return Err(CodegenError::lowering(format!("an atomic operation on vectors of {elem}"))),
        };
        let (count, class, word) = if pair { (1, "r", e.ty.i32) } else { (count, single.class, word) };
        let operands = |register: usize| -> Vec<Value<'c>> {
            let of = |number: usize| self.atomic_operand(elem, values[register + number]);
            if pair {
                let high = e.shli(e.extui(of(1), e.ty.i32), e.int(e.ty.i32, 16));
                vec![e.ori(e.extui(of(0), e.ty.i32), high)]
            } else {
                (0..count).map(of).collect()
            }
        };
        let list = |from: usize| -> String {
            let names: Vec<String> = (from..from + count).map(|n| format!("${n}")).collect();
            if pair { names.join("") } else { format!("{{{}}}", names.join(", ")) }
        };
        let fence = format!("fence.acq_rel.{scope};");
        let is_used = self.kernel.is_used(self.kernel.result(op, 0));
        if !is_used && matches!(sem, MemSemantic::Release | MemSemantic::AcqRel) {
            e.assembly(&fence, "", &[], &[], true);
        }
        self.atomic(op, elem, vector as usize, |pointer, register, condition| {
            let results = if is_used { count } else { 0 };
            let predicate = condition.map_or(String::new(), |_| format!("@${} ", results + count + 1));
            let text = if is_used {
                format!("{predicate}{}.add.{suffix} {}, [${count}], {};", single.start, list(0), list(count + 1))
            } else {
                format!("{predicate}red.relaxed.{scope}.global.add.{suffix} [$0], {};", list(1))
            };
            let mut constraints = vec![format!("={class}"); results];
            constraints.push("l".to_owned());
            constraints.extend(vec![class.to_owned(); count]);
            let mut given = vec![pointer];
            given.extend(operands(register));
            if let Some(condition) = condition {
                given.push(condition);
                constraints.push("b".to_owned());
                // The results start as zero, so that they are defined where nothing happens.
                given.extend((0..results).map(|_| e.int(word, 0)));
                constraints.extend((0..results).map(|number| number.to_string()));
            }
            let olds = e.assembly(&text, &constraints.join(","), &given, &vec![word; results], true);
            let zero = || e.int(e.integer_type(single.bits), 0);
            let bits: Vec<Value<'c>> = match (is_used, pair) {
                (false, _) => (0..vector).map(|_| zero()).collect(),
                (true, false) => olds,
                (true, true) => {
                    let high = e.shrui(olds[0], e.int(e.ty.i32, 16));
                    vec![e.trunci(olds[0], e.ty.i16), e.trunci(high, e.ty.i16)]
                }
            };
            bits.into_iter().map(|bits| e.bitcast(bits, self.element(elem))).collect()
        })?;
        if !is_used && matches!(sem, MemSemantic::Acquire | MemSemantic::AcqRel) {
            e.assembly(&fence, "", &[], &[], true);
        }
        Ok(())
    }

    pub(super) fn atomic_cas(&self, op: Op, sem: MemSemantic, scope: MemScope) -> Result<()> {
        let swap = view::AtomicCas::at(self.kernel, op);
        let (compare, values) = (self.get(swap.compare())?, self.get(swap.value())?);
        let elem = self.elem(swap.value())?;
        let form = form(elem, sem, scope)?;
        let scope_name = scope_name(scope);
        let text = format!("atom.global.{sem}.{scope_name}.cas.b{} $0, [$1], $2, $3;", form.bits);
        let constraints = format!("={0},l,{0},{0}", form.class);
        self.atomic(op, elem, 1, |pointer, register, condition| {
            let operands = vec![
                pointer,
                self.atomic_operand(elem, compare[register]),
                self.atomic_operand(elem, values[register]),
            ];
            vec![self.atomic_instruction(&form, elem, &text, &constraints, operands, condition)]
        })
    }

    /// Runs `act` once for each `vector` elements and hands the results to all holders.
    pub(super) fn atomic(
        &self,
        op: Op,
        elem: Elem,
        vector: usize,
        act: impl Fn(Value<'c>, usize, Option<Value<'c>>) -> Vec<Value<'c>>,
    ) -> Result<()> {
        let missing = || CodegenError::lowering("an atomic operation without a pointer");
        let pointer = self.kernel.pointer(op).ok_or_else(missing)?;
        let (pointers, masks) = (self.get(pointer)?, self.present(self.kernel.mask(op))?);
        let result = self.kernel.result(op, 0);
        let holders = self.holders(pointer)?;
        let mut olds: Vec<Option<Value<'c>>> = vec![None; pointers.len()];
        for (register, pointer) in pointers.iter().enumerate().step_by(vector) {
            if register as u32 & holders.copied_registers == 0 {
                let condition = self.both(masks.as_ref().map(|masks| masks[register]), holders.thread);
                for (number, old) in act(*pointer, register, condition).into_iter().enumerate() {
                    olds[register + number] = Some(old);
                }
            }
        }
        // Registers that hold copies take the result of the register whose element they hold.
        let layout = self.kernel.layout_of(result);
        let olds: Vec<_> = (0..olds.len())
            .filter_map(|register| match (olds[register], layout) {
                (Some(old), _) => Some(old),
                (None, Some(layout)) => {
                    let first = layout.find_register(layout.coords(register as u32, 0, 0), 0, 0)?;
                    olds[first as usize]
                }
                (None, None) => None,
            })
            .collect();
        if self.kernel.scratch(op).is_none() {
            self.define(op, olds);
            return Ok(());
        }
        let base = self.scratch(op)?;
        let Some(layout) = layout else {
            self.when(holders.thread, || self.store_shared(base, elem, &olds, elem.bytes()));
            self.barrier();
            let shared = self.load_shared(base, elem, 1, elem.bytes());
            self.define(op, shared);
            return Ok(());
        };
        self.when(holders.thread, || self.store_row_major(base, layout, elem, &olds));
        self.barrier();
        let shared = self.load_row_major(base, layout, elem);
        self.define(op, shared);
        Ok(())
    }

    /// Runs `build` under a condition that may be absent.
    pub(super) fn when(&self, condition: Option<Value<'c>>, build: impl FnOnce()) {
        match condition {
            Some(condition) => self.e.if_then(condition, build),
            None => build(),
        }
    }

    pub(super) fn atomic_instruction(
        &self,
        form: &AtomicForm,
        elem: Elem,
        text: &str,
        constraints: &str,
        mut operands: Vec<Value<'c>>,
        condition: Option<Value<'c>>,
    ) -> Value<'c> {
        let e = self.e;
        let word = e.integer_type(form.bits);
        let (mut text, mut constraints) = (text.to_owned(), constraints.to_owned());
        if let Some(condition) = condition {
            // The result starts as zero, so that it is defined where nothing happens.
            let predicate = operands.len() + 1;
            operands.push(condition);
            operands.push(e.int(word, 0));
            constraints.push_str(",b,0");
            text = format!("@${predicate} {text}");
        }
        let mut old = e.assembly(&text, &constraints, &operands, &[word], true)[0];
        if form.bits > elem.bits() {
            old = e.trunci(old, e.integer_type(elem.bits()));
        }
        e.bitcast(old, self.element(elem))
    }

    pub(super) fn atomic_operand(&self, elem: Elem, value: Value<'c>) -> Value<'c> {
        self.e.bitcast(value, self.e.integer_type(elem.bits()))
    }

    /// The new value in memory, where `atom` has no such operation: compare-and-swap stores it.
    fn by_exchange(&self, rmw: RmwOp, elem: Elem) -> Option<Update<'c>> {
        match rmw {
            RmwOp::FAdd if elem == Elem::BF16 && !self.target.has(Feature::Bf16Atomics) => {
                Some(|e, old, value| e.addf(old, value, false))
            }
            RmwOp::FMax => Some(|e, old, value| e.maxnumf(old, value)),
            RmwOp::FMin => Some(|e, old, value| e.minnumf(old, value)),
            _ => None,
        }
    }

    /// Replaces 16 bits in memory by the result of `update`; returns the old bits.
    fn exchange_until_done(
        &self,
        form: &AtomicForm,
        elem: Elem,
        pointer: Value<'c>,
        update: &dyn Fn(Value<'c>) -> Value<'c>,
        condition: Option<Value<'c>>,
    ) -> Value<'c> {
        let e = self.e;
        let ty = self.element(elem);
        let exchange = format!("{}.cas.b16 $0, [$1], $2, $3;", form.start);
        let replace = || -> std::result::Result<_, Infallible> {
            let first = e.assembly("ld.volatile.global.b16 $0, [$1];", "=h,l", &[pointer], &[e.ty.i16], true);
            e.while_loop(
                &first,
                |assumed| {
                    let updated = update(e.bitcast(assumed[0], ty));
                    let operands = [pointer, assumed[0], e.bitcast(updated, e.ty.i16)];
                    let found = e.assembly(&exchange, "=h,l,h,h", &operands, &[e.ty.i16], true);
                    Ok((e.cmpi(Cmpi::Ne, found[0], assumed[0]), found))
                },
                |found| Ok(found.to_vec()),
            )
        };
        let built = match condition {
            None => replace(),
            Some(condition) => e.if_else(condition, &[e.ty.i16], replace, || Ok(vec![e.int(e.ty.i16, 0)])),
        };
        let Ok(old) = built;
        e.bitcast(old[0], ty)
    }
}

fn form(elem: Elem, sem: MemSemantic, scope: MemScope) -> Result<AtomicForm> {
    let (bits, class) = match elem.bits() {
        64 => (64, "l"),
        32 => (32, "r"),
        16 => (16, "h"),
        bits => return Err(CodegenError::lowering(format!("an atomic operation on {bits} bits"))),
    };
    Ok(AtomicForm { start: format!("atom.global.{}.{sem}", scope_name(scope)), bits, class })
}

pub(super) fn scope_name(scope: MemScope) -> &'static str {
    match scope {
        MemScope::Cta => "cta",
        MemScope::Gpu => "gpu",
        MemScope::Sys => "sys",
    }
}

/// The end of the instruction: operation and type.
fn action(rmw: RmwOp, elem: Elem) -> Result<String> {
    let bits = elem.bits();
    Ok(match (rmw, elem) {
        (RmwOp::FAdd, Elem::Num(Scalar::F16)) => "add.noftz.f16".to_owned(),
        (RmwOp::FAdd, Elem::Num(Scalar::BF16)) => "add.noftz.bf16".to_owned(),
        (RmwOp::FAdd, Elem::Num(Scalar::F32)) => "add.f32".to_owned(),
        (RmwOp::FAdd, Elem::Num(Scalar::F64)) => "add.f64".to_owned(),
        (RmwOp::FAdd | RmwOp::FMax | RmwOp::FMin, _) => {
            return Err(CodegenError::lowering(format!("an atomic {rmw} of {elem}")));
        }
        (RmwOp::Add, _) => format!("add.u{bits}"),
        (RmwOp::Max, _) => format!("max.s{bits}"),
        (RmwOp::Min, _) => format!("min.s{bits}"),
        (RmwOp::UMax, _) => format!("max.u{bits}"),
        (RmwOp::UMin, _) => format!("min.u{bits}"),
        (RmwOp::And, _) => format!("and.b{bits}"),
        (RmwOp::Or, _) => format!("or.b{bits}"),
        (RmwOp::Xor, _) => format!("xor.b{bits}"),
        (RmwOp::Xchg, _) => format!("exch.b{bits}"),
    })
}
