//! Memory of a device.

use crate::device::Backend;
use crate::{Device, Error, Result};

/// A range of bytes on a device; freed on drop, after the work that uses it.
#[derive(Debug)]
pub struct Buffer {
    device: Device,
    address: u64,
    bytes: usize,
}

impl Device {
    /// Allocates `bytes` bytes; their content is not defined.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.alloc_named(bytes, "buffer")
    }

    /// Like [`Device::alloc`], with a name that findings of the emulator and the interpreter use.
    pub fn alloc_named(&self, bytes: usize, name: &str) -> Result<Buffer> {
        let address = match self.backend() {
            Backend::Cuda(context) => context.alloc(bytes)?,
            Backend::Emulator(memory) | Backend::Interpreter(memory) => memory.lock().alloc(bytes, 256, name),
        };
        Ok(Buffer { device: self.clone(), address, bytes })
    }

    /// Allocates a buffer with this content.
    pub fn upload(&self, data: &[u8]) -> Result<Buffer> {
        let buffer = self.alloc(data.len())?;
        buffer.write(0, data)?;
        Ok(buffer)
    }

    /// Allocates a buffer of fp32 values.
    pub fn upload_f32(&self, data: &[f32]) -> Result<Buffer> {
        self.upload(&data.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
    }
}

impl Buffer {
    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Copies `data` to `offset` bytes from the start, after all work on the default stream.
    pub fn write(&self, offset: usize, data: &[u8]) -> Result<()> {
        let address = self.range(offset, data.len())?;
        match self.device.backend() {
            Backend::Cuda(context) => context.write(address, data),
            Backend::Emulator(memory) | Backend::Interpreter(memory) => {
                memory.lock().write(address, data).map_err(|_| self.out_of_range(offset, data.len()))
            }
        }
    }

    /// Copies from `offset` bytes from the start, after all work on the default stream.
    pub fn read(&self, offset: usize, data: &mut [u8]) -> Result<()> {
        let address = self.range(offset, data.len())?;
        match self.device.backend() {
            Backend::Cuda(context) => context.read(address, data),
            Backend::Emulator(memory) | Backend::Interpreter(memory) => {
                let memory = memory.lock();
                let bytes = memory.read(address, data.len()).map_err(|_| self.out_of_range(offset, data.len()))?;
                data.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// The whole content.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let mut data = vec![0; self.bytes];
        self.read(0, &mut data)?;
        Ok(data)
    }

    /// The whole content as fp32 values; bytes after the last whole value are left out.
    pub fn to_vec_f32(&self) -> Result<Vec<f32>> {
        let bytes = self.to_vec()?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    fn range(&self, offset: usize, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + offset as u64),
            _ => Err(self.out_of_range(offset, bytes)),
        }
    }

    fn out_of_range(&self, offset: usize, bytes: usize) -> Error {
        Error::BufferRange { offset: offset as u64, bytes: bytes as u64, size: self.bytes as u64 }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match self.device.backend() {
            Backend::Cuda(context) => context.free(self.address),
            Backend::Emulator(memory) | Backend::Interpreter(memory) => {
                memory.lock().free(self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_survives_and_ranges_are_checked() {
        let device = Device::emulator();
        let buffer = device.upload_f32(&[1.0, -2.0]).unwrap();
        assert_eq!(buffer.to_vec_f32().unwrap(), [1.0, -2.0]);
        buffer.write(4, &7f32.to_le_bytes()).unwrap();
        assert_eq!(buffer.to_vec_f32().unwrap(), [1.0, 7.0]);
        assert_eq!(buffer.write(5, &[0; 4]), Err(Error::BufferRange { offset: 5, bytes: 4, size: 8 }));
        assert!(buffer.read(usize::MAX, &mut [0; 4]).is_err());
        assert!(device.upload(&[]).unwrap().to_vec().unwrap().is_empty());
    }
}
