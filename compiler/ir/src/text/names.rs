//! Names of values in the text form.

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;

use crate::{Block, Kernel, Value};

/// The printed name of every value of a kernel.
pub(crate) struct Names {
    names: SecondaryMap<Value, Option<String>>,
    taken: HashSet<String>,
    /// Per stem, the next number to try.
    counters: HashMap<String, u32>,
    /// Per name of the source, the last number that was put behind it.
    suffixes: HashMap<String, u32>,
}

impl Names {
    /// Names all values in print order.
    pub(crate) fn of(kernel: &Kernel) -> Names {
        let mut names = Names {
            names: SecondaryMap::new(),
            taken: HashSet::new(),
            counters: HashMap::new(),
            suffixes: HashMap::new(),
        };
        for param in &kernel.params {
            names.assign(param.value, &clean(&param.name));
        }
        names.visit(kernel, kernel.body());
        names
    }

    /// The name of a value, without `%`.
    pub(crate) fn get(&self, value: Value) -> String {
        match &self.names[value] {
            Some(name) => name.clone(),
            // Only in kernels that the verifier refuses: an operand that is defined nowhere.
            None => format!("undefined.{}", value.as_u32()),
        }
    }

    fn visit(&mut self, kernel: &Kernel, block: Block) {
        for arg in &kernel.block(block).args {
            self.name(kernel, *arg, "arg");
        }
        for op in kernel.ops(block) {
            let data = kernel.op(op);
            for result in &data.results {
                self.name(kernel, *result, data.kind.spec().mnemonic);
            }
            for nested in &data.blocks {
                self.visit(kernel, *nested);
            }
        }
    }

    fn name(&mut self, kernel: &Kernel, value: Value, stem: &str) {
        if self.names[value].is_some() {
            return;
        }
        match &kernel.value(value).name {
            Some(name) if !is_automatic(name, stem) => self.assign(value, &clean(name)),
            _ => {
                let name = loop {
                    let counter = self.counters.entry(stem.to_string()).or_default();
                    let name = format!("{stem}{counter}");
                    *counter += 1;
                    if self.taken.insert(name.clone()) {
                        break name;
                    }
                };
                self.names[value] = Some(name);
            }
        }
    }

    fn assign(&mut self, value: Value, wanted: &str) {
        if self.taken.insert(wanted.to_string()) {
            self.names[value] = Some(wanted.to_string());
            return;
        }
        let suffix = self.suffixes.entry(wanted.to_string()).or_default();
        self.names[value] = Some(loop {
            *suffix += 1;
            let name = format!("{wanted}_{suffix}");
            if self.taken.insert(name.clone()) {
                break name;
            }
        });
    }
}

/// Whether a name looks like a counted one, so that it is counted again. The reader drops such names.
pub(crate) fn is_automatic(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// A character of a name in the text form.
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '$'
}

fn clean(name: &str) -> String {
    let name: String = name.chars().map(|c| if is_name_char(c) { c } else { '_' }).collect();
    if name.is_empty() { "_".into() } else { name }
}
