//! Kernels that are compiled at their launches.
//!
//! A launch finds its kernel in two maps in memory: by the options, and by the kinds of the arguments (`specialize.rs`).
//! It compares numbers only and allocates nothing. What it does not find is looked for by the content of all that the
//! kernel depends on: first among the kernels that were loaded for other words or options, then on disk.
#![allow(unsafe_code)]

use super::passed::Passed;
use super::specialize::{Rule, Words};
use super::{CompileError, JitProgram};
use crate::{Arg, Error, Grid, Kernel, Result, Stream};
use rtc_abi::spec::{ArgKind, ArgSpec, ConstValue, LaunchOptions};
use rtc_cache::Key;
use rtc_compiler::{Failure, KernelInfo, ParamInfo, Spec, Specialization};
use rtc_source::Code;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// How a kernel is compiled besides what its arguments tell: launch options, and constexprs by name.
///
/// Make them once and keep them: a launch recognizes options that it has seen, and their clones, by a number. Others it
/// must compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Options with one number have one content.
    id: u64,
    content: Arc<Content>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    launch: LaunchOptions,
    constexprs: Vec<(String, ConstValue)>,
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

impl Options {
    /// Four warps, and what else is the default of [`LaunchOptions`]; no constexprs.
    pub fn new() -> Options {
        Options::of(Content::default())
    }

    fn of(content: Content) -> Options {
        static LATEST: AtomicU64 = AtomicU64::new(0);
        Options { id: LATEST.fetch_add(1, Ordering::Relaxed), content: Arc::new(content) }
    }

    /// Changes launch options.
    pub fn launch(self, change: impl FnOnce(&mut LaunchOptions)) -> Options {
        let mut content = Arc::unwrap_or_clone(self.content);
        change(&mut content.launch);
        Options::of(content)
    }

    /// Sets the number of warps.
    pub fn num_warps(self, warps: u32) -> Options {
        self.launch(|options| options.num_warps = warps)
    }

    /// Sets the depth of software pipelines.
    pub fn num_stages(self, stages: u32) -> Options {
        self.launch(|options| options.num_stages = stages)
    }

    /// Gives a parameter a value of the Python level: a number, a truth value, a text, or any [`ConstValue`] such as
    /// [`ConstValue::None`]. The arguments of a launch are then those of the other parameters.
    pub fn constexpr(self, name: &str, value: impl Into<ConstValue>) -> Options {
        let mut content = Arc::unwrap_or_clone(self.content);
        content.constexprs.retain(|(known, _)| known != name);
        content.constexprs.push((name.to_owned(), value.into()));
        Options::of(content)
    }
}

/// A kernel that is compiled at its launches, for the kinds of arguments that it gets. Clones share what was compiled.
///
/// ```
/// use rtc_runtime::{Device, args, jit::{JitKernel, Options, JitProgram, SpecializedKernel}};
/// let source = "@triton.jit\ndef fill(x, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(x + i, 1.0, mask=i < n)\n";
/// let device = Device::emulator();
/// let program: JitProgram = device.jit_program(rtc_compiler::Program::parse(&[rtc_compiler::Source::new("fill.rt", source)]))?;
/// let fill: JitKernel = program.with_cache(None).with_observer(|event| eprintln!("{event:?}")).kernel("fill")?;
/// let options = Options::new().constexpr("B", 16).num_stages(2);
/// let mut x = device.zeros::<f32>(16)?;
/// assert!(fill.specialized(&args![&mut x, 16], &options).is_none());
/// let ready: SpecializedKernel = fill.specialize(&args![&mut x, 16], &options)?; // compiled, not launched
/// ready.launch(device.default_stream(), 1, &args![&mut x, 16])?;
/// // SAFETY: it writes `n` elements, and `x` has as many.
/// unsafe {
///     ready.launch_unchecked(device.default_stream(), 1, &args![&mut x, 16])?;
///     fill.launch_unchecked(device.default_stream(), 1, &args![&mut x, 16], &options)?;
/// }
/// assert_eq!(fill.specialized(&args![&mut x, 16], &options).map(|known| known.id()), Some(ready.id()));
/// assert_eq!((ready.specialization().kernel.as_str(), fill.variants()), ("fill", 1));
/// assert_eq!(fill.specialized(&args![&mut x, 16], &options).map(|known| known.key()), Some(ready.key()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct JitKernel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: JitProgram,
    name: String,
    params: Vec<ParamInfo>,
    bound: RwLock<FxHashMap<u64, Arc<Bound>>>,
    /// By all that a kernel depends on.
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

/// The kernel with some options.
#[derive(Debug)]
pub(super) struct Bound {
    content: Arc<Content>,
    /// Which parameters the arguments of a launch are for, and how they specialize.
    params: Box<[(usize, Rule)]>,
    known: RwLock<FxHashMap<Words, SpecializedKernel>>,
}

impl Bound {
    /// The words of the arguments, one after the other.
    pub(super) fn words(&self, args: &[Arg<'_>]) -> Words {
        let mut words = Words::new();
        self.add_words(args, &mut words);
        words
    }

    /// Adds the words of the arguments.
    #[inline(always)]
    pub(super) fn add_words(&self, args: &[Arg<'_>], words: &mut Words) {
        for (arg, (_, rule)) in args.iter().zip(&self.params) {
            rule.words(arg, words);
        }
    }
}

/// A place for a loaded kernel; the first caller that needs a missing one makes it, and the others wait.
#[derive(Debug, Default)]
struct Slot {
    loaded: OnceLock<SpecializedKernel>,
    making: Mutex<()>,
}

#[derive(Debug)]
struct Loaded {
    kernel: Kernel,
    /// The parts of the arguments that the kernel is passed; the others are constants in it.
    passed: Passed,
    specialization: Specialization,
    key: Key,
}

/// A kernel that is ready for arguments of some kinds.
#[derive(Clone, Debug)]
pub struct SpecializedKernel(Arc<Loaded>);

impl SpecializedKernel {
    /// Launches `grid` programs with arguments of the kinds that it was made ready for; refuses, as [`Kernel::launch`] does,
    /// what is not proved to stay within the slices.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch`].
    pub fn launch(&self, stream: &Stream, grid: impl Into<Grid>, args: &[Arg<'_>]) -> Result<()> {
        self.with_passed(args, |args| self.0.kernel.launch(stream, grid, args))
    }

    /// Like [`SpecializedKernel::launch`] without the check of lengths.
    ///
    /// # Errors
    ///
    /// As for [`Kernel::launch_unchecked`].
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`].
    pub unsafe fn launch_unchecked(&self, stream: &Stream, grid: impl Into<Grid>, args: &[Arg<'_>]) -> Result<()> {
        // SAFETY: the caller guarantees the accesses.
        self.with_passed(args, |args| unsafe { self.0.kernel.launch_unchecked(stream, grid, args) })
    }

    /// Gives the arguments that the kernel is passed to `launch`.
    #[inline]
    fn with_passed(&self, args: &[Arg<'_>], launch: impl FnOnce(&[Arg<'_>]) -> Result<()>) -> Result<()> {
        if self.0.passed.is_all() {
            return launch(args);
        }
        let mut picked = SmallVec::new();
        self.0.passed.pick_into(args, &mut picked);
        launch(&picked)
    }

    /// The kernel, and what it is passed.
    pub(super) fn parts(&self) -> (&Kernel, &Passed) {
        (&self.0.kernel, &self.0.passed)
    }

    /// What it was compiled for.
    pub fn specialization(&self) -> &Specialization {
        &self.0.specialization
    }

    /// Its key in caches.
    pub fn key(&self) -> Key {
        self.0.key
    }

    /// A number that tells kernels of this process apart.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The kernel, for its metadata and what the device made of it.
    pub fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }
}

impl JitKernel {
    pub(crate) fn new(program: JitProgram, info: &KernelInfo) -> JitKernel {
        let (bound, slots) = Default::default();
        let shared = Shared { program, name: info.name.clone(), params: info.params.clone(), bound, slots };
        JitKernel { shared: Arc::new(shared) }
    }

    /// Launches `grid` programs, after compiling the kernel if it was not compiled for such arguments and options.
    ///
    /// The arguments are those of the parameters that `options` gives no value, in order; trailing parameters that have
    /// defaults may be left out. A constexpr takes a number, a tuple `&args![..]`, a tensor descriptor one with a
    /// [block](crate::TensorDescriptor::with_block).
    ///
    /// # Errors
    ///
    /// As for [`JitKernel::specialize`]; [`CompileError::Runtime`] with an error of [`Kernel::launch`].
    pub fn launch(
        &self,
        stream: &Stream,
        grid: impl Into<Grid>,
        args: &[Arg<'_>],
        options: &Options,
    ) -> std::result::Result<(), CompileError> {
        Ok(self.specialize(args, options)?.launch(stream, grid, args)?)
    }

    /// Like [`JitKernel::launch`] without the check of lengths.
    ///
    /// # Errors
    ///
    /// As for [`JitKernel::specialize`]; [`CompileError::Runtime`] with an error of [`Kernel::launch_unchecked`].
    ///
    /// # Safety
    ///
    /// As for [`Kernel::launch_unchecked`].
    pub unsafe fn launch_unchecked(
        &self,
        stream: &Stream,
        grid: impl Into<Grid>,
        args: &[Arg<'_>],
        options: &Options,
    ) -> std::result::Result<(), CompileError> {
        let ready = self.specialize(args, options)?;
        // SAFETY: the caller guarantees the accesses.
        Ok(unsafe { ready.launch_unchecked(stream, grid, args) }?)
    }

    /// The kernel for such arguments and options, if it is ready; nothing is compiled.
    pub fn specialized(&self, args: &[Arg<'_>], options: &Options) -> Option<SpecializedKernel> {
        let all = self.shared.bound.read().unwrap_or_else(PoisonError::into_inner);
        let bound = all.get(&options.id)?;
        let words = bound.words(args);
        let known = bound.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&words[..]).filter(|_| args.len() <= bound.params.len()).cloned()
    }

    /// The kernel for such arguments and options, compiled if need be; nothing is launched.
    ///
    /// # Errors
    ///
    /// [`CompileError::Compiler`] if the arguments or `options` do not fit the kernel, or it cannot be compiled for them;
    /// [`CompileError::Runtime`] for more arguments than parameters, and for what the device refuses at the load.
    pub fn specialize(
        &self,
        args: &[Arg<'_>],
        options: &Options,
    ) -> std::result::Result<SpecializedKernel, CompileError> {
        let bound = self.bound(options)?;
        if args.len() > bound.params.len() {
            return Err(self.too_many(args.len(), &bound).into());
        }
        let words = bound.words(args);
        let known = bound.known.read().unwrap_or_else(PoisonError::into_inner).get(&words[..]).cloned();
        match known {
            Some(ready) => Ok(ready),
            None => {
                let ready = self.make(args, &bound)?;
                bound.known.write().unwrap_or_else(PoisonError::into_inner).insert(words, ready.clone());
                Ok(ready)
            }
        }
    }

    /// How many kernels were compiled or loaded.
    pub fn variants(&self) -> usize {
        let slots = self.shared.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.values().filter(|slot| slot.loaded.get().is_some()).count()
    }

    pub(super) fn bound(&self, options: &Options) -> std::result::Result<Arc<Bound>, CompileError> {
        let all = self.shared.bound.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = all.get(&options.id).or_else(|| all.values().find(|b| b.content == options.content)) {
            return Ok(bound.clone());
        }
        drop(all);
        for (name, _) in &options.content.constexprs {
            if !self.shared.params.iter().any(|param| param.name == *name) {
                let names: Vec<&str> = self.shared.params.iter().map(|param| param.name.as_str()).collect();
                let message =
                    format!("kernel `{}` has no parameter `{name}`; it has {}", self.shared.name, names.join(", "));
                return Err(Failure::request(Code::SPEC, message).into());
            }
        }
        let is_given = |param: &ParamInfo| options.content.constexprs.iter().any(|(name, _)| *name == param.name);
        let params = self.shared.params.iter().enumerate().filter(|(_, param)| !is_given(param));
        let params = params.map(|(index, param)| (index, Rule::of(param))).collect();
        let bound = Arc::new(Bound { content: options.content.clone(), params, known: RwLock::default() });
        let mut all = self.shared.bound.write().unwrap_or_else(PoisonError::into_inner);
        Ok(all.entry(options.id).or_insert(bound).clone())
    }

    fn too_many(&self, given: usize, bound: &Bound) -> Error {
        let names: Vec<&str> = bound.params.iter().map(|(at, _)| self.shared.params[*at].name.as_str()).collect();
        Error::ArgumentCount { kernel: self.shared.name.clone(), expected: names.len(), given, names: names.join(", ") }
    }

    /// Finds a kernel by content, or makes it.
    fn make(&self, args: &[Arg<'_>], bound: &Bound) -> std::result::Result<SpecializedKernel, CompileError> {
        let Shared { program, name: kernel, params, .. } = &*self.shared;
        let mut kinds: Vec<Option<ArgKind>> = params.iter().map(|_| None).collect();
        for (arg, (index, rule)) in args.iter().zip(&bound.params) {
            let kind = rule.specialize(arg).map_err(|message| {
                let message = format!("kernel `{kernel}`, argument `{}`: {message}", params[*index].name);
                Failure::request(Code::LAUNCH, message)
            })?;
            kinds[*index] = Some(kind);
        }
        for (index, param) in params.iter().enumerate() {
            if let Some((_, value)) = bound.content.constexprs.iter().find(|(name, _)| *name == param.name) {
                kinds[index] = Some(ArgKind::Constexpr(value.clone()));
            }
        }
        if let Some((param, _)) = params.iter().zip(&kinds).find(|(param, kind)| kind.is_none() && !param.has_default) {
            let message = format!(
                "kernel `{kernel}`: the launch gives nothing for parameter `{}`; pass an argument, or set it by \
                 `Options::constexpr`",
                param.name
            );
            return Err(Failure::request(Code::LAUNCH, message).into());
        }
        // What the arguments of the launch are, in their order.
        let given: Vec<(String, ArgKind)> = args
            .iter()
            .zip(&bound.params)
            .filter_map(|(_, (index, _))| Some((params[*index].name.clone(), kinds[*index].clone()?)))
            .collect();
        let named = params.iter().zip(kinds);
        let args = named.filter_map(|(param, kind)| Some(ArgSpec { name: param.name.clone(), kind: kind? })).collect();
        let spec = Spec { kernel: Some(kernel.clone()), args, options: bound.content.launch.clone(), arch: None };
        let specialization = spec.specialize(program.source());
        self.load(specialization.map_err(|failure| CompileError::new(failure, program.source().sources()))?, &given)
    }

    /// The kernel for what a specification says instead of arguments, compiled if need be. Launches of it take an argument
    /// for each parameter, in order; of those that are constants, any.
    ///
    /// ```
    /// use rtc_compiler::Spec;
    /// use rtc_runtime::{Device, args};
    /// let source = "@triton.jit\ndef fill(x, value, N: tl.constexpr):\n    tl.store(x + tl.arange(0, N), value)\n";
    /// let device = Device::emulator();
    /// let program = device.jit_program(rtc_compiler::Program::parse(&[rtc_compiler::Source::new("fill.rt", source)]))?;
    /// let spec = r#"{"kernel": "fill", "args": [{"name": "x", "type": "*fp32", "divisible_by": 16},
    ///     {"name": "value", "type": "fp32"}, {"name": "N", "constexpr": 8}]}"#;
    /// let fill = program.with_cache(None).kernel("fill")?.specialize_for(&Spec::parse(spec)?)?;
    /// let mut x = device.zeros::<f32>(8)?;
    /// fill.launch(device.default_stream(), 1, &args![&mut x, 2.5, 8])?;
    /// assert_eq!(x.to_vec()?, [2.5; 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompileError::Compiler`] if `spec` does not fit the kernel, or it cannot be compiled for it;
    /// [`CompileError::Runtime`] for what the device refuses at the load.
    pub fn specialize_for(&self, spec: &Spec) -> std::result::Result<SpecializedKernel, CompileError> {
        let source = self.shared.program.source();
        let specialization = spec.specialize(source).map_err(|failure| CompileError::new(failure, source.sources()))?;
        let given = |param: &ParamInfo| {
            let kind = specialization.args.iter().find(|arg| arg.name == param.name).map(|arg| arg.kind.clone());
            (param.name.clone(), kind.unwrap_or(ArgKind::Constexpr(ConstValue::None)))
        };
        let given: Vec<_> = self.shared.params.iter().map(given).collect();
        self.load(specialization, &given)
    }

    /// Finds the kernel for a specialization, or makes it; `given` are the names and kinds of a launch's arguments.
    fn load(
        &self,
        specialization: Specialization,
        given: &[(String, ArgKind)],
    ) -> std::result::Result<SpecializedKernel, CompileError> {
        let Shared { program, name: kernel, slots, .. } = &*self.shared;
        let key = program.key(&specialization);
        let slot = slots.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        if let Some(ready) = slot.loaded.get() {
            return Ok(ready.clone());
        }
        let _making = slot.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = slot.loaded.get() {
            return Ok(ready.clone());
        }
        let made = program.make(&specialization, key)?;
        let given: Vec<(&str, &ArgKind)> = given.iter().map(|(name, kind)| (name.as_str(), kind)).collect();
        let passed = Passed::of(made.metadata(), &given).map_err(|param| {
            let message = format!("kernel `{kernel}`: no argument of the launch stands for its parameter `{param}`");
            Failure::request(Code::LAUNCH, message)
        })?;
        let ready = SpecializedKernel(Arc::new(Loaded { kernel: made, passed, specialization, key }));
        Ok(slot.loaded.get_or_init(|| ready).clone())
    }
}
