//! Text form of layouts and its reader.
//!
//! ```text
//! linear(shape [4, 8], reg [[0, 1], [0, 2]], lane [[0, 4], [1, 0], [2, 0], [0, 0], [0, 0]], warp [])
//! ```
//!
//! Bases are listed from the lowest bit; `block [..]` follows if there are block bits. The printed form is canonical:
//! equal layouts print equally. The reader takes constructors as well: `blocked(shape [16, 64], size [1, 4],
//! lanes [2, 16], warps [4, 1], order [1, 0])`, `mma_v2(shape [64, 64], warps [2, 2])`, `mma_f64(..)`,
//! `mma_operand(shape [64, 32], operand 0, bits 16, warps [2, 2])`, with `k_width 4` if that is not plain, `wgmma(shape [128, 64], n 64, warps [4, 1])`,
//! `wgmma_operand(shape [64, 64], bits 16, warps [4, 1])`, `replicated(shape [4], warps 4)`.

use std::fmt;
use std::str::FromStr;

use crate::coord::{Coord, MAX_RANK};
use crate::linear::{Bases, LANE_BITS, Layout};

/// Why a layout's text could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLayoutError(pub(crate) String);

impl fmt::Display for ParseLayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseLayoutError {}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bases = self.bases();
        write!(f, "linear(shape {:?}", self.shape())?;
        let parts = [("reg", &bases.register[..]), ("lane", &bases.lane), ("warp", &bases.warp)];
        for (name, list) in parts {
            write!(f, ", {name} ")?;
            write_coords(f, list, self.rank())?;
        }
        if !bases.block.is_empty() {
            f.write_str(", block ")?;
            write_coords(f, &bases.block, self.rank())?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Layout {
    type Err = ParseLayoutError;

    fn from_str(text: &str) -> Result<Layout, ParseLayoutError> {
        let call = Call::parse(text)?;
        let layout = match call.name.as_str() {
            "linear" => read_linear(&call)?,
            "replicated" => Layout::replicated(&call.shape()?, call.power_of_two("warps")?),
            "blocked" => {
                let shape = call.shape()?;
                let rank = shape.len();
                let (size, lanes, warps) =
                    (call.sizes("size", rank)?, call.sizes("lanes", rank)?, call.sizes("warps", rank)?);
                let order = call.numbers("order")?;
                let mut sorted = order.clone();
                sorted.sort_unstable();
                call.require(lanes.iter().product::<u32>() == 32, "lanes must multiply to 32")?;
                call.require(sorted.into_iter().eq(0..rank as u32), "order must name each axis once")?;
                Layout::blocked(&shape, &size, &lanes, &warps, &order)
            }
            "mma_v2" | "mma_f64" | "mma_operand" => {
                let shape = call.shape()?;
                call.require(shape.len() >= 2, "the shape must have rank 2 or more")?;
                let warps = call.sizes("warps", shape.len())?;
                match call.name.as_str() {
                    "mma_v2" => Layout::mma_v2(&shape, &warps),
                    "mma_f64" => Layout::mma_f64(&shape, &warps),
                    _ => {
                        let (operand, bits) = (call.number("operand")?, call.number("bits")?);
                        call.require(operand < 2, "operand must be 0 or 1")?;
                        call.require(matches!(bits, 4 | 8 | 16 | 32 | 64), "bits must be 4, 8, 16, 32 or 64")?;
                        if call.has("k_width") {
                            let (width, k) = (call.number("k_width")?, shape[shape.len() - 1 - operand as usize]);
                            let fits = Layout::mma_k_widths(k, bits).any(|wider| wider == width);
                            call.require(
                                fits,
                                "k_width must be a power of two, wider than a register and at most k / 4",
                            )?;
                            Layout::mma_operand_wide(&shape, operand, bits, width, &warps)
                        } else {
                            Layout::mma_operand(&shape, operand, bits, &warps)
                        }
                    }
                }
            }
            "wgmma" | "wgmma_operand" => {
                let shape = call.shape()?;
                let warps = call.sizes("warps", 2)?;
                call.require(shape.len() == 2 && warps[0] >= 4, "it needs rank 2 and 4 or more warps along m")?;
                if call.name == "wgmma" {
                    let n = call.power_of_two("n")?;
                    call.require((8..=256).contains(&n), "n must be from 8 to 256")?;
                    Layout::wgmma(&shape, n, [warps[0], warps[1]])
                } else {
                    let bits = call.number("bits")?;
                    call.require(matches!(bits, 8 | 16 | 32), "bits must be 8, 16 or 32")?;
                    Layout::wgmma_operand(&shape, bits, [warps[0], warps[1]])
                }
            }
            other => return Err(ParseLayoutError(format!("no layout is called `{other}`"))),
        };
        Ok(layout)
    }
}

fn read_linear(call: &Call) -> Result<Layout, ParseLayoutError> {
    let shape = call.shape()?;
    let coords = |key: &str| call.coords(key, &shape);
    let lane = coords("lane")?;
    let lane: [Coord; LANE_BITS] =
        lane.try_into().map_err(|_| ParseLayoutError(format!("lane must have {LANE_BITS} bases")))?;
    let block = if call.value("block").is_ok() { coords("block")? } else { Vec::new() };
    let bases = Bases { register: coords("reg")?, lane, warp: coords("warp")?, block };
    let bits = bases.register.len().max(bases.warp.len()).max(bases.block.len());
    call.require(bits <= 16, "there are at most 16 register, warp or block bits")?;
    Ok(Layout::from_bases(&shape, &bases))
}

/// Prints coordinates as `[[0, 1], [2, 0]]`.
pub(crate) fn write_coords(f: &mut fmt::Formatter<'_>, coords: &[Coord], rank: usize) -> fmt::Result {
    let list: Vec<&[u32]> = coords.iter().map(|c| &c.0[..rank]).collect();
    write!(f, "{list:?}")
}

/// `name(key value, key value, ..)`, where a value is a number or a list of values.
pub(crate) struct Call {
    pub(crate) name: String,
    fields: Vec<(String, Value)>,
}

enum Value {
    Number(u32),
    List(Vec<Value>),
}

impl Call {
    pub(crate) fn parse(text: &str) -> Result<Call, ParseLayoutError> {
        let mut reader = Reader { rest: text };
        let name = reader.word()?;
        reader.expect('(')?;
        let mut fields = Vec::new();
        while !reader.eat(')') {
            if !fields.is_empty() {
                reader.expect(',')?;
            }
            fields.push((reader.word()?, reader.value(0)?));
        }
        if !reader.rest.trim().is_empty() {
            return Err(ParseLayoutError(format!("unexpected text after a layout: `{}`", reader.rest.trim())));
        }
        Ok(Call { name, fields })
    }

    pub(crate) fn require(&self, holds: bool, what: &str) -> Result<(), ParseLayoutError> {
        if holds { Ok(()) } else { Err(ParseLayoutError(format!("in layout `{}`: {what}", self.name))) }
    }

    fn has(&self, key: &str) -> bool {
        self.value(key).is_ok()
    }

    fn value(&self, key: &str) -> Result<&Value, ParseLayoutError> {
        let found = self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        found.ok_or_else(|| ParseLayoutError(format!("layout `{}` lacks `{key}`", self.name)))
    }

    pub(crate) fn number(&self, key: &str) -> Result<u32, ParseLayoutError> {
        match self.value(key)? {
            Value::Number(n) => Ok(*n),
            Value::List(_) => Err(ParseLayoutError(format!("`{key}` of layout `{}` must be a number", self.name))),
        }
    }

    pub(crate) fn power_of_two(&self, key: &str) -> Result<u32, ParseLayoutError> {
        let n = self.number(key)?;
        self.require(n.is_power_of_two(), &format!("{key} must be a power of two"))?;
        Ok(n)
    }

    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<u32>, ParseLayoutError> {
        numbers(self.value(key)?)
            .ok_or_else(|| ParseLayoutError(format!("`{key}` of layout `{}` must be a list of numbers", self.name)))
    }

    /// `count` powers of two, with a sane product.
    fn sizes(&self, key: &str, count: usize) -> Result<Vec<u32>, ParseLayoutError> {
        let list = self.numbers(key)?;
        let bits: u32 = list.iter().map(|n| n.trailing_zeros()).sum();
        let valid = list.len() == count && list.iter().all(|n| n.is_power_of_two()) && bits < 32;
        self.require(valid, &format!("{key} must be {count} powers of two"))?;
        Ok(list)
    }

    pub(crate) fn shape(&self) -> Result<Vec<u32>, ParseLayoutError> {
        let rank = self.numbers("shape")?.len();
        self.require(rank <= MAX_RANK, &format!("the rank is at most {MAX_RANK}"))?;
        self.sizes("shape", rank)
    }

    /// Coordinates that lie in `shape`.
    pub(crate) fn coords(&self, key: &str, shape: &[u32]) -> Result<Vec<Coord>, ParseLayoutError> {
        let wrong =
            || ParseLayoutError(format!("`{key}` of layout `{}` must list coordinates in {shape:?}", self.name));
        let Value::List(list) = self.value(key)? else { return Err(wrong()) };
        let coord = |value: &Value| {
            let entries = numbers(value)?;
            let inside = entries.len() == shape.len() && entries.iter().zip(shape).all(|(c, d)| c < d);
            inside.then(|| Coord::from(&entries[..]))
        };
        list.iter().map(|value| coord(value).ok_or_else(wrong)).collect()
    }
}

fn numbers(value: &Value) -> Option<Vec<u32>> {
    match value {
        Value::Number(_) => None,
        Value::List(list) => list
            .iter()
            .map(|value| match value {
                Value::Number(n) => Some(*n),
                Value::List(_) => None,
            })
            .collect(),
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn eat(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) -> Result<(), ParseLayoutError> {
        if self.eat(c) { Ok(()) } else { Err(ParseLayoutError(format!("expected `{c}` before `{}`", self.rest))) }
    }

    fn take(&mut self, accept: impl Fn(char) -> bool) -> Option<&str> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!taken.is_empty()).then_some(taken)
    }

    fn word(&mut self) -> Result<String, ParseLayoutError> {
        let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_').map(str::to_owned);
        word.ok_or_else(|| ParseLayoutError(format!("expected a name before `{}`", self.rest)))
    }

    fn value(&mut self, depth: u32) -> Result<Value, ParseLayoutError> {
        if depth < 2 && self.eat('[') {
            let mut list = Vec::new();
            while !self.eat(']') {
                if !list.is_empty() {
                    self.expect(',')?;
                }
                list.push(self.value(depth + 1)?);
            }
            return Ok(Value::List(list));
        }
        let digits = self.take(|c| c.is_ascii_digit()).map(str::parse);
        match digits {
            Some(Ok(n)) => Ok(Value::Number(n)),
            _ => Err(ParseLayoutError(format!("expected a number or a list before `{}`", self.rest))),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Layout;

    #[test]
    fn prints_and_reads_back() {
        let layout = Layout::blocked(&[16, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
        let text = layout.to_string();
        assert_eq!(
            text,
            "linear(shape [16, 64], reg [[0, 1], [0, 2], [8, 0]], \
             lane [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp [[2, 0], [4, 0]])"
        );
        assert_eq!(text.parse(), Ok(layout));
        let scalar = Layout::replicated(&[], 4);
        assert_eq!(scalar.to_string().parse(), Ok(scalar));
    }

    #[test]
    fn reads_constructors() {
        let read = |text: &str| text.parse::<Layout>().expect(text);
        assert_eq!(
            read("blocked(size [1, 4], lanes [2, 16], warps [4, 1], order [1, 0], shape [16, 64])"),
            Layout::blocked(&[16, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0])
        );
        assert_eq!(
            read("mma_operand(shape [64, 32], operand 0, bits 16, warps [2, 2])"),
            Layout::mma_operand(&[64, 32], 0, 16, &[2, 2])
        );
        assert_eq!(
            read("mma_operand(shape [64, 32], operand 1, bits 16, k_width 8, warps [2, 2])"),
            Layout::mma_operand_wide(&[64, 32], 1, 16, 8, &[2, 2])
        );
        let too_wide = "mma_operand(shape [64, 32], operand 0, bits 16, k_width 16, warps [2, 2])";
        assert!(too_wide.parse::<Layout>().is_err());
        assert_eq!(read("wgmma(shape [128, 64], n 64, warps [4, 1])"), Layout::wgmma(&[128, 64], 64, [4, 1]));
    }

    #[test]
    fn bad_text_is_an_error_not_a_panic() {
        for text in [
            "",
            "linear",
            "linear(",
            "linear()",
            "linear(shape [3], reg [], lane [], warp [])",
            "linear(shape [4], reg [[4]], lane [[0],[0],[0],[0],[0]], warp [])",
            "linear(shape [4], reg [[1, 1]], lane [[0],[0],[0],[0],[0]], warp [])",
            "linear(shape [99999999999], reg [], lane [], warp [])",
            "blocked(shape [16], size [1], lanes [16], warps [1], order [0])",
            "blocked(shape [16], size [1], lanes [32], warps [1], order [1])",
            "mma_v2(shape [16], warps [1])",
            "wgmma(shape [64, 64], n 512, warps [4, 1])",
            "linear(shape [[[[[[[4]]]]]]])",
            "blocked(shape [16], size [1], lanes [32], warps [1], order [0]) x",
        ] {
            assert!(text.parse::<Layout>().is_err(), "{text}");
        }
    }
}
