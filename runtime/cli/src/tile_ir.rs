//! Files of tile IR (`.tir`) in the place of a source: one kernel, in any phase. Its text says the types of the
//! parameters, the number of warps and what else a spec says of a source.

use crate::arguments::KernelArguments;
use crate::input;
use crate::problem::Problem;
use rtc_compiler::{DEFAULT_ARCH, LaunchOptions, Spec, TileKernel};
use rtc_source::Code;
use std::path::Path;

/// Whether a file is one of tile IR, by its name.
pub(crate) fn is_tile_ir(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "tir")
}

/// Reads such a file.
pub(crate) fn load(path: &Path) -> Result<TileKernel, Problem> {
    TileKernel::parse(&path.display().to_string(), &input::read_text(path)?)
        .map_err(|(sources, list)| Problem::Diagnostics { sources, list })
}

/// The request for such a file: the targets, and the limit of the kernel's size.
pub(crate) fn request(
    arguments: &KernelArguments,
    kernel: &TileKernel,
) -> Result<(Vec<String>, LaunchOptions), Problem> {
    let given = [
        ("--signature", !arguments.signature.is_empty()),
        ("--spec", !arguments.spec.is_empty()),
        ("--num-warps", arguments.num_warps.is_some()),
        ("--num-stages", arguments.num_stages.is_some()),
        ("--option", !arguments.option.is_empty()),
        ("--libdevice", arguments.libdevice.is_some()),
        ("--include", !arguments.include.is_empty()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        let message = format!("leave out {name}: a .tir file says by itself what its kernel is compiled for");
        return Err(Problem::Usage(message));
    }
    if arguments.kernel.iter().any(|name| name != kernel.name()) {
        return Err(Problem::input(Code::UNKNOWN_KERNEL, format!("the file has the kernel `{}`", kernel.name())));
    }
    let archs = if arguments.arch.is_empty() { vec![DEFAULT_ARCH.to_owned()] } else { arguments.arch.clone() };
    let mut options = LaunchOptions::default();
    if let Some(most) = arguments.max_instructions {
        options.max_instructions = most.into();
    }
    arguments.debug.apply(&mut options);
    arguments.plan.apply(&mut options)?;
    Ok((archs, options))
}

/// Checks that the spec of a LAUNCH.json says nothing that the text says.
pub(crate) fn check_spec(spec: &Spec, kernel: &TileKernel) -> Result<(), String> {
    if spec.kernel.as_deref().is_some_and(|name| name != kernel.name()) {
        return Err(format!("`spec.kernel`: the file has the kernel `{}`", kernel.name()));
    }
    if !spec.args.is_empty() {
        return Err("`spec.args`: leave it out; a .tir file says the types of its parameters by itself".into());
    }
    let LaunchOptions { launch_pdl, overlap_launches, launch_cooperative_grid, max_instructions, .. } = spec.options;
    let LaunchOptions { warp_specialize, structure, plan, debug_info, instrument, .. } = spec.options;
    let said = LaunchOptions { launch_pdl, overlap_launches, launch_cooperative_grid, ..LaunchOptions::default() };
    let known = LaunchOptions { warp_specialize, structure, plan, debug_info, max_instructions, instrument, ..said };
    if spec.options != known {
        return Err("`spec.options`: a .tir file says these by itself, but for launch_pdl, \
                    overlap_launches, launch_cooperative_grid, warp_specialize, structure, plan, debug_info and max_instructions"
            .into());
    }
    Ok(())
}
