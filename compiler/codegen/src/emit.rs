//! A thin builder of thread-level MLIR, used by lowering.
//!
//! An [`Emitter`] has the block it appends to, the current source location and the common types; its methods append one
//! operation each and return its result. Methods take `&self`, so that calls nest: `e.addi(e.muli(block, size),
//! thread)`. The methods are grouped by subject in the files below this one.
//!
//! Values and blocks carry the context's lifetime: MLIR owns both, they live as long as the module, and the module as
//! long as the context.
//!
//! Constants are pooled at the top of the function, so that each occurs once in the text and dominates every use.

mod arith;
mod control;
mod copy;
mod map;
mod mbarrier;
mod memory;
mod nvvm;
mod vectors;
mod wgmma;

#[cfg(test)]
mod tests;

pub(crate) use arith::{Cmpf, Cmpi};
pub(crate) use control::Loop;
pub(crate) use copy::{BulkReduction, COPY_WAIT};
pub(crate) use map::MapFields;
pub(crate) use memory::{AccessAttrs, LoadKind, Space};
pub(crate) use nvvm::ShuffleKind;
pub(crate) use wgmma::{FirstDot, WGMMA, WGMMA_WAIT, WgmmaDescriptor, WgmmaOperand, WgmmaProduct, WgmmaShape};

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use melior::{
    Context,
    dialect::llvm,
    ir::{
        Attribute, Block, BlockLike, BlockRef, Identifier, Location, Module, Region, RegionLike, ValueLike,
        attribute::{FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute},
        operation::{OperationBuilder, OperationRef, OperationResult},
        r#type::IntegerType,
    },
};

/// A thread-level value.
pub(crate) type Value<'c> = melior::ir::Value<'c, 'c>;
/// A thread-level type.
pub(crate) type Type<'c> = melior::ir::Type<'c>;

/// The types that lowering uses all the time.
#[derive(Clone, Copy)]
pub(crate) struct Types<'c> {
    pub i1: Type<'c>,
    pub i8: Type<'c>,
    pub i16: Type<'c>,
    pub i32: Type<'c>,
    pub i64: Type<'c>,
    pub f16: Type<'c>,
    pub bf16: Type<'c>,
    pub f32: Type<'c>,
    pub f64: Type<'c>,
    /// A generic pointer.
    pub generic: Type<'c>,
    /// A pointer into global memory.
    pub global: Type<'c>,
}

impl<'c> Types<'c> {
    pub fn new(context: &'c Context) -> Self {
        let int = |width| IntegerType::new(context, width).into();
        Types {
            i1: int(1),
            i8: int(8),
            i16: int(16),
            i32: int(32),
            i64: int(64),
            f16: Type::float16(context),
            bf16: Type::bfloat16(context),
            f32: Type::float32(context),
            f64: Type::float64(context),
            generic: llvm::r#type::pointer(context, 0),
            global: llvm::r#type::pointer(context, 1),
        }
    }
}

/// A parameter of a function: its type and the dictionary of its attributes, in MLIR's text form.
pub(crate) struct Parameter<'c> {
    pub ty: Type<'c>,
    pub attributes: String,
}

impl<'c> Parameter<'c> {
    /// A tensor map: 128 bytes in the parameter buffer, whose address the body gets.
    pub fn tensor_map(types: &Types<'c>) -> Self {
        let attributes = "llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant";
        Parameter { ty: types.generic, attributes: attributes.to_owned() }
    }

    /// Global memory for the kernel's own use.
    pub fn scratch(types: &Types<'c>, align: u32) -> Self {
        Parameter { ty: types.global, attributes: format!("llvm.align = {align} : i64") }
    }
}

/// The properties of a kernel other than its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelShape {
    pub threads_per_block: u32,
    pub max_registers: Option<u32>,
    /// Blocks per cluster along x, y, z; absent where clusters are not used.
    pub cluster: Option<[u32; 3]>,
}

/// The key of a pooled constant: its type's text and its bits.
#[derive(PartialEq, Eq, Hash)]
enum Constant {
    Integer(u32, i64),
    Float(&'static str, u64),
    FloatBits(&'static str, u64),
}

/// Where the next operation goes.
#[derive(Clone, Copy)]
enum Cursor<'c> {
    /// To the end of a block.
    End(BlockRef<'c, 'c>),
    /// After an operation of a block.
    After(BlockRef<'c, 'c>, OperationRef<'c, 'c>),
}

/// Appends operations to the current block.
pub(crate) struct Emitter<'c> {
    pub context: &'c Context,
    pub ty: Types<'c>,
    cursor: Cell<Cursor<'c>>,
    location: Cell<Location<'c>>,
    /// The function's first block: constants at its top, then the prologue, then the body.
    entry: BlockRef<'c, 'c>,
    last_constant: Cell<Option<OperationRef<'c, 'c>>>,
    count: Cell<usize>,
    /// The last operation of the function's prologue.
    prologue: Cell<OperationRef<'c, 'c>>,
    /// The last operation of the prologue of the warps that run the current code, and its block, if they have one.
    group_prologue: Cell<Option<(BlockRef<'c, 'c>, OperationRef<'c, 'c>)>>,
    /// The thread's number in the block; the first operation of the prologue.
    pub thread: Value<'c>,
    constants: RefCell<HashMap<Constant, Value<'c>>>,
    vectors: vectors::Vectors<'c>,
    attributes: RefCell<HashMap<&'static str, Attribute<'c>>>,
}

/// Adds a kernel to `module`: an `llvm.func` whose body `build` appends through an [`Emitter`].
///
/// `location` is the location of the function; it carries the debug scope where line information is wanted.
pub(crate) fn kernel<'c, E>(
    context: &'c Context,
    module: &Module<'c>,
    symbol: &str,
    parameters: &[Parameter<'c>],
    shape: &KernelShape,
    location: Location<'c>,
    build: impl FnOnce(&Emitter<'c>, &[Value<'c>]) -> Result<(), E>,
) -> Result<(), E> {
    let region = Region::new();
    let arguments: Vec<_> = parameters.iter().map(|parameter| (parameter.ty, location)).collect();
    let entry: BlockRef<'c, 'c> = region.append_block(Block::new(&arguments));
    let types = Types::new(context);
    let thread = entry.append_operation(
        OperationBuilder::new("nvvm.read.ptx.sreg.tid.x", Location::unknown(context))
            .add_results(&[types.i32])
            .add_attributes(&named(
                context,
                &[("range", parsed(context, &format!("#llvm.constant_range<i32, 0, {}>", shape.threads_per_block)))],
            ))
            .build()
            .expect("an operation without inferred types is always built"),
    );
    let emitter = Emitter {
        context,
        ty: types,
        cursor: Cell::new(Cursor::End(entry)),
        location: Cell::new(location),
        entry,
        last_constant: Cell::new(None),
        count: Cell::new(0),
        prologue: Cell::new(thread),
        group_prologue: Cell::new(None),
        thread: first_result(thread),
        constants: RefCell::default(),
        vectors: vectors::Vectors::default(),
        attributes: RefCell::default(),
    };
    let values = block_arguments(entry);
    build(&emitter, &values)?;
    emitter.effect("llvm.return", &[], &[]);

    let types: Vec<_> = parameters.iter().map(|parameter| parameter.ty).collect();
    let function_type = llvm::r#type::function(llvm::r#type::void(context), &types, false);
    let dictionaries: Vec<_> = parameters.iter().map(|parameter| format!("{{{}}}", parameter.attributes)).collect();
    let mut attributes = vec![
        ("sym_name", StringAttribute::new(context, symbol).into()),
        ("function_type", TypeAttribute::new(function_type).into()),
        ("arg_attrs", parsed(context, &format!("[{}]", dictionaries.join(", ")))),
        ("nvvm.kernel", Attribute::unit(context)),
        ("nvvm.reqntid", parsed(context, &format!("array<i32: {}>", shape.threads_per_block))),
    ];
    if let Some(count) = shape.max_registers {
        attributes.push(("nvvm.maxnreg", parsed(context, &format!("{count} : i32"))));
    }
    if let Some([x, y, z]) = shape.cluster {
        attributes.push(("nvvm.cluster_dim", parsed(context, &format!("array<i32: {x}, {y}, {z}>"))));
    }
    module.body().append_operation(
        OperationBuilder::new("llvm.func", location)
            .add_attributes(&named(context, &attributes))
            .add_regions([region])
            .build()
            .expect("an operation without inferred types is always built"),
    );
    Ok(())
}

/// Declares dynamic shared memory under the symbol `name`: its size is given at launch.
pub(crate) fn dynamic_shared_memory<'c>(context: &'c Context, module: &Module<'c>, name: &str, align: u32) {
    let array = llvm::r#type::array(IntegerType::new(context, 8).into(), 0);
    let attributes = [
        ("sym_name", StringAttribute::new(context, name).into()),
        ("global_type", TypeAttribute::new(array).into()),
        ("linkage", parsed(context, "#llvm.linkage<external>")),
        ("addr_space", parsed(context, "3 : i32")),
        ("alignment", parsed(context, &format!("{align} : i64"))),
    ];
    module_operation(context, module, "llvm.mlir.global", &attributes);
}

/// Defines a constant string that ends with a zero byte, in global memory.
pub(crate) fn constant_text(context: &Context, module: &Module<'_>, name: &str, text: &str) {
    let mut bytes = text.to_owned();
    bytes.push('\0');
    let array = llvm::r#type::array(IntegerType::new(context, 8).into(), bytes.len() as u32);
    let attributes = [
        ("sym_name", StringAttribute::new(context, name).into()),
        ("global_type", TypeAttribute::new(array).into()),
        ("linkage", parsed(context, "#llvm.linkage<internal>")),
        ("addr_space", parsed(context, "1 : i32")),
        ("constant", Attribute::unit(context)),
        ("value", StringAttribute::new(context, &bytes).into()),
    ];
    module_operation(context, module, "llvm.mlir.global", &attributes);
}

/// Declares a function that the driver supplies.
pub(crate) fn external_function<'c>(
    context: &'c Context,
    module: &Module<'c>,
    name: &str,
    parameters: &[Type<'c>],
    result: Option<Type<'c>>,
) {
    let result = result.unwrap_or_else(|| llvm::r#type::void(context));
    let attributes = [
        ("sym_name", StringAttribute::new(context, name).into()),
        ("function_type", TypeAttribute::new(llvm::r#type::function(result, parameters, false)).into()),
    ];
    module_operation(context, module, "llvm.func", &attributes);
}

fn module_operation<'c>(context: &'c Context, module: &Module<'c>, name: &str, attributes: &[(&str, Attribute<'c>)]) {
    module.body().append_operation(
        OperationBuilder::new(name, Location::unknown(context))
            .add_attributes(&named(context, attributes))
            .add_regions([Region::new()])
            .build()
            .expect("an operation without inferred types is always built"),
    );
}

/// Parses an attribute whose text we wrote ourselves.
pub(crate) fn parsed<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    Attribute::parse(context, text).unwrap_or_else(|| unreachable!("attribute text of ours does not parse: {text}"))
}

fn named<'c>(context: &'c Context, attributes: &[(&str, Attribute<'c>)]) -> Vec<(Identifier<'c>, Attribute<'c>)> {
    attributes.iter().map(|(name, value)| (Identifier::new(context, name), *value)).collect()
}

fn block_arguments<'c>(block: BlockRef<'c, 'c>) -> Vec<Value<'c>> {
    (0..block.argument_count()).map(|i| block.argument(i).expect("index below the count").into()).collect()
}

impl<'c> Emitter<'c> {
    /// Sets the source location of the operations to come.
    pub fn set_location(&self, location: Location<'c>) {
        self.location.set(location);
    }

    /// Appends an operation and returns it.
    pub fn operation(
        &self,
        name: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> OperationRef<'c, 'c> {
        self.operation_with_regions(name, operands, results, attributes, Vec::new())
    }

    fn operation_with_regions(
        &self,
        name: &str,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> OperationRef<'c, 'c> {
        let mut builder = OperationBuilder::new(name, self.location.get()).add_operands(operands).add_results(results);
        if !attributes.is_empty() {
            builder = builder.add_attributes(&named(self.context, attributes));
        }
        if !regions.is_empty() {
            builder = builder.add_regions_vec(regions);
        }
        self.count.set(self.count.get() + 1);
        // Building fails only if result types are to be inferred, which is never requested.
        let operation = builder.build().expect("an operation without inferred types is always built");
        match self.cursor.get() {
            Cursor::End(block) => block.append_operation(operation),
            Cursor::After(block, previous) => {
                let operation = block.insert_operation_after(previous, operation);
                self.cursor.set(Cursor::After(block, operation));
                operation
            }
        }
    }

    /// How many operations were appended so far.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// Runs `build` with operations going to the prologue of the warps that run the current code, so that the results
    /// may be used anywhere in their code: of the function, or of their region. No control flow there.
    pub fn in_prologue<T>(&self, build: impl FnOnce() -> T) -> T {
        let Some((block, last)) = self.group_prologue.get() else { return self.in_entry(build) };
        let (result, last) = self.building_after(block, last, build);
        self.group_prologue.set(Some((block, last)));
        result
    }

    /// Runs `build` with operations going to the function's prologue: after the constants, before the body.
    fn in_entry<T>(&self, build: impl FnOnce() -> T) -> T {
        let (result, last) = self.building_after(self.entry, self.prologue.get(), build);
        self.prologue.set(last);
        result
    }

    /// Runs `build` with operations going after `last`; gives the last of them.
    fn building_after<T>(
        &self,
        block: BlockRef<'c, 'c>,
        last: OperationRef<'c, 'c>,
        build: impl FnOnce() -> T,
    ) -> (T, OperationRef<'c, 'c>) {
        let outer = self.cursor.replace(Cursor::After(block, last));
        let location = self.location.replace(Location::unknown(self.context));
        let result = build();
        let end = self.cursor.replace(outer);
        self.location.set(location);
        (result, if let Cursor::After(_, last) = end { last } else { last })
    }

    /// Runs `build` with a prologue that starts after the operation that defines `start`, in the current block.
    pub fn with_prologue<T>(&self, start: Value<'c>, build: impl FnOnce() -> T) -> T {
        let place = match (self.cursor.get(), OperationResult::try_from(start)) {
            (Cursor::End(block), Ok(result)) => Some((block, result.owner())),
            _ => None,
        };
        let outer = self.group_prologue.replace(place);
        let result = build();
        self.group_prologue.set(outer);
        result
    }

    /// Appends an operation with one result and returns that.
    pub fn value(
        &self,
        name: &str,
        operands: &[Value<'c>],
        result: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Value<'c> {
        first_result(self.operation(name, operands, &[result], attributes))
    }

    /// Appends an operation without results.
    pub fn effect(&self, name: &str, operands: &[Value<'c>], attributes: &[(&str, Attribute<'c>)]) {
        self.operation(name, operands, &[], attributes);
    }

    /// Says that a variable of the source has the values `registers`: its only one, or elements of `piece` bits from number
    /// `first` on.
    pub fn debug_values(
        &self,
        variable: Attribute<'c>,
        location: Location<'c>,
        piece: Option<u32>,
        first: usize,
        registers: &[Value<'c>],
    ) {
        let before = self.location.replace(location);
        for (index, register) in registers.iter().enumerate() {
            let part = piece.map_or(String::new(), |bits| {
                format!("[DW_OP_LLVM_fragment({}, {bits})]", (first + index) * bits as usize)
            });
            let expression = parsed(self.context, &format!("#llvm.di_expression<{part}>"));
            let attributes = [("varInfo", variable), ("locationExpr", expression)];
            self.effect("llvm.intr.dbg.value", &[*register], &attributes);
        }
        self.location.set(before);
    }

    /// An attribute by its MLIR text, parsed once.
    pub fn attribute(&self, text: &'static str) -> Attribute<'c> {
        *self.attributes.borrow_mut().entry(text).or_insert_with(|| parsed(self.context, text))
    }

    /// The attribute of a flag that is on.
    pub fn unit(&self) -> Attribute<'c> {
        Attribute::unit(self.context)
    }

    /// A string attribute.
    pub fn string(&self, text: &str) -> Attribute<'c> {
        StringAttribute::new(self.context, text).into()
    }

    /// An integer attribute of 32 bits.
    pub fn int_attribute(&self, value: i64) -> Attribute<'c> {
        IntegerAttribute::new(self.ty.i32, value).into()
    }

    /// An integer attribute of 64 bits.
    pub fn long_attribute(&self, value: i64) -> Attribute<'c> {
        IntegerAttribute::new(self.ty.i64, value).into()
    }

    /// An integer constant of any integer type; `value` is truncated to the type's width.
    pub fn int(&self, ty: Type<'c>, value: i64) -> Value<'c> {
        let width = self.integer_width(ty);
        let value = if width >= 64 { value } else { (value << (64 - width)) >> (64 - width) };
        self.constant(Constant::Integer(width, value), ty, || IntegerAttribute::new(ty, value).into())
    }

    /// A 32-bit integer constant.
    pub fn i32(&self, value: i32) -> Value<'c> {
        self.int(self.ty.i32, i64::from(value))
    }

    /// A 64-bit integer constant.
    pub fn i64(&self, value: i64) -> Value<'c> {
        self.int(self.ty.i64, value)
    }

    /// A truth value.
    pub fn bool(&self, value: bool) -> Value<'c> {
        self.int(self.ty.i1, i64::from(value))
    }

    /// A floating-point constant: `value` rounded to the type.
    pub fn float(&self, ty: Type<'c>, value: f64) -> Value<'c> {
        let key = Constant::Float(self.float_kind(ty), value.to_bits());
        self.constant(key, ty, || FloatAttribute::new(self.context, ty, value).into())
    }

    /// A floating-point constant by its bits, which keeps a NaN as it is.
    pub fn float_constant(&self, ty: Type<'c>, bits: u64) -> Value<'c> {
        let kind = self.float_kind(ty);
        let digits = match kind {
            "f64" => 16,
            "f32" => 8,
            _ => 4,
        };
        self.constant(Constant::FloatBits(kind, bits), ty, || {
            parsed(self.context, &format!("0x{bits:0digits$X} : {kind}"))
        })
    }

    fn constant(&self, key: Constant, ty: Type<'c>, attribute: impl FnOnce() -> Attribute<'c>) -> Value<'c> {
        if let Some(value) = self.constants.borrow().get(&key) {
            return *value;
        }
        let operation = OperationBuilder::new("llvm.mlir.constant", Location::unknown(self.context))
            .add_results(&[ty])
            .add_attributes(&named(self.context, &[("value", attribute())]))
            .build()
            .expect("an operation without inferred types is always built");
        let operation = match self.last_constant.get() {
            None => self.entry.insert_operation(0, operation),
            Some(last) => self.entry.insert_operation_after(last, operation),
        };
        self.last_constant.set(Some(operation));
        let value = first_result(operation);
        self.constants.borrow_mut().insert(key, value);
        value
    }

    /// The width of an integer type.
    pub fn integer_width(&self, ty: Type<'c>) -> u32 {
        IntegerType::try_from(ty).map_or(0, |ty| ty.width())
    }

    /// The integer type of a width.
    pub fn integer_type(&self, bits: u32) -> Type<'c> {
        IntegerType::new(self.context, bits).into()
    }

    /// A vector type of `count` elements.
    pub fn vector_type(&self, count: u32, element: Type<'c>) -> Type<'c> {
        Type::vector(&[u64::from(count)], element)
    }

    /// A struct type, as multi-result operations return it.
    pub fn struct_type(&self, fields: &[Type<'c>]) -> Type<'c> {
        llvm::r#type::r#struct(self.context, fields, false)
    }

    fn float_kind(&self, ty: Type<'c>) -> &'static str {
        if ty == self.ty.f32 {
            "f32"
        } else if ty == self.ty.f64 {
            "f64"
        } else if ty == self.ty.bf16 {
            "bf16"
        } else {
            "f16"
        }
    }
}

fn first_result<'c>(operation: OperationRef<'c, 'c>) -> Value<'c> {
    operation.result(0).expect("built with one result").into()
}

/// The type of a value.
pub(crate) fn type_of<'c>(value: Value<'c>) -> Type<'c> {
    value.r#type()
}
