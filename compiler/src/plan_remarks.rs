//! Remarks about a plan that was given: numbers that were lowered, and decisions that are not applicable to the kernel. They
//! are found by compiling with other decisions, as far as the schedule.

use rtc_abi::spec::LaunchOptions;
use rtc_abi::{Plan, PlanValue, Target};
use rtc_ir::{Kernel, Op, OpKind, Phase, regions};
use rtc_source::{Code, Diagnostic, Span};

use crate::Failure;
use crate::stages::{Silent, run_pipeline};

/// The remarks about the plan of `options`; none if it is empty.
pub(crate) fn remarks(
    kernel: &Kernel,
    options: &LaunchOptions,
    target: &'static Target,
) -> Result<Vec<Diagnostic>, Failure> {
    let plan = options.plan;
    if plan == Plan::default() {
        return Ok(Vec::new());
    }
    let scheduled = |plan: Plan| {
        let mut kernel = kernel.clone();
        let options = LaunchOptions { plan, ..options.clone() };
        run_pipeline(&mut kernel, target, &options, Phase::Scheduled, &mut Silent)?;
        Ok::<_, Failure>(rtc_ir::text::print(&kernel))
    };
    let with = scheduled(plan)?;
    let span = place(kernel);
    // Another decision may be refused, as more slots than memory holds; then this one has an effect.
    let is_same = |name, value| scheduled(plan.with(name, Some(value))).is_ok_and(|other| other == with);
    let mut remarks = Vec::new();
    for (name, value) in plan.given() {
        let has_effect = match value {
            PlanValue::Number(_) => [1, 2, 3].into_iter().any(|other| !is_same(name, PlanValue::Number(other))),
            PlanValue::Answer(answer) => !is_same(name, PlanValue::Answer(!answer)),
        };
        let mut message = (!has_effect).then(|| "has no effect on this kernel".to_owned());
        if let PlanValue::Number(number) = value
            && has_effect
        {
            let least = least_same(number, |number| is_same(name, PlanValue::Number(number)));
            message = (least < number).then(|| format!("is lowered to {least}, the most that this kernel can use"));
        }
        let text = message.map(|message| format!("`{name}={value}` of the plan {message}"));
        remarks.extend(text.map(|text| Diagnostic::remark(Code::PLAN, span, text)));
    }
    Ok(remarks)
}

/// The first dot in a loop, whose schedule a plan is about; otherwise the first loop.
fn place(kernel: &Kernel) -> Span {
    let all = rtc_ir::walk(kernel);
    let dot = |op: &Op| matches!(kernel.kind(*op), OpKind::Dot { .. }) && regions::loop_around(kernel, *op).is_some();
    let found = all.iter().copied().find(dot);
    let found = found.or_else(|| all.iter().copied().find(|op| regions::is_loop(kernel.kind(*op))));
    found.and_then(|op| kernel.loc(kernel.op(op).loc).span).unwrap_or_default()
}

/// The least number with the same effect as `number`. Numbers are lowered to the most that is possible, so that all between
/// these two have the same effect.
fn least_same(number: u32, is_same: impl Fn(u32) -> bool) -> u32 {
    let (mut different, mut same) = (0, number);
    while different + 1 < same {
        let middle = (different + same) / 2;
        if is_same(middle) { same = middle } else { different = middle }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::least_same;

    #[test]
    fn the_number_that_is_used_is_found() {
        for number in 1..=16 {
            for most in 1..=16 {
                assert_eq!(least_same(number, |other| other.min(most) == number.min(most)), number.min(most));
            }
        }
    }
}
