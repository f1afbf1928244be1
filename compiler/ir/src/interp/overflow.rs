//! Which values end up in an address.

use cranelift_entity::SecondaryMap;

use crate::{Kernel, Value, address_operands, linear_sources, walk};

/// All values in which the offset of an `addptr`, or of an equivalent operation, is linear: values that are masked,
/// divided or hashed before may overflow.
pub(crate) fn address_values(kernel: &Kernel) -> SecondaryMap<Value, bool> {
    let mut marked: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut work: Vec<Value> = Vec::new();
    for op in walk(kernel) {
        work.extend(address_operands(kernel, op));
    }
    while let Some(value) = work.pop() {
        if !std::mem::replace(&mut marked[value], true) {
            work.extend(linear_sources(kernel, value));
        }
    }
    marked
}
