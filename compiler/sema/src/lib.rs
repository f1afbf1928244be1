//! Semantic analysis: from the syntax tree to the tile IR.

pub mod spec;
