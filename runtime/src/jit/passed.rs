//! Which parts of a launch's arguments a compiled kernel is passed: it has no parameters for constants, one for each element
//! of a tuple, and several for a tensor descriptor, named `t.0`, `desc.base`, `desc.shape.1`.

use crate::{Arg, Metadata};
use rtc_abi::ParamType;
use rtc_abi::spec::ArgKind;
use smallvec::SmallVec;

/// Which parts of a launch's arguments a kernel is passed, in the order of its parameters.
///
/// ```
/// use rtc_runtime::abi::spec::{ArgKind, ConstValue};
/// use rtc_runtime::{Device, args, internal::Passed};
/// # let json = include_str!("../../tests/kernels/scale.json");
/// let metadata = rtc_runtime::Metadata::from_json(json)?; // scale(x, y, a, n)
/// let whole = ArgKind::Constexpr(ConstValue::None);
/// let passed = Passed::of(&metadata, &[("a", &whole), ("n", &whole), ("x", &whole), ("y", &whole)]).unwrap();
/// let device = Device::emulator();
/// let (x, mut y) = (device.upload(&[1.0f32])?, device.zeros::<f32>(1)?);
/// let arguments = args![2.0, 1, &x, &mut y];
/// assert_eq!(passed.pick(&arguments).len(), 4);
/// # Ok::<(), rtc_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Passed {
    parts: Box<[Part]>,
    /// Each argument is passed as it is.
    is_all: bool,
}

/// One parameter.
#[derive(Debug)]
struct Part {
    /// The number of the argument.
    arg: usize,
    /// Elements of tuples, outermost first.
    items: SmallVec<[usize; 2]>,
    field: Field,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Whole,
    Base,
    Shape(usize),
    Stride(usize),
    Padding,
}

impl Passed {
    /// For a kernel with these parameters; `args` are the names and kinds of the launch's arguments, of which only tuples and
    /// descriptors matter here.
    ///
    /// # Errors
    ///
    /// The name of a parameter that none of the arguments stands for.
    pub fn of(metadata: &Metadata, args: &[(&str, &ArgKind)]) -> Result<Passed, String> {
        let params = metadata.visible_params();
        let part = |param: &rtc_abi::Param| part(&param.name, &param.ty, args).ok_or_else(|| param.name.clone());
        let parts = params.iter().map(part).collect::<Result<Box<[Part]>, String>>()?;
        let is_own = |(number, part): (usize, &Part)| part.arg == number && part.is_whole();
        Ok(Passed { is_all: parts.len() == args.len() && parts.iter().enumerate().all(is_own), parts })
    }

    /// Whether the arguments of a launch can be passed as they are.
    ///
    /// ```
    /// use rtc_runtime::{Metadata, abi::spec::{ArgKind, ConstValue}, internal::Passed};
    /// # let json = include_str!("../../tests/kernels/scale.json");
    /// let whole = ArgKind::Constexpr(ConstValue::None);
    /// let metadata = Metadata::from_json(json)?; // scale(x, y, a, n)
    /// let passed = Passed::of(&metadata, &["x", "y", "a", "n"].map(|name| (name, &whole))).unwrap();
    /// assert!(passed.is_all());
    /// # Ok::<(), rtc_runtime::Error>(())
    /// ```
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// The arguments of the kernel.
    pub fn pick<'a>(&self, args: &'a [Arg<'a>]) -> SmallVec<[Arg<'a>; 32]> {
        self.parts.iter().map(|part| part.pick(args)).collect()
    }

    /// The kernel's parameter that is this argument as it is.
    pub(crate) fn param_of(&self, arg: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.arg == arg && part.is_whole())
    }

    /// Adds the arguments of the kernel to a list, which stays where it is.
    pub(crate) fn pick_into<'a>(&self, args: &'a [Arg<'a>], list: &mut SmallVec<[Arg<'a>; 16]>) {
        for part in &self.parts {
            list.push(if part.is_whole() { args[part.arg].again() } else { part.pick(args) });
        }
    }
}

impl Part {
    /// Whether it is the argument as it is.
    fn is_whole(&self) -> bool {
        self.items.is_empty() && self.field == Field::Whole
    }

    fn pick<'a>(&self, args: &'a [Arg<'a>]) -> Arg<'a> {
        let mut found = &args[self.arg];
        for item in &self.items {
            // Arguments with the same words have the same form.
            let (Arg::Tuple(items) | Arg::NamedTuple(_, items)) = found else { break };
            found = &items[*item];
        }
        match (found, self.field) {
            (Arg::Descriptor(descriptor), Field::Base) => Arg::Pointer(crate::Pointer(descriptor.base().0)),
            (Arg::Descriptor(descriptor), Field::Shape(axis)) => Arg::Int(descriptor.extents().size(axis)),
            (Arg::Descriptor(descriptor), Field::Stride(axis)) => Arg::Int(descriptor.extents().stride(axis)),
            (Arg::Descriptor(descriptor), Field::Padding) => Arg::Bool(descriptor.extents().pads_nan()),
            (found, _) => found.again(),
        }
    }
}

fn part(name: &str, ty: &ParamType, args: &[(&str, &ArgKind)]) -> Option<Part> {
    if let Some(arg) = args.iter().position(|(own, _)| *own == name) {
        return Some(Part { arg, items: SmallVec::new(), field: Field::Whole });
    }
    let mut segments = name.split('.');
    let root = segments.next()?;
    let (arg, mut kind) = args.iter().enumerate().find_map(|(i, (n, kind))| (*n == root).then_some((i, *kind)))?;
    let mut items = SmallVec::new();
    while let ArgKind::Tuple { items: all, fields } = kind {
        let segment = segments.next()?;
        let named = fields.as_ref().and_then(|fields| fields.iter().position(|field| field == segment));
        let number: usize = named.or_else(|| segment.parse().ok())?;
        kind = all.get(number)?;
        items.push(number);
    }
    let field = match (kind, ty) {
        (ArgKind::Descriptor { .. }, ParamType::Value(_)) => {
            let mut rest = name.rsplit('.');
            let last = rest.next()?;
            match (last, last.parse::<usize>()) {
                ("base", _) => Field::Base,
                ("padding", _) => Field::Padding,
                (_, Ok(axis)) if rest.clone().next() == Some("shape") => Field::Shape(axis),
                (_, Ok(axis)) if rest.next() == Some("strides") => Field::Stride(axis),
                _ => return None,
            }
        }
        _ => Field::Whole,
    };
    Some(Part { arg, items, field })
}
