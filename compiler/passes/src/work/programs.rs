//! Which values differ between the programs of a launch.

use cranelift_entity::SecondaryMap;
use rtc_ir::{Kernel, OpKind, Value, regions, walk};

/// The values that depend on the number of the program.
pub(super) fn of_program(kernel: &Kernel) -> SecondaryMap<Value, bool> {
    let mut differs: SecondaryMap<Value, bool> = SecondaryMap::new();
    let ops = walk(kernel);
    loop {
        let mut changed = false;
        let mut mark = |differs: &mut SecondaryMap<Value, bool>, value: Value| {
            changed |= !std::mem::replace(&mut differs[value], true);
        };
        for op in &ops {
            let data = kernel.op(*op);
            // Values enter the blocks of an operation through its slots; bounds and conditions are operands in
            // addition.
            let entering = if regions::flow(&data.kind).is_empty() { 0 } else { kernel.variadic(*op).len() };
            let own = &data.operands[..data.operands.len() - entering];
            if matches!(data.kind, OpKind::ProgramId { .. }) || own.iter().any(|v| differs[*v]) {
                data.results.iter().for_each(|v| mark(&mut differs, *v));
                let counter = data.blocks.first().filter(|_| regions::is_loop(&data.kind));
                counter
                    .and_then(|block| kernel.block(*block).args.first())
                    .into_iter()
                    .for_each(|v| mark(&mut differs, *v));
            }
            for slot in regions::slots(kernel, *op) {
                if slot.values(kernel).any(|source| differs[source]) {
                    slot.targets.iter().for_each(|target| mark(&mut differs, *target));
                }
            }
        }
        if !changed {
            return differs;
        }
    }
}
