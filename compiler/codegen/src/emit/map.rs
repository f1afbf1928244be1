//! Tensor maps that a kernel makes: fields are put into shared memory one by one, and a warp copies the whole to global
//! memory, where copies of tiles look for it.

use super::{Emitter, Value};

/// The fields of a tensor map; dimensions are innermost first.
pub(crate) struct MapFields<'c> {
    /// The address of the first element.
    pub base: Value<'c>,
    /// Elements along each dimension.
    pub sizes: Vec<Value<'c>>,
    /// Bytes from one index to the next along each dimension but the first.
    pub strides: Vec<Value<'c>>,
    /// Elements of a box.
    pub shape: Vec<u32>,
    /// The type of the elements, as `tensormap.replace` numbers them.
    pub element: u32,
    /// The same of the swizzle.
    pub swizzle: u32,
    /// Whether copies fill with NaN outside of the tensor.
    pub nan: bool,
}

impl<'c> Emitter<'c> {
    /// Puts the fields into a map in shared memory. Only threads whose `predicate` holds do it.
    pub fn fill_map(&self, predicate: Value<'c>, map: Value<'c>, fields: &MapFields<'c>) {
        let mut operands = vec![predicate, map, fields.base];
        let mut constraints = "b,r,l".to_owned();
        let mut text = String::new();
        let mut put = |field: &str, bits: u32, value: &str| {
            text += &format!("@$0 tensormap.replace.tile.{field}.shared::cta.b1024.b{bits} [$1], {value}; ");
        };
        let mut operand = |value: Value<'c>, constraint: &str| {
            operands.push(value);
            constraints += constraint;
            format!("${}", operands.len() - 1)
        };
        // Known fields come first: the others may still be loading.
        put("rank", 32, &operand(self.i32(fields.sizes.len() as i32 - 1), ",r"));
        for (axis, length) in fields.shape.iter().enumerate() {
            put("box_dim", 32, &format!("{axis}, {}", operand(self.i32(*length as i32), ",r")));
            put("element_stride", 32, &format!("{axis}, {}", operand(self.i32(1), ",r")));
        }
        put("elemtype", 32, &fields.element.to_string());
        put("interleave_layout", 32, "0");
        put("swizzle_mode", 32, &fields.swizzle.to_string());
        put("fill_mode", 32, if fields.nan { "1" } else { "0" });
        for (axis, size) in fields.sizes.iter().enumerate() {
            put("global_dim", 32, &format!("{axis}, {}", operand(*size, ",r")));
        }
        for (axis, stride) in fields.strides.iter().enumerate() {
            put("global_stride", 64, &format!("{axis}, {}", operand(*stride, ",l")));
        }
        put("global_address", 64, "$2");
        self.assembly(&text, &format!("{constraints},~{{memory}}"), &operands, &[], true);
    }

    /// Begins to copy a map from shared to global memory, as a whole warp.
    pub fn publish_map(&self, to: Value<'c>, from: Value<'c>) {
        let text =
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;";
        self.assembly(text, "l,r,~{memory}", &[to, from], &[], true);
    }

    /// Waits until that is done: from then on copies of tiles use the map.
    pub fn acquire_map(&self, map: Value<'c>) {
        let text = "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;";
        self.assembly(text, "l,~{memory}", &[map], &[], true);
    }
}
