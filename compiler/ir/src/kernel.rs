//! The kernel: arenas of operations, values and blocks, and what is known of the whole.

use cranelift_entity::{PrimaryMap, SecondaryMap};
use indexmap::IndexSet;
use rtc_abi::ParamType;
use rtc_layout::Layout;
use rtc_source::Span;
use smallvec::SmallVec;

use crate::{Block, LayoutId, Literal, Loc, Op, OpKind, Type, Value};

/// How far a kernel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Shapes and element types, no layouts.
    Tile,
    /// Every tile type has a layout.
    Laid,
    /// Shared memory is placed, barriers are in.
    Scheduled,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct OpData {
    /// What it is, with attributes.
    pub kind: OpKind,
    /// Operands: named ones, present optional ones, variadic ones.
    pub operands: SmallVec<[Value; 4]>,
    /// Bit `i` is set if optional operand `i` is present.
    pub optional: u8,
    /// Results.
    pub results: SmallVec<[Value; 1]>,
    /// Nested blocks.
    pub blocks: SmallVec<[Block; 2]>,
    /// Where it comes from.
    pub loc: Loc,
    /// The block it stands in; `None` once it is removed.
    pub parent: Option<Block>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// Result number `.1` of an operation.
    Result(Op, u32),
    /// Argument number `.1` of a block.
    Arg(Block, u32),
}

/// One value.
#[derive(Clone, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// Where it comes from.
    pub def: ValueDef,
    /// Its name in the source, if it has one.
    pub name: Option<String>,
}

/// A block: arguments, operations in order, and the operation around it.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Arguments.
    pub args: Vec<Value>,
    /// Operations; the last one ends the block.
    pub ops: Vec<Op>,
    /// The operation that the block is nested in; `None` for the kernel's body.
    pub parent: Option<Op>,
}

/// A source location: a span, and the call through which it was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocData {
    /// The span; `None` for operations that no source line asked for.
    pub span: Option<Span>,
    /// The call that was inlined here.
    pub caller: Option<Loc>,
}

/// A run-time parameter of the kernel, in the order of the launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name; elements of tuples are `t.0` or `t.field`.
    pub name: String,
    /// Its type as the launcher sees it, with the sign of integers.
    pub ty: ParamType,
    /// A number that its value or address is known to be a multiple of; 1 if nothing is known.
    pub divisible_by: u32,
    /// The argument of the body block.
    pub value: Value,
}

/// Options of the launch that the compiler needs.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelOptions {
    /// Warps that compute; a power of two.
    pub num_warps: u32,
    /// Default depth of software pipelining.
    pub num_stages: u32,
    /// Blocks of a cluster.
    pub num_ctas: u32,
    /// Register limit per thread.
    pub maxnreg: Option<u32>,
    /// Whether `a * b + c` may be contracted to one rounding.
    pub fp_fusion: bool,
}

impl Default for KernelOptions {
    fn default() -> KernelOptions {
        KernelOptions { num_warps: 4, num_stages: 3, num_ctas: 1, maxnreg: None, fp_fusion: true }
    }
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// How far it has come.
    pub phase: Phase,
    /// Launch options.
    pub options: KernelOptions,
    /// Run-time parameters.
    pub params: Vec<Param>,
    /// Dynamic shared memory in bytes; set by `allocate_shared`.
    pub shared_bytes: u32,
    ops: PrimaryMap<Op, OpData>,
    values: PrimaryMap<Value, ValueData>,
    blocks: PrimaryMap<Block, BlockData>,
    layouts: IndexSet<Layout>,
    locs: IndexSet<LocData>,
    body: Block,
}

impl Kernel {
    /// An empty kernel in phase `Tile`.
    pub fn new(name: impl Into<String>, options: KernelOptions) -> Kernel {
        let mut blocks = PrimaryMap::new();
        let body = blocks.push(BlockData::default());
        let mut locs = IndexSet::new();
        locs.insert(LocData { span: None, caller: None });
        Kernel {
            name: name.into(),
            phase: Phase::Tile,
            options,
            params: Vec::new(),
            shared_bytes: 0,
            ops: PrimaryMap::new(),
            values: PrimaryMap::new(),
            blocks,
            layouts: IndexSet::new(),
            locs,
            body,
        }
    }

    /// The kernel's body.
    pub fn body(&self) -> Block {
        self.body
    }

    /// Adds a run-time parameter.
    pub fn add_param(
        &mut self,
        name: impl Into<String>,
        ty: Type,
        param: impl Into<ParamType>,
        divisible_by: u32,
    ) -> Value {
        let name = name.into();
        let value = self.add_arg(self.body, ty, Some(name.clone()));
        self.params.push(Param { name, ty: param.into(), divisible_by, value });
        value
    }

    /// Adds an argument to a block.
    pub fn add_arg(&mut self, block: Block, ty: Type, name: Option<String>) -> Value {
        let index = self.blocks[block].args.len() as u32;
        let value = self.values.push(ValueData { ty, def: ValueDef::Arg(block, index), name });
        self.blocks[block].args.push(value);
        value
    }

    /// A new empty block, to be nested in an operation.
    pub fn new_block(&mut self) -> Block {
        self.blocks.push(BlockData::default())
    }

    /// An operation.
    pub fn op(&self, op: Op) -> &OpData {
        &self.ops[op]
    }

    /// An operation, to change its kind, operands or location in place.
    pub fn op_mut(&mut self, op: Op) -> &mut OpData {
        &mut self.ops[op]
    }

    /// The kind of an operation.
    pub fn kind(&self, op: Op) -> &OpKind {
        &self.ops[op].kind
    }

    /// A block.
    pub fn block(&self, block: Block) -> &BlockData {
        &self.blocks[block]
    }

    /// A block, to reorder its operations or change its arguments.
    pub fn block_mut(&mut self, block: Block) -> &mut BlockData {
        &mut self.blocks[block]
    }

    /// A value.
    pub fn value(&self, value: Value) -> &ValueData {
        &self.values[value]
    }

    /// The type of a value.
    pub fn value_type(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// Sets the type of a value.
    pub fn set_type(&mut self, value: Value, ty: Type) {
        self.values[value].ty = ty;
    }

    /// Sets the source name of a value, unless it has one.
    pub fn name_value(&mut self, value: Value, name: &str) {
        let slot = &mut self.values[value].name;
        if slot.is_none() {
            *slot = Some(name.to_string());
        }
    }

    /// Turns an operation with one result into a constant: `value` in every place of its type.
    pub fn make_constant(&mut self, op: Op, value: Literal) {
        let data = &mut self.ops[op];
        data.kind = OpKind::Constant { value };
        data.operands.clear();
        data.optional = 0;
        // A name tells how a value came about, and this one is only a number now.
        self.values[data.results[0]].name = None;
    }

    /// The operation that a value is a result of; `None` for block arguments.
    pub fn def_op(&self, value: Value) -> Option<Op> {
        match self.values[value].def {
            ValueDef::Result(op, _) => Some(op),
            ValueDef::Arg(..) => None,
        }
    }

    /// Named operand `index`.
    pub fn operand(&self, op: Op, index: usize) -> Value {
        self.ops[op].operands[index]
    }

    /// Optional operand `index`, if it is present.
    pub fn optional(&self, op: Op, index: usize) -> Option<Value> {
        let data = &self.ops[op];
        if data.optional & (1 << index) == 0 {
            return None;
        }
        let before = (data.optional & ((1 << index) - 1)).count_ones() as usize;
        data.operands.get(data.kind.spec().operands.len() + before).copied()
    }

    /// Sets or replaces optional operand `index`.
    pub fn set_optional(&mut self, op: Op, index: usize, value: Value) {
        let data = &mut self.ops[op];
        let before = (data.optional & ((1 << index) - 1)).count_ones() as usize;
        let at = data.kind.spec().operands.len() + before;
        if data.optional & (1 << index) == 0 {
            data.optional |= 1 << index;
            data.operands.insert(at, value);
        } else {
            data.operands[at] = value;
        }
    }

    /// The operands after the named and optional ones.
    pub fn variadic(&self, op: Op) -> &[Value] {
        let data = &self.ops[op];
        let fixed = data.kind.spec().operands.len() + data.optional.count_ones() as usize;
        &data.operands[fixed..]
    }

    /// Result `index`.
    pub fn result(&self, op: Op, index: usize) -> Value {
        self.ops[op].results[index]
    }

    /// The operation that ends a block, if it has one.
    pub fn terminator(&self, block: Block) -> Option<Op> {
        let op = *self.blocks[block].ops.last()?;
        self.ops[op].kind.spec().traits.has(crate::Traits::TERMINATOR).then_some(op)
    }

    /// Makes an operation that stands nowhere yet; see [`crate::Builder`] for the usual way.
    pub(crate) fn make_op(&mut self, data: OpData, results: &[Type]) -> Op {
        let blocks = data.blocks.clone();
        let op = self.ops.push(data);
        for (i, ty) in results.iter().enumerate() {
            let value = self.values.push(ValueData { ty: *ty, def: ValueDef::Result(op, i as u32), name: None });
            self.ops[op].results.push(value);
        }
        for block in blocks {
            self.blocks[block].parent = Some(op);
        }
        op
    }

    /// A copy of an operation without nested blocks, with other operands and result types; it stands nowhere yet.
    pub fn clone_op(&mut self, op: Op, operands: &[Value], types: &[Type]) -> Op {
        let mut data = self.ops[op].clone();
        data.operands = operands.iter().copied().collect();
        data.results.clear();
        data.parent = None;
        self.make_op(data, types)
    }

    /// Adds a result to an operation (loops and branches that get another carried value).
    pub fn add_result(&mut self, op: Op, ty: Type) -> Value {
        let index = self.ops[op].results.len() as u32;
        let value = self.values.push(ValueData { ty, def: ValueDef::Result(op, index), name: None });
        self.ops[op].results.push(value);
        value
    }

    /// Removes result `index`, which must have no uses.
    pub fn remove_result(&mut self, op: Op, index: usize) {
        self.ops[op].results.remove(index);
        for (i, value) in self.ops[op].results.clone().into_iter().enumerate() {
            self.values[value].def = ValueDef::Result(op, i as u32);
        }
    }

    /// Removes argument `index` of a block, which must have no uses.
    pub fn remove_arg(&mut self, block: Block, index: usize) {
        self.blocks[block].args.remove(index);
        for (i, value) in self.blocks[block].args.clone().into_iter().enumerate() {
            self.values[value].def = ValueDef::Arg(block, i as u32);
        }
    }

    /// Puts an operation into a block, before the operation at `index`.
    pub fn insert_op(&mut self, block: Block, index: usize, op: Op) {
        self.blocks[block].ops.insert(index, op);
        self.ops[op].parent = Some(block);
    }

    /// Takes an operation out of its block; its data stays.
    pub fn detach_op(&mut self, op: Op) {
        if let Some(block) = self.ops[op].parent.take() {
            self.blocks[block].ops.retain(|o| *o != op);
        }
    }

    /// Takes many operations out of their blocks, in one go over each block; their data stays.
    pub fn detach_ops(&mut self, ops: &[Op]) {
        let mut blocks: Vec<Block> = ops.iter().filter_map(|op| self.ops[*op].parent.take()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks {
            let ops = &self.ops;
            self.blocks[block].ops.retain(|op| ops[*op].parent == Some(block));
        }
    }

    /// Position of an operation in its block.
    pub fn position(&self, op: Op) -> Option<(Block, usize)> {
        let block = self.ops[op].parent?;
        self.blocks[block].ops.iter().position(|o| *o == op).map(|i| (block, i))
    }

    /// Uses `new` wherever `old` was used.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        for data in self.ops.values_mut() {
            for operand in &mut data.operands {
                if *operand == old {
                    *operand = new;
                }
            }
        }
    }

    /// The uses of every value: operation and operand number, for operations that stand in a block.
    pub fn uses(&self) -> SecondaryMap<Value, Vec<(Op, usize)>> {
        let mut uses: SecondaryMap<Value, Vec<(Op, usize)>> = SecondaryMap::new();
        for op in crate::walk(self) {
            for (i, operand) in self.ops[op].operands.iter().enumerate() {
                uses[*operand].push((op, i));
            }
        }
        uses
    }

    /// How many values there ever were; handles are below this.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// How many operations there ever were; handles are below this.
    pub fn op_count(&self) -> usize {
        self.ops.len()
    }

    /// Interns a layout.
    pub fn intern_layout(&mut self, layout: Layout) -> LayoutId {
        LayoutId::from_u32(self.layouts.insert_full(layout).0 as u32)
    }

    /// An interned layout.
    pub fn layout(&self, id: LayoutId) -> &Layout {
        &self.layouts[id.as_u32() as usize]
    }

    /// The layout of a tile value that has one.
    pub fn layout_of(&self, value: Value) -> Option<&Layout> {
        self.value_type(value).layout().map(|id| self.layout(id))
    }

    /// All interned layouts with their handles.
    pub fn layouts(&self) -> impl Iterator<Item = (LayoutId, &Layout)> {
        self.layouts.iter().enumerate().map(|(i, l)| (LayoutId::from_u32(i as u32), l))
    }

    /// Interns a location.
    pub fn intern_loc(&mut self, loc: LocData) -> Loc {
        Loc::from_u32(self.locs.insert_full(loc).0 as u32)
    }

    /// An interned location.
    pub fn loc(&self, loc: Loc) -> LocData {
        self.locs[loc.as_u32() as usize]
    }

    /// The location of operations that no source line asked for.
    pub fn no_loc(&self) -> Loc {
        Loc::from_u32(0)
    }
}
