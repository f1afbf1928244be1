//! A launch, the recorded part of its results, and its transfer to the machine with the GPU.

use std::collections::HashMap;
use std::fmt::Write;

use rtc_emulator::{LaunchConfig, Memory, Program};

/// Results that are kept as they are; of all a digest is.
const KEPT: usize = 32;

/// An argument.
pub enum Param {
    /// A pointer to these bytes.
    In(Vec<u8>),
    /// A pointer to the results, which begin as these bytes.
    Out(Vec<u8>),
    /// A number of so many bytes.
    Number(u64, usize),
}

/// Results of one register.
#[derive(Clone, Copy)]
pub struct Part {
    pub offset: usize,
    pub count: usize,
    pub bytes: usize,
}

/// A kernel with its arguments.
pub struct Launch {
    pub name: String,
    /// A module with the entry `k`.
    pub ptx: String,
    pub blocks: usize,
    pub threads: usize,
    pub shared: usize,
    pub params: Vec<Param>,
    pub parts: Vec<Part>,
    /// Whether all results are kept.
    pub all: bool,
    pub ulp: u64,
    /// An allowed distance, as a power of two.
    pub power: Option<i32>,
    /// Whether a result is two values.
    pub pairs: bool,
}

impl Part {
    fn values(self, bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
        let bytes = &bytes[self.offset..self.offset + self.count * self.bytes];
        bytes.chunks_exact(self.bytes).map(|chunk| {
            let mut all = [0; 8];
            all[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(all)
        })
    }
}

/// A number that depends on every result and its place.
fn digest(values: impl Iterator<Item = u64>) -> u64 {
    values.zip(1u64..).fold(0, |sum: u64, (bits, place)| {
        let mut z = bits ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum.wrapping_add(z ^ (z >> 31))
    })
}

/// Distance between two values as floating-point numbers of a width.
fn distance(a: u64, b: u64, bits: usize) -> u64 {
    let ordered = |x: u64| {
        let sign = 1u64 << (bits - 1);
        if x & sign != 0 { -((x & !sign) as i128) } else { x as i128 }
    };
    (ordered(a) - ordered(b)).unsigned_abs() as u64
}

impl Launch {
    /// How many results of a part are kept.
    fn kept(&self, part: Part) -> usize {
        if self.all { part.count } else { part.count.min(KEPT) }
    }

    /// Bytes that the results take in `hardware.bin`.
    pub fn stored(&self) -> usize {
        self.parts.iter().map(|p| self.kept(*p) * p.bytes + 8).sum()
    }

    /// Operand sets.
    pub fn sets(&self) -> usize {
        self.parts.first().map_or(0, |part| part.count)
    }

    /// The emulator's result.
    pub fn emulate(&self) -> Result<Vec<u8>, String> {
        let program = Program::load(&self.ptx).map_err(|e| e.to_string())?;
        let mut memory = Memory::new();
        let mut params = Vec::new();
        let mut out = (0, 0);
        for param in &self.params {
            match param {
                Param::Number(value, bytes) => params.extend(&value.to_le_bytes()[..*bytes]),
                Param::In(data) | Param::Out(data) => {
                    let at = memory.alloc(data.len(), 256, "memory");
                    memory.write(at, data).map_err(|e| e.to_string())?;
                    params.extend(at.to_le_bytes());
                    if matches!(param, Param::Out(_)) {
                        out = (at, data.len());
                    }
                }
            }
        }
        let config = LaunchConfig {
            grid: [self.blocks as u32, 1, 1],
            block: [self.threads as u32, 1, 1],
            shared_bytes: self.shared as u32,
            params: &params,
            ..LaunchConfig::new("k")
        };
        program.launch(&mut memory, &config).map_err(|fault| fault.to_string())?;
        Ok(memory.read(out.0, out.1).map_err(|e| e.to_string())?.to_vec())
    }

    /// Compares with the launch's part of `hardware.bin`.
    pub fn compare(&self, stored: &[u8]) -> Result<(), String> {
        let mine = self.emulate()?;
        let mut stored = stored;
        let mut wrong = String::new();
        for (j, part) in self.parts.iter().enumerate() {
            let (kept, rest) = stored.split_at(self.kept(*part) * part.bytes);
            let (theirs, rest) = rest.split_at(8);
            stored = rest;
            let list = Part { offset: 0, count: self.kept(*part), bytes: part.bytes };
            let bad = self.differences(j, part.values(&mine), list.values(kept), &mut wrong);
            if bad == 0 && !self.all && digest(part.values(&mine)).to_le_bytes() != theirs {
                write!(wrong, "\n    d{j}: one of {} differs", part.count).unwrap();
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// A digest of all results in the emulator; 0 if there are none.
    pub fn expected(&self) -> u64 {
        let all = self.emulate();
        all.map_or(0, |all| self.parts.iter().fold(0, |sum: u64, part| sum.wrapping_add(digest(part.values(&all)))))
    }

    /// Compares with all results.
    pub fn compare_all(&self, theirs: &[u8]) -> Result<(), String> {
        let mine = self.emulate()?;
        let mut wrong = String::new();
        for (j, part) in self.parts.iter().enumerate() {
            self.differences(j, part.values(&mine), part.values(theirs), &mut wrong);
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Counts and describes the differences between results of register `j`.
    fn differences(
        &self,
        j: usize,
        mine: impl Iterator<Item = u64>,
        theirs: impl Iterator<Item = u64>,
        wrong: &mut String,
    ) -> usize {
        let bits = 8 * self.parts[j].bytes;
        let (mut bad, mut count, mut most) = (0, 0, 0);
        for (lane, (mine, theirs)) in mine.zip(theirs).enumerate() {
            count += 1;
            if mine == theirs {
                continue;
            }
            let far = match self.pairs && self.ulp > 0 {
                true => distance(mine & 0xffff, theirs & 0xffff, 16).max(distance(mine >> 16, theirs >> 16, 16)),
                false => distance(mine, theirs, bits),
            };
            let value = |bits: u64| f64::from(f32::from_bits(bits as u32));
            if self.power.is_some_and(|power| (value(mine) - value(theirs)).abs() <= 2f64.powi(power)) {
                continue;
            }
            most = most.max(far);
            if far > self.ulp {
                bad += 1;
                if bad <= 6 {
                    let inputs = self.inputs(lane);
                    write!(wrong, "\n    d{j} lane {lane} ({inputs}): {mine:#x}, hardware {theirs:#x}").unwrap();
                }
            }
        }
        if bad > 0 {
            write!(wrong, "\n    d{j}: {bad} of {count} differ, by at most {most}").unwrap();
        }
        bad
    }

    /// The first operand of a lane in each column.
    fn inputs(&self, lane: usize) -> String {
        let words = self.params.iter().take(3).filter_map(|param| match param {
            Param::In(data) => data.get(8 * lane..8 * lane + 8),
            _ => None,
        });
        let words = words.map(|w| format!("{:#x}", u64::from_le_bytes(w.try_into().unwrap())));
        words.collect::<Vec<_>>().join(", ")
    }

    /// A line for `make.py`; adds what the launch reads to `data`.
    pub fn line(&self, data: &mut Data) -> String {
        let mut words = format!("{} {} {} |", self.blocks, self.threads, self.shared);
        for param in &self.params {
            match param {
                Param::Number(value, bytes) => write!(words, " n:{value}:{bytes}").unwrap(),
                Param::In(bytes) => write!(words, " i:{}:{}", data.place(bytes), bytes.len()).unwrap(),
                Param::Out(bytes) => write!(words, " o:{}:{}", data.place(bytes), bytes.len()).unwrap(),
            }
        }
        words.push_str(" |");
        for part in &self.parts {
            write!(words, " {}:{}:{}:{}", part.offset, part.count, part.bytes, self.kept(*part)).unwrap();
        }
        words
    }
}

/// The inputs of launches, each once.
#[derive(Default)]
pub struct Data {
    pub bytes: Vec<u8>,
    seen: HashMap<Vec<u8>, usize>,
}

impl Data {
    fn place(&mut self, bytes: &[u8]) -> usize {
        if let Some(at) = self.seen.get(bytes) {
            return *at;
        }
        let at = self.bytes.len();
        self.bytes.extend(bytes);
        self.seen.insert(bytes.to_vec(), at);
        at
    }
}
