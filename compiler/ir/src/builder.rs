//! Builds operations at a place in a kernel.

use rtc_layout::SharedLayout;
use smallvec::SmallVec;

use crate::{
    Block, InferContext, Kernel, Loc, Op, OpData, OpKind, Position, SharedType, Traits, Type, TypeError, Value,
};

/// The return value of a builder method: the operation, or its first result.
pub trait FromOp {
    /// Takes it out of a freshly built operation.
    fn from_op(kernel: &Kernel, op: Op) -> Self;
}

impl FromOp for Op {
    fn from_op(_: &Kernel, op: Op) -> Op {
        op
    }
}

impl FromOp for Value {
    fn from_op(kernel: &Kernel, op: Op) -> Value {
        kernel.result(op, 0)
    }
}

/// A place in a kernel where operations are put, one after the other.
///
/// The methods named after operations come from the table in `ops/table.rs`. Each checks the operands by the type
/// rule of the operation.
pub struct Builder<'k> {
    kernel: &'k mut Kernel,
    at: Position,
    loc: Loc,
}

impl<'k> Builder<'k> {
    /// Builds at the end of `block`.
    pub fn at_end(kernel: &'k mut Kernel, block: Block) -> Builder<'k> {
        let loc = kernel.no_loc();
        Builder { kernel, at: Position::End(block), loc }
    }

    /// Builds before an operation, at its location.
    pub fn before(kernel: &'k mut Kernel, op: Op) -> Builder<'k> {
        let loc = kernel.op(op).loc;
        Builder { kernel, at: Position::Before(op), loc }
    }

    /// Builds after an operation, at its location.
    pub fn after(kernel: &'k mut Kernel, op: Op) -> Builder<'k> {
        let loc = kernel.op(op).loc;
        Builder { kernel, at: Position::After(op), loc }
    }

    /// Builds at the start of `block`.
    pub fn at_start(kernel: &'k mut Kernel, block: Block) -> Builder<'k> {
        let loc = kernel.no_loc();
        Builder { kernel, at: Position::Start(block), loc }
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        self.kernel
    }

    /// The kernel, for changes outside of the current block's list of operations.
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        self.kernel
    }

    /// The location given to operations from now on.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// Builds any operation. `optional` says for each optional operand whether it is there (missing entries are absent);
    /// `types` are the result types of operations whose types are explicit, and in phase `Laid` may be given for all.
    pub fn build(
        &mut self,
        kind: OpKind,
        operands: &[Value],
        optional: &[Option<Value>],
        variadic: &[Value],
        blocks: &[Block],
        types: &[Type],
    ) -> Result<Op, TypeError> {
        let spec = kind.spec();
        let fail = |message: String| TypeError { op: spec.mnemonic, message };
        let mut all: SmallVec<[Value; 4]> = operands.iter().copied().collect();
        let mut present = 0u8;
        for (i, value) in optional.iter().enumerate() {
            if let Some(value) = value {
                present |= 1 << i;
                all.push(*value);
            }
        }
        all.extend(variadic.iter().copied());
        if operands.len() != spec.operands.len() || (!variadic.is_empty() && !spec.traits.has(Traits::VARIADIC)) {
            return Err(fail(format!(
                "takes {} operands, not {}",
                spec.operands.len(),
                operands.len() + variadic.len()
            )));
        }
        let results = infer_results(self.kernel, &kind, &all, present, blocks, types).map_err(fail)?;
        let data = OpData {
            kind,
            operands: all,
            optional: present,
            results: SmallVec::new(),
            blocks: blocks.iter().copied().collect(),
            loc: self.loc,
            parent: None,
        };
        let op = self.kernel.make_op(data, &results);
        self.kernel.insert_op(op, self.at);
        if matches!(self.at, Position::After(_) | Position::Start(_)) {
            self.at = Position::After(op);
        }
        Ok(op)
    }

    /// A number of type `ty`, or a tile filled with it.
    pub fn constant_of(&mut self, value: crate::Literal, ty: Type) -> Result<Value, TypeError> {
        let op = self.build(OpKind::Constant { value }, &[], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A tile of type `ty` filled with `scalar`.
    pub fn splat_to(&mut self, scalar: Value, ty: Type) -> Result<Value, TypeError> {
        let op = self.build(OpKind::Splat {}, &[scalar], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// `source` with its dimensions of size 1 repeated to the shape of `ty`.
    pub fn broadcast_to(&mut self, source: Value, ty: Type) -> Result<Value, TypeError> {
        let op = self.build(OpKind::Broadcast {}, &[source], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// `source` with the shape of `ty`.
    pub fn reshape_to(&mut self, source: Value, ty: Type, reorder: bool) -> Result<Value, TypeError> {
        let op = self.build(OpKind::Reshape { reorder }, &[source], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// `source` in the layout of `ty`.
    pub fn convert_to(&mut self, source: Value, ty: Type) -> Result<Value, TypeError> {
        let op = self.build(OpKind::ConvertLayout {}, &[source], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A buffer in shared memory; `align` is the alignment of its address in bytes.
    pub fn buffer(&mut self, ty: SharedType, align: u32) -> Result<Value, TypeError> {
        let kind = OpKind::AllocShared { align, offset: None };
        let op = self.build(kind, &[], &[], &[], &[], &[Type::Shared(ty)])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A ring of `slots` barriers that expect `count` arrivals in each phase.
    pub fn barriers(&mut self, slots: u32, count: u32) -> Result<Value, TypeError> {
        let kind = OpKind::AllocBarriers { count, offset: None };
        let op = self.build(kind, &[], &[], &[], &[], &[Type::Barrier { slots }])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A wait for these groups of copies; gives the buffer with what they copied.
    pub fn await_copies(&mut self, buffer: Value, groups: &[Value]) -> Result<Value, TypeError> {
        let op = self.build(OpKind::CopyAwait {}, &[], &[Some(buffer)], groups, &[], &[])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A wait for the dots that these accumulators are of; its results are the complete ones.
    pub fn await_dots(&mut self, accs: &[Value]) -> Result<Op, TypeError> {
        self.build(OpKind::MmaAwait {}, &[], &[], accs, &[], &[])
    }

    /// A slot of a buffer as a tile of type `ty`.
    pub fn local_load_to(&mut self, buffer: Value, ty: Type) -> Result<Value, TypeError> {
        let op = self.build(OpKind::LocalLoad {}, &[buffer], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A buffer with its dimensions in another order.
    pub fn shared_trans_of(&mut self, buffer: Value, order: &[u32]) -> Result<Value, TypeError> {
        let permuted = |source: &SharedLayout| {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            sorted.into_iter().eq(0..source.shape().len() as u32).then(|| source.transpose(order))
        };
        self.view(OpKind::SharedTrans { order: order.to_vec() }, buffer, permuted)
    }

    /// The part of a slot of a buffer that starts at `offsets` and has the sizes `shape`.
    pub fn shared_slice_of(&mut self, buffer: Value, offsets: &[u32], shape: &[u32]) -> Result<Value, TypeError> {
        let kind = OpKind::SharedSlice { offsets: offsets.to_vec(), shape: shape.to_vec() };
        self.view(kind, buffer, |source| source.slice(offsets, shape).map(|(_, part)| part))
    }

    /// The start of a slot of a buffer as a buffer of type `ty`.
    pub fn shared_view_as(&mut self, buffer: Value, ty: SharedType) -> Result<Value, TypeError> {
        let op = self.build(OpKind::SharedView {}, &[buffer], &[], &[], &[], &[Type::Shared(ty)])?;
        Ok(self.kernel.result(op, 0))
    }

    /// A view of a buffer; if there is no layout, the type rule reports why.
    fn view(
        &mut self,
        kind: OpKind,
        buffer: Value,
        layout: impl FnOnce(&SharedLayout) -> Option<SharedLayout>,
    ) -> Result<Value, TypeError> {
        let source = self.kernel.value_type(buffer);
        let mut ty = source;
        if let Some(shared) = source.as_shared().filter(|s| s.shape.iter().all(|d| d.is_power_of_two())) {
            let layout = layout(&self.kernel.slot_layout(shared));
            let viewed = layout.and_then(|layout| self.kernel.shared_type(shared.elem, &layout, shared.slots));
            ty = viewed.map_or(source, Type::Shared);
        }
        let op = self.build(kind, &[buffer], &[], &[], &[], &[ty])?;
        Ok(self.kernel.result(op, 0))
    }

    /// Ends the current block with these values.
    pub fn yield_values(&mut self, values: &[Value]) -> Result<Op, TypeError> {
        self.build(OpKind::Yields {}, &[], &[], values, &[], &[])
    }
}

/// The result types by the type rule, with the layouts of `given` where the rule leaves them free.
pub(crate) fn infer_results(
    kernel: &Kernel,
    kind: &OpKind,
    operands: &[Value],
    optional: u8,
    blocks: &[Block],
    given: &[Type],
) -> Result<Vec<Type>, String> {
    let types: SmallVec<[Type; 8]> = operands.iter().map(|v| kernel.value_type(*v)).collect();
    let named = kind.spec().operands.len() + optional.count_ones() as usize;
    if types.len() < named {
        return Err(format!("takes {named} operands, not {}", types.len()));
    }
    let cx = InferContext { kernel, kind, operands: &types, optional, given, blocks };
    let mut inferred = (kind.spec().infer)(&cx)?;
    if given.is_empty() {
        return Ok(inferred);
    }
    if given.len() != inferred.len() {
        return Err(format!("has {} results, not {}", inferred.len(), given.len()));
    }
    for (ty, given) in inferred.iter_mut().zip(given) {
        let free = ty.layout().is_none();
        if ty.without_layout() != given.without_layout() || (!free && ty != given) {
            return Err(format!("the result is {ty}, not {given}"));
        }
        *ty = *given;
    }
    Ok(inferred)
}
