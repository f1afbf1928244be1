//! Loads, stores and atomics: by pointers with masks, block pointers and descriptors.

use super::types::{BOOL, Dtype, E4M3, E5M2, ELEMENTS, I32, U8};
use super::{Content, Maker, Value};

impl Maker {
    /// A new tensor of so many elements, and its content.
    fn tensor(&mut self, dtype: Dtype, count: u32, whole: Option<u64>) -> String {
        let name = self.name("x");
        let align = *self.random.pick(&["", ":16", ":16"]);
        let content = match whole {
            Some(most) if dtype.is_signed() || dtype.is_float() => format!("range {count} -{most} {most}"),
            Some(most) => format!("range {count} 0 {most}"),
            None => match self.random.below(4) {
                0 => format!("special {count}"),
                1 => format!("near {count}"),
                _ => format!("bits {count}"),
            },
        };
        let seed = self.random.below(1 << 20) as u64;
        let signature = format!("*{}{align}", dtype.signature());
        self.args.push((name.clone(), Content::Tensor(signature, content, seed)));
        name
    }

    /// A number that differs from set to set, around the bounds of something of this size.
    pub(super) fn number(&mut self, size: u32) -> Value {
        let name = self.name("n");
        let size = i64::from(size);
        let content = if self.random.below(4) == 0 {
            Content::Number("i32:16", vec![0, 16, 32, size / 16 * 16, 48, (size / 2) / 16 * 16])
        } else {
            let mut values = vec![size, 0, 1, size - 1, size + 1, size / 2, 3, size / 2 + 1, -1, 17];
            values.rotate_left(self.random.below(10));
            Content::Number("i32", values)
        };
        self.args.push((name.clone(), content));
        Value { name, dtype: I32, shape: Vec::new(), most: None }
    }

    /// Row-major offsets of a tile, or those of its transpose.
    pub(super) fn offsets(&mut self, shape: &[u32]) -> String {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if self.random.below(4) == 0 {
            order.reverse();
        }
        let mut strides = vec![1; shape.len()];
        let mut stride = 1;
        for axis in order.iter().rev() {
            strides[*axis] = stride;
            stride *= shape[*axis];
        }
        let part = |axis: usize| {
            let mut place: Vec<&str> = vec!["None"; shape.len()];
            place[axis] = ":";
            let index = if shape.len() == 1 { String::new() } else { format!("[{}]", place.join(", ")) };
            let by = if strides[axis] == 1 { String::new() } else { format!(" * {}", strides[axis]) };
            format!("tl.arange(0, {}){index}{by}", shape[axis])
        };
        (0..shape.len()).map(part).collect::<Vec<_>>().join(" + ")
    }

    /// A mask of a shape: offsets compared with a number, or the result of another comparison.
    pub(super) fn mask(&mut self, shape: &[u32]) -> String {
        if let Some(mask) = self.any_where(|v| v.dtype == BOOL && v.shape == shape)
            && self.random.below(2) == 0
        {
            return mask.name;
        }
        let size = shape.iter().product();
        let n = self.number(size).name;
        let offsets = self.offsets(shape);
        let comparison = *self.random.pick(&["<", "<", "<", ">=", "!="]);
        format!("({offsets}) {comparison} {n}")
    }

    pub(super) fn input(&mut self) -> Value {
        let (dtype, shape) = (*self.random.pick(&ELEMENTS), self.shape());
        self.input_of(dtype, &shape)
    }

    /// A tile from memory, by one of the possible accesses.
    pub(super) fn input_of(&mut self, dtype: Dtype, shape: &[u32]) -> Value {
        let whole = (self.random.below(3) == 0).then_some(3);
        self.loaded(dtype, shape, whole)
    }

    pub(super) fn loaded(&mut self, dtype: Dtype, shape: &[u32], whole: Option<u64>) -> Value {
        let size: u32 = shape.iter().product();
        let bytes = dtype.bits() / 8;
        if shape.len() == 2 && self.random.below(3) == 0 {
            let [rows, columns] = [shape[0], shape[1]];
            // The requirements of TMA: rows of whole 16 bytes.
            if columns * bytes >= 16 && self.random.below(2) == 0 {
                return self.described(dtype, [rows, columns], whole);
            }
            return self.by_block_pointer(dtype, [rows, columns], whole);
        }
        let per_program = self.random.below(2) == 0;
        let x = self.tensor(dtype, if per_program { self.grid * size } else { size }, whole);
        let base = if per_program { format!("{x} + pid * {size} + ") } else { format!("{x} + ") };
        let offsets = self.offsets(shape);
        let mut arguments = vec![format!("{base}{offsets}")];
        if self.random.below(2) == 0 {
            arguments.push(format!("mask={}", self.mask(shape)));
            if self.random.below(2) == 0 && !matches!(dtype, E5M2 | E4M3) {
                let other = if dtype.is_float() && whole.is_none() { "2.5" } else { "2" };
                arguments.push(format!("other={other}"));
            }
        }
        let hint = ["", "", "", "", "cache_modifier=\".cg\"", "eviction_policy=\"evict_first\"", "volatile=True"];
        let hint = *self.random.pick(&hint);
        if !hint.is_empty() {
            arguments.push(hint.to_string());
        }
        self.bind(&format!("tl.load({})", arguments.join(", ")), dtype, shape, whole)
    }

    fn by_block_pointer(&mut self, dtype: Dtype, [rows, columns]: [u32; 2], whole: Option<u64>) -> Value {
        let x = self.tensor(dtype, rows * columns, whole);
        let height = self.number(rows).name;
        let (from, order) = (self.random.below(3), *self.random.pick(&["(1, 0)", "(0, 1)"]));
        let strides = if order == "(1, 0)" { format!("({columns}, 1)") } else { format!("(1, {rows})") };
        let pointer = self.name("p");
        let height = format!("tl.minimum({height}, {rows})");
        self.line(&format!(
            "{pointer} = tl.make_block_ptr({x}, ({height}, {columns}), {strides}, ({from}, 0), ({rows}, {columns}), {order})"
        ));
        let pointer = if self.random.below(3) == 0 { format!("tl.advance({pointer}, (1, 1))") } else { pointer };
        let load = format!("tl.load({pointer}, boundary_check=(0, 1), padding_option=\"zero\")");
        self.bind(&load, dtype, &[rows, columns], whole)
    }

    fn described(&mut self, dtype: Dtype, [rows, columns]: [u32; 2], whole: Option<u64>) -> Value {
        let x = self.name("x");
        let content = match whole {
            Some(most) if dtype.is_signed() || dtype.is_float() => format!("range {} -{most} {most}", rows * columns),
            Some(most) => format!("range {} 0 {most}", rows * columns),
            None => format!("bits {}", rows * columns),
        };
        let seed = self.random.below(1 << 20) as u64;
        self.args.push((x.clone(), Content::Tensor(format!("*{}:16", dtype.signature()), content, seed)));
        let height = self.number(rows).name;
        let descriptor = self.name("d");
        self.line(&format!(
            "{descriptor} = tl.make_tensor_descriptor({x}, shape=[tl.maximum(tl.minimum({height}, {rows}), 1), {columns}], \
             strides=[{columns}, 1], block_shape=[{rows}, {columns}])"
        ));
        let from = self.random.below(3);
        self.bind(&format!("{descriptor}.load([{from}, 0])"), dtype, &[rows, columns], whole)
    }

    /// Stores a value to a tensor of its own, each program to its part.
    pub(super) fn output(&mut self, value: &Value) {
        let (dtype, stored) = match value.dtype {
            BOOL => (U8, format!("{}.to(tl.uint8)", value.name)),
            dtype => (dtype, value.name.clone()),
        };
        let size = value.numel();
        let y = self.name("y");
        let align = *self.random.pick(&["", ":16"]);
        let content = format!("*{}{align} uninit {}", dtype.signature(), size * self.grid);
        self.args.push((y.clone(), Content::Fixed(content)));
        if value.shape.is_empty() {
            self.line(&format!("tl.store({y} + pid, {stored})"));
            return;
        }
        let offsets = self.offsets(&value.shape);
        let mask = if self.random.below(4) > 0 { String::new() } else { format!(", mask={}", self.mask(&value.shape)) };
        self.line(&format!("tl.store({y} + pid * {size} + {offsets}, {stored}{mask})"));
    }

    /// Adds to memory by atomics whose order does not matter.
    pub(super) fn counted(&mut self) -> Option<Value> {
        let value = self.any_where(|v| v.dtype == I32)?;
        let z = self.name("z");
        self.args.push((z.clone(), Content::Fixed("*i32 iota 16".into())));
        let operation = *self.random.pick(&["add", "add", "max", "min", "xor", "and", "or"]);
        let sem = *self.random.pick(&["", ", sem=\"relaxed\"", ", sem=\"release\""]);
        let mask = if value.shape.is_empty() || self.random.below(3) > 0 {
            String::new()
        } else {
            format!(", mask={}", self.mask(&value.shape))
        };
        let v = &value.name;
        self.line(&format!("tl.atomic_{operation}({z} + ({v} & 15), {v}{mask}{sem})"));
        None
    }
}
