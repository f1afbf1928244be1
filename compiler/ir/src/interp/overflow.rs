//! Which values end up in an address.

use cranelift_entity::SecondaryMap;

use crate::{Kernel, Value, address_operands, linear_sources, walk};

/// All values that the offset of an `addptr`, or what stands for one, is linear in: what is masked, divided or hashed on the way may wrap as it
/// likes.
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
