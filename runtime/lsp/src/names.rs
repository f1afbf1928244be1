//! The names of a file, each with the binding that it refers to by Python's rules for scopes. It needs no types, so that it works in host
//! code and in kernels with errors.

mod declare;
mod visit;

use std::collections::HashMap;

use rtc_source::Span;
use rtc_syntax::ast::{Ident, Module, Symbol};

/// The kinds of things that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A parameter; whether it is a constexpr.
    Parameter { constexpr: bool },
    /// A variable of a function.
    Local,
    /// A variable of the file, or of a class.
    Global,
    /// A function; whether it is kernel code.
    Function { jit: bool },
    /// A class.
    Class,
    /// `import module`, or `from module import item`; leading dots count as `level`.
    Import { module: String, level: u32, item: Option<String> },
}

/// Something with a name.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(crate) name: Symbol,
    pub(crate) kind: Kind,
    /// The index of its scope.
    pub(crate) scope: usize,
}

/// A name in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occurrence {
    pub(crate) span: Span,
    /// The index of its binding.
    pub(crate) binding: usize,
    /// Whether it gets a value here.
    pub(crate) is_definition: bool,
}

/// `value.attr`, where `value` is a name.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) binding: usize,
    pub(crate) attr: Ident,
}

/// The name of an argument of a call.
#[derive(Clone, Debug)]
pub(crate) struct Keyword {
    /// The function: a binding, or an attribute of one.
    pub(crate) callee: (usize, Option<Ident>),
    pub(crate) name: Ident,
}

/// A part of the text in which names have their own meaning.
#[derive(Debug)]
pub(crate) struct Scope {
    parent: Option<usize>,
    is_class: bool,
    names: HashMap<Symbol, usize>,
    /// The function, comprehension or class.
    pub(crate) span: Span,
}

/// The names of a file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) scopes: Vec<Scope>,
    pub(crate) bindings: Vec<Binding>,
    /// In the order of the text.
    pub(crate) occurrences: Vec<Occurrence>,
    pub(crate) members: Vec<Member>,
    /// Names of arguments of functions that other files define.
    pub(crate) keywords: Vec<Keyword>,
    /// `item` in `from module import item as name`, with the binding of `name`.
    pub(crate) renamed: Vec<(usize, Ident)>,
    /// `from module import *`: the module, and the leading dots.
    pub(crate) stars: Vec<(String, u32)>,
    /// The scopes of functions, by the bindings of their names.
    bodies: HashMap<usize, usize>,
    /// The first definitions of bindings.
    first: HashMap<usize, Span>,
}

impl Names {
    pub(crate) fn new(tree: &Module) -> Names {
        let mut names = Names::default();
        let whole = Span::new(tree.file, 0, u32::MAX as usize);
        let module = names.scope(None, false, whole);
        visit::visit(&mut names, module, &tree.body);
        names.occurrences.sort_by_key(|o| (o.span.start, o.span.end));
        names.occurrences.dedup_by_key(|o| o.span);
        for place in names.occurrences.iter().filter(|o| o.is_definition) {
            names.first.entry(place.binding).or_insert(place.span);
        }
        names
    }

    fn scope(&mut self, parent: Option<usize>, is_class: bool, span: Span) -> usize {
        self.scopes.push(Scope { parent, is_class, names: HashMap::new(), span });
        self.scopes.len() - 1
    }

    /// The binding of a name in a scope, made if there is none.
    fn bind(&mut self, scope: usize, name: &Symbol, kind: Kind) -> usize {
        if let Some(known) = self.scopes[scope].names.get(name) {
            return *known;
        }
        self.bindings.push(Binding { name: name.clone(), kind, scope });
        let index = self.bindings.len() - 1;
        self.scopes[scope].names.insert(name.clone(), index);
        index
    }

    /// The binding that a name refers to in a scope.
    pub(crate) fn lookup(&self, scope: usize, name: &str) -> Option<usize> {
        let mut at = Some(scope);
        while let Some(index) = at {
            let here = &self.scopes[index];
            // Names of a class are not visible in its methods.
            if (index == scope || !here.is_class)
                && let Some(found) = here.names.get(name)
            {
                return Some(*found);
            }
            at = here.parent;
        }
        None
    }

    /// The name at a byte, also right behind its last character.
    pub(crate) fn at(&self, offset: usize) -> Option<&Occurrence> {
        let offset = offset as u32;
        let end = self.occurrences.partition_point(|o| o.span.start <= offset);
        self.occurrences[..end].iter().rev().take(4).find(|o| o.span.start <= offset && offset <= o.span.end)
    }

    /// The attribute at a byte.
    pub(crate) fn member_at(&self, offset: usize) -> Option<&Member> {
        let offset = offset as u32;
        self.members.iter().find(|m| m.attr.span.start <= offset && offset <= m.attr.span.end)
    }

    /// All places of a binding.
    pub(crate) fn places(&self, binding: usize) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().filter(move |o| o.binding == binding)
    }

    /// The binding of a name at the level of the module.
    pub(crate) fn global(&self, name: &str) -> Option<usize> {
        self.scopes.first()?.names.get(name).copied()
    }

    /// The first place at which a binding gets a value.
    pub(crate) fn defined_at(&self, binding: usize) -> Option<Span> {
        self.first.get(&binding).copied()
    }

    /// The function of the file, by its name, whose parameter a binding is.
    pub(crate) fn function_of(&self, parameter: usize) -> Option<usize> {
        let scope = self.bindings[parameter].scope;
        let (function, _) = self.bodies.iter().find(|(_, body)| **body == scope)?;
        (self.bindings[*function].scope == 0).then_some(*function)
    }

    /// A parameter of a function, by name.
    pub(crate) fn parameter(&self, function: usize, name: &str) -> Option<usize> {
        let found = *self.scopes[*self.bodies.get(&function)?].names.get(name)?;
        matches!(self.bindings[found].kind, Kind::Parameter { .. }).then_some(found)
    }

    /// The bindings that are visible at a byte, the innermost first.
    pub(crate) fn visible(&self, offset: usize) -> Vec<usize> {
        let offset = offset as u32;
        let holds = |scope: &Scope| scope.span.start <= offset && offset <= scope.span.end;
        let innermost = self.scopes.iter().enumerate().filter(|(_, s)| holds(s)).map(|(index, _)| index).next_back();
        let mut found = Vec::new();
        let mut at = innermost;
        while let Some(index) = at {
            found.extend(self.scopes[index].names.values().copied());
            at = self.scopes[index].parent;
        }
        found.sort_by(|a, b| {
            let (a, b) = (&self.bindings[*a], &self.bindings[*b]);
            (b.scope, &a.name).cmp(&(a.scope, &b.name))
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_source::FileId;

    /// Each name of the text with the lines of all places of its binding.
    fn lines(text: &str, name: &str, line: usize) -> Vec<usize> {
        let (tree, _) = rtc_syntax::parse(FileId(0), text);
        let names = Names::new(&tree);
        let line_of = |o: &Occurrence| {
            text[..o.span.start as usize].lines().count().max(1)
                + usize::from(text[..o.span.start as usize].ends_with('\n'))
        };
        let here = names
            .occurrences
            .iter()
            .find(|o| &text[o.span.start as usize..o.span.end as usize] == name && line_of(o) == line);
        let binding = here.unwrap_or_else(|| panic!("no {name} in line {line}")).binding;
        names.places(binding).map(line_of).collect()
    }

    const TEXT: &str = "n = 1\n@triton.jit\ndef f(n, BLOCK: tl.constexpr = n):\n    x = n + BLOCK\n    return [x for x in x]\n\
                        def g():\n    return f(n=n, BLOCK=2)\n";

    #[test]
    fn names_are_resolved_as_in_python() {
        assert_eq!(lines(TEXT, "BLOCK", 4), [3, 4, 7], "parameter, use, keyword of a call");
        assert_eq!(lines(TEXT, "x", 4), [4, 5], "the target of a comprehension is another one");
        assert_eq!(lines(TEXT, "f", 3), [3, 7]);
        assert_eq!(lines(TEXT, "n", 1), [1, 3, 7], "the default and the argument are the global");
        assert_eq!(lines(TEXT, "n", 4), [3, 4, 7], "the keyword is the parameter");
    }
}
