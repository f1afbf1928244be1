//! Executes the PTX texts under `tests/hand`: each says in its comments how to launch it and what must come out.
//!
//! Lines that begin with `//!` are read:
//! ```text
//! //! launch KERNEL [grid=1,1,1] [block=32,1,1] [shared=0] [cluster=1,1,1] [budget=N] [seeds=N]
//! //! in NAME TYPE: values          an allocation, passed as the next parameter
//! //! arg TYPE: value               a scalar, passed as the next parameter
//! //! map NAME TYPE: dims=64,8 strides=256 box=64,4 [every=1,1] [swizzle=128] [fill=nan] [offset=N]
//! //!                               a tensor map of an allocation (from a byte offset), passed as the next parameter
//! //! out NAME TYPE: values         what an allocation must hold after the launch (from its start)
//! //! fault: text || text           the launch must fail, and its message must hold one of these texts
//! //! error: text                   loading must fail, and its message must hold this text
//! //! print: text                   the launch must print this line
//! //! finding: text                 the launch must give a finding with this text, and as many as there are such lines
//! ```
//! Values are integers, `0x` bits, decimal floats for `f32` and `f64`, `nan`, `inf`, `-inf`; `V*N` repeats; `a..b`
//! counts from a to b - 1; `_` in `out` is not compared. Several launches share a file; each starts afresh. With
//! `seeds=N` a launch runs in order and then under N random schedules, and the same must come out.
#![allow(clippy::unwrap_used)]

use rtc_emulator::tensor_map::{ElementType, Fill, TensorMap};
use rtc_emulator::{LaunchConfig, Memory, Program, Schedule};

fn bytes_of(ty: &str) -> usize {
    ty[1..].parse::<usize>().unwrap() / 8
}

fn value(ty: &str, text: &str) -> u64 {
    let parsed = if let Some(hex) = text.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).unwrap()
    } else if ty == "f32" {
        u64::from(text.parse::<f32>().unwrap_or_else(|_| panic!("`{text}`")).to_bits())
    } else if ty == "f64" {
        text.parse::<f64>().unwrap_or_else(|_| panic!("`{text}`")).to_bits()
    } else {
        text.parse::<i128>().unwrap_or_else(|_| panic!("`{text}`")) as u64
    };
    let bits = bytes_of(ty) * 8;
    if bits == 64 { parsed } else { parsed & ((1 << bits) - 1) }
}

fn values(ty: &str, text: &str) -> Vec<Option<u64>> {
    let mut list = Vec::new();
    for word in text.split_whitespace() {
        if let Some((a, b)) = word.split_once("..") {
            let (a, b): (i64, i64) = (a.parse().unwrap(), b.parse().unwrap());
            list.extend((a..b).map(|v| Some(value(ty, &v.to_string()))));
            continue;
        }
        let (one, count) = match word.split_once('*') {
            Some((one, count)) => (one, count.parse().unwrap()),
            None => (word, 1),
        };
        let one = if one == "_" { None } else { Some(value(ty, one)) };
        list.extend(std::iter::repeat_n(one, count));
    }
    list
}

fn show(ty: &str, bits: u64) -> String {
    match ty {
        "f32" => format!("{:#010x} ({})", bits, f32::from_bits(bits as u32)),
        "f64" => format!("{:#018x} ({})", bits, f64::from_bits(bits)),
        _ => format!("{bits:#x}"),
    }
}

/// The tensor map that the words of a `map` line describe.
fn tensor_map(ty: &str, address: u64, words: &str) -> [u8; 128] {
    let list =
        |text: &str| -> Vec<u64> { text.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect() };
    let small = |text: &str| -> Vec<u32> { list(text).iter().map(|n| *n as u32).collect() };
    let mut map = TensorMap {
        ty: ElementType::from_text(ty).unwrap(),
        address,
        dims: Vec::new(),
        strides: Vec::new(),
        box_dims: Vec::new(),
        element_strides: Vec::new(),
        swizzle: 0,
        fill: Fill::Zero,
        l2_promotion: 0,
    };
    for word in words.split_whitespace() {
        match word.split_once('=').unwrap() {
            ("dims", text) => map.dims = list(text),
            ("strides", text) => map.strides = list(text),
            ("box", text) => map.box_dims = small(text),
            ("every", text) => map.element_strides = small(text),
            ("swizzle", text) => map.swizzle = text.parse().unwrap(),
            ("offset", text) => map.address += text.parse::<u64>().unwrap(),
            ("fill", "nan") => map.fill = Fill::Nan,
            other => panic!("unknown word {other:?}"),
        }
    }
    map.element_strides.resize(map.dims.len(), 1);
    map.encode().unwrap()
}

/// Runs one launch of a file, in order and under random schedules; `lines` are those after its `launch` line.
fn run_all(program: &Program, header: &str, lines: &[&str]) -> Result<(), String> {
    let seeds = header.split_whitespace().find_map(|w| w.strip_prefix("seeds=")).map_or(0, |n| n.parse().unwrap());
    run(program, header, lines, Schedule::InOrder)?;
    (0..seeds).try_for_each(|seed| {
        run(program, header, lines, Schedule::Random(seed)).map_err(|error| format!("seed {seed}: {error}"))
    })
}

fn run(program: &Program, header: &str, lines: &[&str], schedule: Schedule) -> Result<(), String> {
    let mut words = header.split_whitespace();
    let mut config = LaunchConfig::new(words.next().unwrap());
    let three = |text: &str| {
        let mut list = text.split(',').map(|n| n.parse().unwrap());
        [list.next().unwrap(), list.next().unwrap_or(1), list.next().unwrap_or(1)]
    };
    config.budget = Some(10_000_000);
    config.schedule = schedule;
    for word in words {
        let (key, text) = word.split_once('=').unwrap();
        match key {
            "grid" => config.grid = three(text),
            "block" => config.block = three(text),
            "cluster" => config.cluster = three(text),
            "shared" => config.shared_bytes = text.parse().unwrap(),
            "seeds" => {}
            "budget" => config.budget = Some(text.parse().unwrap()),
            _ => panic!("unknown key `{key}`"),
        }
    }
    let mut memory = Memory::new();
    let mut names = Vec::new();
    let mut params: Vec<u8> = Vec::new();
    let mut push = |bytes: &[u8]| {
        params.resize(params.len().next_multiple_of(bytes.len().min(64)), 0);
        params.extend_from_slice(bytes);
    };
    for line in lines {
        let (key, text) = line.split_once(':').unwrap_or((line, ""));
        let words: Vec<&str> = key.split_whitespace().collect();
        match words[..] {
            ["in", name, ty] => {
                let data: Vec<u8> =
                    values(ty, text).iter().flat_map(|v| v.unwrap().to_le_bytes()[..bytes_of(ty)].to_vec()).collect();
                let address = memory.alloc(data.len(), 16, name);
                memory.write(address, &data).unwrap();
                names.push((name, address));
                push(&address.to_le_bytes());
            }
            ["arg", ty] => push(&value(ty, text.trim()).to_le_bytes()[..bytes_of(ty)]),
            ["map", name, ty] => {
                let address = names.iter().find(|n| n.0 == name).unwrap_or_else(|| panic!("no `{name}`")).1;
                push(&tensor_map(ty, address, text));
            }
            ["out", ..] | ["fault"] | ["print"] | ["finding"] => {}
            _ => panic!("unknown line `{line}`"),
        }
    }
    config.params = &params;
    let result = program.launch(&mut memory, &config);
    let faults: Vec<&str> = lines.iter().filter_map(|l| l.strip_prefix("fault:")).map(str::trim).collect();
    match &result {
        Ok(_) if !faults.is_empty() => return Err("no fault".to_string()),
        Err(fault) if faults.is_empty() => return Err(fault.to_string()),
        Err(fault) => {
            let text = fault.to_string();
            if let Some(missing) = faults.iter().find(|f| !f.split(" || ").any(|f| text.contains(f))) {
                return Err(format!("`{missing}` is not in the fault: {text}"));
            }
        }
        Ok(report) => {
            let expected: Vec<&str> = lines.iter().filter_map(|l| l.strip_prefix("finding:")).map(str::trim).collect();
            let found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            let told = expected.iter().all(|e| found.iter().any(|f| f.contains(e)));
            if found.len() != expected.len() || !told {
                return Err(format!("findings {found:?}, not {expected:?}"));
            }
            let wanted: Vec<&str> = lines.iter().filter_map(|l| l.strip_prefix("print: ")).collect();
            if !wanted.is_empty() && report.printed.lines().collect::<Vec<_>>() != wanted {
                return Err(format!("printed {:?}", report.printed));
            }
        }
    }
    for line in lines.iter().filter(|l| l.starts_with("out ")) {
        let (key, text) = line.split_once(':').unwrap();
        let words: Vec<&str> = key.split_whitespace().collect();
        let [_, name, ty] = words[..] else { panic!("`{line}`") };
        let address = names.iter().find(|n| n.0 == name).unwrap_or_else(|| panic!("no `{name}`")).1;
        for (i, wanted) in values(ty, text).into_iter().enumerate() {
            let n = bytes_of(ty);
            let mut bytes = [0; 8];
            bytes[..n].copy_from_slice(memory.read(address + (i * n) as u64, n).map_err(|e| e.to_string())?);
            let found = u64::from_le_bytes(bytes);
            if wanted.is_some_and(|w| w != found) {
                return Err(format!("{name}[{i}] is {}, not {}", show(ty, found), show(ty, wanted.unwrap())));
            }
        }
    }
    Ok(())
}

#[test]
fn hand_written_ptx_does_what_its_comments_say() {
    let mut failures = Vec::new();
    let mut seen = 0;
    for folder in ["hand", "llvm"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "ptx")) {
            let text = std::fs::read_to_string(path).unwrap();
            let lines: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("//! ")).map(str::trim_end).collect();
            let name = path.file_name().unwrap().to_string_lossy();
            let program = Program::load(&text);
            if let Some(wanted) = lines.iter().find_map(|l| l.strip_prefix("error: ")) {
                seen += 1;
                match program {
                    Err(error) if error.to_string().contains(wanted) => {}
                    other => failures.push(format!("{name}: expected the error `{wanted}`: {:?}", other.err())),
                }
                continue;
            }
            let program = match program {
                Ok(program) => program,
                Err(error) => {
                    failures.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let starts: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].starts_with("launch ")).collect();
            if starts.is_empty() {
                failures.push(format!("{name}: no launch"));
            }
            for (n, start) in starts.iter().enumerate() {
                seen += 1;
                let end = starts.get(n + 1).copied().unwrap_or(lines.len());
                if let Err(error) = run_all(&program, &lines[*start]["launch ".len()..], &lines[start + 1..end]) {
                    failures.push(format!("{name}, {}: {error}", lines[*start]));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} of {seen}:\n{}", failures.len(), failures.join("\n"));
    assert!(seen > 5, "only {seen} launches");
}
