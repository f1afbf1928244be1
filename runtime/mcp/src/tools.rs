//! The tools: what each is for, what it takes, and what it gives.

use serde_json::{Map, Value, json};

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Check,
    Compile,
    Layouts,
    Verify,
    Run,
    Counters,
    Tune,
    ExplainSpeed,
    Precision,
    Bench,
    Explain,
}

impl Tool {
    pub(crate) const ALL: [Tool; 11] = [
        Tool::Check,
        Tool::Compile,
        Tool::Layouts,
        Tool::Verify,
        Tool::Run,
        Tool::Counters,
        Tool::Tune,
        Tool::ExplainSpeed,
        Tool::Precision,
        Tool::Bench,
        Tool::Explain,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Check => "check",
            Tool::Compile => "compile",
            Tool::Layouts => "layouts",
            Tool::Verify => "verify",
            Tool::Run => "run",
            Tool::Counters => "counters",
            Tool::Tune => "tune",
            Tool::ExplainSpeed => "explain_speed",
            Tool::Precision => "precision",
            Tool::Bench => "bench",
            Tool::Explain => "explain",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Tool::Check => {
                "Diagnostics of a source with Triton kernels: of its syntax, and with a signature of one kernel for it."
            }
            Tool::Compile => {
                "Compiles a kernel for a signature: what it needs (registers, shared memory), remarks on each decision, and PTX \
                 if asked for."
            }
            Tool::Layouts => "The tile IR of a kernel with the layout of each value: which thread holds which element.",
            Tool::Verify => {
                "Compares kernel_fn of a Python source with reference_fn on get_inputs(), on sizes around its blocks, larger \
                 sizes, other values and strides, with a sanitizer. The launches of a right kernel are kept for run, counters, \
                 tune and explain_speed."
            }
            Tool::Run => {
                "Launches a kernel of a verified source once more, with the sanitizer if asked for, and compares."
            }
            Tool::Counters => {
                "Instructions, memory traffic with the efficiency of its sectors, bank conflicts and divergence of a kernel of a \
                 verified source, in all and by line of the source (`by_line`), in the emulator."
            }
            Tool::Tune => {
                "Orders and, on a GPU, times configurations of a kernel of a verified source: time, estimate, registers, spilled \
                 bytes, shared memory and waves of each, the winner, what decided and how sure that is."
            }
            Tool::ExplainSpeed => {
                "What bounds the speed of a launch of a verified source (tensor cores, memory, issue slots, registers, occupancy, \
                 latency), how near it is to that bound, and the change of configuration or source that would help most."
            }
            Tool::Precision => {
                "The precision of kernel_fn against the reference in fp64, with the line that loses most bits."
            }
            Tool::Bench => "Times kernel_fn and reference_fn. Only for a source that verify has found right.",
            Tool::Explain => {
                "What the code of an error means and what to do, or what a function of the language takes and gives."
            }
        }
    }

    /// Whether it takes a launch that `verify` has kept.
    pub(crate) fn takes_launch(self) -> bool {
        matches!(self, Tool::Run | Tool::Counters | Tool::Tune | Tool::ExplainSpeed)
    }

    /// Whether it runs the Python source.
    pub(crate) fn is_of_python(self) -> bool {
        matches!(self, Tool::Verify | Tool::Precision | Tool::Bench)
    }

    pub(crate) fn input(self) -> Map<String, Value> {
        let text = |what: &str| json!({"type": "string", "description": what});
        let source = text("The text of the file, a Python module with @triton.jit functions.");
        let mut properties = json!({ "source": source });
        let more = match self {
            Tool::Check | Tool::Compile | Tool::Layouts => json!({
                "kernel": text("The kernel, where the source has several."),
                "signature": text(
                    "Types and values of the arguments in order, such as `*fp32:16, i32, 1024`: a type is an argument at run \
                     time, `:16` promises divisibility, a value is a constexpr."
                ),
                "arch": text("The target, such as sm_80 (the default) or sm_90a."),
                "options": {
                    "type": "object",
                    "description": "Launch options, such as {\"num_warps\": 8}.",
                    "additionalProperties": {"type": ["integer", "boolean", "number"]},
                },
            }),
            Tool::Verify => json!({
                "reference": text("The text of another file with reference_fn and get_inputs; not where the server has one."),
                "seed": {"type": "integer", "minimum": 0, "description": "Of the drawn sizes and values; repeats a run."},
                "fixed": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "Sizes that are meant to be the only ones in their place.",
                },
            }),
            Tool::Precision | Tool::Bench => json!({
                "reference": text("As for verify; not where the server has one."),
            }),
            Tool::Run => json!({
                "launch": {"type": "integer", "minimum": 0, "description": "The number of the launch [default: 0]."},
                "sanitize": text("Checks, such as `all` or `race,memory`."),
            }),
            Tool::Counters | Tool::Tune | Tool::ExplainSpeed => json!({
                "launch": {"type": "integer", "minimum": 0, "description": "The number of the launch [default: 0]."},
            }),
            Tool::Explain => {
                properties = json!({ "name": text("A code such as shape-mismatch, or a function such as tl.dot.") });
                json!({})
            }
        };
        let mut required = vec![if self == Tool::Explain { "name" } else { "source" }];
        if matches!(self, Tool::Compile | Tool::Layouts) {
            required.push("signature");
        }
        more_of(&mut properties, more);
        if self == Tool::Compile {
            more_of(
                &mut properties,
                json!({"ptx": {"type": "boolean", "description": "Whether to give the PTX, too."}}),
            );
        }
        object(json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }))
    }

    /// All tools answer in one form; `result` is the tool's own.
    pub(crate) fn output() -> Map<String, Value> {
        object(json!({
            "type": "object",
            "properties": {
                "ok": {"type": "boolean", "description": "Whether the command succeeded; of verify, whether the kernel is right."},
                "error": {
                    "type": ["object", "null"],
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
                "diagnostics": {
                    "type": "array",
                    "items": {"type": "object"},
                    "description": "Errors, warnings and remarks: severity, code, message, labels with lines and columns, help.",
                },
                "result": {"type": ["object", "null"], "description": "What the command of rtc writes as JSON, or `text`."},
                "seconds": {"type": "number"},
            },
            "required": ["ok", "error", "diagnostics", "result", "seconds"],
        }))
    }
}

fn more_of(properties: &mut Value, more: Value) {
    if let (Value::Object(properties), Value::Object(more)) = (properties, more) {
        properties.extend(more);
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
