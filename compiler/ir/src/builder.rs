//! Builds operations at a place in a kernel.

use smallvec::SmallVec;

use crate::{Block, InferContext, Kernel, Loc, Op, OpData, OpKind, Position, Traits, Type, TypeError, Value};

/// What a builder method hands out: the operation, or its first result.
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

    /// The kernel, to change it beside the operation list of the current block.
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        self.kernel
    }

    /// The location given to operations from now on.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// Goes to the end of another block.
    pub fn switch_to(&mut self, block: Block) {
        self.at = Position::End(block);
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
