//! The kernel: arenas of operations, values and blocks, and properties of the whole.

use std::borrow::Cow;

use cranelift_entity::{PrimaryMap, SecondaryMap};
use indexmap::IndexSet;
use rtc_abi::{DType, ParamType, Persistent};
use rtc_layout::{Layout, SharedLayout};
use rtc_source::Span;
use smallvec::SmallVec;

use crate::order::Link;
use crate::{Block, Hidden, LayoutId, Loc, Op, OpKind, SharedLayoutId, SharedType, Type, Value};

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
    /// The kind, with attributes.
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
    /// The parent block; `None` once it is removed.
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

/// A block: arguments, operations in order, and the operation around it. The operations are a linked list; see
/// [`Kernel::ops`].
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Arguments.
    pub args: Vec<Value>,
    /// The operation that the block is nested in; `None` for the kernel's body.
    pub parent: Option<Op>,
    pub(crate) first: Option<Op>,
    pub(crate) last: Option<Op>,
}

/// A source location: a span, and the call through which it was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocData {
    /// The span; `None` for operations without a source line.
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
    /// The value that the launch passes for a hidden parameter; such parameters come last.
    pub hidden: Option<Hidden>,
}

/// Options of the launch that the compiler needs.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelOptions {
    /// Warps that compute; a power of two.
    pub num_warps: u32,
    /// The number in the launch options, if a pass has raised it (`add_warps`).
    pub given_warps: Option<u32>,
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
        KernelOptions { num_warps: 4, given_warps: None, num_stages: 3, num_ctas: 1, maxnreg: None, fp_fusion: true }
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
    /// For a kernel that loops over programs itself: how many blocks are started. `program_id` and `num_programs` then
    /// count blocks; the numbers of programs are hidden parameters.
    pub persistent: Option<Persistent>,
    /// Dynamic shared memory in bytes; set by `allocate_shared`.
    pub shared_bytes: u32,
    pub(crate) ops: PrimaryMap<Op, OpData>,
    pub(crate) values: PrimaryMap<Value, ValueData>,
    pub(crate) blocks: PrimaryMap<Block, BlockData>,
    /// The position of each operation in its block.
    pub(crate) order: SecondaryMap<Op, Link>,
    /// Operations that use a value, and perhaps some that used it once; see [`Kernel::users`].
    pub(crate) users: SecondaryMap<Value, SmallVec<[Op; 2]>>,
    /// Every `warp_specialize` there ever was; see [`Kernel::specialization`].
    pub(crate) specializations: SmallVec<[Op; 1]>,
    layouts: IndexSet<Layout>,
    shared_layouts: IndexSet<SharedLayout>,
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
            persistent: None,
            shared_bytes: 0,
            ops: PrimaryMap::new(),
            values: PrimaryMap::new(),
            blocks,
            order: SecondaryMap::new(),
            users: SecondaryMap::new(),
            specializations: SmallVec::new(),
            layouts: IndexSet::new(),
            shared_layouts: IndexSet::new(),
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
        self.params.push(Param { name, ty: param.into(), divisible_by, value, hidden: None });
        value
    }

    /// Adds a hidden parameter after all others.
    pub fn add_hidden(&mut self, name: impl Into<String>, ty: Type, hidden: Hidden) -> Value {
        let param = match hidden {
            Hidden::Grid(_) => DType::Int32.into(),
            Hidden::TensorMap(_) => ParamType::TensorMap,
        };
        let value = self.add_param(name, ty, param, 1);
        if let Some(param) = self.params.last_mut() {
            param.hidden = Some(hidden);
        }
        value
    }

    /// Adds a run-time parameter before the one of that number.
    pub fn insert_param(
        &mut self,
        at: usize,
        name: impl Into<String>,
        ty: Type,
        param: impl Into<ParamType>,
        divisible_by: u32,
    ) -> Value {
        let value = self.add_param(name, ty, param, divisible_by);
        for number in (at + 1..self.params.len()).rev() {
            self.swap_params(number - 1, number);
        }
        value
    }

    /// Swaps two parameters.
    pub fn swap_params(&mut self, one: usize, other: usize) {
        self.params.swap(one, other);
        let args = &mut self.blocks[self.body].args;
        args.swap(one, other);
        for at in [one, other] {
            self.values[args[at]].def = ValueDef::Arg(self.body, at as u32);
        }
    }

    /// Takes a parameter out that nothing uses.
    pub fn remove_param(&mut self, at: usize) {
        for number in at + 1..self.params.len() {
            self.swap_params(number - 1, number);
        }
        self.params.pop();
        self.blocks[self.body].args.pop();
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

    /// The kind of an operation.
    pub fn kind(&self, op: Op) -> &OpKind {
        &self.ops[op].kind
    }

    /// A block.
    pub fn block(&self, block: Block) -> &BlockData {
        &self.blocks[block]
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

    /// Interns a layout of tiles in shared memory.
    pub fn intern_shared_layout(&mut self, layout: SharedLayout) -> SharedLayoutId {
        SharedLayoutId::from_u32(self.shared_layouts.insert_full(layout).0 as u32)
    }

    /// An interned layout of tiles in shared memory.
    pub fn shared_layout(&self, id: SharedLayoutId) -> &SharedLayout {
        &self.shared_layouts[id.as_u32() as usize]
    }

    /// Where the elements of a slot of a buffer lie. The sizes of the buffer must be powers of two.
    pub fn slot_layout(&self, ty: SharedType) -> Cow<'_, SharedLayout> {
        match ty.layout {
            Some(id) => Cow::Borrowed(self.shared_layout(id)),
            None => Cow::Owned(SharedLayout::row_major(&ty.shape)),
        }
    }

    /// The type of a buffer with this layout; row-major needs none.
    pub fn shared_type(&mut self, elem: crate::Elem, layout: &SharedLayout, slots: u32) -> Option<SharedType> {
        let shape = crate::Shape::new(layout.shape())?;
        let plain = *layout == SharedLayout::row_major(layout.shape());
        let layout = (!plain).then(|| self.intern_shared_layout(layout.clone()));
        Some(SharedType { elem, shape, layout, slots })
    }

    /// Interns a location.
    pub fn intern_loc(&mut self, loc: LocData) -> Loc {
        Loc::from_u32(self.locs.insert_full(loc).0 as u32)
    }

    /// An interned location.
    pub fn loc(&self, loc: Loc) -> LocData {
        self.locs[loc.as_u32() as usize]
    }

    /// The location of operations without a source line.
    pub fn no_loc(&self) -> Loc {
        Loc::from_u32(0)
    }
}
