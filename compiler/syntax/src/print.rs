//! Trees as text: one line per statement, indented as in the source, expressions in prefix form.
//!
//! Everything that the parser decides is visible (grouping, kinds of parameters, decoded strings), spans are not. The
//! form is stable, for snapshots and for `rtc emit --stage ast`; nothing reads it back.
//!
//! ```
//! let (module, _) = rtc_syntax::parse(rtc_source::FileId(0), "y = tl.load(p + i, mask=i < n)\n");
//! assert_eq!(rtc_syntax::print(&module), "assign y = (call tl.load (+ p i) mask=(compare i < n))\n");
//! ```

use crate::ast::{
    Alias, Arg, Comprehension, Expr, ExprKind, FStringPart, FunctionDef, Module, Param, ParamKind, Star, Stmt, StmtKind,
};

/// The tree of a file as text.
pub fn print(module: &Module) -> String {
    let mut printer = Printer { out: String::new(), depth: 0 };
    module.body.iter().for_each(|stmt| printer.stmt(stmt));
    printer.out
}

struct Printer {
    out: String,
    depth: usize,
}

impl Printer {
    fn line(&mut self, text: &str) {
        (0..self.depth).for_each(|_| self.out.push_str("  "));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn body(&mut self, body: &[Stmt]) {
        self.depth += 1;
        body.iter().for_each(|stmt| self.stmt(stmt));
        self.depth -= 1;
    }

    /// `head` with its statements below it; nothing if there are none.
    fn part(&mut self, head: &str, body: &[Stmt]) {
        if !body.is_empty() {
            self.line(head);
            self.body(body);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::FunctionDef(function) => self.function(function),
            StmtKind::ClassDef(class) => {
                self.decorators(&class.decorators);
                self.line(&format!("class {}{}", class.name.text, args(&class.args)));
                self.body(&class.body);
            }
            StmtKind::Assign { targets, value } => {
                let targets: String = targets.iter().map(|target| expr(target) + " = ").collect();
                self.line(&format!("assign {targets}{}", expr(value)));
            }
            StmtKind::AugAssign { target, op, value } => {
                self.line(&format!("assign {} {}= {}", expr(target), op.symbol(), expr(value)));
            }
            StmtKind::AnnAssign { target, annotation, value } => {
                self.line(&format!("assign {}: {}{}", expr(target), expr(annotation), optional(" = ", value.as_ref())));
            }
            StmtKind::Expr(value) => self.line(&format!("expr {}", expr(value))),
            StmtKind::Return(value) => self.line(&format!("return{}", optional(" ", value.as_ref()))),
            StmtKind::If { test, body, orelse } => {
                self.line(&format!("if {}", expr(test)));
                self.body(body);
                self.part("else", orelse);
            }
            StmtKind::For { target, iter, body, orelse } => {
                self.line(&format!("for {} in {}", expr(target), expr(iter)));
                self.body(body);
                self.part("else", orelse);
            }
            StmtKind::While { test, body, orelse } => {
                self.line(&format!("while {}", expr(test)));
                self.body(body);
                self.part("else", orelse);
            }
            StmtKind::With { items, body } => {
                let items: Vec<String> =
                    items.iter().map(|item| expr(&item.context) + &optional(" as ", item.target.as_ref())).collect();
                self.line(&format!("with {}", items.join(", ")));
                self.body(body);
            }
            StmtKind::Assert { test, msg } => {
                self.line(&format!("assert {}{}", expr(test), optional(", ", msg.as_ref())));
            }
            StmtKind::Raise { exc, cause } => {
                self.line(&format!("raise{}{}", optional(" ", exc.as_ref()), optional(" from ", cause.as_ref())));
            }
            StmtKind::Try { body, handlers, orelse, finalbody } => {
                self.line("try");
                self.body(body);
                for handler in handlers {
                    let name = handler.name.as_ref().map_or(String::new(), |name| format!(" as {}", name.text));
                    self.line(&format!("except{}{name}", optional(" ", handler.ty.as_ref())));
                    self.body(&handler.body);
                }
                self.part("else", orelse);
                self.part("finally", finalbody);
            }
            StmtKind::Import { names } => self.line(&format!("import {}", aliases(names))),
            StmtKind::ImportFrom { module, level, names } => {
                let dots = ".".repeat(*level as usize);
                let module = module.as_ref().map_or("", |module| &module.text);
                self.line(&format!("from {dots}{module} import {}", aliases(names)));
            }
            StmtKind::Global(names) | StmtKind::Nonlocal(names) => {
                let word = if matches!(stmt.kind, StmtKind::Global(_)) { "global" } else { "nonlocal" };
                let names: Vec<&str> = names.iter().map(|name| &*name.text).collect();
                self.line(&format!("{word} {}", names.join(", ")));
            }
            StmtKind::Delete(targets) => self.line(&format!("del{}", exprs(targets))),
            StmtKind::Pass => self.line("pass"),
            StmtKind::Break => self.line("break"),
            StmtKind::Continue => self.line("continue"),
            StmtKind::Unreadable { why, .. } => self.line(&format!("unreadable: {}", why.message)),
        }
    }

    fn decorators(&mut self, decorators: &[Expr]) {
        decorators.iter().for_each(|decorator| self.line(&format!("@ {}", expr(decorator))));
    }

    fn function(&mut self, function: &FunctionDef) {
        self.decorators(&function.decorators);
        self.line(&format!("def {}{}", function.name.text, optional(" -> ", function.returns.as_ref())));
        self.depth += 1;
        function.params.iter().for_each(|param| self.line(&format!("param {}", parameter(param))));
        self.depth -= 1;
        self.body(&function.body);
    }
}

fn optional(before: &str, value: Option<&Expr>) -> String {
    value.map_or(String::new(), |value| format!("{before}{}", expr(value)))
}

fn aliases(names: &[Alias]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|alias| match &alias.asname {
            Some(asname) => format!("{} as {}", alias.name.text, asname.text),
            None => alias.name.text.to_string(),
        })
        .collect();
    names.join(", ")
}

fn parameter(param: &Param) -> String {
    let (stars, mark) = match param.kind {
        ParamKind::PositionalOnly => ("", " (positional only)"),
        ParamKind::Positional => ("", ""),
        ParamKind::VarArgs => ("*", ""),
        ParamKind::KeywordOnly => ("", " (keyword only)"),
        ParamKind::KwArgs => ("**", ""),
    };
    let annotation = optional(": ", param.annotation.as_ref());
    let default = optional(" = ", param.default.as_ref());
    format!("{stars}{}{annotation}{default}{mark}", param.name.text)
}

/// Each expression with a space before it.
fn exprs(values: &[Expr]) -> String {
    values.iter().map(|value| format!(" {}", expr(value))).collect()
}

fn args(args: &[Arg]) -> String {
    let each = |arg: &Arg| {
        let star = match arg.star {
            Star::None => "",
            Star::Star => "*",
            Star::DoubleStar => "**",
        };
        let name = arg.name.as_ref().map_or(String::new(), |name| format!("{}=", name.text));
        format!(" {star}{name}{}", expr(&arg.value))
    };
    args.iter().map(each).collect()
}

fn comprehension(head: &str, elements: &[&Expr], generators: &[Comprehension]) -> String {
    let elements: String = elements.iter().map(|element| format!(" {}", expr(element))).collect();
    let generators: String = generators
        .iter()
        .map(|generator| {
            let ifs: String = generator.ifs.iter().map(|test| format!(" if {}", expr(test))).collect();
            format!(" (for {} in {}{ifs})", expr(&generator.target), expr(&generator.iter))
        })
        .collect();
    format!("({head}{elements}{generators})")
}

fn pieces(parts: &[FStringPart]) -> String {
    let each = |part: &FStringPart| match part {
        FStringPart::Text(text) => format!(" {text:?}"),
        FStringPart::Hole { value, conversion, format } => {
            let conversion = conversion.map_or(String::new(), |letter| format!(" !{letter}"));
            let format = if format.is_empty() { String::new() } else { format!(" :{}", pieces(format)) };
            format!(" {{{}{conversion}{format}}}", expr(value))
        }
    };
    parts.iter().map(each).collect()
}

/// One expression on one line.
fn expr(value: &Expr) -> String {
    if let Some(name) = value.dotted_name() {
        return name;
    }
    match &value.kind {
        ExprKind::Name(name) | ExprKind::BigInt(name) => name.to_string(),
        ExprKind::Int(number) => number.to_string(),
        ExprKind::Float(number) => format!("{number:?}"),
        ExprKind::Str(text) => format!("{text:?}"),
        ExprKind::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        ExprKind::FString(parts) => format!("(f-string{})", pieces(parts)),
        ExprKind::Bool(true) => "True".to_owned(),
        ExprKind::Bool(false) => "False".to_owned(),
        ExprKind::None => "None".to_owned(),
        ExprKind::Ellipsis => "...".to_owned(),
        ExprKind::Tuple(items) => format!("(tuple{})", exprs(items)),
        ExprKind::List(items) => format!("(list{})", exprs(items)),
        ExprKind::Set(items) => format!("(set{})", exprs(items)),
        ExprKind::Dict(entries) => {
            let each = |(key, value): &(Option<Expr>, Expr)| match key {
                Some(key) => format!(" ({} {})", expr(key), expr(value)),
                None => format!(" **{}", expr(value)),
            };
            format!("(dict{})", entries.iter().map(each).collect::<String>())
        }
        ExprKind::BinOp { left, op, right } => format!("({} {} {})", op.symbol(), expr(left), expr(right)),
        ExprKind::UnaryOp { op, operand } => format!("({} {})", op.symbol(), expr(operand)),
        ExprKind::BoolOp { op, values } => format!("({}{})", op.symbol(), exprs(values)),
        ExprKind::Compare { left, ops } => {
            let ops: String = ops.iter().map(|(op, right)| format!(" {} {}", op.symbol(), expr(right))).collect();
            format!("(compare {}{ops})", expr(left))
        }
        ExprKind::Call { func, args: arguments } => format!("(call {}{})", expr(func), args(arguments)),
        ExprKind::Attribute { value, attr } => format!("(. {} {})", expr(value), attr.text),
        ExprKind::Subscript { value, index } => format!("(index {} {})", expr(value), expr(index)),
        ExprKind::Slice { lower, upper, step } => {
            let bound = |bound: &Option<Box<Expr>>| bound.as_ref().map_or("_".to_owned(), |bound| expr(bound));
            format!("(slice {} {} {})", bound(lower), bound(upper), bound(step))
        }
        ExprKind::IfExp { test, body, orelse } => format!("(if {} {} {})", expr(test), expr(body), expr(orelse)),
        ExprKind::Lambda { params, body } => {
            let params: Vec<String> = params.iter().map(parameter).collect();
            format!("(lambda ({}) {})", params.join(", "), expr(body))
        }
        ExprKind::ListComp { element, generators } => comprehension("list", &[element], generators),
        ExprKind::SetComp { element, generators } => comprehension("set", &[element], generators),
        ExprKind::GeneratorExp { element, generators } => comprehension("generator", &[element], generators),
        ExprKind::DictComp { key, value, generators } => comprehension("dict", &[key, value], generators),
        ExprKind::Starred(value) => format!("*{}", expr(value)),
        ExprKind::NamedExpr { target, value } => format!("(:= {} {})", target.text, expr(value)),
        ExprKind::Await(value) => format!("(await {})", expr(value)),
        ExprKind::Yield(value) => format!("(yield{})", optional(" ", value.as_deref())),
        ExprKind::YieldFrom(value) => format!("(yield-from {})", expr(value)),
    }
}
