//! A thin builder of thread-level MLIR, used by lowering.
//!
//! An [`Emitter`] knows the block it appends to, the current source location
//! and the common types; its methods append one operation each and return its
//! result. Methods take `&self`, so that calls nest:
//! `e.addi(e.muli(block, size), thread)`. The methods are grouped by subject
//! in the files below this one.
//!
//! Values and blocks carry the context's lifetime: MLIR owns both, they live
//! as long as the module, and the module as long as the context.
//!
//! Constants are pooled at the top of the function, so that each stands once
//! in the text and dominates every use.

mod arith;
mod control;
mod memory;
mod nvvm;

#[cfg(test)]
mod tests;

pub(crate) use control::Loop;
pub(crate) use memory::{Access, LoadKind, Space};
pub(crate) use nvvm::ShuffleKind;

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
        operation::{OperationBuilder, OperationRef},
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
    /// A pointer into the block's shared memory.
    pub shared: Type<'c>,
}

impl<'c> Types<'c> {
    fn new(context: &'c Context) -> Self {
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
            shared: llvm::r#type::pointer(context, 3),
        }
    }
}

/// A parameter of a function: its type and the dictionary of its attributes, in MLIR's text form.
pub(crate) struct Parameter<'c> {
    pub ty: Type<'c>,
    pub attributes: String,
}

/// What distinguishes kernels from each other besides their body.
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
}

/// Appends operations to the current block.
pub(crate) struct Emitter<'c> {
    pub context: &'c Context,
    pub ty: Types<'c>,
    block: Cell<BlockRef<'c, 'c>>,
    location: Cell<Location<'c>>,
    /// The function's first block, where constants go, and the last constant in it.
    entry: BlockRef<'c, 'c>,
    last_constant: Cell<Option<OperationRef<'c, 'c>>>,
    constants: RefCell<HashMap<Constant, Value<'c>>>,
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
    let emitter = Emitter {
        context,
        ty: Types::new(context),
        block: Cell::new(entry),
        location: Cell::new(location),
        entry,
        last_constant: Cell::new(None),
        constants: RefCell::default(),
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
    module.body().append_operation(
        OperationBuilder::new("llvm.mlir.global", Location::unknown(context))
            .add_attributes(&named(context, &attributes))
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
        // Building fails only where result types are to be inferred, which we never ask for.
        let operation = builder.build().expect("an operation without inferred types is always built");
        self.block.get().append_operation(operation)
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
        let kind = self.float_kind(ty);
        if value.is_nan() {
            // Through text: the C API's way from a double loses a NaN's payload for the narrow types.
            let (bits, digits) = match kind {
                "f64" => (0x7ff8_0000_0000_0000, 16),
                "f32" => (0x7fc0_0000, 8),
                "bf16" => (0x7fc0, 4),
                _ => (0x7e00, 4),
            };
            return self.float_bits(ty, bits, digits);
        }
        self.constant(Constant::Float(kind, value.to_bits()), ty, || {
            FloatAttribute::new(self.context, ty, value).into()
        })
    }

    /// A floating-point constant by its bits, `digits` hexadecimal digits wide.
    fn float_bits(&self, ty: Type<'c>, bits: u64, digits: usize) -> Value<'c> {
        let kind = self.float_kind(ty);
        self.constant(Constant::Float(kind, bits | 1 << 63), ty, || {
            parsed(self.context, &format!("0x{bits:0digits$X} : {kind}"))
        })
    }

    fn constant(&self, key: Constant, ty: Type<'c>, attribute: impl FnOnce() -> Attribute<'c>) -> Value<'c> {
        if let Some(value) = self.constants.borrow().get(&key) {
            return *value;
        }
        let operation = OperationBuilder::new("arith.constant", Location::unknown(self.context))
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
