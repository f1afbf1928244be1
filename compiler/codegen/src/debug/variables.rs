//! The variables of a kernel for debuggers: values of the tile IR that have a name of the source.
//!
//! A variable of a tile is an array of the elements that a thread holds, in the order of its registers. Variables of
//! functions that were inlined are left out.

use std::collections::HashMap;

use melior::ir::{Attribute, Location};
use rtc_ir::{Elem, Kernel, Op, OpKind, Scalar, Type, Value, walk};

/// Larger tiles are left out: a debugger shows no more in a useful form, and each register is an entry.
const MAX_REGISTERS: u32 = 256;

/// A variable and the values that it has.
pub(super) struct Variable {
    pub name: String,
    /// The text of its type's attribute.
    pub ty: String,
    /// Bits of an element.
    pub bits: u32,
    /// How many elements a thread holds.
    pub elements: u32,
    /// Each value with the operation at whose line it gets it; parameters have none.
    pub values: Vec<(Value, Option<Op>)>,
}

/// A variable in MLIR.
#[derive(Clone, Copy)]
pub(crate) struct DebugVariable<'c> {
    pub attribute: Attribute<'c>,
    pub location: Location<'c>,
    /// Bits of an element, if it has several.
    pub piece: Option<u32>,
}

/// All variables, in the order of their first values. A name that has values of several types is several variables.
pub(super) fn collect(kernel: &Kernel) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    let mut add = |value: Value, op: Option<Op>| {
        let (Some(name), Some((ty, bits, elements))) = (&kernel.value(value).name, described(kernel, value)) else {
            return;
        };
        let index = *known.entry((name.clone(), ty.clone())).or_insert_with(|| {
            all.push(Variable { name: name.clone(), ty, bits, elements, values: Vec::new() });
            all.len() - 1
        });
        all[index].values.push((value, op));
    };
    kernel.params.iter().filter(|param| param.hidden.is_none()).for_each(|param| add(param.value, None));
    for op in walk(kernel) {
        let data = kernel.op(op);
        if kernel.loc(data.loc).caller.is_some() {
            continue;
        }
        data.results.iter().for_each(|value| add(*value, Some(op)));
        if matches!(data.kind, OpKind::ForRange { .. } | OpKind::WhileLoop { .. }) {
            for block in &data.blocks {
                kernel.block(*block).args.iter().for_each(|value| add(*value, Some(op)));
            }
        }
    }
    all
}

/// The type of a value for a debugger, the bits of an element, and how many elements a thread holds.
fn described(kernel: &Kernel, value: Value) -> Option<(String, u32, u32)> {
    let ty = kernel.value_type(value);
    let elements = match ty {
        Type::Scalar(_) => 1,
        Type::Tile(_) => kernel.layout_of(value)?.registers(),
        _ => return None,
    };
    let (element, bits) = element(ty.elem()?)?;
    match elements {
        1 => Some((element, bits, 1)),
        2..=MAX_REGISTERS => {
            let size = bits * elements;
            let array = format!(
                "#llvm.di_composite_type<tag = DW_TAG_array_type, baseType = {element}, sizeInBits = {size}, \
                 elements = #llvm.di_subrange<count = {elements} : i64>>"
            );
            Some((array, bits, elements))
        }
        _ => None,
    }
}

/// The type of an element. A truth value is a predicate of the machine, which has no address.
fn element(elem: Elem) -> Option<(String, u32)> {
    let (name, bits, encoding) = match elem {
        Elem::Ptr(pointee) => {
            let (pointee, _) = element(Elem::Num(pointee)).unwrap_or_else(|| (base("byte", 8, "DW_ATE_unsigned"), 8));
            let text =
                format!("#llvm.di_derived_type<tag = DW_TAG_pointer_type, baseType = {pointee}, sizeInBits = 64>");
            return Some((text, 64));
        }
        Elem::Num(Scalar::I1) => return None,
        Elem::Num(Scalar::I8) => ("int8", 8, "DW_ATE_signed"),
        Elem::Num(Scalar::I16) => ("int16", 16, "DW_ATE_signed"),
        Elem::Num(Scalar::I32) => ("int32", 32, "DW_ATE_signed"),
        Elem::Num(Scalar::I64) => ("int64", 64, "DW_ATE_signed"),
        // Debuggers know no other floats: of these they show the bits.
        Elem::Num(Scalar::F8E5) => ("fp8e5", 8, "DW_ATE_unsigned"),
        Elem::Num(Scalar::F8E4) => ("fp8e4nv", 8, "DW_ATE_unsigned"),
        Elem::Num(Scalar::F8E4B15) => ("fp8e4b15", 8, "DW_ATE_unsigned"),
        Elem::Num(Scalar::F16) => ("fp16", 16, "DW_ATE_unsigned"),
        Elem::Num(Scalar::BF16) => ("bf16", 16, "DW_ATE_unsigned"),
        Elem::Num(Scalar::F32) => ("float", 32, "DW_ATE_float"),
        Elem::Num(Scalar::F64) => ("double", 64, "DW_ATE_float"),
    };
    Some((base(name, bits, encoding), bits))
}

fn base(name: &str, bits: u32, encoding: &str) -> String {
    format!(
        "#llvm.di_basic_type<tag = DW_TAG_base_type, name = \"{name}\", sizeInBits = {bits}, encoding = {encoding}>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::MlirContext;
    use crate::emit::parsed;

    #[test]
    fn mlir_reads_the_types_of_all_elements() {
        let cx = MlirContext::new();
        for scalar in Scalar::ALL {
            let described = element(Elem::Num(scalar));
            assert_eq!(described.is_none(), scalar == Scalar::I1, "{scalar:?}");
            if let Some((text, bits)) = described {
                assert_eq!(bits, 8 * scalar.bytes(), "{scalar:?}");
                parsed(cx.get(), &text);
            }
            let (pointer, bits) = element(Elem::Ptr(scalar)).expect("a pointer has a type");
            assert_eq!(bits, 64);
            parsed(cx.get(), &pointer);
        }
        assert!(cx.take_diagnostics().is_empty());
    }
}
