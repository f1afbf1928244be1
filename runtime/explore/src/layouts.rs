//! Types and layouts of values.

use rtc_ir::{Elem, Kernel, Type};
use rtc_layout::Coord;
use std::collections::HashMap;

use crate::model::{Layout, ValueType};

/// Types and layouts, each once.
#[derive(Default)]
pub struct Layouts {
    /// Types.
    pub types: Vec<ValueType>,
    /// Layouts.
    pub layouts: Vec<Layout>,
    known_types: HashMap<ValueType, u32>,
    known: HashMap<(String, Option<u32>), u32>,
}

fn bases(coords: &[Coord], rank: usize) -> Vec<Vec<u32>> {
    coords.iter().map(|coord| coord.0[..rank].to_vec()).collect()
}

impl Layouts {
    /// The index of a type.
    pub fn value_type(&mut self, kernel: &Kernel, ty: Type) -> u32 {
        let found = self.describe(kernel, ty);
        if let Some(index) = self.known_types.get(&found) {
            return *index;
        }
        let index = self.types.len() as u32;
        self.types.push(found.clone());
        self.known_types.insert(found, index);
        index
    }

    fn describe(&mut self, kernel: &Kernel, ty: Type) -> ValueType {
        let text = ty.without_layout().to_string();
        match ty {
            Type::Tile(tile) => {
                let layout = tile.layout.map(|id| {
                    let layout = kernel.layout(id);
                    let rank = layout.rank();
                    self.index(layout.to_string(), None, |text| {
                        let all = layout.bases();
                        Layout {
                            text,
                            words: layout.describe(),
                            shape: layout.shape().to_vec(),
                            bits: None,
                            register: bases(&all.register, rank),
                            lane: bases(&all.lane, rank),
                            warp: bases(&all.warp, rank),
                            offset: Vec::new(),
                        }
                    })
                });
                ValueType { text, shape: tile.shape.to_vec(), dtype: dtype(tile.elem), slots: None, layout }
            }
            Type::Shared(shared) => {
                let bits = shared.elem.bits().max(8);
                let layout = shared.layout.map(|id| {
                    let layout = kernel.shared_layout(id);
                    self.index(layout.to_string(), Some(bits), |text| Layout {
                        text,
                        words: match layout.as_nvmma(bits) {
                            Some((bytes, _)) => {
                                format!("shared memory, rows of {bytes} bytes swizzled for TMA and wgmma")
                            }
                            None => "shared memory".to_owned(),
                        },
                        shape: layout.shape().to_vec(),
                        bits: Some(bits),
                        register: Vec::new(),
                        lane: Vec::new(),
                        warp: Vec::new(),
                        offset: bases(&layout.bases(), layout.shape().len()),
                    })
                });
                let (shape, dtype) = (shared.shape.to_vec(), dtype(shared.elem));
                ValueType { text, shape, dtype, slots: Some(shared.slots), layout }
            }
            _ => ValueType { dtype: text.clone(), text, shape: Vec::new(), slots: None, layout: None },
        }
    }

    fn index(&mut self, text: String, bits: Option<u32>, make: impl FnOnce(String) -> Layout) -> u32 {
        let layouts = &mut self.layouts;
        *self.known.entry((text.clone(), bits)).or_insert_with(|| {
            layouts.push(make(text));
            layouts.len() as u32 - 1
        })
    }
}

fn dtype(elem: Elem) -> String {
    elem.to_string()
}
