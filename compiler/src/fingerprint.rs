//! The inputs of a result, as a hash of canonical bytes: the same on every machine, and of nothing else. Paths are not
//! part of it; about the names of files in a result, see [`fingerprint`].

use crate::{Program, Specialization};
use rtc_abi::ValueType;
use rtc_abi::spec::{ArgKind, ConstValue, LaunchOptions};
use rtc_source::{Code, Level, Levels, SourceMap, WARNINGS};
use sha2::{Digest, Sha256};

/// Version of the compiler, as metadata carries it.
pub const COMPILER_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Distinguishes builds of the compiler with the same version: a hash of its sources, made when it was built.
pub const BUILD_ID: &str = env!("RTC_BUILD_ID");

/// A hash of the sources and of what they are compiled for, in hexadecimal digits: `source_hash` of the metadata.
pub fn source_hash(program: &Program, specialization: &Specialization, arch: &str) -> String {
    let mut bytes = Canonical::new("source/1");
    bytes.text(COMPILER_VERSION);
    bytes.text(arch);
    bytes.specialization(specialization);
    bytes.program(program);
    hex(&bytes.finish())
}

/// A hash of all that [`compile`](crate::compile) depends on, warnings included: a result of one call is that of any
/// other call with the same fingerprint, but for the names of files.
///
/// These names are in `.file` lines of the PTX, and in the messages of assertions. So they are in the fingerprint if
/// `names` is true ([`names_matter`]).
pub fn fingerprint(program: &Program, specialization: &Specialization, arch: &str, names: bool) -> [u8; 32] {
    let mut bytes = Canonical::new("kernel/1");
    bytes.text(BUILD_ID);
    bytes.text(&crate::llvm_version());
    bytes.text(arch);
    bytes.specialization(specialization);
    bytes.program(program);
    bytes.levels(program.levels());
    bytes.list(program.sources().files().filter(|_| names), |bytes, (_, file)| bytes.text(&file.name));
    bytes.finish()
}

/// The same of a kernel that is given as tile IR: a hash of all that [`TileKernel::compile`](crate::TileKernel::compile)
/// depends on.
pub fn tile_fingerprint(sources: &SourceMap, options: &LaunchOptions, arch: &str) -> [u8; 32] {
    let mut bytes = Canonical::new("tile/1");
    bytes.text(BUILD_ID);
    bytes.text(&crate::llvm_version());
    bytes.text(arch);
    bytes.options(options);
    bytes.list(sources.files(), |bytes, (_, file)| {
        bytes.text(&file.text);
        bytes.text(if options.debug_info || tells_name(&file.name, &file.text) { &file.name } else { "" });
    });
    bytes.finish()
}

/// Whether the names of files may occur in a result elsewhere than in `.file` lines, such as in messages of
/// `device_assert` and in debug sections, or in such lines in a form that cannot be found again.
pub fn names_matter(program: &Program, specialization: &Specialization) -> bool {
    let options = &specialization.options;
    options.debug || options.debug_info || program.sources().files().any(|(_, file)| tells_name(&file.name, &file.text))
}

fn tells_name(name: &str, text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+./".contains(&byte);
    text.contains("assert") || !name.bytes().all(is_plain)
}

/// A hash of texts and of where each of them ends.
pub(crate) fn hash_of<'t>(parts: impl Iterator<Item = &'t str>) -> String {
    let mut bytes = Canonical::new("texts/1");
    parts.for_each(|part| bytes.text(part));
    hex(&bytes.finish())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes values, each with its type or length before it, so that different values give different bytes.
struct Canonical(Sha256);

impl Canonical {
    /// `schema` changes with the meaning of what follows.
    fn new(schema: &str) -> Canonical {
        let mut bytes = Canonical(Sha256::new());
        bytes.text(schema);
        bytes
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    fn number(&mut self, value: u64) {
        self.0.update(value.to_le_bytes());
    }

    fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.update(value);
    }

    fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    fn optional(&mut self, value: Option<u64>) {
        self.number(value.is_some().into());
        self.number(value.unwrap_or_default());
    }

    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut add: impl FnMut(&mut Canonical, T)) {
        for item in items {
            self.number(1);
            add(self, item);
        }
        self.number(0);
    }

    fn program(&mut self, program: &Program) {
        let files = program.modules().iter().zip(program.sources().files());
        self.list(files, |bytes, (module, (_, file))| {
            bytes.text(&module.name);
            bytes.text(&file.text);
        });
        self.list(program.libdevice(), |bytes, bitcode| bytes.bytes(bitcode));
    }

    fn levels(&mut self, levels: &Levels) {
        // The last represents all codes that are not in the table.
        let codes = WARNINGS.iter().map(|(code, _)| *code).chain([Code("")]);
        self.list(codes, |bytes, code| {
            bytes.text(code.0);
            bytes.number(match levels.of(code) {
                Level::Allow => 0,
                Level::Warn => 1,
                Level::Deny => 2,
            });
        });
    }

    fn specialization(&mut self, specialization: &Specialization) {
        let Specialization { kernel, args, options } = specialization;
        self.text(kernel);
        self.list(args, |bytes, arg| {
            bytes.text(&arg.name);
            bytes.kind(&arg.kind);
        });
        self.options(options);
    }

    fn kind(&mut self, kind: &ArgKind) {
        match kind {
            ArgKind::Value { ty, divisible_by } => {
                self.number(0);
                self.ty(ty);
                self.optional(divisible_by.map(u64::from));
            }
            ArgKind::Constexpr(value) => {
                self.number(1);
                self.constant(value);
            }
            ArgKind::Tuple { items, fields } => {
                self.number(2);
                self.list(items, Canonical::kind);
                self.fields(fields.as_deref());
            }
            ArgKind::Descriptor { element, block_shape } => {
                self.number(3);
                self.text(&element.to_string());
                self.list(block_shape, |bytes, size| bytes.number(u64::from(*size)));
            }
        }
    }

    fn fields(&mut self, fields: Option<&[String]>) {
        self.list(fields, |bytes, names| bytes.list(names, |bytes, name| bytes.text(name)));
    }

    fn ty(&mut self, ty: &ValueType) {
        self.text(&ty.to_string());
    }

    fn constant(&mut self, value: &ConstValue) {
        match value {
            ConstValue::Int(value) => {
                self.number(0);
                self.0.update(value.to_le_bytes());
            }
            ConstValue::Float(value) => {
                self.number(1);
                self.number(value.to_bits());
            }
            ConstValue::Bool(value) => {
                self.number(2);
                self.number((*value).into());
            }
            ConstValue::Str(value) => {
                self.number(3);
                self.text(value);
            }
            ConstValue::None => self.number(4),
            ConstValue::Tuple { items, fields } => {
                self.number(5);
                self.list(items, Canonical::constant);
                self.fields(fields.as_deref());
            }
            ConstValue::DType(ty) => {
                self.number(6);
                self.ty(ty);
            }
            ConstValue::Function(name) => {
                self.number(7);
                self.text(name);
            }
            ConstValue::Opaque(text) => {
                self.number(8);
                self.text(text);
            }
        }
    }

    fn options(&mut self, options: &LaunchOptions) {
        // All of them by name: a new one must be thought of here.
        let LaunchOptions {
            num_warps,
            num_stages,
            num_ctas,
            maxnreg,
            enable_fp_fusion,
            launch_cooperative_grid,
            launch_pdl,
            overlap_launches,
            debug,
            sanitize_overflow,
            debug_info,
            enable_reflect_ftz,
            default_dot_input_precision,
            allowed_dot_input_precisions,
            max_num_imprecise_acc_default,
            warp_specialize,
            structure,
            plan,
            ptx_version,
            max_instructions,
            instrument,
        } = options;
        [num_warps, num_stages, num_ctas].into_iter().for_each(|value| self.number(u64::from(*value)));
        for value in [maxnreg, max_num_imprecise_acc_default, ptx_version] {
            self.optional(value.map(u64::from));
        }
        let flags = [
            enable_fp_fusion,
            launch_cooperative_grid,
            launch_pdl,
            overlap_launches,
            debug,
            sanitize_overflow,
            debug_info,
            enable_reflect_ftz,
            warp_specialize,
        ];
        flags.into_iter().for_each(|value| self.number((*value).into()));
        self.text(default_dot_input_precision);
        self.list(allowed_dot_input_precisions, |bytes, name| bytes.text(name));
        self.text(&structure.to_string());
        self.text(&plan.to_string());
        self.number(*max_instructions);
        self.number((*instrument).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use rtc_abi::spec::ArgSpec;

    fn program(name: &str, text: &str) -> Program {
        Program::parse(&[Source::new(name, text)])
    }

    fn specialization(args: Vec<ArgSpec>) -> Specialization {
        Specialization { kernel: "k".into(), args, options: LaunchOptions::default() }
    }

    fn constexpr(value: ConstValue) -> Specialization {
        specialization(vec![ArgSpec::constexpr("X", value)])
    }

    #[test]
    fn the_hash_depends_on_every_part() {
        let plain = specialization(Vec::new());
        let mut warps = plain.clone();
        warps.options.num_warps = 8;
        let mut stages = plain.clone();
        stages.options.num_stages = 8;
        let mut planned = plain.clone();
        planned.options.plan.ring = Some(2);
        let ty = ValueType::parse("i32").unwrap();
        let bitcode = b"BC\xC0\xDE some".to_vec();
        let all = [
            (program("a.rt", "x"), plain.clone(), "sm_80"),
            (program("a.rt", "x"), plain.clone(), "sm_90a"),
            (program("a.rt", "x"), warps, "sm_80"),
            (program("a.rt", "x"), stages, "sm_80"),
            (program("a.rt", "x"), planned, "sm_80"),
            (program("a.rt", "y"), plain.clone(), "sm_80"),
            (program("b.rt", "x"), plain.clone(), "sm_80"),
            (Program::parse(&[Source::new("a.rt", "x"), Source::new("b.rt", "")]), plain.clone(), "sm_80"),
            (program("a.rt", "x").with_libdevice(bitcode).unwrap(), plain, "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Int(1 << 80)), "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Str((1i128 << 80).to_string())), "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Int(1)), "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Bool(true)), "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Float(1.0)), "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Float(0.0)), "sm_80"),
            (program("a.rt", "x"), constexpr(ConstValue::Float(-0.0)), "sm_80"),
            (program("a.rt", "x"), specialization(vec![ArgSpec::value("X", ty, None)]), "sm_80"),
            (program("a.rt", "x"), specialization(vec![ArgSpec::value("X", ty, Some(16))]), "sm_80"),
        ];
        let hash = |(program, spec, arch): &(Program, Specialization, &str)| {
            (source_hash(program, spec, arch), fingerprint(program, spec, arch, false))
        };
        for (i, one) in all.iter().enumerate() {
            assert_eq!(hash(one), hash(&one.clone()));
            for (j, other) in all[..i].iter().enumerate() {
                assert!(hash(one).0 != hash(other).0 && hash(one).1 != hash(other).1, "{i} and {j}");
            }
        }
    }

    #[test]
    fn directories_do_not_count_unless_names_matter() {
        let spec = specialization(Vec::new());
        let (a, b) = (program("/home/a/k.rt", "x"), program("k.rt", "x"));
        assert_eq!(source_hash(&a, &spec, "sm_80"), source_hash(&b, &spec, "sm_80"));
        assert_eq!(fingerprint(&a, &spec, "sm_80", false), fingerprint(&b, &spec, "sm_80", false));
        assert_ne!(fingerprint(&a, &spec, "sm_80", true), fingerprint(&b, &spec, "sm_80", true));
        assert!(!names_matter(&a, &spec));
        assert!(names_matter(&program("k.rt", "tl.device_assert(x)"), &spec));
        assert!(names_matter(&program("a \"b\".rt", "x"), &spec));
    }

    #[test]
    fn levels_count_by_what_they_do() {
        let spec = specialization(Vec::new());
        let with = |sets: &[(&str, Level)]| {
            let mut levels = Levels::default();
            sets.iter().for_each(|(name, level)| levels.set(name, *level).unwrap());
            fingerprint(&program("k.rt", "x").with_levels(levels), &spec, "sm_80", false)
        };
        assert_eq!(with(&[]), with(&[("missing-mask", Level::Deny), ("missing-mask", Level::Warn)]));
        assert_ne!(with(&[]), with(&[("missing-mask", Level::Deny)]));
        assert_ne!(with(&[]), with(&[("warnings", Level::Deny)]));
        assert_ne!(with(&[]), with(&[("narrowing-store", Level::Warn)]));
    }
}
