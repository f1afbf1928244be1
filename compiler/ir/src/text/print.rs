//! The printer.

use std::fmt::{self, Write};

use indexmap::IndexMap;

use super::names::{Names, is_name_char};
use crate::{AttrValue, Block, Hidden, Kernel, KernelOptions, LayoutId, Loc, Op, Phase, SharedLayoutId, Type, Value};

/// Additions to the printed kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    /// Print the source location of each operation.
    pub locs: bool,
}

/// The text form of a kernel, without source locations.
pub fn print(kernel: &Kernel) -> String {
    print_with(kernel, PrintOptions::default())
}

/// The text form of a kernel.
pub fn print_with(kernel: &Kernel, options: PrintOptions) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = Printer::new(kernel, options).kernel(&mut out, &mut |_, _, _| Ok(()));
    out
}

/// Called after each printed operation line with the operation and its indentation.
pub(crate) type AfterOp<'a> = dyn FnMut(&mut String, Op, usize) -> fmt::Result + 'a;

/// Prints one kernel.
pub(crate) struct Printer<'k> {
    kernel: &'k Kernel,
    options: PrintOptions,
    names: Names,
    layouts: IndexMap<LayoutId, ()>,
    shared_layouts: IndexMap<SharedLayoutId, ()>,
}

impl<'k> Printer<'k> {
    pub(crate) fn new(kernel: &'k Kernel, options: PrintOptions) -> Printer<'k> {
        let mut printer = Printer {
            kernel,
            options,
            names: Names::of(kernel),
            layouts: IndexMap::new(),
            shared_layouts: IndexMap::new(),
        };
        printer.collect_layouts(kernel.body());
        printer
    }

    /// The printed name of a value, without `%`.
    pub(crate) fn name(&self, value: Value) -> String {
        self.names.get(value)
    }

    /// Prints the kernel; `after` may add lines under an operation.
    pub(crate) fn kernel(&self, out: &mut String, after: &mut AfterOp<'_>) -> fmt::Result {
        let kernel = self.kernel;
        for (i, id) in self.layouts.keys().enumerate() {
            writeln!(out, "#l{i} = {}", kernel.layout(*id))?;
        }
        for (i, id) in self.shared_layouts.keys().enumerate() {
            writeln!(out, "#s{i} = {}", kernel.shared_layout(*id))?;
        }
        write!(out, "kernel {}(", symbol(&kernel.name))?;
        for (i, param) in kernel.params.iter().enumerate() {
            let name = self.names.get(param.value);
            let comma = if i > 0 { ", " } else { "" };
            let ty = self.ty(kernel.value_type(param.value));
            write!(out, "{comma}%{name}: {ty} {{sig = \"{}\"", param.ty)?;
            if param.divisible_by != 1 {
                write!(out, ", align = {}", param.divisible_by)?;
            }
            if param.name != name {
                write!(out, ", name = \"{}\"", escape(&param.name))?;
            }
            for (name, value) in param.hidden.iter().flat_map(Hidden::attrs) {
                write!(out, ", {name} = {value}")?;
            }
            out.push('}');
        }
        write!(out, ") {}", options_text(&kernel.options))?;
        if let Some(persistent) = kernel.persistent {
            let uneven = if persistent.uneven { "uneven " } else { "" };
            write!(out, "persistent {} {uneven}", persistent.blocks_per_multiprocessor)?;
        }
        if kernel.shared_bytes != 0 {
            write!(out, "shared {} ", kernel.shared_bytes)?;
        }
        writeln!(out, "phase {} {{", phase_word(kernel.phase))?;
        self.block(out, kernel.body(), 1, after)?;
        out.push_str("}\n");
        Ok(())
    }

    fn collect_layouts(&mut self, block: Block) {
        let kernel = self.kernel;
        let data = kernel.block(block);
        let args = data.args.iter();
        for value in args {
            self.collect_layout(*value);
        }
        for op in kernel.ops(block) {
            let data = kernel.op(op);
            for value in &data.results {
                self.collect_layout(*value);
            }
            for nested in &data.blocks {
                self.collect_layouts(*nested);
            }
        }
    }

    fn collect_layout(&mut self, value: Value) {
        let ty = self.kernel.value_type(value);
        if let Some(layout) = ty.layout() {
            self.layouts.entry(layout).or_default();
        }
        if let Some(layout) = ty.as_shared().and_then(|s| s.layout) {
            self.shared_layouts.entry(layout).or_default();
        }
    }

    fn block(&self, out: &mut String, block: Block, depth: usize, after: &mut AfterOp<'_>) -> fmt::Result {
        for op in self.kernel.ops(block) {
            self.op(out, op, depth, after)?;
        }
        Ok(())
    }

    fn op(&self, out: &mut String, op: Op, depth: usize, after: &mut AfterOp<'_>) -> fmt::Result {
        let data = self.kernel.op(op);
        let spec = data.kind.spec();
        indent(out, depth);
        if !data.results.is_empty() {
            write!(out, "{} = ", self.values(&data.results))?;
        }
        out.push_str(spec.mnemonic);
        self.operands(out, op)?;
        let attrs = data.kind.attrs();
        if !attrs.is_empty() {
            let list: Vec<String> = attrs.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            write!(out, " {{{}}}", list.join(", "))?;
        }
        if !data.results.is_empty() {
            let types: Vec<String> = data.results.iter().map(|v| self.ty(self.kernel.value_type(*v))).collect();
            write!(out, " : {}", types.join(", "))?;
        }
        if self.options.locs {
            self.loc(out, data.loc)?;
        }
        // The text of `after` comes below the operation's first line, above its blocks.
        let mut extra = String::new();
        after(&mut extra, op, depth)?;
        for (i, nested) in data.blocks.iter().enumerate() {
            let args: Vec<String> = self
                .kernel
                .block(*nested)
                .args
                .iter()
                .map(|v| format!("%{}: {}", self.names.get(*v), self.ty(self.kernel.value_type(*v))))
                .collect();
            writeln!(out, " ^({}) {{", args.join(", "))?;
            if i == 0 {
                out.push_str(&extra);
            }
            self.block(out, *nested, depth + 1, after)?;
            indent(out, depth);
            out.push('}');
        }
        out.push('\n');
        if data.blocks.is_empty() {
            out.push_str(&extra);
        }
        Ok(())
    }

    fn operands(&self, out: &mut String, op: Op) -> fmt::Result {
        let data = self.kernel.op(op);
        let spec = data.kind.spec();
        let mut rest = data.operands.iter();
        let mut items: Vec<String> =
            rest.by_ref().take(spec.operands.len()).map(|v| format!("%{}", self.names.get(*v))).collect();
        for (i, name) in spec.optional.iter().enumerate() {
            if data.optional & (1 << i) != 0
                && let Some(value) = rest.next()
            {
                items.push(format!("{name} = %{}", self.names.get(*value)));
            }
        }
        let variadic: Vec<Value> = rest.copied().collect();
        if !variadic.is_empty() {
            items.push(format!("({})", self.values(&variadic)));
        }
        if !items.is_empty() {
            write!(out, " {}", items.join(", "))?;
        }
        Ok(())
    }

    fn values(&self, values: &[Value]) -> String {
        let names: Vec<String> = values.iter().map(|v| format!("%{}", self.names.get(*v))).collect();
        names.join(", ")
    }

    fn ty(&self, ty: Type) -> String {
        match ty {
            Type::Tile(tile) => match tile.layout.and_then(|l| self.layouts.get_index_of(&l)) {
                Some(layout) => format!("tile<{}x{}, #l{layout}>", tile.shape, tile.elem),
                None => ty.without_layout().to_string(),
            },
            Type::Shared(mut shared) => {
                let printed = shared.layout.and_then(|l| self.shared_layouts.get_index_of(&l));
                shared.layout = printed.map(|i| SharedLayoutId::from_u32(i as u32));
                Type::Shared(shared).to_string()
            }
            Type::Scalar(_) | Type::Barrier { .. } | Type::Desc(_) | Type::BlockPtr(_) | Type::Token => ty.to_string(),
        }
    }

    fn loc(&self, out: &mut String, loc: Loc) -> fmt::Result {
        let mut next = (loc != self.kernel.no_loc()).then_some(loc);
        let mut open = false;
        while let Some(loc) = next {
            let data = self.kernel.loc(loc);
            out.push_str(if open { " from " } else { " loc(" });
            match data.span {
                Some(span) => write!(out, "{}:{}..{}", span.file.0, span.start, span.end)?,
                None => out.push_str("none"),
            }
            open = true;
            next = data.caller;
        }
        if open {
            out.push(')');
        }
        Ok(())
    }
}

/// Two spaces for each level.
pub(crate) fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// The inside of a quoted string.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// The word of a phase in the text form.
pub(crate) fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Tile => "tile",
        Phase::Laid => "laid",
        Phase::Scheduled => "scheduled",
    }
}

fn symbol(name: &str) -> String {
    if !name.is_empty() && name.chars().all(is_name_char) {
        format!("@{name}")
    } else {
        format!("@\"{}\"", escape(name))
    }
}

fn options_text(options: &KernelOptions) -> String {
    let default = KernelOptions::default();
    let mut out = format!("warps {} ", options.num_warps);
    if let Some(given) = options.given_warps {
        let _ = write!(out, "given {given} ");
    }
    for (word, value, default) in
        [("stages", options.num_stages, default.num_stages), ("ctas", options.num_ctas, default.num_ctas)]
    {
        if value != default {
            let _ = write!(out, "{word} {value} ");
        }
    }
    if let Some(n) = options.maxnreg {
        let _ = write!(out, "maxnreg {n} ");
    }
    if options.fp_fusion != default.fp_fusion {
        out.push_str("no_fp_fusion ");
    }
    out
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Int(i) => write!(f, "{i}"),
            AttrValue::Float(bits) => {
                let x = f64::from_bits(*bits);
                if x.is_nan() {
                    write!(f, "nan(0x{bits:016x})")
                } else if x.is_infinite() {
                    f.write_str(if x > 0.0 { "inf" } else { "-inf" })
                } else {
                    // The shortest digits that read back to the same bits, always with a point or an exponent.
                    write!(f, "{x:?}")
                }
            }
            AttrValue::Word(word) => f.write_str(word),
            AttrValue::Str(text) => write!(f, "\"{}\"", escape(text)),
            AttrValue::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}
