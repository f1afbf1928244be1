//! The rules of buffers and barriers in shared memory.

use super::Verifier;
use crate::{Block, Kernel, MAX_SLOTS, Op, OpKind, Phase, SharedType, Traits, Type, Value, ValueDef, regions};

/// The most bytes of a buffer; no target has as many, but only a pass knows the target.
const MOST_BYTES: u64 = 1 << 30;

/// The size of a barrier in bytes, and its alignment.
pub const BARRIER_BYTES: u32 = 8;

impl Verifier<'_> {
    /// The type of a value that is no tile.
    pub(super) fn place_type(&mut self, op: Option<Op>, ty: Type) {
        let slots = match ty {
            Type::Shared(shared) => {
                if let Err(message) = check_buffer(self.kernel, shared) {
                    self.complain(op, message);
                }
                shared.slots
            }
            Type::Barrier { slots } => slots,
            Type::Desc(desc) => return self.well_formed(op, desc.check()),
            Type::BlockPtr(block) => return self.well_formed(op, block.check()),
            Type::Scalar(_) | Type::Tile(_) | Type::Token => return,
        };
        if !(1..=MAX_SLOTS).contains(&slots) {
            self.complain(op, format!("a ring of {slots} slots: not 1 to {MAX_SLOTS}"));
        }
    }

    fn well_formed(&mut self, op: Option<Op>, checked: Result<(), String>) {
        if let Err(message) = checked {
            self.complain(op, message);
        }
    }

    /// The shared memory and the parameter behind a value must be known everywhere: loops and branches do not carry
    /// them.
    pub(super) fn not_handed(&mut self, op: Option<Op>, values: &[Value]) {
        let kernel = self.kernel;
        let lowered = kernel.phase != Phase::Tile;
        let is_fixed = |value: &Value| kernel.value_type(*value).is_place() || lowered && is_tensor_map(kernel, *value);
        if values.iter().any(is_fixed) {
            self.complain(op, "hands on a place in shared memory or a descriptor; blocks use those from outside");
        }
    }

    /// The phases in which an operation is allowed, and those of operations on shared memory.
    pub(super) fn place(&mut self, op: Op, block: Block) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let concerned = data.operands.iter().chain(&data.results).any(|v| kernel.value_type(*v).is_place());
        if kernel.phase == Phase::Tile && concerned {
            self.complain(op, "shared memory in phase `tile`");
        }
        let of_blocks = data.kind.spec().traits.has(Traits::TILE_PHASE);
        if kernel.phase != Phase::Tile {
            if of_blocks {
                self.complain(op, "stands in a kernel that has layouts; a pass lowers it before");
            }
        } else if (0..data.operands.len())
            .any(|i| is_tensor_map(kernel, data.operands[i]) && (of_blocks || regions::is_handed(kernel, op, i)))
        {
            self.complain(op, "takes a tensor map, which is for copies; `make_desc` makes descriptors in phase `tile`");
        }
        if matches!(data.kind, OpKind::AllocBarriers { .. }) && block != kernel.body() {
            self.complain(op, "barriers are made once, in the body of the kernel");
        }
    }

    /// That a copy which combines integers has a map of integers with the sign that it means.
    pub(super) fn sign(&mut self, op: Op) {
        let kernel = self.kernel;
        let OpKind::CopyDescReduce { op: by } = *kernel.kind(op) else { return };
        let Some(map) = kernel.op(op).operands.first() else { return };
        let Type::Desc(desc) = kernel.value_type(*map) else { return };
        if by.signed(desc.elem).is_some_and(|signed| signed != kernel.is_signed_map(*map)) {
            self.complain(op, format!("`{by}` takes a tensor map of integers of the other sign"));
        }
    }

    /// Where a buffer or barriers lie, in phase `Scheduled`.
    pub(super) fn offset(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = kernel.op(op);
        let (align, offset) = match data.kind {
            OpKind::AllocShared { align, offset } => (align, offset),
            OpKind::AllocBarriers { offset, .. } => (BARRIER_BYTES, offset),
            _ => return,
        };
        let bytes = data.results.first().map_or(0, |v| place_bytes(kernel.value_type(*v)));
        let size = kernel.shared_bytes;
        match offset {
            None => self.complain(op, "the buffer has no offset"),
            Some(at) if align == 0 || at % align != 0 => {
                self.complain(op, format!("offset {at} is not aligned to {align}"));
            }
            Some(at) if u64::from(at) + bytes > u64::from(size) => {
                self.complain(op, format!("the buffer ends beyond the kernel's {size} bytes of shared memory"));
            }
            Some(_) => {}
        }
    }
}

/// Whether a value is a parameter that is a tensor map.
fn is_tensor_map(kernel: &Kernel, value: Value) -> bool {
    let is_parameter = || matches!(kernel.value(value).def, ValueDef::Arg(block, _) if block == kernel.body());
    matches!(kernel.value_type(value), Type::Desc(_)) && is_parameter()
}

/// The bytes of shared memory behind a value of this type.
pub fn place_bytes(ty: Type) -> u64 {
    match ty {
        Type::Shared(shared) => shared.bytes(),
        Type::Barrier { slots } => u64::from(slots) * u64::from(BARRIER_BYTES),
        Type::Scalar(_) | Type::Tile(_) | Type::Desc(_) | Type::BlockPtr(_) | Type::Token => 0,
    }
}

fn check_buffer(kernel: &Kernel, ty: SharedType) -> Result<(), String> {
    if ty.shape.rank() == 0 || ty.bytes() > MOST_BYTES {
        return Err(format!("{} is no shape of a buffer with {} slots", ty.shape, ty.slots));
    }
    let Some(id) = ty.layout else { return Ok(()) };
    let layout = kernel.shared_layout(id);
    if layout.shape() != &ty.shape[..] {
        return Err(format!("the layout is for shape {:?}, not {}", layout.shape(), ty.shape));
    }
    if u64::from(layout.elements()) != ty.shape.numel() {
        return Err("the layout does not cover the buffer".into());
    }
    Ok(())
}
