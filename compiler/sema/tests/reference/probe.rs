//! Which types an element-wise function takes: found by compiling it with each.

use std::collections::BTreeSet;

use rtc_sema::reference::Entry;

use crate::kernels::{TYPES, compile};

/// The parameter and result types of a function.
pub struct Accepted {
    /// Types of the arguments, type of the result.
    pub forms: Vec<(Vec<&'static str>, String)>,
    /// Codes of the errors for all other types.
    pub errors: BTreeSet<String>,
}

/// Tries a function of element-wise arguments with scalars of every type.
pub fn accepted(entry: &Entry) -> Accepted {
    let count = entry.names.iter().filter(|n| !n.ends_with('?')).count();
    let mut out = Accepted { forms: Vec::new(), errors: BTreeSet::new() };
    for (ty, name) in TYPES {
        attempt(entry, &vec![(ty, name); count], &mut out);
        // An integer may accompany a float: `ldexp(x, n)`, `jn(n, x)`.
        if count > 1 && name.starts_with("fp") && entry.namespace == "libdevice" {
            for place in [0, count - 1] {
                let mut mixed = vec![(ty, name); count];
                mixed[place] = ("i32", "int32");
                attempt(entry, &mixed, &mut out);
            }
        }
    }
    out
}

fn attempt(entry: &Entry, types: &[(&'static str, &'static str)], out: &mut Accepted) {
    let params: Vec<String> = (0..types.len()).map(|i| format!("a{i}")).collect();
    let call = format!("{}({})", entry.path(), params.join(", "));
    let text = format!("@triton.jit\ndef kernel({}):\n    tl.static_print({call})\n", params.join(", "));
    let signature: Vec<&str> = types.iter().map(|(ty, _)| *ty).collect();
    let outcome = compile("probe.rt", &text, &signature.join(", "), 90);
    match (outcome.accepted, outcome.prints.first()) {
        (true, Some(result)) => {
            out.forms.push((types.iter().map(|(_, name)| *name).collect(), result.replace("[]", "")));
        }
        _ => out.errors.extend(outcome.rendered.iter().filter_map(|text| {
            let code = text.lines().next()?.strip_prefix("error[")?.split(']').next()?;
            Some(code.to_string())
        })),
    }
}

impl Accepted {
    /// In words: `fp32, fp64`, and `int32 -> fp32` where the result has another type.
    pub fn describe(&self) -> String {
        let uniform = |args: &[&str]| args.iter().all(|a| *a == args[0]);
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (args, result) in &self.forms {
            let shown = if uniform(args) { args[0].to_string() } else { format!("({})", args.join(", ")) };
            let gives = if uniform(args) && result == args[0] { String::new() } else { format!(" → {result}") };
            match groups.iter_mut().find(|(g, _)| *g == gives) {
                Some((_, list)) => list.push(shown),
                None => groups.push((gives, vec![shown])),
            }
        }
        let parts: Vec<String> = groups.iter().map(|(gives, list)| format!("{}{gives}", list.join(", "))).collect();
        parts.join("; ")
    }
}
