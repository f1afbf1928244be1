//! The specialization that a kernel is analysed for: the one of a comment in the file, of a launch file beside it, or an
//! assumed one.
//!
//! ```text
//! # rtc: matmul(*fp16:16, *fp16:16, *fp32:16, i32, BLOCK=128) num_warps=8 arch=sm_90a
//! ```

use rtc_abi::Target;
use rtc_abi::spec::{LaunchOptions, Specialization};
use rtc_program::{Signature, Spec, set_option};
use rtc_source::json_fields::{self, Field};
use rtc_source::{Code, Diagnostic, FileId, Span};
use rtc_syntax::ast::FunctionDef;

use crate::session::Session;

/// The limit on the size of analysed kernels: longer ones would keep the editor waiting.
const MAX_INSTRUCTIONS: u64 = 50_000;

/// The target where none is chosen: the one that has everything.
const DEFAULT_ARCH: &str = "sm_90a";

/// The source of a specialization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A comment `# rtc: ...` in this line, from 0.
    Comment(u32),
    /// A file of this name.
    File(String),
    /// Nothing was chosen: types and sizes are assumed.
    Assumed,
}

/// A specialization with its source.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) spec: Specialization,
    pub(crate) target: &'static Target,
    pub(crate) origin: Origin,
    /// Assumed sizes with the parameters that have them; no two are equal.
    pub(crate) sizes: Vec<(String, u32)>,
}

/// A specialization that a kernel of a file is shown for.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// As a comment chooses it: `matmul(a=*fp16:16, n=i32, BLOCK=128) num_warps=8 arch=sm_90a`.
    pub text: String,
    /// Types and values of the arguments, and launch options.
    pub spec: Specialization,
    /// The target.
    pub target: &'static Target,
    /// Its source.
    pub origin: Origin,
}

impl Session {
    /// The specializations that the kernels of a file are shown for; kernels for which one is chosen come first.
    pub fn chosen(&mut self, name: &str) -> Vec<Chosen> {
        let Some(id) = self.id(name) else { return Vec::new() };
        let analysis = self.analysis(id);
        analysis.choices.iter().map(|(_, choice)| choice.chosen()).collect()
    }

    /// The specialization of a text as in a comment: `kernel(*fp16:16, i32, BLOCK=128) num_warps=8 arch=sm_90a`.
    ///
    /// # Errors
    ///
    /// The diagnostic of such a comment as one sentence.
    pub fn choose(&self, name: &str, text: &str) -> Result<Chosen, String> {
        let id = self.id(name).ok_or("the file is not open")?;
        let tree = &self.file(id).tree;
        let functions: Vec<&FunctionDef> = tree.functions().into_iter().filter(|f| f.is_jit()).collect();
        let line = format!("# rtc: {}", text.replace(['\n', '\r'], " "));
        let (mut choices, wrong) = from_comments(id, &line, &functions);
        match (choices.pop(), wrong.first()) {
            (Some(choice), _) => Ok(choice.chosen()),
            (None, Some(wrong)) => Err(match &wrong.help {
                Some(help) => format!("{}; {help}", wrong.message),
                None => wrong.message.clone(),
            }),
            (None, None) => Err("write `kernel(*fp16:16, i32, BLOCK=128)`".into()),
        }
    }
}

impl Choice {
    /// The specialization for users of this crate.
    fn chosen(&self) -> Chosen {
        // The limit is that of the analysis.
        let standard = LaunchOptions::default();
        let options = LaunchOptions { max_instructions: standard.max_instructions, ..self.spec.options.clone() };
        let mut text = self.text();
        let numbers = [
            ("num_warps", options.num_warps, standard.num_warps),
            ("num_stages", options.num_stages, standard.num_stages),
        ];
        for (name, value, usual) in numbers {
            if value != usual {
                text += &format!(" {name}={value}");
            }
        }
        text += &format!(" arch={}", self.target.name);
        let spec = Specialization { options, ..self.spec.clone() };
        Chosen { text, spec, target: self.target, origin: self.origin.clone() }
    }

    /// As a comment chooses it, without the comment's head.
    pub(crate) fn text(&self) -> String {
        let args: Vec<String> = self.spec.args.iter().map(|arg| format!("{}={}", arg.name, arg.kind)).collect();
        format!("{}({})", self.spec.kernel, args.join(", "))
    }
}

/// The options of an analysis.
pub(crate) fn options() -> LaunchOptions {
    LaunchOptions { max_instructions: MAX_INSTRUCTIONS, ..LaunchOptions::default() }
}

pub(crate) fn default_target() -> &'static Target {
    Target::named(DEFAULT_ARCH).expect("a target of the table")
}

/// A comment that chooses a specialization.
struct Comment<'t> {
    line: u32,
    /// Place of the comment's content.
    span: Span,
    kernel: &'t str,
    signature: &'t str,
    options: &'t str,
}

/// The specializations that comments of a file choose for its functions, and the errors of these comments.
pub(crate) fn from_comments(file: FileId, text: &str, functions: &[&FunctionDef]) -> (Vec<Choice>, Vec<Diagnostic>) {
    let (mut choices, mut wrong) = (Vec::new(), Vec::new());
    for found in comments(file, text) {
        match found.and_then(|comment| choose(&comment, functions)) {
            Ok(choice) => choices.push(choice),
            Err(diagnostic) => wrong.push(*diagnostic),
        }
    }
    (choices, wrong)
}

type Checked<T> = Result<T, Box<Diagnostic>>;

fn comments(file: FileId, text: &str) -> impl Iterator<Item = Checked<Comment<'_>>> {
    let mut at = 0;
    text.split_inclusive('\n').enumerate().filter_map(move |(line, whole)| {
        let start = at;
        at += whole.len();
        let content = whole.trim_start().strip_prefix('#')?.trim_start().strip_prefix("rtc:")?.trim();
        let from = start + (content.as_ptr() as usize - whole.as_ptr() as usize);
        let span = Span::new(file, from, from + content.len());
        let parts = content.split_once('(').and_then(|(kernel, rest)| Some((kernel.trim(), rest.rsplit_once(')')?)));
        let Some((kernel, (signature, options))) = parts else {
            let message = "this comment chooses no specialization";
            let help = "write `# rtc: kernel(*fp16:16, i32, BLOCK=128)`, with the types of arguments and the values of constexprs";
            return Some(Err(Box::new(Diagnostic::warning(Code::SIGNATURE, span, message).help(help))));
        };
        Some(Ok(Comment { line: line as u32, span, kernel, signature, options: options.trim() }))
    })
}

fn choose(comment: &Comment<'_>, functions: &[&FunctionDef]) -> Checked<Choice> {
    let wrong = |code, message: String| Box::new(Diagnostic::warning(code, comment.span, message));
    let Some(function) = functions.iter().rev().find(|f| *f.name.text == *comment.kernel) else {
        let names = functions.iter().map(|f| &*f.name.text);
        let mut found = wrong(Code::UNKNOWN_KERNEL, format!("the file has no kernel `{}`", comment.kernel));
        if let Some(close) = rtc_sema::suggest(comment.kernel, names) {
            let span = Span { end: comment.span.start + comment.kernel.len() as u32, ..comment.span };
            found = Box::new(found.help(format!("did you mean `{close}`?")).edit(span, close));
        }
        return Err(found);
    };
    let params: Vec<&str> = function.params.iter().map(|p| &*p.name.text).collect();
    let args = Signature::parse(comment.signature).and_then(|signature| signature.bind(&params));
    let args = args.map_err(|error| wrong(Code::SIGNATURE, error.to_string()))?;
    let (mut options, mut target) = (options(), default_target());
    for word in comment.options.split_whitespace() {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| wrong(Code::SPEC, format!("`{word}` is no option; write `num_warps=8` or `arch=sm_90a`")))?;
        if name == "arch" {
            target = Target::named(value).map_err(|error| wrong(Code::UNSUPPORTED_TARGET, error.to_string()))?;
            continue;
        }
        let value = json_fields::parse(value).unwrap_or_else(|_| value.into());
        set_option(&mut options, name, &Field::root(&value))
            .map_err(|error| wrong(Code::SPEC, format!("option `{name}`: {error}")))?;
    }
    let spec = Specialization { kernel: comment.kernel.to_owned(), args, options };
    Ok(Choice { spec, target, origin: Origin::Comment(comment.line), sizes: Vec::new() })
}

/// The names of files in which a launch of the kernels of a file is looked for.
pub(crate) fn launch_files(name: &str) -> Vec<String> {
    let folder = name.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let stem = crate::session::stem(name);
    [format!("{stem}.launch.json"), format!("{stem}.json"), "launch.json".into(), "spec.json".into()]
        .map(|file| format!("{folder}{file}"))
        .to_vec()
}

/// The specialization of a launch file or SPEC.json, if it is for one of the functions.
pub(crate) fn from_launch_file(name: &str, text: &str, functions: &[&FunctionDef]) -> Option<Choice> {
    let json = json_fields::parse(text).ok()?;
    let root = Field::root(&json);
    let spec = match root.optional("spec").ok()? {
        Some(spec) => Spec::from_field(&spec),
        None => Spec::from_field(&root),
    };
    let spec = spec.ok()?;
    let kernel = match &spec.kernel {
        Some(kernel) => functions.iter().find(|f| *f.name.text == **kernel)?,
        None => match functions {
            [only] => only,
            _ => return None,
        },
    };
    let target = match spec.arch.as_deref() {
        Some(arch) => Target::named(arch).ok()?,
        None => default_target(),
    };
    let options = LaunchOptions { max_instructions: MAX_INSTRUCTIONS, ..spec.options };
    let spec = Specialization { kernel: kernel.name.text.to_string(), args: spec.args, options };
    Some(Choice { spec, target, origin: Origin::File(name.to_owned()), sizes: Vec::new() })
}
