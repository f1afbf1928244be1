//! The maps of descriptors among the arguments, as parameters.

use rtc_abi::{ParamType, ValueType};
use rtc_ir::{DescType, Kernel, Type, Value};

use crate::PassError;
use crate::access::descriptors::{BASE, Descriptor, parameter};
use crate::pass::missing;

/// The parameter with the map of a descriptor for boxes of that type.
pub(crate) fn map(kernel: &mut Kernel, descriptor: &Descriptor, ty: DescType) -> Result<Value, PassError> {
    let Descriptor { name: descriptor, block } = descriptor;
    for number in 0.. {
        let name = if number == 0 { descriptor.clone() } else { format!("{descriptor}.map.{number}") };
        match parameter(kernel, &name) {
            Some(value) if kernel.value_type(value) == Type::Desc(ty) => return Ok(value),
            Some(_) => continue,
            None => {}
        }
        let base = kernel.params.iter().find(|param| param.name == format!("{descriptor}{BASE}"));
        let Some(ParamType::Value(ValueType::Pointer { pointee, .. })) = base.map(|param| &param.ty) else { break };
        let param = ParamType::Descriptor { element: *pointee, block_shape: block.to_vec() };
        let at = kernel.params.iter().take_while(|param| param.hidden.is_none()).count();
        return Ok(kernel.insert_param(at, name, Type::Desc(ty), param, 1));
    }
    Err(missing("a descriptor"))
}

/// Puts the maps of descriptors in the place of addresses that nothing uses any more.
pub(crate) fn drop_addresses(kernel: &mut Kernel) {
    let is_map = |kernel: &Kernel, at: usize| {
        let param = &kernel.params[at];
        param.hidden.is_none() && matches!(kernel.value_type(param.value), Type::Desc(_))
    };
    for at in (0..kernel.params.len()).rev() {
        let base = format!("{}{BASE}", kernel.params[at].name);
        let Some(old) = kernel.params.iter().position(|param| param.name == base) else { continue };
        if is_map(kernel, at) && !kernel.is_used(kernel.params[old].value) {
            kernel.swap_params(old, at);
            kernel.remove_param(at);
        }
    }
}
