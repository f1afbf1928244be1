//! The forms of `forms.txt` as kernels.

use std::fmt::Write;

use super::inputs::{column, kind_of};
use super::launch::{Launch, Param, Part};

/// Threads of a block.
const THREADS: usize = 64;

/// One line of `forms.txt`.
pub struct Form<'a> {
    destinations: &'a str,
    sources: Vec<&'a str>,
    pub text: &'a str,
    /// How far the hardware may be from the result, for approximations: in ulp, or as a power of two.
    pub ulp: u64,
    pub power: Option<i32>,
}

/// All forms.
pub fn forms() -> Vec<Form<'static>> {
    include_str!("forms.txt").lines().filter_map(read).collect()
}

fn read(line: &str) -> Option<Form<'_>> {
    let line = line.split('#').next()?.trim();
    let (head, text) = line.split_once(':')?;
    let mut words = head.split_whitespace();
    let destinations = words.next()?;
    let (ulp, sources): (Vec<&str>, Vec<&str>) = words.partition(|w| w.starts_with('~'));
    let (ulp, power) = match ulp.first().map(|w| w[1..].split_once('@').unwrap_or((&w[1..], ""))) {
        Some((ulp, power)) => (ulp.parse().unwrap(), power.parse().ok()),
        None => (0, None),
    };
    Some(Form { destinations, sources, text: text.trim(), ulp, power })
}

fn width(kind: char) -> (&'static str, usize) {
    match kind {
        'h' => ("b16", 16),
        'r' => ("b32", 32),
        'd' => ("b64", 64),
        _ => ("pred", 32),
    }
}

impl Form<'_> {
    /// Operand sets: all that there are for one operand of 16 bits in a floating-point format.
    fn sets(&self) -> usize {
        match self.sources[..] {
            _ if self.ulp > 0 => 1024,
            ["f16" | "bf16" | "f8"] => 1 << 16,
            [] => THREADS,
            _ => 4096,
        }
    }

    /// Lane i of register `$aj` is number (i + 37 j) mod N of the column. `$m` and `$s` are 16 bytes of each thread in
    /// global and shared memory, `%odd` is true in odd lanes.
    fn kernel(&self) -> String {
        let (n, text) = (self.sets(), self.text);
        let mut k = String::from(".version 8.4\n.target sm_90a\n.address_size 64\n");
        k.push_str(
            ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po, .param .u64 pm)\n{\n",
        );
        k.push_str(".reg .b64 %x<8>; .reg .b32 %y<4>; .reg .pred %q; .reg .pred %odd; .reg .b64 %m; .reg .b32 %s;\n");
        writeln!(k, "mov.u32 %y0, %tid.x; and.b32 %y1, %y0, 1; setp.ne.b32 %odd, %y1, 0;").unwrap();
        if text.contains("$s") {
            writeln!(
                k,
                ".shared .align 16 .b8 cells[{}]; mov.u32 %s, cells; mad.lo.u32 %s, %y0, 16, %s;",
                16 * THREADS
            )
            .unwrap();
        }
        writeln!(k, "mov.u32 %y1, %ctaid.x; mad.lo.u32 %y0, %y1, {THREADS}, %y0;").unwrap();
        k.push_str("ld.param.b64 %m, [pm]; mul.wide.u32 %x1, %y0, 16; add.s64 %m, %m, %x1;\n");
        for (letter, class) in "abc".chars().zip(&self.sources) {
            let (register, bits) = width(kind_of(class));
            writeln!(k, "ld.param.b64 %x0, [p{letter}];").unwrap();
            for j in (0..8).filter(|j| text.contains(&format!("${letter}{j}"))) {
                writeln!(k, ".reg .{register} %{letter}{j};").unwrap();
                writeln!(
                    k,
                    "add.s32 %y1, %y0, {}; and.b32 %y1, %y1, {}; mul.wide.u32 %x1, %y1, 8; add.s64 %x2, %x0, %x1;",
                    37 * j,
                    n - 1
                )
                .unwrap();
                if register == "pred" {
                    writeln!(k, "ld.global.b32 %y2, [%x2]; setp.ne.b32 %{letter}{j}, %y2, 0;").unwrap();
                } else {
                    writeln!(k, "ld.global.b{bits} %{letter}{j}, [%x2];").unwrap();
                }
            }
        }
        for (j, kind) in self.destinations.chars().enumerate() {
            writeln!(k, ".reg .{} %d{j};", width(kind).0).unwrap();
        }
        let end = if text.starts_with("{ ") { "" } else { ";" };
        writeln!(k, "{}{end}\nld.param.b64 %x0, [po];", text.replace('$', "%")).unwrap();
        for ((j, kind), part) in self.destinations.chars().enumerate().zip(self.parts()) {
            writeln!(k, "mul.wide.u32 %x1, %y0, {}; add.s64 %x2, %x0, %x1;", part.bytes).unwrap();
            if kind == 'p' {
                writeln!(k, "selp.b32 %y2, 1, 0, %d{j}; st.global.b32 [%x2+{}], %y2;", part.offset).unwrap();
            } else {
                writeln!(k, "st.global.b{} [%x2+{}], %d{j};", 8 * part.bytes, part.offset).unwrap();
            }
        }
        k.push_str("ret;\n}\n");
        k
    }

    fn parts(&self) -> Vec<Part> {
        let mut offset = 0;
        let part = |kind| {
            let part = Part { offset, count: self.sets(), bytes: width(kind).1 / 8 };
            offset += part.count * part.bytes;
            part
        };
        self.destinations.chars().map(part).collect()
    }

    /// The executor of the form.
    pub fn launch(&self) -> Launch {
        let n = self.sets();
        let parts = self.parts();
        let size = parts.iter().map(|p| p.count * p.bytes).sum::<usize>();
        let mut params: Vec<Param> = (0..3)
            .map(|which| match self.sources.get(which) {
                Some(class) => Param::In(column(class, which, n).iter().flat_map(|v| v.to_le_bytes()).collect()),
                None => Param::In(vec![0; 8]),
            })
            .collect();
        params.extend([Param::Out(vec![0; size]), Param::In(vec![0; 16 * n])]);
        Launch {
            name: self.text.to_string(),
            ptx: self.kernel(),
            blocks: n / THREADS,
            threads: THREADS,
            shared: 0,
            params,
            parts,
            all: self.ulp > 0,
            ulp: self.ulp,
            power: self.power,
            pairs: self.text.split_whitespace().next().is_some_and(|op| op.ends_with("x2")),
        }
    }
}
