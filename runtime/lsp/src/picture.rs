//! A layout as a picture of characters: the warps of the whole tile, and the lanes and registers of its first elements.

use rtc_layout::Layout;
use std::fmt::Write as _;

/// Most rows and columns of a picture.
const ROWS: u32 = 8;
const COLUMNS: u32 = 8;

/// The owner of an element: register, lane, warp. Of several copies, the first.
type Owner = (u32, u32, u32);

/// The picture. Earlier axes than the last two are at 0.
pub(crate) fn picture(layout: &Layout) -> String {
    let map = Map::new(layout);
    let mut out = String::new();
    let (rows, columns) = map.size;
    if layout.warps() > 1 {
        let step = map.steps(|owner| owner.2);
        let of = size(step.0.min(rows), step.1.min(columns), map.is_vector);
        let _ = writeln!(out, "warps, each cell {of} elements:");
        map.draw(&mut out, step, |owner, _| format!("W{}", owner.2));
    }
    let step = (1, map.steps(|owner| owner.1).1);
    let width = step.1.min(columns);
    let run = if width > 1 { format!(", each cell {width} elements of a row") } else { String::new() };
    let _ = writeln!(out, "lanes and registers of the first elements{run}:");
    map.draw(&mut out, step, |(register, lane, _), last| match last {
        Some((end, ..)) if end != register => format!("L{lane} r{register}-{end}"),
        _ => format!("L{lane} r{register}"),
    });
    let (registers, copies) = (layout.registers(), map.copies());
    let _ = write!(out, "{registers} register{} of each thread", if registers == 1 { "" } else { "s" });
    if copies > 1 {
        let _ = write!(out, ", each element {copies} times");
    }
    out
}

fn size(rows: u32, columns: u32, is_vector: bool) -> String {
    if is_vector { columns.to_string() } else { format!("{rows}x{columns}") }
}

/// The owners of the elements of the last two axes.
struct Map<'l> {
    layout: &'l Layout,
    size: (u32, u32),
    /// Whether the tile has one axis alone.
    is_vector: bool,
    /// The coordinates that each bit of register, lane and warp adds.
    register: Vec<(u32, u32)>,
    lane: Vec<(u32, u32)>,
    warp: Vec<(u32, u32)>,
}

impl Map<'_> {
    fn new(layout: &Layout) -> Map<'_> {
        let (shape, rank) = (layout.shape(), layout.rank());
        let at = |coord: &rtc_layout::Coord, axis: usize| if axis < rank { coord.0[rank - 1 - axis] } else { 0 };
        let pair = |coord: &rtc_layout::Coord| {
            // A bit of an earlier axis leaves the picture.
            let leaves = coord.0[..rank.saturating_sub(2)].iter().any(|value| *value != 0);
            if leaves { (u32::MAX, u32::MAX) } else { (at(coord, 1), at(coord, 0)) }
        };
        let bases = layout.bases();
        let side = |axis: usize| if axis < rank { shape[rank - 1 - axis] } else { 1 };
        Map {
            layout,
            size: (side(1), side(0)),
            is_vector: rank < 2,
            register: bases.register.iter().map(pair).collect(),
            lane: bases.lane.iter().map(pair).collect(),
            warp: bases.warp.iter().map(pair).collect(),
        }
    }

    /// The owner of an element: the first register, lane and warp whose bits add up to its place.
    fn owner(&self, row: u32, column: u32) -> Option<Owner> {
        let bits: Vec<(u32, u32)> = [&self.register, &self.lane, &self.warp].into_iter().flatten().copied().collect();
        let number = solve(&bits, (row, column))?;
        let (r, l) = (self.register.len(), self.lane.len());
        let part = |from: usize, count: usize| (number >> from) as u32 & ((1u64 << count) - 1) as u32;
        Some((part(0, r), part(r, l), part(r + l, self.warp.len())))
    }

    /// The sizes of the largest cells with powers of two as sides in which a part of the owner is the same.
    fn steps(&self, part: impl Fn(Owner) -> u32) -> (u32, u32) {
        let same = |row: u32, column: u32| match (self.owner(0, 0), self.owner(row, column)) {
            (Some(first), Some(other)) => part(first) == part(other),
            _ => false,
        };
        let run = |size: u32, at: &dyn Fn(u32) -> bool| {
            let mut step = 1;
            while step < size && at(step) {
                step *= 2;
            }
            step
        };
        (run(self.size.0, &|row| same(row, 0)), run(self.size.1, &|column| same(0, column)))
    }

    /// Draws cells; `text` gets the owners of a cell's first and last element.
    fn draw(&self, out: &mut String, step: (u32, u32), text: impl Fn(Owner, Option<Owner>) -> String) {
        let count = (self.size.0.div_ceil(step.0), self.size.1.div_ceil(step.1));
        let shown = (count.0.min(ROWS), count.1.min(COLUMNS));
        let cell = |row: u32, column: u32| {
            let (row, column) = (row * step.0, column * step.1);
            let last = self.owner(row, column + step.1.min(self.size.1) - 1);
            self.owner(row, column).map_or(String::from("-"), |owner| text(owner, last))
        };
        let cells: Vec<Vec<String>> = (0..shown.0).map(|r| (0..shown.1).map(|c| cell(r, c)).collect()).collect();
        let heads: Vec<String> = (0..shown.1).map(|column| (column * step.1).to_string()).collect();
        let widest = cells.iter().flatten().chain(&heads).map(String::len).max().unwrap_or(1);
        let label = ((shown.0 - 1) * step.0).to_string().len();
        let more = if count.1 > shown.1 { " .." } else { "" };
        let line = |texts: &[String]| {
            let line: String = texts.iter().map(|text| format!("  {text:<widest$}")).collect();
            line.trim_end().to_owned()
        };
        let _ = writeln!(out, "{:label$}{}{more}", "", line(&heads));
        for (row, texts) in cells.iter().enumerate() {
            let _ = writeln!(out, "{:label$}{}", row as u32 * step.0, line(texts));
        }
        if count.0 > shown.0 {
            out.push_str("..\n");
        }
    }

    /// How often each element is there.
    fn copies(&self) -> u64 {
        let layout = self.layout;
        let all = u64::from(layout.registers()) * u64::from(layout.lanes()) * u64::from(layout.warps());
        all * u64::from(layout.blocks()) / u64::from(layout.elements()).max(1)
    }
}

/// The least set of bits whose sum is a place, as a number: by elimination, in the order of the bits.
fn solve(bits: &[(u32, u32)], place: (u32, u32)) -> Option<u64> {
    // Each row: a place, and the bits that it is the sum of.
    let join = |(row, column): (u32, u32)| u64::from(row) << 32 | u64::from(column);
    let mut rows: Vec<(u64, u64)> = Vec::new();
    let reduce = |rows: &[(u64, u64)], mut value: u64, mut set: u64| {
        for (pivot, bits) in rows {
            if value ^ pivot < value {
                (value, set) = (value ^ pivot, set ^ bits);
            }
        }
        (value, set)
    };
    for (at, bit) in bits.iter().enumerate() {
        let outside = *bit == (u32::MAX, u32::MAX);
        let (value, set) = reduce(&rows, if outside { 0 } else { join(*bit) }, 1 << at);
        if value != 0 {
            rows.push((value, set));
            rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        }
    }
    let (rest, set) = reduce(&rows, join(place), 0);
    (rest == 0).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_layouts() {
        let blocked = Layout::blocked(&[16, 64], &[1, 4], &[2, 16], &[4, 1], &[1, 0]);
        let vector = Layout::blocked(&[256], &[2], &[32], &[4], &[0]);
        let dot = Layout::wgmma(&[64, 128], 64, [4, 2]);
        let all = [blocked, vector, dot].map(|layout| format!("{}\n{}", layout.describe(), picture(&layout)));
        insta::assert_snapshot!(all.join("\n\n"));
    }

    /// The owner that the picture shows has the element, for every element.
    #[test]
    fn owners_are_those_of_the_layout() {
        for layout in [Layout::wgmma(&[64, 64], 64, [4, 1]), Layout::mma_v2(&[32, 64], &[2, 2])] {
            let map = Map::new(&layout);
            for (row, column) in (0..map.size.0).flat_map(|row| (0..map.size.1).map(move |column| (row, column))) {
                let (register, lane, warp) = map.owner(row, column).expect("an owner");
                let sum = |bases: &[(u32, u32)], number: u32| {
                    let chosen = bases.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
                    chosen.fold((0, 0), |sum, (_, basis)| (sum.0 ^ basis.0, sum.1 ^ basis.1))
                };
                let parts = [sum(&map.register, register), sum(&map.lane, lane), sum(&map.warp, warp)];
                let place = parts.iter().fold((0, 0), |sum, part| (sum.0 ^ part.0, sum.1 ^ part.1));
                assert_eq!(place, (row, column));
            }
        }
    }
}
