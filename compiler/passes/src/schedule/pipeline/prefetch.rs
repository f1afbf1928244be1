//! Loads of a loop begun an iteration earlier, into registers that the loop carries.
//!
//! ```text
//! for_range .. ^(%i) {              %x0 = load .. of the first iteration, if there is one
//!   %x = load %p                    for_range .., (%x0) ^(%i, %x) {
//!   .. %x ..                  →       %x1 = load .. of the next iteration, if there is one
//! }                                   .. %x ..
//!                                     yields (%x1)
//!                                   }
//! ```
//!
//! Done again, the loads begin another iteration earlier.

use rtc_ir::{Kernel, Op, Value, ValueMap, view};

use super::expand_loop::{ahead_of, is_run, moved, repeat};
use crate::PassError;
use crate::access::addresses::{addresses, small_step};

/// Issues loads one iteration earlier; returns their replacements in the loop.
pub(crate) fn prefetch(kernel: &mut Kernel, of: Op, loads: &[Op]) -> Result<Vec<Op>, PassError> {
    if loads.is_empty() {
        return Ok(Vec::new());
    }
    let body = kernel.op(of).blocks[0];
    let tiles: Vec<Value> = loads.iter().map(|load| kernel.result(*load, 0)).collect();
    let (part, step) = (addresses(kernel, of, &tiles), small_step(kernel, of));
    let (first, end) = (kernel.first_op(body), kernel.terminator(body));
    let (Some(part), Some(step), Some(first), Some(end)) = (part, step, first, end) else {
        return Err(PassError::Internal("a loop whose loads cannot be prefetched was chosen".into()));
    };
    let (args, lower) = (kernel.block(body).args.clone(), view::ForRange::at(kernel, of).lower());
    let handed = |kernel: &Kernel, map: &ValueMap| -> Vec<Value> {
        let carried = part.carried.iter().map(|number| moved(map, kernel.variadic(end)[*number]));
        carried.chain(tiles.iter().map(|tile| moved(map, *tile))).collect()
    };

    let mut map = ValueMap::from([(args[0], lower)]);
    map.extend(part.carried.iter().map(|number| (args[number + 1], kernel.variadic(of)[*number])));
    let runs = is_run(kernel, of, of, lower, 0, true)?;
    repeat(kernel, of, &part, &mut map, runs)?;
    let mut state = Vec::new();
    for value in handed(kernel, &map) {
        state.extend(kernel.carry(of, value).map(|(within, _)| within));
    }

    let mut map = ValueMap::from([(args[0], ahead_of(kernel, of, first, args[0], step)?)]);
    map.extend(part.carried.iter().zip(&state).map(|(number, value)| (args[number + 1], *value)));
    let runs = is_run(kernel, of, first, args[0], step, false)?;
    repeat(kernel, first, &part, &mut map, runs)?;
    let next = handed(kernel, &map);
    let before = kernel.op(end).operands.len() - next.len();
    for (index, value) in next.into_iter().enumerate() {
        kernel.set_operand(end, before + index, value);
    }
    for (load, now) in loads.iter().zip(&state[part.carried.len()..]) {
        kernel.replace_uses(kernel.result(*load, 0), *now);
        kernel.erase(*load);
    }
    Ok(tiles.iter().filter_map(|tile| kernel.def_op(moved(&map, *tile))).collect())
}
