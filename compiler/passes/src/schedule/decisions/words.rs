//! Decisions as sentences.

use rtc_ir::{Kernel, OpKind, Type, place_bytes};

use super::{Form, LEAST_SLOTS, Read, Way, programs, roles};

/// `1 iteration`, `2 iterations`.
pub(super) fn iterations(number: u32) -> String {
    format!("{number} iteration{}", if number == 1 { "" } else { "s" })
}

/// `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// What was decided, as one sentence.
pub(super) fn sentence(forms: &[Form]) -> String {
    let parts: Vec<String> = forms.iter().map(of_form).collect();
    format!("the loop is {}", parts.join("; "))
}

fn of_form(form: &Form) -> String {
    let when = form.when.as_ref().map(|when| format!("{when} ")).unwrap_or_default();
    let early = early(form);
    let what = match form.way {
        Way::Plain => format!("{when}not pipelined: {}", form.said),
        Way::Registers => format!("{when}pipelined: loads from {early} begin {}", form.said),
        Way::Async => format!("{when}pipelined: copies from {early} begin {}", form.said),
        Way::Roles => format!("{when}pipelined: copies from {early} are begun by a warp of their own; {}", form.said),
    };
    let others: Vec<String> = form.reads.iter().filter(|read| !is_early(form, read)).map(shown).collect();
    match others.is_empty() {
        true => what,
        false => format!("{what}; each iteration loads from {}", listed(&others)),
    }
}

/// What is begun ahead.
fn early(form: &Form) -> String {
    let names: Vec<String> = form.reads.iter().filter(|read| is_early(form, read)).map(shown).collect();
    listed(&names)
}

/// Whether it is begun ahead in the way of the loop; loads into registers beside copies are told of, too.
fn is_early(form: &Form, read: &Read) -> bool {
    form.way > Way::Plain && read.way > Way::Plain
}

fn shown(read: &Read) -> String {
    match (read.way, read.bytes) {
        (Way::Roles, _) => format!("{} (TMA)", read.name),
        (Way::Async, Some(bytes)) => format!("{} (`cp.async`, {bytes} bytes at a time)", read.name),
        (Way::Registers, _) => format!("{} (into registers)", read.name),
        (_, Some(1)) => format!("{} (1 byte at a time)", read.name),
        (_, Some(bytes)) => format!("{} ({bytes} bytes at a time)", read.name),
        (_, None) => format!("{} (a number)", read.name),
    }
}

/// What `better` does better than `now`.
pub(super) fn change(now: &[Form], better: &[Form]) -> String {
    let worst = |forms: &[Form]| forms.iter().map(|form| form.way).min();
    match better {
        [form] if worst(now) < Some(form.way) => match form.way {
            Way::Roles => format!("a warp of its own copies from {}", early(form)),
            Way::Async => format!("copies from {} begin ahead", early(form)),
            Way::Registers => format!("loads from {} begin ahead", early(form)),
            Way::Plain => "it is another loop".into(),
        },
        [form] => format!("it reads from {}", listed(&form.reads.iter().map(shown).collect::<Vec<_>>())),
        several => sentence(several),
    }
}

/// How the warps of a kernel are divided.
pub(super) fn division(kernel: &Kernel) -> String {
    let division = kernel.specialization().map(|op| kernel.kind(op));
    let Some(OpKind::WarpSpecialize { warps, registers }) = division else { return String::new() };
    let (mut bytes, mut slots) = (0, 0);
    for op in rtc_ir::walk(kernel).into_iter().filter(|op| roles::is_ring(kernel, *op)) {
        let Type::Shared(ty) = kernel.value_type(kernel.result(op, 0)) else { continue };
        // One alone is an operand that loops read since before them.
        if ty.slots < LEAST_SLOTS {
            continue;
        }
        slots = ty.slots;
        bytes += place_bytes(Type::Shared(ty)) / u64::from(ty.slots);
    }
    let copying = warps.first().copied().unwrap_or_default();
    let computing: u32 = warps.iter().skip(1).sum();
    let own = registers.as_deref().unwrap_or_default();
    let [few, many] = [own.first(), own.last()].map(|number| number.copied().unwrap_or_default());
    let blocks = kernel.persistent.map_or(1, |persistent| persistent.blocks_per_multiprocessor);
    let overlaps = |op| matches!(kernel.kind(op), OpKind::MmaWait { pending: 1 });
    let overlap = match rtc_ir::walk(kernel).into_iter().any(overlaps) {
        true => "; the second product of an iteration runs together with the first one of the next",
        false => "",
    };
    format!(
        "the warps are divided into roles: {copying} copy tiles with {few} registers a thread, {computing} compute with \
         {many}; {slots} slots of {bytes} bytes, {}{overlap}",
        programs::described(blocks)
    )
}
