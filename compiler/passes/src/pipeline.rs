//! The passes in order.

use rtc_ir::Kernel;

use crate::{Pass, PassContext, PassError, laid, place, schedule, tile};

/// All passes in the order in which they run, with half a line on *why here*.
pub const PASSES: &[Pass] = &[
    // tile: shapes and types, no layouts yet
    tile::lower_descriptors::PASS, // accesses that TMA cannot do are pointers and masks, which the next passes clean up
    tile::lower_block_pointers::PASS, // so are block pointers
    tile::simplify::PASS, // constants and identities, so that analyses see plain values; loops carry all parts of block pointers
    tile::unflatten_loops::PASS, // before analyses of loops with dots; the constants that identify parts are known
    tile::combine::PASS,  // before loops are split and written out twice: those with dots are pipelined
    tile::alignment_versioning::PASS, // constants are folded, and both versions go through all that follows
    tile::unit_stride_versioning::PASS, // where the pass before makes no version
    tile::carry_offsets::PASS, // passes before look for carried tiles, and the next one for numbers equal to the loop index
    tile::unify_induction_variables::PASS, // other induction variables are replaced by the loop index, so that values derived from both are equal
    tile::split_loops::PASS,               // masks that hold go before anything looks at them
    tile::narrow_loads::PASS, // before layouts are chosen; the next pass merges values that this one computes twice
    tile::narrow_casts::PASS, // unpacked values are final, and the next pass merges equal ones
    tile::cse::PASS,          // masks and offsets that the source spells twice
    tile::licm::PASS,         // bounds and splats leave the loops
    tile::hoist_loads::PASS,  // loop-invariant addresses are before their loops now
    tile::add_warps::PASS, // sums are where they will be, and nothing after this pass forgets how many warps there are
    tile::transpose_dots::PASS, // a sum is carried through its dot alone now
    tile::store_versioning::PASS, // nothing moves operations in branches any more, and addresses are merged
    tile::dce::PASS,       // untaken variants leave much behind
    // laid: every tile type carries a layout
    laid::assign_layouts::PASS, // every tile gets a layout; memory accesses and dots decide
    laid::remove_conversions::PASS, // cheap chains are recomputed in the layout that is asked for
    tile::cse_laid::PASS,       // copies made by the pass before meet again
    tile::dce_laid::PASS,       // the originals of those copies
    laid::sink::PASS,           // nothing merges or moves operations after a loop any more
    laid::vectorize::PASS,      // access widths from layouts and axis information
    laid::annotate_constancy::PASS, // masks have their final layouts, and access widths are set
    laid::strength_reduce_masks::PASS, // nothing looks at comparisons any more but for those of memory accesses
    // schedule: operands of dots in shared memory, ahead of time
    schedule::partition::specialize_warps::PASS, // layouts and access widths are final; where it is not applicable, the passes after it run
    schedule::overlap::pipeline_chained_dots::PASS, // in a partition, with the copies out of the way
    schedule::overlap::overlap_promotion::PASS,  // in loops whose dots do not depend on each other
    schedule::overlap::issue_async_dots::PASS,   // in loops that the passes before have left alone
    schedule::overlap::hide_reductions::PASS,    // for dots that no other dot overlaps
    schedule::operands::stage_operands::PASS,    // which loads can be copies is known from layouts and access widths
    schedule::pipeline::schedule_loop::PASS, // all that goes through shared memory is known, so it is known what fits
    schedule::pipeline::expand_loop::PASS,   // as decided
    schedule::overlap::hide_operands::PASS, // after it, dots that are waited for at once have no dot behind them to compute for
    schedule::overlap::hide_rows::PASS,     // dots that are in flight for other reasons have been found
    schedule::overlap::hide_conversions::PASS, // dots are where they stay, and so are the waits for them
    schedule::tma::atomics_to_tma::PASS,    // the rings have the shared memory that they need
    schedule::insert_waits::PASS,           // asynchronous operations and their uses are where they stay
    schedule::invariant_divisors::PASS,     // nothing looks for quotients any more, and loops are what they will be
    schedule::dce_scheduled::PASS,          // addresses that are now computed ahead only
    // place: shared memory, barriers, and whether the kernel is too long
    place::scale_maxima::PASS, // no pass after this one moves operations of loops or counts what they hold
    place::recompute_widened::PASS, // nothing merges equal operations any more
    place::split_conversions::PASS, // no pass after this one looks for conversions to be rid of
    place::place_scratch::PASS, // shared memory for values that cross warps
    place::allocate_shared::PASS, // offsets by liveness
    place::limit_size::PASS,   // layouts and access widths are final, and the time of lowering is not spent yet
    place::insert_pdl_waits::PASS, // nothing is moved any more
    place::elect_redundant_loads::PASS, // who uses a load is final, and each such load saves barriers
    place::share_addresses::PASS, // which loads there are, and how wide, is final
    place::set_maxnreg::PASS,  // values are where they stay; barriers hold none
    place::insert_barriers::PASS, // the fewest that order all accesses
    place::instrument::PASS,   // nothing is moved or added any more, and records change no decision
];

/// Called after each pass with its name.
pub type Observer<'a> = &'a mut dyn FnMut(&'static str, &Kernel) -> Result<(), PassError>;

/// Runs all passes.
pub fn run_pipeline(kernel: &mut Kernel, cx: &PassContext) -> Result<(), PassError> {
    run_through(kernel, cx, &mut |_, _| Ok(()))
}

/// Runs all passes from the first one on that takes a kernel of this phase, and calls `observer` after each.
pub fn run_through(kernel: &mut Kernel, cx: &PassContext, observer: Observer<'_>) -> Result<(), PassError> {
    let given = kernel.phase;
    for pass in PASSES.iter().skip_while(|pass| pass.needs != given) {
        if kernel.phase != pass.needs {
            return Err(PassError::Internal(format!(
                "`{}` needs phase {:?}, not {:?}",
                pass.name, pass.needs, kernel.phase
            )));
        }
        (pass.run)(kernel, cx)?;
        kernel.phase = pass.leaves;
        observer(pass.name, kernel)?;
    }
    Ok(())
}

/// The kernel in a form for analyses of its accesses: views of tensors are pointers and masks, constants are folded,
/// and nothing is unrolled, laid out or pipelined yet. A kernel in a later phase is returned unchanged.
pub fn plain(kernel: &Kernel, cx: &PassContext) -> Result<Kernel, PassError> {
    let mut plain = kernel.clone();
    if plain.phase == PASSES[0].needs {
        for pass in PASSES {
            (pass.run)(&mut plain, cx)?;
            if pass.name == tile::simplify::PASS.name {
                break;
            }
        }
    }
    Ok(plain)
}
