//! Compares the emulator with an NVIDIA H200: every form of `hardware/forms.txt` on edge cases and random operands, and
//! `wgmma` of every type. `hardware/make.py` made `hardware/hardware.bin` on that GPU; it holds the first results of each
//! form, and of all a digest.
//!
//! ```text
//! RTC_HARDWARE_EXPORT=FOLDER cargo test -p rtc-emulator --test hardware      writes the kernels and what they read
//! python3 runtime/emulator/tests/hardware/make.py FOLDER                     on the machine with the GPU: hardware.bin
//! RTC_HARDWARE_FULL=full.bin cargo test -p rtc-emulator --test hardware      shows where results differ, of a file made there
//! ```
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

#[path = "wgmma/case.rs"]
#[allow(dead_code, reason = "planted mistakes are another test's")]
mod case;
#[path = "hardware/form.rs"]
mod form;
#[path = "hardware/inputs.rs"]
mod inputs;
#[path = "hardware/launch.rs"]
mod launch;
#[path = "hardware/products.rs"]
mod products;

use launch::{Data, Launch};

/// Every launch, in the order of `hardware.bin`.
fn launches() -> Vec<Launch> {
    let forms = form::forms();
    forms.iter().map(form::Form::launch).chain(products::products()).collect()
}

/// Compares one of `of` parts of all launches.
fn agree(part: usize, of: usize) {
    if let Some(folder) = std::env::var_os("RTC_HARDWARE_EXPORT") {
        return if part == 0 {
            export(Path::new(&folder))
        };
    }
    let full = std::env::var_os("RTC_HARDWARE_FULL").map(|path| fs::read(path).unwrap());
    let mut data = full.as_deref().unwrap_or(include_bytes!("hardware/hardware.bin"));
    let (mut failures, mut sets, mut count) = (Vec::new(), 0, 0);
    for (i, launch) in launches().iter().enumerate() {
        let size = match full {
            Some(_) => u32::from_le_bytes(data.split_off(..4).unwrap().try_into().unwrap()) as usize,
            None => launch.stored(),
        };
        let stored = data.split_off(..size).unwrap();
        if i % of != part || size == 0 {
            continue;
        }
        count += 1;
        sets += launch.sets();
        let compared = if full.is_some() { launch.compare_all(stored) } else { launch.compare(stored) };
        if let Err(difference) = compared {
            failures.push(format!("{}: {difference}", launch.name));
        }
    }
    assert!(data.is_empty(), "hardware.bin does not belong to forms.txt");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    println!("{count} forms, {sets} operand sets");
}

#[test]
fn forms_agree_with_hardware_1() {
    agree(0, 4);
}

#[test]
fn forms_agree_with_hardware_2() {
    agree(1, 4);
}

#[test]
fn forms_agree_with_hardware_3() {
    agree(2, 4);
}

#[test]
fn forms_agree_with_hardware_4() {
    agree(3, 4);
}

/// Writes what `make.py` needs.
fn export(folder: &Path) {
    let mut data = Data::default();
    let (mut plan, mut ptx, mut expected) = (String::new(), String::new(), Vec::new());
    for launch in launches() {
        plan.push_str(&launch.line(&mut data));
        plan.push('\n');
        expected.extend(launch.expected().to_le_bytes());
        ptx.push_str(&launch.ptx);
        ptx.push_str("\n//====\n");
    }
    fs::write(folder.join("plan.txt"), plan).unwrap();
    fs::write(folder.join("kernels.ptx"), ptx).unwrap();
    fs::write(folder.join("expected.bin"), expected).unwrap();
    fs::write(folder.join("inputs.bin"), data.bytes).unwrap();
}
