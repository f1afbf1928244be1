//! Files of the disk.

use crate::session::Files;

/// Larger files are no kernels.
const MAX_BYTES: u64 = 4 << 20;

pub(super) struct Disk;

impl Files for Disk {
    fn read(&self, name: &str) -> Option<String> {
        let found = std::fs::metadata(name).ok()?;
        // A pipe would never end.
        (found.is_file() && found.len() <= MAX_BYTES).then(|| std::fs::read_to_string(name).ok()).flatten()
    }
}
