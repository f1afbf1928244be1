//! The registers of inline assembly: how many its constraints name, and how many its values take.

/// The most elements that one execution takes.
pub const MAX_PACK: u32 = 64;

/// How many registers `pack` elements of `bits` bits take: those below 32 bits share registers of 32 bits.
pub fn assembly_registers(bits: u32, pack: u32) -> u32 {
    if bits >= 32 { pack } else { (pack * bits / 32).max(1) }
}

/// How many outputs and inputs constraints such as `"=r,r,r"` name; clobbers do not count.
pub fn constraint_counts(constraints: &str) -> [usize; 2] {
    let items = || constraints.split(',').map(str::trim).filter(|c| !c.is_empty() && !c.starts_with('~'));
    let outputs = items().filter(|c| c.starts_with(['=', '+'])).count();
    [outputs, items().count() - outputs]
}
