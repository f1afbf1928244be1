//! Layout of variables and parameters, initial values, what module-level names mean.

use rtc_ptx::module::{Function, Immediate, Initial, Linkage, Module, StateSpace, Statement, Variable};
use rtc_ptx::types::bits;

use super::scope::{Scope, Symbol};
use super::{Result, error};
use crate::code::{Code, FunctionCode, GlobalImage};

/// Next multiple of `align`.
pub fn align_up(offset: u32, align: u32) -> u32 {
    u32::try_from(u64::from(offset).next_multiple_of(u64::from(align.max(1)))).unwrap_or(u32::MAX)
}

/// Alignment of a variable: as written, else that of its type.
pub fn align_of(variable: &Variable) -> u32 {
    variable.align.unwrap_or(bits(variable.ty).unwrap_or(8).div_ceil(8)).max(1)
}

/// Size of a variable; `[]` counts as empty.
pub fn size_of(variable: &Variable) -> Result<u32> {
    let element = u64::from(bits(variable.ty).unwrap_or(8).div_ceil(8));
    let mut size = Some(element);
    for dimension in &variable.dimensions {
        let n = dimension.unwrap_or(if variable.initial.is_empty() { 0 } else { variable.initial.len() as u64 });
        size = size.and_then(|s| s.checked_mul(n));
    }
    match size.and_then(|s| u32::try_from(s).ok()).filter(|s| *s < 1 << 28) {
        Some(size) => Ok(size),
        None => error(variable.line, format!("`{}` is too large", variable.name)),
    }
}

/// The layout of a function's parameters.
pub fn function_code(function: &Function) -> Result<FunctionCode> {
    let mut offset = 0;
    let mut place = |variables: &[Variable]| -> Result<Vec<(u32, u32)>> {
        let mut list = Vec::new();
        for variable in variables {
            if variable.space == StateSpace::Reg {
                return error(variable.line, "parameters in registers are not supported");
            }
            let size = size_of(variable)?;
            offset = align_up(offset, align_of(variable));
            list.push((offset, size));
            offset = offset.saturating_add(size);
        }
        Ok(list)
    };
    let params = place(&function.params)?;
    let results = place(&function.returns)?;
    let three = |values: &[u32]| {
        let at = |i: usize| values.get(i).copied().unwrap_or(1);
        [at(0), at(1), at(2)]
    };
    Ok(FunctionCode {
        name: function.name.clone(),
        entry: function.entry,
        start: 0,
        registers: 0,
        frame_bytes: if function.entry { 0 } else { offset },
        param_bytes: if function.entry { offset } else { 0 },
        params,
        results,
        required_threads: function.directive("reqntid").map(three),
        max_threads: function.directive("maxntid").map(|v| v.iter().product()),
        required_cluster: function.directive("reqnctapercluster").map(three),
        names: Vec::new(),
    })
}

/// Places every module-level variable, and the shared variables of functions, which live as long as the block.
pub fn module_scope(module: &Module, code: &mut Code) -> Result<Scope> {
    let mut scope = Scope::default();
    let mut place = |variable: &Variable| -> Result<Symbol> {
        let offset = align_up(code.static_shared, align_of(variable));
        code.static_shared = offset.saturating_add(size_of(variable)?);
        Ok(Symbol::Shared(offset))
    };
    let is_dynamic = |v: &Variable| v.linkage == Linkage::Extern || v.dimensions.contains(&None);
    for variable in module.globals.iter().filter(|v| v.space == StateSpace::Shared && !is_dynamic(v)) {
        let symbol = place(variable)?;
        scope.names.insert(variable.name.clone(), symbol);
    }
    for statement in module.functions.iter().filter_map(|f| f.body.as_ref()).flatten() {
        if let Statement::Variable(variable) = statement
            && variable.space == StateSpace::Shared
        {
            let symbol = place(variable)?;
            scope.locals.insert((variable.name.clone(), variable.line.0), symbol);
        }
    }
    // All dynamic shared arrays start at the same address, behind the static ones.
    let dynamic = module.globals.iter().filter(|v| v.space == StateSpace::Shared && is_dynamic(v));
    let align = dynamic.clone().map(align_of).max().unwrap_or(1);
    code.static_shared = align_up(code.static_shared, align);
    for variable in dynamic {
        scope.names.insert(variable.name.clone(), Symbol::Shared(code.static_shared));
    }
    let globals = module.globals.iter().filter(|v| matches!(v.space, StateSpace::Global | StateSpace::Const));
    for (index, variable) in globals.clone().enumerate() {
        if scope.names.insert(variable.name.clone(), Symbol::Global(index)).is_some() {
            return error(variable.line, format!("`{}` is defined twice", variable.name));
        }
    }
    for variable in globals {
        let image = image(variable, &scope)?;
        code.globals.push(image);
    }
    Ok(scope)
}

fn image(variable: &Variable, scope: &Scope) -> Result<GlobalImage> {
    let element = bits(variable.ty).unwrap_or(8).div_ceil(8) as usize;
    let mut bytes = vec![0; size_of(variable)? as usize];
    let mut pointers = Vec::new();
    for (i, initial) in variable.initial.iter().enumerate() {
        let at = i * element;
        if at + element > bytes.len() {
            return error(variable.line, format!("`{}` has more values than elements", variable.name));
        }
        match initial {
            Initial::Immediate(immediate) => {
                let value = match (*immediate, element) {
                    (Immediate::Integer { bits, .. }, _) => bits,
                    (Immediate::Single(bits), _) => u64::from(bits),
                    (Immediate::Double(bits), 4) => u64::from((f64::from_bits(bits) as f32).to_bits()),
                    (Immediate::Double(bits), _) => bits,
                };
                bytes[at..at + element].copy_from_slice(&value.to_le_bytes()[..element]);
            }
            Initial::Symbol { name, offset, .. } => match scope.find(name) {
                Some(Symbol::Global(target)) if element == 8 => pointers.push((at, target, *offset)),
                _ => return error(variable.line, format!("`{name}` cannot be an initial value here")),
            },
        }
    }
    Ok(GlobalImage {
        name: variable.name.clone(),
        align: align_of(variable),
        bytes,
        pointers,
        constant: variable.space == StateSpace::Const,
    })
}
