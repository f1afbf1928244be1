//! A [`Module`] as PTX text: `parse(print(m)) == m`.

use std::fmt::{self, Display, Formatter};

use crate::module::*;

/// The PTX text of a module.
pub fn print(module: &Module) -> String {
    module.to_string()
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}.{}", self.version.0, self.version.1)?;
        if !self.target.is_empty() {
            writeln!(f, ".target {}", self.target.join(", "))?;
        }
        if self.address_size != 0 {
            writeln!(f, ".address_size {}", self.address_size)?;
        }
        for file in &self.files {
            writeln!(f, ".file {} \"{}\"", file.index, file.name)?;
        }
        for variable in &self.globals {
            writeln!(f, "{variable};")?;
        }
        for function in &self.functions {
            writeln!(f, "{function}")?;
        }
        for section in &self.sections {
            writeln!(f, ".section {} {{\n{}\n}}", section.name, section.text)?;
        }
        Ok(())
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.linkage, if self.entry { ".entry" } else { ".func" })?;
        if !self.returns.is_empty() {
            write!(f, "({}) ", Joined(&self.returns, ", "))?;
        }
        write!(f, "{}(", self.name)?;
        for (i, param) in self.params.iter().enumerate() {
            write!(f, "{}\n\t{param}", if i == 0 { "" } else { "," })?;
        }
        write!(f, "\n)")?;
        for directive in &self.directives {
            write!(f, "\n.{} {}", directive.name, Joined(&directive.values, ", "))?;
        }
        let Some(body) = &self.body else { return write!(f, ";") };
        writeln!(f, "\n{{")?;
        for statement in body {
            writeln!(f, "{statement}")?;
        }
        write!(f, "}}")
    }
}

impl Display for Linkage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Linkage::Internal => "",
            Linkage::Visible => ".visible ",
            Linkage::Extern => ".extern ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        })
    }
}

impl Display for StateSpace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StateSpace::Global => ".global",
            StateSpace::Shared => ".shared",
            StateSpace::Local => ".local",
            StateSpace::Const => ".const",
            StateSpace::Param => ".param",
            StateSpace::Reg => ".reg",
        })
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.linkage, self.space)?;
        // After `.ptr`, an alignment of the variable itself cannot come before it.
        if let Some(align) = self.align {
            write!(f, ".align {align} ")?;
        }
        write!(f, ".{} ", self.ty.text())?;
        if let Some(pointer) = self.pointer {
            write!(f, ".ptr ")?;
            if let Some(space) = pointer.space {
                write!(f, "{space} ")?;
            }
            if let Some(align) = pointer.align {
                write!(f, ".align {align} ")?;
            }
        }
        write!(f, "{}", self.name)?;
        for dimension in &self.dimensions {
            match dimension {
                Some(n) => write!(f, "[{n}]")?,
                None => write!(f, "[]")?,
            }
        }
        match self.initial.as_slice() {
            [] => Ok(()),
            [one] if self.dimensions.is_empty() => write!(f, " = {one}"),
            list => write!(f, " = {{{}}}", Joined(list, ", ")),
        }
    }
}

impl Display for Initial {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Initial::Immediate(immediate) => immediate.fmt(f),
            Initial::Symbol { name, offset, generic } => {
                if *generic {
                    write!(f, "generic({name})")?
                } else {
                    write!(f, "{name}")?
                }
                write_offset(f, *offset)
            }
        }
    }
}

impl Display for Immediate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Immediate::Integer { bits, negative: false } => write!(f, "{bits}"),
            Immediate::Integer { bits, negative: true } => write!(f, "-{}", bits.wrapping_neg()),
            Immediate::Single(bits) => write!(f, "0f{bits:08X}"),
            Immediate::Double(bits) => write!(f, "0d{bits:016X}"),
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Instruction(instruction) => write!(f, "\t{instruction}"),
            Statement::Label(name) => write!(f, "{name}:"),
            Statement::Loc(loc) => {
                write!(f, "\t.loc\t{} {} {}", loc.file, loc.line, loc.column)?;
                if let Some(Inlined { function: (name, offset), at: (file, line, column) }) = &loc.inlined {
                    write!(f, ", function_name {name}")?;
                    if *offset != 0 {
                        write!(f, "+{offset}")?;
                    }
                    write!(f, ", inlined_at {file} {line} {column}")?;
                }
                Ok(())
            }
            Statement::Registers { ty, names } => {
                write!(f, "\t.reg .{} ", ty.text())?;
                for (i, (name, count)) in names.iter().enumerate() {
                    write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
                    if let Some(n) = count {
                        write!(f, "<{n}>")?;
                    }
                }
                f.write_str(";")
            }
            Statement::Variable(variable) => write!(f, "\t{variable};"),
            Statement::Open => f.write_str("\t{"),
            Statement::Close => f.write_str("\t}"),
            Statement::Pragma(text) => write!(f, "\t.pragma \"{text}\";"),
            Statement::BranchTargets { name, targets } => write!(f, "{name}: .branchtargets {};", targets.join(", ")),
        }
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "@{}{} ", if guard.negated { "!" } else { "" }, guard.register)?;
        }
        f.write_str(self.opcode.text())?;
        for modifier in &self.modifiers {
            write!(f, ".{}", modifier.text())?;
        }
        if !self.operands.is_empty() {
            write!(f, " {}", Joined(&self.operands, ", "))?;
        }
        f.write_str(";")
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Name(name) => f.write_str(name),
            Operand::Not(name) => write!(f, "!{name}"),
            Operand::Offset(name, offset) => {
                f.write_str(name)?;
                if *offset == 0 { f.write_str("+0") } else { write_offset(f, *offset) }
            }
            Operand::Immediate(immediate) => immediate.fmt(f),
            Operand::Sink => f.write_str("_"),
            Operand::Vector(list) => write!(f, "{{{}}}", Joined(list, ", ")),
            Operand::List(list) => write!(f, "({})", Joined(list, ", ")),
            Operand::Pair(a, b) => write!(f, "{a}|{b}"),
            Operand::Address(address) => write!(f, "[{address}]"),
            Operand::TensorAddress(address, coordinates) => {
                write!(f, "[{address}, {{{}}}]", Joined(coordinates, ", "))
            }
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.base {
            Some(base) => {
                f.write_str(base)?;
                write_offset(f, self.offset)
            }
            None => write!(f, "{}", self.offset as u64),
        }
    }
}

fn write_offset(f: &mut Formatter<'_>, offset: i64) -> fmt::Result {
    match offset {
        0 => Ok(()),
        1.. => write!(f, "+{offset}"),
        _ => write!(f, "+-{}", offset.unsigned_abs()),
    }
}

/// Items with a separator between them.
struct Joined<'a, T>(&'a [T], &'a str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(self.1)?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}
