//! Do PTX and metadata belong together?
//!
//! A launch trusts the metadata; with the wrong metadata the driver would read past the parameter buffer or give every
//! argument to the wrong parameter. So loading compares the kernel's declaration in the PTX text with it: the symbol,
//! and size and order of the parameters. Only the head of the kernel is read, not its body: a
//! search of the text keeps `rtc-ptx` and its grammar out of programs that ship kernels for GPUs.

use crate::{Error, Result};
use rtc_abi::Metadata;

/// Compares the kernel's declaration with the metadata.
pub(crate) fn check(ptx: &str, metadata: &Metadata) -> Result<()> {
    let fail = |message: String| Error::Ptx { kernel: metadata.symbol.clone(), message };
    let declared = entry_params(ptx, &metadata.symbol)
        .ok_or_else(|| {
            fail(format!("there is no entry `{}`; metadata and PTX do not belong together", metadata.symbol))
        })?
        .map_err(fail)?;
    let scratch = usize::from(metadata.global_scratch_bytes > 0);
    let expected = metadata.params.len() + scratch;
    if declared.len() != expected {
        let message = format!("it declares {} parameters, the metadata {expected}", declared.len());
        return Err(fail(message));
    }
    let (mut end, mut declared) = (0, declared.into_iter());
    for (param, slot) in metadata.params.iter().zip(&mut declared) {
        end = u32::next_multiple_of(end, slot.align);
        if (param.offset, param.size) != (end, slot.size) {
            return Err(fail(format!(
                "parameter `{}` lies at {end} with {} bytes, by the metadata at {} with {}",
                param.name, slot.size, param.offset, param.size
            )));
        }
        end += slot.size;
    }
    match declared.next() {
        Some(slot) if slot.size != 8 => Err(fail("the last parameter should be the scratch pointer".into())),
        _ => Ok(()),
    }
}

struct Declared {
    align: u32,
    size: u32,
}

/// The parameters of an entry; `None` if there is no such entry.
fn entry_params(ptx: &str, symbol: &str) -> Option<std::result::Result<Vec<Declared>, String>> {
    let list = ptx.match_indices(".entry").find_map(|(at, word)| {
        let rest = ptx[at + word.len()..].trim_start().strip_prefix(symbol)?;
        let rest = rest.trim_start();
        match rest.strip_prefix('(') {
            Some(list) => list.split_once(')').map(|(list, _)| list),
            None => rest.starts_with(['.', '{']).then_some(""),
        }
    })?;
    let params = list.split(',').map(str::trim).filter(|p| !p.is_empty()).map(param);
    Some(params.collect())
}

/// `.param .u64 .ptr .global .align 1 name` or `.param .align 64 .b8 name[128]`.
fn param(text: &str) -> std::result::Result<Declared, String> {
    let unreadable = || format!("the parameter `{text}` cannot be read");
    let mut words = text.split_whitespace().peekable();
    if words.next() != Some(".param") {
        return Err(unreadable());
    }
    let mut align = None;
    if words.peek() == Some(&".align") {
        words.next();
        align = words.next().and_then(|w| w.parse::<u32>().ok()).filter(|a| a.is_power_of_two());
    }
    let bits = words.next().and_then(|w| w.get(2..)?.parse::<u32>().ok()).filter(|b| [8, 16, 32, 64].contains(b));
    let element = bits.ok_or_else(unreadable)? / 8;
    let name = words.last().ok_or_else(unreadable)?;
    let count = match name.split_once('[') {
        Some((_, count)) => count.trim_end_matches(']').parse::<u32>().ok(),
        None => Some(1),
    };
    let size = count.and_then(|c| c.checked_mul(element)).ok_or_else(unreadable)?;
    Ok(Declared { align: align.unwrap_or(element), size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_abi::Param;

    const PTX: &str = ".version 8.3\n.target sm_90a\n.visible .entry add(\n\t.param .u64 .ptr .global .align 1 add_param_0,\n\t\
        .param .u32 add_param_1,\n\t.param .align 2 .b8 add_param_2[2]\n)\n.reqntid 128\n{\n\tret;\n}\n";

    fn metadata(params: &[(&str, u32, u32)]) -> Metadata {
        let params = params.iter().map(|(ty, offset, size)| Param {
            offset: *offset,
            size: *size,
            ..Param::new("p", ty.parse::<rtc_abi::ParamType>().unwrap())
        });
        crate::test_metadata("add", params.collect())
    }

    #[test]
    fn a_fitting_pair() {
        check(PTX, &metadata(&[("*fp32", 0, 8), ("i32", 8, 4), ("fp16", 12, 2)])).unwrap();
        check(".entry add() {}", &metadata(&[])).unwrap();
        check(".entry add\n{}", &metadata(&[])).unwrap();
    }

    #[test]
    fn mismatches_are_named() {
        let text = |m: &Metadata| check(PTX, m).unwrap_err().to_string();
        insta::assert_snapshot!(text(&metadata(&[("*fp32", 0, 8)])), @"PTX of kernel `add`: it declares 3 parameters, the metadata 1");
        insta::assert_snapshot!(text(&metadata(&[("*fp32", 0, 8), ("i64", 8, 8), ("fp16", 16, 2)])), @"PTX of kernel `add`: parameter `p` lies at 8 with 4 bytes, by the metadata at 8 with 8");
        let mut other = metadata(&[]);
        other.symbol = "ad".into();
        insta::assert_snapshot!(text(&other), @"PTX of kernel `ad`: there is no entry `ad`; metadata and PTX do not belong together");
        let bad = check(".entry add(.param .u65 x) {}", &metadata(&[("i32", 0, 4)])).unwrap_err().to_string();
        insta::assert_snapshot!(bad, @"PTX of kernel `add`: the parameter `.param .u65 x` cannot be read");
    }
}
