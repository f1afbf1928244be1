//! Random loops that carry blocks which are used in several layouts, inside and after the loop, and that give them new
//! values or the old ones.

use std::fmt::Write;

use super::{Maker, Value};

impl Maker {
    /// A loop over an index and a block of numbers: each iteration loads rows by the index, in row-major order and
    /// transposed, and adds or multiplies the loaded values.
    pub(super) fn reused(&mut self) -> Option<Value> {
        let [rows, columns] = [0; 2].map(|_| 8u32 << self.random.below(3));
        let index = self.op("arange", "", &format!("start = 0, end = {rows}"), "i32", &[rows]);
        let start = match self.random.below(3) {
            0 => self.constant("1.0", "f32", &[rows, columns]),
            _ => self.whole_numbers("f32", &[rows, columns]),
        };
        let source = format!("x{}", self.params.len());
        let seed = self.random.below(1 << 20);
        let _ = writeln!(self.header, "// arg {source} = f32 range {} -3 3 {seed}", rows * columns);
        self.params.push(format!("%{source}: ptr<f32> {{sig = \"*f32\", align = 16}}"));
        let rounds = self.random.below(4).to_string();
        let bounds = ["0", &rounds, "1"].map(|b| self.constant(b, "i32", &[]).name).join(", ");
        let carried = [index.clone(), start.clone()];
        let [at, block, last_index, last] = std::array::from_fn(|_| self.name());
        let counter = self.name();
        let types = format!("{}, {}", index.ty(), start.ty());
        let _ = writeln!(
            self.body,
            "{last_index}, {last} = for_range {bounds}, ({}, {}) : {types} ^({counter}: i32, {at}: {}, {block}: {}) {{",
            index.name,
            start.name,
            index.ty(),
            start.ty()
        );
        let at = Value { name: at, ..index.clone() };
        let block = Value { name: block, ..start.clone() };
        let by_rows = self.rows_at(&source, &at, columns, false);
        let by_columns = self.rows_at(&source, &at, columns, true);
        let turned = self.op("trans", &by_columns.name, "order = [1, 0]", "f32", &[rows, columns]);
        let loaded = self.on2("addf", &by_rows, &turned);
        let used = self.used(&block, &loaded);
        let next_index = match self.random.below(4) {
            0 => index.clone(),
            1 => self.op("arange", "", &format!("start = 0, end = {rows}"), "i32", &[rows]),
            2 => at,
            _ => {
                let (one, most) = (self.constant("1", "i32", &[rows]), (rows - 1).to_string());
                let most = self.constant(&most, "i32", &[rows]);
                let next = self.on2("addi", &at, &one);
                self.on2("andi", &next, &most)
            }
        };
        let next = match self.random.below(4) {
            0 => start,
            1 => self.constant("2.0", "f32", &[rows, columns]),
            2 => block,
            // Kept small, so that sums of products stay exact.
            _ => {
                let [low, high] = ["-4.0", "4.0"].map(|bound| self.constant(bound, "f32", &[rows, columns]));
                let same = if used.shape == [rows, columns] { used.clone() } else { loaded };
                let above = self.on2("maxnum", &same, &low);
                self.on2("minnum", &above, &high)
            }
        };
        // The results of an iteration are stored, too.
        self.output(used);
        let _ = writeln!(self.body, "yields ({}, {})\n}}", next_index.name, next.name);
        let [last_index, last] =
            [(last_index, &carried[0]), (last, &carried[1])].map(|(name, like)| Value { name, ..like.clone() });
        self.scope.push(last_index.clone());
        let transposed = self.random.below(2) == 0;
        let after = self.rows_at(&source, &last_index, columns, transposed);
        self.scope.push(after);
        Some(last)
    }

    /// Loads rows of a matrix by an index, as they are or transposed.
    fn rows_at(&mut self, source: &str, index: &Value, columns: u32, transposed: bool) -> Value {
        let rows = index.shape[0];
        let (own, other) = if transposed { (0, 1) } else { (1, 0) };
        let shape = if transposed { [columns, rows] } else { [rows, columns] };
        let mut expanded = [rows, rows];
        expanded[own] = 1;
        let index = self.op("expand_dims", &index.name, &format!("axis = {own}"), "i32", &expanded);
        let width = self.constant(&columns.to_string(), "i32", &expanded);
        let offsets = self.on2("muli", &index, &width);
        let offsets = self.op("broadcast", &offsets.name, "", "i32", &shape);
        let column = self.op("arange", "", &format!("start = 0, end = {columns}"), "i32", &[columns]);
        let mut expanded = [columns, columns];
        expanded[other] = 1;
        let column = self.op("expand_dims", &column.name, &format!("axis = {other}"), "i32", &expanded);
        let column = self.op("broadcast", &column.name, "", "i32", &shape);
        let offsets = self.on2("addi", &offsets, &column);
        let pointers = super::ty("ptr<f32>", &shape);
        let (splat, moved) = (self.name(), self.name());
        let _ = writeln!(self.body, "{splat} = splat %{source} : {pointers}");
        let _ = writeln!(self.body, "{moved} = addptr {splat}, {} : {pointers}", offsets.name);
        self.op("load", &moved, "", "f32", &shape)
    }

    /// The carried block and the loaded one, combined by a dot or element by element.
    fn used(&mut self, block: &Value, loaded: &Value) -> Value {
        let (rows, columns) = (block.shape[0], block.shape[1]);
        match self.random.below(3) {
            0 => self.on2("addf", block, loaded),
            1 => {
                let turned = self.op("trans", &block.name, "order = [1, 0]", "f32", &[columns, rows]);
                let start = self.constant("0.0", "f32", &[rows, rows]);
                let operands = format!("{}, {}, {}", loaded.name, turned.name, start.name);
                self.op("dot", &operands, "", "f32", &[rows, rows])
            }
            _ => {
                let start = self.constant("0.0", "f32", &[columns, columns]);
                let turned = self.op("trans", &loaded.name, "order = [1, 0]", "f32", &[columns, rows]);
                let operands = format!("{}, {}, {}", turned.name, block.name, start.name);
                self.op("dot", &operands, "", "f32", &[columns, columns])
            }
        }
    }
}
