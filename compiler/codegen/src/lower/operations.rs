//! The lowering of each operation.

use rtc_ir::{Elem, HintKind, Op, OpKind, Scalar};

use super::element::{compare_floats, compare_integers, rounding_suffix};
use super::{Lowering, memory};
use crate::error::{CodegenError, Result};

impl Lowering<'_, '_> {
    /// Lowers an operation. This list is the only one of all operations, and exhaustive: a new one is an error until it is
    /// answered for.
    pub(super) fn operation(&self, op: Op, kind: &OpKind) -> Result<()> {
        let e = self.e;
        let fuse = self.kernel.options.fp_fusion;
        let data = self.kernel.op(op);
        let first = data.operands.first().or(data.results.first());
        // Operations without elements, such as a barrier, do not need it.
        let elem = first.and_then(|value| self.kernel.value_type(*value).elem()).unwrap_or(Elem::I32);
        let wide = elem == Elem::F64;
        match kind {
            // Each element alone.
            OpKind::Constant { value } => self.constant(op, *value),
            OpKind::AddI {} => self.each(op, |[a, b]| e.addi(a, b)),
            OpKind::SubI {} => self.each(op, |[a, b]| e.subi(a, b)),
            OpKind::MulI {} => self.each(op, |[a, b]| e.muli(a, b)),
            OpKind::DivSI {} => self.each(op, |[a, b]| e.divsi(a, b)),
            OpKind::DivUI {} => self.each(op, |[a, b]| e.divui(a, b)),
            OpKind::RemSI {} => self.each(op, |[a, b]| e.remsi(a, b)),
            OpKind::RemUI {} => self.each(op, |[a, b]| e.remui(a, b)),
            OpKind::AndI {} if self.bitwise_on_bytes(op, |a, b| e.andi(a, b))? => Ok(()),
            OpKind::AndI {} => self.each(op, |[a, b]| e.andi(a, b)),
            OpKind::OrI {} if self.bitwise_on_bytes(op, |a, b| e.ori(a, b))? => Ok(()),
            OpKind::OrI {} => self.each(op, |[a, b]| e.ori(a, b)),
            OpKind::XorI {} if self.bitwise_on_bytes(op, |a, b| e.xori(a, b))? => Ok(()),
            OpKind::XorI {} => self.each(op, |[a, b]| e.xori(a, b)),
            OpKind::ShlI {} => self.each(op, |[a, b]| self.shift(elem, b, e.shli(a, b))),
            OpKind::ShrUI {} if self.shift_of_bytes(op)? => Ok(()),
            OpKind::ShrUI {} => self.each(op, |[a, b]| self.shift(elem, b, e.shrui(a, b))),
            OpKind::ShrSI {} => self.each(op, |[a, b]| {
                let last = e.int(self.element(elem), i64::from(elem.bits()) - 1);
                e.shrsi(a, e.minui(b, last))
            }),
            OpKind::MinSI {} => self.each(op, |[a, b]| e.minsi(a, b)),
            OpKind::MaxSI {} => self.each(op, |[a, b]| e.maxsi(a, b)),
            OpKind::MinUI {} => self.each(op, |[a, b]| e.minui(a, b)),
            OpKind::MaxUI {} => self.each(op, |[a, b]| e.maxui(a, b)),
            OpKind::MulHiUI {} => self.multiply_high(op, elem, ["llvm.nvvm.mulhi.ui", "llvm.nvvm.mulhi.ull"]),
            OpKind::MulHiSI {} => self.multiply_high(op, elem, ["llvm.nvvm.mulhi.i", "llvm.nvvm.mulhi.ll"]),
            OpKind::PackPair {} => {
                let to = self.element(self.elem(self.kernel.result(op, 0))?);
                self.each(op, |[low, high]| e.bitcast(e.pack(&[low, high]), to))
            }
            OpKind::UnpackPair { to, high } => {
                let half = self.element(*to);
                let pair = e.vector_type(2, half);
                self.each(op, |[word]| e.unpack(e.bitcast(word, pair), 2, half)[usize::from(*high)])
            }
            OpKind::AbsI {} => self.each(op, |[a]| e.absi(a)),
            OpKind::Clz {} => self.each(op, |[a]| e.clz(a)),
            OpKind::PopC {} => self.each(op, |[a]| e.unary("llvm.intr.ctpop", a)),
            OpKind::BRev {} => {
                let name = format!("llvm.bitreverse.i{}", elem.bits());
                self.each(op, |[a]| e.intrinsic(&name, &[a], self.element(elem)))
            }
            OpKind::CmpI { predicate } => self.each(op, |[a, b]| {
                let (a, b) = if elem.is_ptr() { (e.ptrtoint(a, e.ty.i64), e.ptrtoint(b, e.ty.i64)) } else { (a, b) };
                e.cmpi(compare_integers(*predicate), a, b)
            }),
            OpKind::AddF {} => self.each(op, |[a, b]| e.addf(a, b, fuse)),
            OpKind::SubF {} if self.byte_less_integer(op)? => Ok(()),
            OpKind::SubF {} => self.each(op, |[a, b]| e.subf(a, b, fuse)),
            OpKind::MulF {} => self.each(op, |[a, b]| e.mulf(a, b, fuse)),
            OpKind::Rescale {} => self.rescale(op),
            OpKind::DivF {} if wide => self.each(op, |[a, b]| e.divf(a, b, false)),
            OpKind::DivF {} => self.divide(op, elem),
            OpKind::DivFApprox {} => self.each(op, |[a, b]| e.intrinsic("llvm.nvvm.div.approx.f", &[a, b], e.ty.f32)),
            OpKind::DivFRn {} if wide => self.each(op, |[a, b]| e.divf(a, b, false)),
            OpKind::DivFRn {} => self.each(op, |[a, b]| self.in_single(elem, [a, b], |[a, b]| e.divf(a, b, false))),
            OpKind::Fma {} => self.each(op, |[a, b, c]| e.fma(a, b, c)),
            OpKind::NegF {} => self.each(op, |[a]| e.unary("llvm.fneg", a)),
            OpKind::AbsF {} if elem.num().is_some_and(Scalar::is_fp8) => {
                self.each(op, |[a]| e.andi(a, e.int(e.ty.i8, 0x7f)))
            }
            OpKind::AbsF {} => self.each(op, |[a]| e.unary("llvm.intr.fabs", a)),
            OpKind::CopySign {} => self.each(op, |[a, b]| self.copy_sign(elem, a, b)),
            OpKind::MinNum {} => self.each(op, |[a, b]| e.minnumf(a, b)),
            OpKind::MaxNum {} => self.each(op, |[a, b]| e.maxnumf(a, b)),
            OpKind::Minimum {} => self.each(op, |[a, b]| e.minimumf(a, b)),
            OpKind::Maximum {} => self.each(op, |[a, b]| e.maximumf(a, b)),
            OpKind::Floor {} => self.each(op, |[a]| e.unary("llvm.intr.floor", a)),
            OpKind::Ceil {} => self.each(op, |[a]| e.unary("llvm.intr.ceil", a)),
            OpKind::Truncate {} => self.each(op, |[a]| e.unary("llvm.intr.trunc", a)),
            OpKind::Rint {} => self.each(op, |[a]| e.unary("llvm.intr.roundeven", a)),
            OpKind::Sqrt { .. } if wide => self.each(op, |[a]| e.unary("llvm.intr.sqrt", a)),
            OpKind::Sqrt { ftz: true } => self.approximate(op, "llvm.nvvm.sqrt.approx.ftz.f"),
            OpKind::Sqrt { ftz: false } => self.approximate(op, "llvm.nvvm.sqrt.approx.f"),
            OpKind::SqrtRn {} => self.each(op, |[a]| e.unary("llvm.intr.sqrt", a)),
            OpKind::AddFRounded { mode } => self.rounded::<2>(op, "add", *mode, wide),
            OpKind::MulFRounded { mode } => self.rounded::<2>(op, "mul", *mode, wide),
            OpKind::DivFRounded { mode } => self.rounded::<2>(op, "div", *mode, wide),
            OpKind::FmaRounded { mode } => self.rounded::<3>(op, "fma", *mode, wide),
            OpKind::SqrtRounded { mode } => self.rounded::<1>(op, "sqrt", *mode, wide),
            OpKind::NarrowRounded { mode } => {
                let name = format!("llvm.nvvm.d2f.{}", rounding_suffix(*mode));
                self.each(op, |[a]| e.intrinsic(&name, &[a], e.ty.f32))
            }
            OpKind::Rsqrt { .. } if wide => {
                self.each(op, |[a]| e.intrinsic("llvm.nvvm.rsqrt.approx.d", &[a], e.ty.f64))
            }
            OpKind::Rsqrt { ftz: true } => self.approximate(op, "llvm.nvvm.rsqrt.approx.ftz.f"),
            OpKind::Rsqrt { ftz: false } => self.approximate(op, "llvm.nvvm.rsqrt.approx.f"),
            OpKind::Rcp {} if wide => self.each(op, |[a]| e.intrinsic("llvm.nvvm.rcp.rn.d", &[a], e.ty.f64)),
            OpKind::Rcp {} => self.approximate(op, "llvm.nvvm.rcp.approx.ftz.f"),
            OpKind::Exp2 { ftz: true } => self.approximate(op, "llvm.nvvm.ex2.approx.ftz.f32"),
            OpKind::Exp2 { ftz: false } => self.approximate(op, "llvm.nvvm.ex2.approx.f32"),
            OpKind::Log2 {} => self.approximate(op, "llvm.nvvm.lg2.approx.f"),
            OpKind::SinApprox {} => self.approximate(op, "llvm.nvvm.sin.approx.f"),
            OpKind::CosApprox {} => self.approximate(op, "llvm.nvvm.cos.approx.f"),
            OpKind::TanhApprox {} => {
                self.each(op, |[a]| e.assembly("tanh.approx.f32 $0, $1;", "=f,f", &[a], &[e.ty.f32], false)[0])
            }
            OpKind::CmpF { predicate } => self.each(op, |[a, b]| e.cmpf(compare_floats(*predicate), a, b)),
            OpKind::Select {} => self.each(op, |[condition, a, b]| e.select(condition, a, b)),
            OpKind::Hint { kind: HintKind::MaxConstancy, values } => self.share_runs(op, values),
            OpKind::Hint { kind: HintKind::MultipleOf | HintKind::MaxContiguous, .. } => self.each(op, |[a]| a),
            OpKind::AddPtr {} => self.add_pointer(op, elem),
            // The others.
            OpKind::TruncI { .. }
            | OpKind::ExtSI { .. }
            | OpKind::ExtUI { .. }
            | OpKind::CastF { .. }
            | OpKind::FpToSI { .. }
            | OpKind::FpToUI { .. }
            | OpKind::SIToFp { .. }
            | OpKind::UIToFp { .. }
            | OpKind::Bitcast { .. }
            | OpKind::PtrToInt {}
            | OpKind::IntToPtr { .. } => self.cast(op, kind),
            OpKind::ProgramId { axis } => self.program_id(op, *axis),
            OpKind::NumPrograms { axis } => self.num_programs(op, *axis),
            OpKind::Arange { start, .. } => self.arange(op, *start),
            OpKind::Splat {} => self.splat(op),
            OpKind::ExpandDims { axis } => self.expand_dims(op, *axis),
            OpKind::Broadcast {} => self.broadcast(op),
            OpKind::Reshape { reorder } => self.reshape(op, *reorder),
            OpKind::Trans { order } => self.trans(op, order),
            OpKind::Join {} => self.join(op),
            OpKind::Split {} => self.split(op),
            OpKind::Cat {} => self.cat(op),
            OpKind::Unsplat {} => self.unsplat(op),
            OpKind::ConvertLayout {} => self.convert_layout(op),
            OpKind::Load { cache, evict, volatile, once, vector } => {
                self.load(op, memory::Modifiers { cache: *cache, evict: *evict, volatile: *volatile }, *once, *vector)
            }
            OpKind::Store { cache, evict, vector, .. } => {
                self.store(op, memory::Modifiers { cache: *cache, evict: *evict, volatile: false }, *vector)
            }
            OpKind::AtomicRmw { op: rmw, sem, scope, vector } => {
                self.atomic_rmw(op, *rmw, *sem, *scope, vector.unwrap_or(1))
            }
            OpKind::AtomicCas { sem, scope } => self.atomic_cas(op, *sem, *scope),
            OpKind::AtomicLoad { sem, scope } => self.atomic_load(op, *sem, *scope),
            OpKind::AtomicStore { sem, scope } => self.atomic_store(op, *sem, *scope),
            OpKind::AtomicPoll { sem, scope } => self.atomic_poll(op, *sem, *scope),
            OpKind::Dot { kind, .. } => self.dot(op, *kind),
            OpKind::Reduce { axis } => self.reduce(op, *axis),
            OpKind::Scan { axis, reverse } => self.scan(op, *axis, *reverse),
            OpKind::MapElements {} => self.map_elements(op),
            OpKind::Gather { axis } => self.gather(op, *axis),
            OpKind::Histogram { bins } => self.histogram(op, *bins),
            OpKind::Sort { descending, signed, bitonic } => self.sort(op, *descending, *signed, *bitonic),
            OpKind::ForRange { unsigned, .. } => self.for_range(op, *unsigned),
            OpKind::WhileLoop {} => self.while_loop(op),
            OpKind::IfElse {} => self.if_else(op),
            OpKind::WarpSpecialize { registers, .. } => self.warp_specialize(op, registers.as_deref()),
            OpKind::Yields {} | OpKind::Condition {} | OpKind::Ret {} => Ok(()),
            OpKind::Assume {} => self.assume(op),
            OpKind::Barrier {} => {
                self.barrier();
                Ok(())
            }
            OpKind::Print { prefix, hex, signed } => self.print(op, prefix, *hex, signed),
            OpKind::Assertion { message, file, line } => self.assertion(op, message, file, *line),
            OpKind::Opaque {} => self.opaque(op),
            OpKind::InlineAsm { text, constraints, pure, pack } => self.inline_asm(op, text, constraints, *pure, *pack),
            OpKind::ExternCall { symbol, to } => self.extern_call(op, &symbol.0, *to),
            OpKind::SpecialRegister { name } => self.special_register(op, name),
            OpKind::GridDependency { wait } => {
                self.grid_dependency(*wait);
                Ok(())
            }
            OpKind::Record { event, blocks } => self.record(op, &event.0, *blocks),
            OpKind::AllocShared { offset, .. } => self.alloc_shared(op, *offset),
            OpKind::AllocBarriers { count, offset } => self.alloc_barriers(op, *count, *offset),
            OpKind::Slot {} => self.slot(op),
            OpKind::SharedTrans { .. } | OpKind::SharedView {} => self.shared_again(op),
            OpKind::SharedSlice { offsets, shape } => self.shared_slice(op, offsets, shape),
            OpKind::LocalStore {} => self.local_store(op),
            OpKind::LocalLoad {} => self.local_load(op),
            OpKind::CopyAsync { vector } => self.copy_async(op, *vector),
            OpKind::CopyCommit {} => {
                self.e.copy_commit();
                Ok(())
            }
            OpKind::CopyWait { pending } => {
                self.e.copy_wait(*pending);
                Ok(())
            }
            OpKind::BarrierExpect { bytes } => self.barrier_expect(op, *bytes),
            OpKind::BarrierArrive {} => self.barrier_arrive(op),
            OpKind::CopyArrive {} => self.copy_arrive(op),
            OpKind::BarrierWait {} => self.barrier_wait(op),
            OpKind::CopyBulk {} => self.copy_bulk(op),
            OpKind::MakeMap { nan, tf32, later } => self.make_map(op, *nan, *tf32, *later),
            OpKind::AwaitMap {} => self.await_map(op),
            OpKind::NoMap {} => self.no_map(op),
            OpKind::CopyDesc {} => self.copy_desc(op),
            OpKind::CopyDescStore {} => self.copy_desc_store(op, None),
            OpKind::CopyDescReduce { op: rmw } => self.copy_desc_store(op, Some(*rmw)),
            OpKind::CopyDescWait { pending, read } => {
                self.e.bulk_wait(*pending, *read);
                Ok(())
            }
            OpKind::DotBuffers { kind } => self.dot_buffers(op, *kind),
            OpKind::Mma {} => self.mma(op),
            OpKind::MmaAsync {} => self.mma_async(op),
            OpKind::MmaWait { pending } => self.mma_wait(op, *pending),
            OpKind::FenceAsync {} => {
                self.e.fence_async();
                Ok(())
            }
            OpKind::CopyGroup {}
            | OpKind::CopyAwait {}
            | OpKind::MmaAwait {}
            | OpKind::MakeDesc {}
            | OpKind::DescSize { .. }
            | OpKind::DescStride { .. }
            | OpKind::DescLoad {}
            | OpKind::DescStore {}
            | OpKind::DescReduce { .. }
            | OpKind::DescGather {}
            | OpKind::DescScatter {}
            | OpKind::MakeBlockPtr { .. }
            | OpKind::Advance {}
            | OpKind::BlockLoad { .. }
            | OpKind::BlockStore { .. } => {
                Err(CodegenError::lowering(format!("`{}`, which a pass lowers", kind.spec().mnemonic)))
            }
        }
    }
}
