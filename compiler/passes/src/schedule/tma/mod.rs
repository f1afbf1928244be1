//! Copies by TMA: tensor maps, coordinates, buffers.

pub(crate) mod argument_maps;
pub mod atomics_to_tma;
pub(crate) mod buffer_boxes;
pub(crate) mod coordinates;
pub(crate) mod copy_maps;
pub(crate) mod kernel_tensor_maps;
pub(crate) mod tensor_maps;
pub(crate) mod tma_reductions;
