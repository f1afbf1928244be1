//! The changes of the configuration that are tried: launch options, block sizes, promises.

use super::{Explainer, Subject};
use crate::space::is_block_name;
use rtc_compiler::{ArgKind, ConstValue, HostValue, Spec, ValueType};

/// The least size of a block.
const LEAST: i128 = 16;
/// The largest sizes: of a block with one axis, and with several.
const LARGEST: [i128; 2] = [65_536, 256];
/// A promise that makes wide accesses possible.
const MULTIPLE: u32 = 16;

/// A kernel with another configuration.
pub(super) struct Variant {
    pub(super) subject: Subject,
    /// The change in words.
    pub(super) what: String,
    pub(super) spec: Spec,
    /// Whether it changes a size that the grid does not depend on: it may leave out work, or do it twice.
    pub(super) is_doubtful: bool,
}

impl Explainer<'_> {
    /// All that are tried.
    pub(super) fn variants(&self) -> Vec<Variant> {
        let mut out = self.promises();
        out.extend(self.options());
        out.extend(self.blocks());
        out
    }

    fn options(&self) -> Vec<Variant> {
        let own = &self.spec.options;
        let variant = |what: String, change: &dyn Fn(&mut Spec)| {
            let mut spec = self.spec.clone();
            change(&mut spec);
            Variant { subject: Subject::Option, what, spec, is_doubtful: false }
        };
        let near = |n: &u32| *n != own.num_warps && *n <= own.num_warps * 4 && *n * 4 >= own.num_warps;
        let warps = [1, 2, 4, 8, 16, 32].into_iter().filter(near).map(|n| {
            let what = format!("num_warps={n} instead of {}", own.num_warps);
            variant(what, &|spec| spec.options.num_warps = n)
        });
        let stages = (1..=5).filter(|n| *n != own.num_stages).map(|n| {
            let what = format!("num_stages={n} instead of {}", own.num_stages);
            variant(what, &|spec| spec.options.num_stages = n)
        });
        let registers = own
            .maxnreg
            .map(|most| variant(format!("no maxnreg instead of maxnreg={most}"), &|spec| spec.options.maxnreg = None));
        let specialize = (!own.warp_specialize).then(|| {
            let what = "warp_specialize=true instead of false".to_owned();
            variant(what, &|spec| spec.options.warp_specialize = true)
        });
        warps.chain(stages).chain(registers).chain(specialize).collect()
    }

    /// Other block sizes: one by itself, two or all by the same factor, and all with other warps.
    fn blocks(&self) -> Vec<Variant> {
        // The blocks of descriptors are set by the host for the sizes that are given.
        if self.spec.args.iter().any(|arg| matches!(arg.kind, ArgKind::Descriptor { .. })) {
            return Vec::new();
        }
        let sizes: Vec<(&str, i128)> = self.spec.args.iter().filter_map(|arg| self.block_size(arg)).collect();
        let most = LARGEST[usize::from(sizes.len() > 1)];
        let mut groups: Vec<Vec<(&str, i128)>> = sizes.iter().map(|size| vec![*size]).collect();
        for (i, one) in sizes.iter().enumerate() {
            groups.extend(sizes[i + 1..].iter().map(|other| vec![*one, *other]));
        }
        if sizes.len() > 2 {
            groups.push(sizes.clone());
        }
        let mut out = Vec::new();
        for group in &groups {
            // Two sizes in opposite directions keep the number of elements.
            let opposite = (group.len() == 2).then_some([(2, 1), (1, 2)]);
            let same = [(2, 1), (4, 1), (1, 2), (1, 4)].map(|factor| vec![factor; group.len()]);
            let factors = same.into_iter().chain(opposite.map(|pair| pair.to_vec()));
            let factors = factors.chain(opposite.map(|[a, b]| vec![b, a]));
            for factors in factors {
                let new: Vec<i128> = group.iter().zip(&factors).map(|((_, n), (by, of))| n * by / of).collect();
                if new.iter().any(|n| !(LEAST..=most).contains(n)) {
                    continue;
                }
                let changes: Vec<(&str, i128, i128)> =
                    group.iter().zip(new).map(|((name, n), new)| (*name, *n, new)).collect();
                out.push(self.block_variant(&changes, None));
                let grows = factors.iter().all(|(by, of)| by > of);
                let warps = self.spec.options.num_warps;
                let other = if grows { (warps * 2).min(16) } else { (warps / 2).max(1) };
                if other != warps {
                    out.push(self.block_variant(&changes, Some(other)));
                }
            }
        }
        out
    }

    /// The name and the value of a block size.
    fn block_size<'a>(&self, arg: &'a rtc_compiler::ArgSpec) -> Option<(&'a str, i128)> {
        let ArgKind::Constexpr(ConstValue::Int(n)) = &arg.kind else { return None };
        let is_size = *n >= LEAST && n.count_ones() == 1;
        let is_block = is_block_name(&arg.name) || self.grid.depends_on(&arg.name);
        (is_size && is_block).then_some((arg.name.as_str(), *n))
    }

    fn block_variant(&self, changes: &[(&str, i128, i128)], warps: Option<u32>) -> Variant {
        let mut spec = self.spec.clone();
        for (name, _, new) in changes {
            for arg in spec.args.iter_mut().filter(|arg| arg.name == *name) {
                arg.kind = ArgKind::Constexpr(ConstValue::Int(*new));
            }
        }
        let mut words: Vec<String> =
            changes.iter().map(|(name, old, new)| format!("{name}={new} instead of {old}")).collect();
        if let Some(warps) = warps {
            words.push(format!("num_warps={warps} instead of {}", spec.options.num_warps));
            spec.options.num_warps = warps;
        }
        let is_doubtful = changes.iter().any(|(name, ..)| !self.grid.depends_on(name));
        Variant { subject: Subject::Block, what: words.join(", "), spec, is_doubtful }
    }

    /// What the signature could promise of the arguments of this launch: all at once, and each by itself.
    fn promises(&self) -> Vec<Variant> {
        let mut kept: Vec<(String, ArgKind, String)> = Vec::new();
        for arg in &self.spec.args {
            let ArgKind::Value { ty, divisible_by } = &arg.kind else { continue };
            let value = self.arguments.iter().find(|(name, _)| *name == arg.name).map(|(_, value)| value);
            let is_pointer = matches!(ty, ValueType::Pointer { .. });
            let is_multiple = match value {
                Some(HostValue::Value(ConstValue::Int(1))) if !is_pointer => {
                    let words = format!("`{}` is the constant 1", arg.name);
                    kept.push((arg.name.clone(), ArgKind::Constexpr(ConstValue::Int(1)), words));
                    false
                }
                Some(HostValue::Value(ConstValue::Int(n))) => !is_pointer && n % i128::from(MULTIPLE) == 0 && *n != 0,
                _ => is_pointer && self.multiples.contains(&arg.name),
            };
            if is_multiple && divisible_by.is_none_or(|n| n % MULTIPLE != 0) {
                let kind = ArgKind::Value { ty: *ty, divisible_by: Some(MULTIPLE) };
                let words = format!("`{}` is a multiple of {MULTIPLE} ({kind})", arg.name);
                kept.push((arg.name.clone(), kind, words));
            }
        }
        let variant = |promises: &[(String, ArgKind, String)]| {
            let mut spec = self.spec.clone();
            for (name, kind, _) in promises {
                spec.args.iter_mut().filter(|arg| arg.name == *name).for_each(|arg| arg.kind = kind.clone());
            }
            let words: Vec<&str> = promises.iter().map(|(.., words)| words.as_str()).collect();
            let what = format!("promise in the signature that {}", words.join(", "));
            Variant { subject: Subject::Promise, what, spec, is_doubtful: false }
        };
        // One promise is preferred to several with the same effect.
        let mut out: Vec<Variant> = kept.iter().map(|promise| variant(std::slice::from_ref(promise))).collect();
        if kept.len() > 1 {
            out.push(variant(&kept));
        }
        out
    }
}
