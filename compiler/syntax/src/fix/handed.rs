//! Block pointers that functions of a file hand to each other, as arguments and as results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rtc_source::Span;

use super::calls::{Result, refuse};
use super::scan::{Call, Scan, What, edges};
use crate::ast::{Arg, Expr, ExprKind, FunctionDef, Module, ParamKind, Star, walk_expressions};

/// The functions that return block pointers: at which places of their results, or as the only one.
pub(super) type Results<'a> = HashMap<&'a str, BTreeSet<Option<usize>>>;

/// More iterations than functions that call each other.
const ROUNDS: usize = 64;

/// The functions of a file.
pub(super) struct File<'a> {
    pub scans: Vec<Scan<'a>>,
    /// Functions that calls can name: those that are no part of another or of a class.
    by_name: HashMap<&'a str, usize>,
    /// Where such a function is used in another way than by a call.
    otherwise: HashMap<&'a str, Span>,
}

/// An argument that is a block pointer.
pub(super) struct PassedPointer<'a> {
    pub variable: &'a str,
    pub arg: &'a Arg,
    pub to: usize,
    pub param: &'a str,
}

/// The origin of a returned block pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin<'a> {
    /// Another place of what the caller hands to this parameter.
    Param(&'a str),
    /// The function makes it.
    MakeBlockPtr,
}

impl<'a> File<'a> {
    pub fn of(module: &'a Module, functions: &[&'a FunctionDef], top: &[&'a FunctionDef]) -> File<'a> {
        let scans: Vec<Scan> = functions.iter().map(|function| Scan::of(function)).collect();
        let mut by_name = HashMap::new();
        for function in top {
            let name: &str = &function.name.text;
            let same = |other: &&&FunctionDef| other.name.text == function.name.text;
            if functions.iter().filter(same).count() == 1
                && let Some(place) = functions.iter().position(|other| std::ptr::eq(*other, *function))
            {
                by_name.insert(name, place);
            }
        }
        let (mut names, mut called) = (Vec::new(), HashSet::new());
        walk_expressions(&module.body, &mut |e| match &e.kind {
            ExprKind::Name(name) if by_name.contains_key(&**name) => names.push((&**name, e.span)),
            ExprKind::Call { func, .. } => drop(called.insert(func.span)),
            _ => {}
        });
        names.retain(|(_, span)| !called.contains(span));
        // A parameter may hide the function from a call.
        let params = functions.iter().flat_map(|function| &function.params);
        names.extend(params.filter(|p| by_name.contains_key(&*p.name.text)).map(|p| (&*p.name.text, p.span)));
        let mut file = File { scans, by_name, otherwise: names.into_iter().collect() };
        file.follow();
        file
    }

    /// Finds block pointers through calls until there are no more.
    fn follow(&mut self) {
        let mut results = Results::new();
        for _ in 0..ROUNDS {
            self.scans.iter_mut().for_each(|scan| scan.bind(&results));
            let handed: Vec<PassedPointer> = (0..self.scans.len()).flat_map(|f| self.handed(f)).collect();
            let mut is_new = false;
            for PassedPointer { to, param, .. } in handed {
                is_new |= self.scans[to].params.insert(param);
            }
            for (name, place) in &self.by_name {
                let scan = &self.scans[*place];
                let pointers = scan.pointers();
                let places: BTreeSet<Option<usize>> = scan
                    .returned
                    .iter()
                    .flat_map(|value| items(value))
                    .filter(|(_, item)| item.as_name().is_some_and(|name| pointers.contains(&**name)))
                    .map(|(place, _)| place)
                    .collect();
                if !places.is_empty() && results.get(name) != Some(&places) {
                    results.insert(name, places);
                    is_new = true;
                }
            }
            if !is_new {
                return;
            }
        }
    }

    /// The number of the function that a call names.
    pub fn called(&self, call: &Call<'_>) -> Option<usize> {
        self.by_name.get(call.name()?).copied()
    }

    /// The block pointers that a function hands to others.
    pub fn handed(&self, f: usize) -> Vec<PassedPointer<'a>> {
        let scan = &self.scans[f];
        let pointers = scan.pointers();
        let mut all = Vec::new();
        for call in &scan.calls {
            let Some(to) = self.called(call) else { continue };
            for (place, arg) in call.args.iter().enumerate() {
                let variable = arg.value.as_name().filter(|name| arg.star == Star::None && pointers.contains(&***name));
                let param = param_of(self.scans[to].function, call.args, place);
                if let (Some(variable), Some(param)) = (variable, param) {
                    all.push(PassedPointer { variable, arg, to, param });
                }
            }
        }
        all
    }

    /// The variable that a call hands to a parameter.
    fn argument(&self, call: &Call<'a>, to: usize, param: &str) -> Option<&'a str> {
        let function = self.scans[to].function;
        let place = (0..call.args.len()).find(|place| param_of(function, call.args, *place) == Some(param))?;
        call.args[place].value.as_name().map(|name| &**name)
    }

    /// The origin of a function's result. A block pointer that comes from an argument on one path and is made on
    /// another is refused.
    pub fn origin(&self, f: usize, place: Option<usize>) -> Result<Origin<'a>> {
        self.origin_within(f, place, 0)
    }

    fn origin_within(&self, f: usize, place: Option<usize>, depth: usize) -> Result<Origin<'a>> {
        let scan = &self.scans[f];
        let mut found: Option<Origin<'a>> = None;
        for value in &scan.returned {
            let item = items(value).into_iter().find(|(own, _)| *own == place);
            let name = item.and_then(|(_, item)| item.as_name()).filter(|name| scan.pointers().contains(&***name));
            let (Some(name), true) = (name, depth < ROUNDS) else {
                return refuse(value.span, "another `return` of this function has a block pointer in this place");
            };
            for origin in self.roots(f, name, depth)? {
                match &found {
                    Some(known) if *known != origin => {
                        return refuse(value.span, "the block pointer that is returned comes from different places");
                    }
                    _ => found = Some(origin),
                }
            }
        }
        found.map_or_else(|| refuse(scan.function.name.span, "what it returns cannot be seen"), Ok)
    }

    /// Where a variable of a function comes from.
    fn roots(&self, f: usize, name: &'a str, depth: usize) -> Result<Vec<Origin<'a>>> {
        let scan = &self.scans[f];
        let (mut work, mut seen, mut found) = (vec![name], HashSet::new(), Vec::new());
        while let Some(name) = work.pop() {
            if !seen.insert(name) {
                continue;
            }
            if scan.params.contains(name) {
                found.push(Origin::Param(name));
            }
            for binding in scan.bindings.iter().filter(|b| b.target == name) {
                match &binding.what {
                    What::MakeBlockPtr(_) => found.push(Origin::MakeBlockPtr),
                    What::From { from, .. } => work.push(from),
                    What::Given { call, place } => {
                        let Some(to) = self.called(call) else { continue };
                        match self.origin_within(to, *place, depth + 1)? {
                            Origin::Param(param) => work.extend(self.argument(call, to, param)),
                            Origin::MakeBlockPtr => found.push(Origin::MakeBlockPtr),
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// The variable whose block pointer a call moves on, where its result is one of an argument.
    pub fn moved(&self, call: &Call<'a>, place: Option<usize>) -> Result<Option<&'a str>> {
        let Some(to) = self.called(call) else { return Ok(None) };
        match self.origin(to, place)? {
            Origin::Param(param) => Ok(self.argument(call, to, param)),
            Origin::MakeBlockPtr => Ok(None),
        }
    }

    /// Refuses a function whose parameters or results cannot be changed, as it has a use that is not supported.
    pub fn check_calls(&self, f: usize, params: &[&str], places: &BTreeSet<Option<usize>>) -> Result<()> {
        let function = self.scans[f].function;
        let name: &str = &function.name.text;
        if let Some(span) = self.otherwise.get(name) {
            return refuse(
                *span,
                format!("`{name}` is used here in another way than by a call, so its parameters stay"),
            );
        }
        for param in function.params.iter().filter(|param| params.contains(&&*param.name.text)) {
            if param.annotation.is_some() || param.default.is_some() {
                return refuse(param.span, "this parameter has an annotation or a default");
            }
        }
        for (caller, scan) in self.scans.iter().enumerate() {
            for call in scan.calls.iter().filter(|call| self.called(call) == Some(f)) {
                if let Some(arg) = call.args.iter().find(|arg| arg.star != Star::None) {
                    return refuse(arg.span, "arguments are unpacked here");
                }
                let handed = self.handed(caller);
                for param in params {
                    let own = |h: &&PassedPointer<'_>| {
                        call.args.iter().any(|arg| arg.span == h.arg.span) && h.param == *param
                    };
                    if !handed.iter().any(|h| own(&h)) {
                        let reason =
                            format!("`{name}` is called here without a block pointer in a variable for `{param}`");
                        return refuse(call.whole.span, reason);
                    }
                }
                let is_bound = |place: &Option<usize>| {
                    scan.bindings.iter().any(|b| match &b.what {
                        What::Given { call: own, place: at } => own.whole.span == call.whole.span && at == place,
                        _ => false,
                    })
                };
                if !places.iter().all(is_bound) {
                    return refuse(
                        call.whole.span,
                        "the block pointer that this call gives is not assigned to a variable",
                    );
                }
            }
        }
        Ok(())
    }

    /// The positions of these variables among a function's results.
    pub fn places(&self, f: usize, variables: &HashSet<&str>) -> BTreeSet<Option<usize>> {
        let returned = self.scans[f].returned.iter().flat_map(|value| items(value));
        let own = returned.filter(|(_, item)| item.as_name().is_some_and(|name| variables.contains(&**name)));
        own.map(|(place, _)| place).collect()
    }

    /// Variables that hold the same block pointers, of one function or of several, in the order of the source.
    pub fn groups(&self) -> Vec<BTreeMap<usize, HashSet<&'a str>>> {
        let mut order: Vec<(usize, &str)> = Vec::new();
        for (f, scan) in self.scans.iter().enumerate() {
            let params = scan.function.params.iter().map(|p| &*p.name.text).filter(|name| scan.params.contains(name));
            for name in params.chain(scan.bindings.iter().map(|b| b.target)) {
                if !order.contains(&(f, name)) {
                    order.push((f, name));
                }
            }
        }
        let mut number: Vec<usize> = (0..order.len()).collect();
        let mut join = |a: (usize, &str), b: (usize, &str)| {
            let place = |node| order.iter().position(|known| *known == node);
            if let (Some(a), Some(b)) = (place(a), place(b)) {
                let (a, b) = (number[a], number[b]);
                number.iter_mut().filter(|n| **n == a.max(b)).for_each(|n| *n = a.min(b));
            }
        };
        for (f, scan) in self.scans.iter().enumerate() {
            edges(&scan.bindings).into_iter().for_each(|(to, from)| join((f, to), (f, from)));
            self.handed(f).into_iter().for_each(|h| join((f, h.variable), (h.to, h.param)));
            for binding in &scan.bindings {
                let What::Given { call, place } = &binding.what else { continue };
                let Some(to) = self.called(call) else { continue };
                let returned = self.scans[to].returned.iter().flat_map(|value| items(value));
                let names = returned.filter(|(own, _)| own == place).filter_map(|(_, item)| item.as_name());
                names.for_each(|name| join((f, binding.target), (to, name)));
            }
        }
        let mut groups: BTreeMap<usize, BTreeMap<usize, HashSet<&str>>> = BTreeMap::new();
        for ((f, name), of) in order.iter().zip(&number) {
            groups.entry(*of).or_default().entry(*f).or_default().insert(name);
        }
        groups.into_values().collect()
    }
}

/// The elements of a returned value with their places; one value has none.
pub(super) fn items(value: &Expr) -> Vec<(Option<usize>, &Expr)> {
    match &value.kind {
        ExprKind::Tuple(items) => items.iter().enumerate().map(|(place, item)| (Some(place), item)).collect(),
        _ => vec![(None, value)],
    }
}

/// The parameter to which an argument goes.
fn param_of<'a>(function: &'a FunctionDef, args: &[Arg], place: usize) -> Option<&'a str> {
    let is_plain = |kind| matches!(kind, ParamKind::Positional | ParamKind::PositionalOnly | ParamKind::KeywordOnly);
    let params = || function.params.iter().filter(|param| is_plain(param.kind));
    let param = match &args[place].name {
        Some(name) => params().find(|param| param.name.text == name.text),
        None if args[..place].iter().any(|arg| arg.star != Star::None) => None,
        None => function.params.get(place).filter(|param| is_plain(param.kind) && param.kind != ParamKind::KeywordOnly),
    };
    param.map(|param| &*param.name.text)
}
