//! Machine code in the cache on disk, beside the kernels.

use crate::backend::MachineCode;
use rtc_abi::Metadata;
use rtc_cache::{Cache, Error, Key, KeyBuilder};

/// The kind of entries that are machine code.
const MACHINE_CODE: &str = "machine-code";

/// The name of the machine code of a kernel in the cache.
fn key(ptx: &str, metadata: &Metadata) -> Key {
    KeyBuilder::new(MACHINE_CODE).text("ptx", ptx).text("arch", &metadata.arch).finish()
}

/// The machine code that was kept for a kernel.
pub(super) fn kept(cache: &Cache, ptx: &str, metadata: &Metadata) -> Result<Option<MachineCode>, Error> {
    let found = cache.get(MACHINE_CODE, &key(ptx, metadata))?;
    Ok(found.and_then(|bytes| MachineCode::from_bytes(&bytes)))
}

/// Assembles a kernel and keeps the machine code in the cache, for processes that load the kernel later. It does nothing where
/// the driver has to assemble it: where there is no driver, or no other assembler.
///
/// ```
/// use rtc_runtime::internal::assemble_ahead;
/// use rtc_runtime::jit::{LaunchOptions, compiler::{Silent, TileKernel}, cache::{Cache, CacheConfig}};
/// # let directory = std::env::temp_dir().join(format!("rtc-ahead-{}", std::process::id()));
/// let kernel = TileKernel::parse("nothing.tir", "kernel @nothing() warps 1 phase tile {\n  ret\n}\n").unwrap();
/// let artifact = kernel.compile(&LaunchOptions::default(), "sm_90a", &mut Silent)?.artifact;
/// let cache = Cache::open(CacheConfig::new(&directory))?;
/// assemble_ahead(&cache, &artifact.ptx, &artifact.metadata)?;
/// assert!(cache.list()?.len() <= 1);
/// # let _ = std::fs::remove_dir_all(directory);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As for [`Cache::get`] and [`Cache::put`]. The kernel can be loaded all the same.
pub fn assemble_ahead(cache: &Cache, ptx: &str, metadata: &Metadata) -> Result<(), Error> {
    if kept(cache, ptx, metadata)?.is_some() {
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    if let Some(code) = crate::backend::cuda::assemble::assemble(ptx, metadata) {
        cache.put(MACHINE_CODE, &key(ptx, metadata), &code.to_bytes())?;
    }
    Ok(())
}
