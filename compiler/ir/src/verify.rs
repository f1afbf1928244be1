//! The verifier. An error is always a bug of the compiler, never of the user.
//!
//! The rules of a verified kernel:
//!
//! 1. *Links.* Each operation is in one block, once, and has it as its parent; each nested block has its operation as
//!    parent; each result and block argument refers to its definition.
//! 2. *Form.* The numbers of operands, results and nested blocks are those of the operation's row; further operands
//!    only if the row allows them.
//! 3. *Types.* Result types follow the type rule. Tiles have rank 1 to 9, sizes that are powers of two, and at most
//!    [`MAX_TILE_ELEMENTS`] elements. Constants are numbers or tiles of numbers.
//! 4. *Dominance.* An operand is defined earlier in its block, or in a block around it.
//! 5. *Ends.* Each block ends with its one terminator: the body with `ret`, the first block of `while_loop` with
//!    `condition`, all others with `yields`; the yielded types are the loop-carried types, the result types, or the
//!    elements of the operands (`reduce`, `scan`).
//! 6. *Combine blocks* and the blocks of `map_elements` contain scalars only, and have no effects; the latter may load.
//! 7. *Kernel.* Parameters are the arguments of the body, scalars that fit their types at launch, with distinct names;
//!    warps and blocks of the cluster are powers of two. Hidden parameters come last; maps depend on the others only
//!    (`hidden.rs`).
//! 8. *Phase `Tile`*: no layouts, no shared memory. Only here are there block pointers, descriptors that are not
//!    parameters, and operations on either. Descriptors that are parameters are tensor maps with boxes of 256 at most:
//!    for copies, not for those operations, and not passed on.
//! 9. *Warp groups*: one `warp_specialize` at most, in the body, with as many warps and registers as a block can have;
//!    a kernel with one has tiles within its partitions only.
//! 10. *Phase `Laid`*: each tile has a layout of its shape for the warps that hold it, which covers it; layouts are
//!     related by `layout_rules.rs`. Loops and branches do not carry buffers and barriers, so that the allocation
//!     behind a value is known ([`Kernel::allocation`]); barriers are allocated in the body.
//! 11. *Phase `Scheduled`*: conversions stay within warps; operations have enough scratch memory, of their own warps;
//!     buffers have an aligned offset and are inside of the kernel's shared memory; each `dot` has a kind.
//!
//! 12. *In flight*: accumulators of a dot in flight are used by further dots and waits only. Where copies have tokens, the
//!     buffers that they fill are read through `copy_await`; in phase `Scheduled` there are no tokens.
//!
//! Not checked: that barriers order all accesses to shared memory, that live buffers do not overlap (the emulator finds
//! both).

mod groups;
mod in_flight;
mod shared;

use std::collections::HashSet;

use cranelift_entity::SecondaryMap;
use rtc_layout::{Conversion, conversion};

use crate::builder::infer_results;
use crate::layout_rules::{self, has_shape};
use crate::text::{PrintOptions, Printer, indent};
use crate::{
    Block, DotKind, Elem, Kernel, MAX_TILE_ELEMENTS, Op, OpKind, Phase, Traits, Type, Value, ValueDef, WarpGroup,
    scratch_bytes, view,
};
use crate::{hidden, regions};

pub use shared::{BARRIER_BYTES, place_bytes};

/// A kernel that the verifier accepted; the only way to get one is [`verify`].
#[derive(Clone, Copy, Debug)]
pub struct Verified<'k>(&'k Kernel);

impl<'k> Verified<'k> {
    /// The kernel.
    pub fn kernel(self) -> &'k Kernel {
        self.0
    }
}

/// One complaint of the verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The operation; `None` if it concerns the kernel as a whole.
    pub op: Option<Op>,
    /// One plain sentence.
    pub message: String,
}

/// Checks all that the module comment lists.
pub fn verify(kernel: &Kernel) -> Result<Verified<'_>, Vec<VerifyError>> {
    let mut verifier = Verifier {
        kernel,
        errors: Vec::new(),
        visible: SecondaryMap::new(),
        seen_ops: SecondaryMap::new(),
        seen_blocks: SecondaryMap::new(),
        combining: None,
        group: kernel.whole_block(),
    };
    verifier.kernel();
    if verifier.errors.is_empty() { Ok(Verified(kernel)) } else { Err(verifier.errors) }
}

/// The text form with each complaint under its operation, those about the whole on top.
pub fn print_errors(kernel: &Kernel, errors: &[VerifyError]) -> String {
    let mut out = String::new();
    for error in errors.iter().filter(|e| e.op.is_none()) {
        out.push_str(&format!("// error: {}\n", error.message));
    }
    let printer = Printer::new(kernel, PrintOptions::default());
    // Writing to a string does not fail.
    let _ = printer.kernel(&mut out, &mut |out, op, depth| {
        for error in errors.iter().filter(|e| e.op == Some(op)) {
            indent(out, depth);
            out.push_str(&format!("// ^ error: {}\n", error.message));
        }
        Ok(())
    });
    out
}

struct Verifier<'k> {
    kernel: &'k Kernel,
    errors: Vec<VerifyError>,
    visible: SecondaryMap<Value, bool>,
    seen_ops: SecondaryMap<Op, bool>,
    seen_blocks: SecondaryMap<Block, bool>,
    /// The operation whose combine block, or block for each element, the current block is or is nested in.
    combining: Option<Op>,
    /// The warps that run the current block.
    group: WarpGroup,
}

impl Verifier<'_> {
    fn complain(&mut self, op: impl Into<Option<Op>>, message: impl Into<String>) {
        self.errors.push(VerifyError { op: op.into(), message: message.into() });
    }

    fn kernel(&mut self) {
        let kernel = self.kernel;
        let options = &kernel.options;
        if !options.num_warps.is_power_of_two() || options.num_warps > 32 {
            self.complain(None, format!("{} warps: not a power of two up to 32", options.num_warps));
        }
        if options.given_warps.is_some_and(|given| given == 0 || given >= options.num_warps) {
            self.complain(None, "the launch gives no warps, or not fewer than there are");
        }
        if !options.num_ctas.is_power_of_two() || options.num_ctas > 16 {
            self.complain(None, format!("{} blocks in a cluster: not a power of two up to 16", options.num_ctas));
        }
        let args = &kernel.block(kernel.body()).args;
        if !args.iter().eq(kernel.params.iter().map(|p| &p.value)) {
            self.complain(None, "the parameters are not the arguments of the body");
        }
        let mut names = HashSet::new();
        for param in &kernel.params {
            if !names.insert(&param.name) {
                self.complain(None, format!("two parameters are called `{}`", param.name));
            }
            if !matches!(kernel.value_type(param.value), Type::Scalar(_) | Type::Desc(_)) {
                self.complain(None, format!("parameter `{}` is no scalar", param.name));
            } else if let Type::Desc(desc) = kernel.value_type(param.value)
                && let Err(message) = desc.check_box()
            {
                self.complain(None, message);
            } else if !crate::metadata::fits(param, kernel.value_type(param.value)) {
                let ty = kernel.value_type(param.value);
                self.complain(None, format!("parameter `{}` of type {} cannot be a {ty}", param.name, param.ty));
            }
        }
        for message in hidden::check(kernel) {
            self.complain(None, message);
        }
        if kernel.persistent.is_some_and(|p| p.blocks_per_multiprocessor == 0) {
            self.complain(None, "the kernel has no block per SM");
        }
        if kernel.block(kernel.body()).parent.is_some() {
            self.complain(None, "the body is nested in an operation");
        }
        self.block(kernel.body(), None);
        if self.errors.is_empty() {
            self.in_flight();
        }
    }

    fn block(&mut self, block: Block, around: Option<Op>) {
        let kernel = self.kernel;
        if std::mem::replace(&mut self.seen_blocks[block], true) {
            return self.complain(around, "a nested block belongs to two operations");
        }
        let data = kernel.block(block);
        if data.parent != around {
            self.complain(around, "a nested block names another operation as its parent");
        }
        if around.is_some() {
            self.not_handed(around, &data.args);
        }
        let mut defined = Vec::new();
        for (i, arg) in data.args.iter().enumerate() {
            self.value_type(around, kernel.value_type(*arg));
            if kernel.value(*arg).def != ValueDef::Arg(block, i as u32) {
                self.complain(around, "a block argument does not name its block");
            }
            self.visible[*arg] = true;
            defined.push(*arg);
        }
        for op in kernel.ops(block) {
            self.op(op, block);
            for result in &kernel.op(op).results {
                self.visible[*result] = true;
                defined.push(*result);
            }
        }
        self.end(block, around);
        for value in defined {
            self.visible[value] = false;
        }
    }

    fn op(&mut self, op: Op, block: Block) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let spec = data.kind.spec();
        if std::mem::replace(&mut self.seen_ops[op], true) {
            return self.complain(op, "stands in the kernel twice");
        }
        if data.parent != Some(block) {
            self.complain(op, "does not name its block as its parent");
        }
        let present = data.optional.count_ones() as usize;
        if spec.optional.len() < 8 && data.optional >> spec.optional.len() != 0 {
            self.complain(op, "has more optional operands than its row");
        }
        let fixed = spec.operands.len() + present;
        let count = data.operands.len();
        let form = if spec.traits.has(Traits::VARIADIC) { count >= fixed } else { count == fixed };
        if !form {
            return self.complain(op, format!("has {count} operands, not {fixed}"));
        }
        let count = data.blocks.len();
        if count < spec.blocks || (count > spec.blocks && !spec.traits.has(Traits::MORE_BLOCKS)) {
            return self.complain(op, format!("has {count} nested blocks, not {}", spec.blocks));
        }
        for (i, result) in data.results.iter().enumerate() {
            if kernel.value(*result).def != ValueDef::Result(op, i as u32) {
                self.complain(op, "a result does not name the operation");
            }
        }
        for operand in &data.operands {
            if !self.visible[*operand] {
                self.complain(op, "uses a value that is not defined before it");
            }
        }
        let before = self.errors.len();
        for result in &data.results {
            self.value_type(op, kernel.value_type(*result));
        }
        if let Err(message) = check_types(kernel, op) {
            self.complain(op, message);
        }
        if let OpKind::Load { once: true, volatile, .. } = data.kind
            && (volatile || !kernel.is_for_stores_alone(op))
        {
            self.complain(op, "is read by one warp alone, but copies of it are used");
        }
        if let OpKind::Constant { .. } = data.kind
            && let [result] = data.results[..]
            && !is_number(kernel.value_type(result))
        {
            self.complain(op, "a constant is a number or a tile of numbers");
        }
        if let Some(around) = self.combining {
            let name = kernel.kind(around).spec().mnemonic;
            if !may_stand_in(&data.kind, kernel.kind(around)) {
                self.complain(op, format!("stands in a block of `{name}` but has effects"));
            }
            let values = data.operands.iter().chain(&data.results);
            if values.into_iter().any(|v| !matches!(kernel.value_type(*v), Type::Scalar(_))) {
                self.complain(op, format!("stands in a block of `{name}` but is not made of scalars"));
            }
        }
        if !data.blocks.is_empty() {
            self.not_handed(Some(op), &data.results);
        }
        self.place(op, block);
        self.sign(op);
        // Layout rules rely on well-formed types.
        if self.errors.len() == before {
            self.phase(op);
        }
        let outer = self.combining;
        if matches!(data.kind, OpKind::Reduce { .. } | OpKind::Scan { .. } | OpKind::MapElements {}) {
            self.combining = outer.or(Some(op));
        }
        if let OpKind::WarpSpecialize { warps, registers } = &data.kind
            && !self.specialization(op, warps, registers.as_deref())
        {
            return;
        }
        let group = self.group;
        for nested in &data.blocks {
            self.group = kernel.group_of_nested(op, *nested);
            self.block(*nested, Some(op));
        }
        self.group = group;
        self.combining = outer;
    }

    fn value_type(&mut self, op: impl Into<Option<Op>>, ty: Type) {
        let op = op.into();
        let Type::Tile(tile) = ty else { return self.place_type(op, ty) };
        let kernel = self.kernel;
        let shape = tile.shape;
        if self.group.partition.is_none() && kernel.specialization().is_some() {
            return self.complain(op, "a tile outside of the partitions of a warp-specialized kernel");
        }
        if shape.rank() == 0 || shape.iter().any(|d| !d.is_power_of_two()) {
            return self.complain(op, format!("{shape} is no shape of a tile: all sizes are powers of two"));
        }
        if shape.numel() > MAX_TILE_ELEMENTS {
            return self.complain(op, format!("{shape} has more than {MAX_TILE_ELEMENTS} elements"));
        }
        match (kernel.phase, tile.layout) {
            (Phase::Tile, None) => {}
            (Phase::Tile, Some(_)) => self.complain(op, "a tile has a layout in phase `tile`"),
            (Phase::Laid | Phase::Scheduled, None) => self.complain(op, "a tile lacks a layout"),
            (Phase::Laid | Phase::Scheduled, Some(id)) => {
                let layout = kernel.layout(id);
                if !has_shape(layout, &shape) {
                    self.complain(op, format!("the layout is for shape {:?}, not {shape}", layout.shape()));
                } else if layout.warps() != self.group.warps {
                    let warps = self.group.warps;
                    self.complain(op, format!("the layout is for {} warps, not {warps}", layout.warps()));
                } else if layout.blocks() != 1 {
                    self.complain(op, "the layout spreads the tile over several blocks");
                } else if !layout.covers_tile() {
                    self.complain(op, "the layout does not cover the tile");
                }
            }
        }
    }

    fn phase(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        if kernel.phase == Phase::Tile {
            return;
        }
        if data.operands.iter().any(|v| !self.is_laid(*v)) {
            // The error is reported at the operand's definition.
            return;
        }
        if let Err(message) = layout_rules::check(kernel, op) {
            return self.complain(op, message);
        }
        self.counted(op);
        if kernel.phase == Phase::Scheduled {
            self.scheduled(op);
        }
    }

    /// Whether a value has a usable layout if it needs one.
    fn is_laid(&self, value: Value) -> bool {
        match self.kernel.value_type(value) {
            Type::Tile(tile) => tile.layout.is_some_and(|id| {
                let layout = self.kernel.layout(id);
                has_shape(layout, &tile.shape) && layout.warps() == self.group.warps
            }),
            _ => true,
        }
    }

    fn scheduled(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        self.offset(op);
        if let OpKind::ConvertLayout {} = data.kind
            && let (Some(from), Some(to)) =
                (kernel.layout_of(view::ConvertLayout::at(kernel, op).source()), kernel.layout_of(data.results[0]))
            && conversion(from, to) == Conversion::Shared
        {
            self.complain(op, "the conversion goes through shared memory: it is a store and a load");
        }
        match data.kind {
            OpKind::Dot { kind: DotKind::Unset, .. } => self.complain(op, "the dot has no kind"),
            OpKind::Dot { kind: DotKind::Wgmma, .. } => self.complain(op, "the dot by `wgmma` is an `mma` by now"),
            _ => {}
        }
        self.scratch_of_group(op);
        if let Some(slot) = data.kind.spec().optional.iter().position(|name| *name == "scratch")
            && let Some(needed) = scratch_bytes(kernel, op)
        {
            match kernel.optional(op, slot).map(|v| kernel.value_type(v)) {
                Some(Type::Shared(shared)) => {
                    let size = shared.bytes();
                    if size < u64::from(needed) {
                        self.complain(op, format!("needs {needed} bytes of scratch memory, has {size}"));
                    }
                }
                Some(other) => self.complain(op, format!("the scratch memory is {other}")),
                None => self.complain(op, format!("needs {needed} bytes of scratch memory")),
            }
        }
    }

    /// The terminator of a block and what it hands over.
    fn end(&mut self, block: Block, around: Option<Op>) {
        let kernel = self.kernel;
        for op in kernel.ops(block).rev().skip(1) {
            if kernel.kind(op).spec().traits.has(Traits::TERMINATOR) {
                self.complain(op, "ends a block before its end");
            }
        }
        let Some(end) = kernel.terminator(block) else {
            return self.complain(kernel.last_op(block).or(around), "the block has no terminator");
        };
        let types = |values: &[Value]| values.iter().map(|v| kernel.value_type(*v)).collect::<Vec<Type>>();
        let found = types(kernel.variadic(end));
        let Some(around) = around else {
            if !matches!(kernel.kind(end), OpKind::Ret {}) {
                self.complain(end, "the body ends with `ret`");
            }
            return;
        };
        let outer = kernel.op(around);
        let number = outer.blocks.iter().position(|b| *b == block).unwrap_or(0);
        let wanted = match (&outer.kind, regions::handed_to(kernel, around, number)) {
            (_, Some(targets)) => types(targets),
            (OpKind::Reduce { .. } | OpKind::Scan { .. }, None) => elements(kernel, kernel.variadic(around)),
            (OpKind::MapElements {}, None) => elements(kernel, &outer.results),
            (_, None) => return self.complain(around, "has nested blocks of no known use"),
        };
        let expected = regions::terminator(&outer.kind, number);
        if kernel.kind(end).spec().mnemonic != expected {
            return self.complain(end, format!("the block ends with `{expected}`"));
        }
        if found != wanted {
            let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
            self.complain(end, format!("hands over ({}), not ({})", list(&found), list(&wanted)));
        }
    }
}

/// A number or a tile of numbers.
fn is_number(ty: Type) -> bool {
    matches!(ty, Type::Scalar(_) | Type::Tile(_)) && ty.elem().and_then(Elem::num).is_some()
}

fn elements(kernel: &Kernel, values: &[Value]) -> Vec<Type> {
    values.iter().filter_map(|v| kernel.value_type(*v).elem()).map(Type::Scalar).collect()
}

/// Whether an operation is allowed in the nested block of `reduce`, `scan` or `map_elements`, which runs any number of
/// times: it must not have effects.
pub fn may_stand_in(kind: &OpKind, around: &OpKind) -> bool {
    match kind {
        // Messages are no part of the result: a combine function may check its values.
        OpKind::Assertion { .. } => true,
        OpKind::Print { .. } => !matches!(around, OpKind::MapElements {}),
        OpKind::Load { volatile, .. } => !volatile && matches!(around, OpKind::MapElements {}),
        OpKind::InlineAsm { pure, .. } => *pure,
        kind => kind.spec().effects.is_empty() && !kind.spec().traits.has(Traits::CONVERGENT),
    }
}

/// The type rule on the operation as it is.
fn check_types(kernel: &Kernel, op: Op) -> Result<(), String> {
    let data = kernel.op(op);
    let given: Vec<Type> = data.results.iter().map(|v| kernel.value_type(*v)).collect();
    let inferred = infer_results(kernel, &data.kind, &data.operands, data.optional, &data.blocks, &given)?;
    if inferred.len() != given.len() {
        return Err(format!("has {} results, not {}", inferred.len(), given.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;
    use crate::{Builder, KernelOptions};

    fn messages(kernel: &Kernel) -> Vec<String> {
        verify(kernel).err().unwrap_or_default().into_iter().map(|e| e.message).collect()
    }

    fn sample() -> (Kernel, Op) {
        let mut kernel = Kernel::new("k", KernelOptions::default());
        let x = kernel.add_param("x", Elem::I32.into(), rtc_abi::DType::Int32, 1);
        let body = kernel.body();
        let mut b = Builder::at_end(&mut kernel, body);
        let y = b.addi(x, x).expect("the types fit");
        b.ret().expect("it has no operands");
        let op = kernel.def_op(y).expect("it is a result");
        (kernel, op)
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(messages(&sample().0), [""; 0]);
        let (mut kernel, op) = sample();
        kernel.ops[op].parent = None;
        assert_eq!(messages(&kernel), ["does not name its block as its parent"]);
        let (mut kernel, op) = sample();
        kernel.ops[op].operands.pop();
        assert_eq!(messages(&kernel), ["has 1 operands, not 2"]);
        let (mut kernel, op) = sample();
        kernel.ops[op].optional = 1;
        assert!(messages(&kernel).contains(&"has more optional operands than its row".to_string()));
        let (mut kernel, _) = sample();
        let body = kernel.body();
        kernel.add_arg(body, Elem::I32.into(), None);
        assert_eq!(messages(&kernel), ["the parameters are not the arguments of the body"]);
    }

    #[test]
    fn a_detached_operand_is_found_and_printed() {
        let (mut kernel, op) = sample();
        let body = kernel.body();
        let y = kernel.result(op, 0);
        let mut b = Builder::after(&mut kernel, op);
        b.muli(y, y).expect("the types fit");
        kernel.detach_op(op);
        let errors = verify(&kernel).expect_err("an operand is gone");
        assert_eq!(kernel.ops(body).count(), 2);
        let text = print_errors(&kernel, &errors);
        assert!(text.contains("uses a value that is not defined before it"), "{text}");
        assert!(text.contains("%undefined."), "{text}");
    }

    #[test]
    fn complaints_stand_under_their_operation() {
        let kernel = parse(
            "kernel @k(%x: i32, %y: i64) warps 4 phase tile {
  %c = constant {value = 1} : i1
  if_else %c ^() {
    %a = addi %x, %y : i32
    yields
  } ^() {
    yields (%x)
  }
}",
        )
        .expect("the form is right");
        let errors = verify(&kernel).expect_err("it has three faults");
        insta::assert_snapshot!(print_errors(&kernel, &errors));
    }
}
