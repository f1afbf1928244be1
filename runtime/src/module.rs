//! Modules: kernels that were loaded together, by name.
#![allow(unsafe_code)]

use crate::typed::Parameters;
use crate::{Device, Error, Kernel, Result};
use std::collections::BTreeMap;

/// Kernels of one device by the names that they have in their source.
///
/// ```
/// use rtc_runtime::{Device, Kernel, Read, Write};
/// # let (ptx, json) = (include_str!("../tests/kernels/scale.ptx"), include_str!("../tests/kernels/scale.json"));
/// let device = Device::auto();
/// // SAFETY: the files were made together.
/// let module: rtc_runtime::Module = unsafe { device.module([(ptx, json)])? }; // scale(x, y, a, n): y[i] = x[i] * a
/// let scale: Kernel<(Read<f32>, Write<f32>, f32, i32)> = module.kernel("scale")?;
/// let mut y = device.zeros::<f32>(2)?;
/// scale.launch(device.default_stream(), 1, (&device.upload(&[1.0f32, 2.0])?, &mut y, 3.0, 2))?;
/// assert_eq!(y.to_vec()?, [3.0, 6.0]);
/// assert_eq!(module.names().collect::<Vec<_>>(), ["scale"]);
/// assert!(module.get("scales").unwrap_err().to_string().contains("it has scale"));
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module {
    kernels: BTreeMap<String, Kernel>,
}

impl Device {
    /// Loads kernels: of each the PTX text and the JSON text of its metadata, as `rtc build` writes them.
    ///
    /// # Errors
    ///
    /// [`Error::Ptx`] for a second kernel of one name; else as for [`Device::load_json`].
    ///
    /// # Safety
    ///
    /// As for [`Device::load`], for each pair.
    pub unsafe fn module<'t>(&self, files: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Module> {
        let mut kernels = BTreeMap::new();
        for (ptx, metadata) in files {
            // SAFETY: the caller guarantees the texts.
            let kernel = unsafe { self.load_json(ptx, metadata)? };
            let name = kernel.metadata().kernel.clone();
            if kernels.insert(name.clone(), kernel).is_some() {
                let message = "the module has two kernels of that name; load one of them by itself".to_owned();
                return Err(Error::Ptx { kernel: name, message });
            }
        }
        Ok(Module { kernels })
    }
}

impl Module {
    /// The kernel of that name with the types of its arguments.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if there is no such kernel, [`Error::Signature`] if its arguments have other types.
    pub fn kernel<S: Parameters>(&self, name: &str) -> Result<Kernel<S>> {
        self.get(name)?.typed()
    }

    /// The kernel of that name, to be launched without types.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if there is no such kernel.
    pub fn get(&self, name: &str) -> Result<&Kernel> {
        self.kernels.get(name).ok_or_else(|| Error::NoKernel {
            name: name.to_owned(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// The names of all, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }
}
