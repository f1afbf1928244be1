//! Atomic loads and stores of global memory, and the wait for a value.

use std::convert::Infallible;

use rtc_ir::{Elem, MemScope, MemSemantic, Op, Scalar, view};

use super::Lowering;
use super::atomic::{AtomicForm, scope_name};
use crate::{
    emit::Cmpi,
    error::{CodegenError, Result},
};

impl<'c> Lowering<'_, 'c> {
    /// Threads that hold copies get the value that one thread loaded, so that all of them go on with the same one.
    pub(super) fn atomic_load(&self, op: Op, sem: MemSemantic, scope: MemScope) -> Result<()> {
        let elem = self.elem(self.kernel.result(op, 0))?;
        let form = register_form(elem)?;
        let text = format!("ld.{sem}.{}.global.b{} $0, [$1];", scope_name(scope), elem.bits());
        let constraints = format!("={},l", form.class);
        self.atomic(op, elem, 1, |pointer, _, condition| {
            vec![self.atomic_instruction(&form, elem, &text, &constraints, vec![pointer], condition)]
        })
    }

    pub(super) fn atomic_store(&self, op: Op, sem: MemSemantic, scope: MemScope) -> Result<()> {
        let store = view::AtomicStore::at(self.kernel, op);
        let (pointers, values) = (self.get(store.pointer())?, self.get(store.value())?);
        let masks = self.present(store.mask())?;
        let elem = self.elem(store.value())?;
        let form = register_form(elem)?;
        let instruction = format!("st.{sem}.{}.global.b{} [$0], $1;", scope_name(scope), elem.bits());
        let holders = self.holders(store.pointer())?;
        for (register, pointer) in pointers.iter().enumerate() {
            if register as u32 & holders.copied_registers != 0 {
                continue;
            }
            let mut value = self.atomic_operand(elem, values[register]);
            if form.bits > elem.bits() {
                value = self.e.extui(value, self.e.integer_type(form.bits));
            }
            let mut operands = vec![*pointer, value];
            let mut constraints = format!("l,{}", form.class);
            let mut text = instruction.clone();
            if let Some(condition) = self.both(masks.as_ref().map(|masks| masks[register]), holders.thread) {
                operands.push(condition);
                constraints.push_str(",b");
                text = format!("@$2 {instruction}");
            }
            self.e.assembly(&text, &constraints, &operands, &[], true);
        }
        Ok(())
    }

    /// Each thread repeats its own loads. The timer is read by the thread that polls, and all threads of the block get what
    /// it found, so that they agree even if the time runs out.
    pub(super) fn atomic_poll(&self, op: Op, sem: MemSemantic, scope: MemScope) -> Result<()> {
        let poll = view::AtomicPoll::at(self.kernel, op);
        let e = self.e;
        let expected = self.get(poll.expected())?;
        let timeout = self.present(poll.timeout())?.map(|registers| registers[0]);
        let elem = self.elem(poll.expected())?;
        let form = register_form(elem)?;
        let word = e.integer_type(form.bits);
        let text = format!("ld.{sem}.{}.global.b{} $0, [$1];", scope_name(scope), form.bits);
        let constraints = format!("={},l", form.class);
        let timer = || e.assembly("mov.u64 $0, %globaltimer;", "=l", &[], &[e.ty.i64], true)[0];
        self.atomic(op, Elem::Num(Scalar::I32), 1, |pointer, register, condition| {
            let load = || e.assembly(&text, &constraints, &[pointer], &[word], true);
            let poll = || -> std::result::Result<_, Infallible> {
                let begin = timeout.map(|_| timer());
                let last = e.while_loop(
                    &load(),
                    |loaded| {
                        let differs = e.cmpi(Cmpi::Ne, loaded[0], expected[register]);
                        let in_time = timeout
                            .zip(begin)
                            .map(|(timeout, begin)| e.cmpi(Cmpi::Ult, e.subi(timer(), begin), timeout));
                        Ok((in_time.map_or(differs, |in_time| e.andi(differs, in_time)), loaded.to_vec()))
                    },
                    |_| Ok::<_, Infallible>(load()),
                )?;
                Ok(vec![e.extui(e.cmpi(Cmpi::Eq, last[0], expected[register]), e.ty.i32)])
            };
            let polled = match condition {
                None => poll(),
                Some(condition) => e.if_else(condition, &[e.ty.i32], poll, || Ok(vec![e.int(e.ty.i32, 0)])),
            };
            let Ok(found) = polled;
            found
        })
    }
}

/// The register of a plain atomic load or store: 8 bits travel in one of 16.
fn register_form(elem: Elem) -> Result<AtomicForm> {
    let (bits, class) = match elem.bits() {
        64 => (64, "l"),
        32 => (32, "r"),
        16 | 8 => (16, "h"),
        bits => return Err(CodegenError::lowering(format!("an atomic access of {bits} bits"))),
    };
    Ok(AtomicForm { start: String::new(), bits, class })
}
