//! Machine code that was made of a kernel's PTX before it is loaded.
//!
//! The driver assembles one kernel at a time, whichever thread asks: the 123 kernels of a training step under TorchInductor took
//! it 10.5 s on an H200. Processes that only compile assemble side by side, and what they made is loaded in 0.1 ms.

/// The layout of [`MachineCode::to_bytes`].
const LAYOUT: u32 = 1;

/// A kernel's machine code by an assembler, and that of the same text with fewer registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineCode {
    /// The version of CUDA of the assembler.
    pub(crate) version: (u32, u32),
    pub(crate) variants: Vec<Variant>,
}

/// The machine code of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// The most registers of a thread that the text allows; 0 where it says nothing of them.
    pub(crate) registers: u32,
    /// What the assembler said.
    pub(crate) remarks: String,
    pub(crate) cubin: Vec<u8>,
}

impl MachineCode {
    /// The code of the text with that limit of registers.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn variant(&self, registers: u32) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.registers == registers)
    }

    /// The content of a file.
    #[cfg_attr(not(all(feature = "cuda", feature = "jit")), allow(dead_code))]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let number = |bytes: &mut Vec<u8>, number: u32| bytes.extend(number.to_le_bytes());
        for part in [LAYOUT, self.version.0, self.version.1] {
            number(&mut bytes, part);
        }
        for Variant { registers, remarks, cubin } in &self.variants {
            for part in [*registers, remarks.len() as u32, cubin.len() as u32] {
                number(&mut bytes, part);
            }
            bytes.extend_from_slice(remarks.as_bytes());
            bytes.extend_from_slice(cubin);
        }
        bytes
    }

    /// What [`to_bytes`](MachineCode::to_bytes) wrote; `None` for anything else.
    #[cfg_attr(not(feature = "jit"), allow(dead_code))]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<MachineCode> {
        let ([layout, major, minor], mut rest) = numbers(bytes)?;
        if layout != LAYOUT {
            return None;
        }
        let mut variants = Vec::new();
        while !rest.is_empty() {
            let ([registers, remarks, cubin], after) = numbers(rest)?;
            let (remarks, after) = after.split_at_checked(remarks as usize)?;
            let (cubin, after) = after.split_at_checked(cubin as usize)?;
            let remarks = std::str::from_utf8(remarks).ok()?.to_owned();
            variants.push(Variant { registers, remarks, cubin: cubin.to_vec() });
            rest = after;
        }
        Some(MachineCode { version: (major, minor), variants })
    }
}

fn numbers(bytes: &[u8]) -> Option<([u32; 3], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<12>()?;
    let at = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    Some(([at(0), at(4), at(8)], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let variant =
            |registers, code: &[u8]| Variant { registers, remarks: "Used 8 registers".into(), cubin: code.to_vec() };
        let code = MachineCode { version: (13, 0), variants: vec![variant(0, b"\x7fELF one"), variant(128, b"")] };
        let bytes = code.to_bytes();
        assert_eq!(MachineCode::from_bytes(&bytes).as_ref(), Some(&code));
        assert_eq!(code.variant(128).map(|found| found.cubin.len()), Some(0));
        assert_eq!(code.variant(64), None);
        let whole = [12, 12 + 12 + 16 + 8]; // after the head, and after the first variant
        for end in (0..bytes.len()).filter(|end| !whole.contains(end)) {
            assert_eq!(MachineCode::from_bytes(&bytes[..end]), None, "{end}");
        }
        let mut other = bytes;
        other[0] += 1;
        assert_eq!(MachineCode::from_bytes(&other), None);
    }
}
