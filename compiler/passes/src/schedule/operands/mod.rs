//! Operands of dots in shared memory.

pub(crate) mod buffer_dots;
pub(crate) mod mma_operands;
pub(crate) mod operand_layouts;
pub(crate) mod read_back;
pub mod stage_operands;
pub(crate) mod staged;
