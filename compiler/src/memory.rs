//! Memory in the metadata: the accesses of a kernel behind each pointer, and their extents.
//!
//! They are computed before the passes split loops and issue copies ahead of time, which do not change the accessed
//! memory.

use crate::stages;
use rtc_abi::{Hidden, HostTensorMap, Metadata, Structure, Target};
use rtc_ir::Kernel;
use rtc_ir::analysis::{self, Extent, ParamAccess};
use rtc_passes::PassContext;

/// The memory accesses of a kernel.
pub(crate) struct Accesses {
    /// By parameter.
    params: Vec<ParamAccess>,
    /// Why it may access memory that belongs to no parameter.
    elsewhere: Option<&'static str>,
}

/// The context of the passes before an analysis of accesses.
pub(crate) fn context(target: &'static Target) -> PassContext {
    let (max_instructions, structure) = (stages::NO_LIMIT, Structure::Pipelined);
    PassContext {
        target,
        max_instructions,
        structure,
        overlap_launches: false,
        plan: Default::default(),
        instrument: 0,
    }
}

/// The memory accesses of a kernel from sema or from a file.
pub(crate) fn touched(kernel: &Kernel, target: &'static Target) -> Accesses {
    // If a pass refuses the kernel here, it does so again in the pipeline, which reports it.
    match rtc_passes::plain(kernel, &context(target)) {
        Ok(plain) => Accesses { params: analysis::touched(&plain), elsewhere: analysis::reach(&plain).elsewhere },
        Err(_) => Accesses { params: Vec::new(), elsewhere: Some("its accesses were not analysed") },
    }
}

/// Notes it in the metadata. The tensor maps of a kernel in tile IR reach as far as the tensors that they are of; through those
/// that passes make a kernel reads and writes what it did before.
pub(crate) fn note(metadata: &mut Metadata, accesses: Accesses) {
    let Accesses { params: touched, elsewhere } = accesses;
    metadata.elsewhere = elsewhere.map(String::from);
    let given = metadata.params.iter().take(touched.len());
    let maps: Vec<HostTensorMap> = given.filter_map(|param| map(param.hidden.as_ref())).collect();
    for (param, ParamAccess { access, extent }) in metadata.params.iter_mut().zip(touched) {
        if !param.ty.is_pointer() {
            // A descriptor has replaced its address: the launch has the size of its tensor.
            continue;
        }
        param.access = access;
        let with_maps = extent.map(|extent| {
            let own = maps.iter().filter(|map| map.base == param.name);
            own.fold(extent, |extent, map| extent.and_then(|extent| further(extent, map)))
        });
        match with_maps {
            Some(Ok(Extent { elements, needs })) => {
                param.extent = Some(elements);
                param.extent_needs = needs;
            }
            Some(Err(why)) => param.extent_unknown = Some(why),
            None => {}
        }
    }
}

fn map(hidden: Option<&Hidden>) -> Option<HostTensorMap> {
    match hidden {
        Some(Hidden::TensorMap(map)) => Some((**map).clone()),
        _ => None,
    }
}

/// The extent of the elements of a map, too.
fn further(extent: Extent, map: &HostTensorMap) -> Result<Extent, String> {
    let last = map.shape.iter().zip(&map.strides).map(|(size, stride)| format!("(max({size}, 1) - 1) * ({stride})"));
    let text = format!("max({}, {} + {} + 1)", extent.elements, map.start, last.collect::<Vec<_>>().join(" + "));
    let elements = text.parse().map_err(|error| format!("its size cannot be written: {error}"))?;
    Ok(Extent { elements, ..extent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_reach_to_the_end_of_their_tensor() {
        let text = "kernel @k(%a_ptr: ptr<f32>, %M: i32, %K: i32, %a: desc<64x32xf32, 128> {base = \"a_ptr\", \
                    start = \"K * 2\", shape = [\"M\", \"K\"], strides = [\"K\", 1]}) warps 4 phase tile {\n  ret\n}\n";
        let kernel = rtc_ir::text::parse(text).expect("reads");
        let mut metadata = kernel.metadata(Target::named("sm_90a").expect("known"));
        let unused = Accesses { params: analysis::touched(&kernel), elsewhere: None };
        note(&mut metadata, unused);
        let extent = metadata.params[0].extent.as_ref().expect("nothing is touched by threads");
        let value = |name: &str| Some(if name == "M" { 10 } else { 7 });
        assert_eq!(extent.eval(value), Ok(14 + 9 * 7 + 6 + 1), "{extent}");
        assert_eq!(Metadata::from_json(&metadata.to_json()), Ok(metadata));
    }
}
