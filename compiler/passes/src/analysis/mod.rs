//! What is known of values: analyses, each a function.

pub mod axis_info;
