//! Files of the disk.

use crate::session::Files;

/// The most files of a folder that are looked at.
const MAX_FILES: usize = 256;
/// Larger files are no kernels.
const MAX_BYTES: u64 = 4 << 20;

pub(super) struct Disk;

impl Files for Disk {
    fn read(&self, name: &str) -> Option<String> {
        let found = std::fs::metadata(name).ok()?;
        // A pipe would never end.
        (found.is_file() && found.len() <= MAX_BYTES).then(|| std::fs::read_to_string(name).ok()).flatten()
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(16 * MAX_FILES);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".py") || name.ends_with(".rt")).collect();
        names.sort();
        names.truncate(MAX_FILES);
        names.into_iter().map(|name| format!("{folder}/{name}")).collect()
    }
}
