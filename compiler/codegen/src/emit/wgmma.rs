//! `wgmma`: dots of a warp group with operands in shared memory.
//!
//! All dots of a step are one statement, with every accumulator as a result and as an input tied to it. Between
//! statements the registers of dots in flight are not used; each statement costs LLVM time in proportion to the
//! registers that it names.

use super::{Emitter, Value, type_of};

/// The start of a statement that waits for earlier dots; the number of those that may stay in flight follows.
pub(crate) const WGMMA_WAIT: &str = "wgmma.wait_group.sync.aligned";
/// The instruction of a dot.
pub(crate) const WGMMA: &str = "wgmma.mma_async.sync.aligned";

/// The instruction: m64n`n`k`k` on elements of certain types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WgmmaShape {
    /// Columns of the accumulator.
    pub n: u32,
    /// Elements of K.
    pub k: u32,
    /// Types of the accumulator, of A and of B, as PTX has them: `f32`, `f16`, `f16`.
    pub types: [&'static str; 3],
    /// Whether A and B have M and N innermost; only for elements of 16 bits.
    pub transposed: [bool; 2],
}

impl WgmmaShape {
    /// The registers of 32 bits that an accumulator takes.
    pub fn registers(&self) -> usize {
        self.n as usize / if self.types[0] == "f16" { 4 } else { 2 }
    }
}

/// A matrix descriptor: one for the start of an operand, and how far behind it the matrix lies in its units of 16 bytes.
///
/// The sum is part of the statement: `ptxas` computes it there in uniform registers. Sums outside were computed before the loop
/// and took registers of every thread, which attention backward spilled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WgmmaDescriptor<'c> {
    pub start: Value<'c>,
    pub behind: u32,
}

/// Operand A of a dot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WgmmaOperand<'c> {
    /// In shared memory.
    Shared(WgmmaDescriptor<'c>),
    /// In registers: four words.
    Registers([Value<'c>; 4]),
}

/// One instruction of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WgmmaProduct<'c> {
    /// Which accumulator it adds to.
    pub accumulator: usize,
    pub a: WgmmaOperand<'c>,
    /// Operand B, in shared memory.
    pub b: WgmmaDescriptor<'c>,
}

/// What the first dot of each accumulator does with it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FirstDot<'c> {
    /// Adds to it.
    Adds,
    /// Adds to it where this is true, and overwrites it otherwise.
    AddsIf(Value<'c>),
    /// Overwrites it, so that the registers need no value before.
    Overwrites,
}

impl<'c> Emitter<'c> {
    /// Dots as one group: fence, instructions, commit, and if `wait` is given a wait until all but that many groups
    /// are complete. `accs` are the accumulators one after the other, in registers of 32 bits.
    pub fn wgmma(
        &self,
        shape: &WgmmaShape,
        mmas: &[WgmmaProduct<'c>],
        accs: &[Value<'c>],
        first: FirstDot<'c>,
        wait: Option<u32>,
    ) -> Vec<Value<'c>> {
        let inputs = if matches!(first, FirstDot::Overwrites) { &[] } else { accs };
        let mut operands = Operands::new(accs, inputs);
        let is_float = shape.types[0] != "s32";
        let mut lines = vec!["{ .reg .pred add; setp.ne.b32 add, 1, 0; wgmma.fence.sync.aligned;".to_owned()];
        let first = match first {
            FirstDot::Adds => "add".to_owned(),
            FirstDot::AddsIf(flag) => operands.add(flag, "b"),
            FirstDot::Overwrites => {
                lines.push(".reg .pred overwrite; setp.ne.b32 overwrite, 0, 0;".to_owned());
                "overwrite".to_owned()
            }
        };
        let mut seen = vec![false; accs.len() / shape.registers()];
        let mut sums: Vec<(String, u32)> = Vec::new();
        let mut place = |operands: &mut Operands<'c>, lines: &mut Vec<String>, descriptor: WgmmaDescriptor<'c>| {
            let start = operands.add(descriptor.start, "l");
            let sum = (start, descriptor.behind);
            if sum.1 == 0 {
                return sum.0;
            }
            let number = sums.iter().position(|known| *known == sum).unwrap_or_else(|| {
                let name = format!("d{}", sums.len());
                lines.push(format!(".reg .b64 {name}; add.s64 {name}, {}, {};", sum.0, sum.1));
                sums.push(sum);
                sums.len() - 1
            });
            format!("d{number}")
        };
        for mma in mmas {
            let from = mma.accumulator * shape.registers();
            let list = numbered(from..from + shape.registers());
            let (a, in_registers) = match mma.a {
                WgmmaOperand::Shared(descriptor) => (place(&mut operands, &mut lines, descriptor), false),
                WgmmaOperand::Registers(words) => {
                    let words = words.map(|word| operands.add(word, "r"));
                    (format!("{{{}}}", words.join(", ")), true)
                }
            };
            let b = place(&mut operands, &mut lines, mma.b);
            let scale = if std::mem::replace(&mut seen[mma.accumulator], true) { "add" } else { &first };
            let [d, ta, tb] = shape.types;
            let mut line = format!("{WGMMA}.m64n{}k{}.{d}.{ta}.{tb} ", shape.n, shape.k);
            line += &format!("{{{list}}}, {a}, {b}, {scale}");
            if is_float {
                line += ", 1, 1";
            }
            if matches!(ta, "f16" | "bf16") {
                let flags = shape.transposed.map(u8::from);
                line += &if in_registers { format!(", {}", flags[1]) } else { format!(", {}, {}", flags[0], flags[1]) };
            }
            lines.push(line + ";");
        }
        lines.push("wgmma.commit_group.sync.aligned;".to_owned());
        lines.extend(wait.map(|pending| format!("{WGMMA_WAIT} {pending};")));
        lines.push("}".to_owned());
        self.tied(&lines.join(" "), accs, operands)
    }

    /// Waits until all but the warp group's latest `pending` groups of dots are complete. `sums` are the registers of
    /// the accumulators that are then complete; they are to be used by what it gives only.
    pub fn wgmma_wait(&self, pending: u32, accs: &[Value<'c>]) -> Vec<Value<'c>> {
        let operands = Operands::new(accs, accs);
        self.tied(&format!("{WGMMA_WAIT} {pending};"), accs, operands)
    }

    /// A statement whose results are `accs` in the same registers. No other operand shares a register with them, even
    /// where both hold the same number, such as zero: a dot reads its left operand after the one before it began to write.
    fn tied(&self, text: &str, accs: &[Value<'c>], operands: Operands<'c>) -> Vec<Value<'c>> {
        let types: Vec<_> = accs.iter().map(|acc| type_of(*acc)).collect();
        let results = types.iter().map(|ty| if *ty == self.ty.f32 { "=&f" } else { "=&r" }.to_owned());
        let tied = (0..operands.tied).map(|i| i.to_string());
        let others = operands.constraints.iter().map(|c| (*c).to_owned());
        let constraints: Vec<_> = results.chain(tied).chain(others).chain(["~{memory}".to_owned()]).collect();
        self.assembly(text, &constraints.join(","), &operands.values, &types, true)
    }
}

/// The operands of a statement after its results, without duplicates.
struct Operands<'c> {
    /// How many are tied to a result: all accumulators or none.
    tied: usize,
    /// The number of the first one that is not.
    first: usize,
    /// The tied ones, then the others.
    values: Vec<Value<'c>>,
    /// Constraints of the others.
    constraints: Vec<&'static str>,
}

impl<'c> Operands<'c> {
    /// Those of a statement with these results and inputs tied to them.
    fn new(results: &[Value<'c>], tied: &[Value<'c>]) -> Self {
        let first = results.len() + tied.len();
        Self { tied: tied.len(), first, values: tied.to_vec(), constraints: Vec::new() }
    }

    /// The place of a value in the text.
    fn add(&mut self, value: Value<'c>, constraint: &'static str) -> String {
        let known = self.values[self.tied..].iter().position(|other| *other == value);
        let index = known.unwrap_or_else(|| {
            self.values.push(value);
            self.constraints.push(constraint);
            self.constraints.len() - 1
        });
        format!("${}", self.first + index)
    }
}

/// Operands of a statement by their numbers.
fn numbered(range: std::ops::Range<usize>) -> String {
    range.map(|i| format!("${i}")).collect::<Vec<_>>().join(", ")
}
