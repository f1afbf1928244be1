//! Ranges of launches for NVIDIA's profilers (feature `nvtx`): Nsight Systems shows the launch of each kernel by name on the
//! thread that made it. NVTX's library is looked for once; without it nothing is done.
#![allow(unsafe_code)]

use libloading::Library;
use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

/// NVTX 3 of CUDA 12 and later, and NVTX of the toolkits before.
const NAMES: &[&str] = &["libnvtx3interop.so.1", "libnvtx3interop.so", "libnvToolsExt.so.1", "libnvToolsExt.so"];

type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;

/// The two functions, with the library that has them.
struct Nvtx {
    push: Push,
    pop: Pop,
    _library: Library,
}

fn library() -> Option<&'static Nvtx> {
    static FOUND: OnceLock<Option<Nvtx>> = OnceLock::new();
    FOUND.get_or_init(|| NAMES.iter().find_map(|name| open(name))).as_ref()
}

fn open(name: &str) -> Option<Nvtx> {
    // SAFETY: NVTX's library may be loaded at any time, and its functions have these signatures. They are copied out of their
    // symbols and kept together with the library, which is never unloaded.
    unsafe {
        let library = Library::new(name).ok()?;
        let push = *library.get::<Push>(b"nvtxRangePushA\0").ok()?;
        let pop = *library.get::<Pop>(b"nvtxRangePop\0").ok()?;
        Some(Nvtx { push, pop, _library: library })
    }
}

/// A range of the calling thread, which ends where it is dropped.
pub(crate) struct Range(Option<&'static Nvtx>);

/// Begins a range of that name.
pub(crate) fn range(name: &str) -> Range {
    let Some(nvtx) = library() else { return Range(None) };
    let Ok(name) = CString::new(name) else { return Range(None) };
    // SAFETY: the text ends with NUL; NVTX copies it.
    unsafe { (nvtx.push)(name.as_ptr()) };
    Range(Some(nvtx))
}

impl Drop for Range {
    fn drop(&mut self) {
        if let Some(nvtx) = self.0 {
            // SAFETY: this thread began a range. Ranges of a thread are nested, as are the scopes of this type.
            unsafe { (nvtx.pop)() };
        }
    }
}
