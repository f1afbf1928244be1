//! The configurations as a picture: a bar for each, the fastest on top.

use crate::report::TuningReport;
use std::fmt::Write;

/// Height of a row.
const ROW: usize = 18;
/// Where the bars begin.
const LEFT: usize = 430;
/// Reads in light and in dark.
const STYLE: &str = "<style>text { fill: #222 } .ground { fill: #fff } @media (prefers-color-scheme: dark) \
                     { text { fill: #ddd } .ground { fill: #16181c } }</style>";
/// How long the longest bar is.
const BAR: usize = 420;

impl TuningReport {
    /// The configurations as an SVG picture: the time of each as a bar, what the cost model expected as a line across it.
    pub fn to_svg(&self) -> String {
        let ranked = self.ranked();
        let expected = |i: &usize| self.candidates[*i].prediction.map(|p| p.milliseconds);
        let most =
            ranked.iter().flat_map(|i| [self.milliseconds(*i), expected(i)]).flatten().fold(0.0, f64::max).max(1e-9);
        let length = |time: f64| time / most * BAR as f64;
        let (width, height) = (LEFT + BAR + 90, 50 + ROW * ranked.len());
        let mut out = String::new();
        let device = if self.device.is_empty() { &self.arch } else { &self.device };
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" \
             font-size=\"12\">\n{STYLE}\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
             <text x=\"10\" y=\"20\" font-size=\"14\">{} on {}: milliseconds; line: cost model</text>\n",
            escaped(&self.kernel),
            escaped(device)
        );
        for (row, number) in ranked.iter().enumerate() {
            let candidate = &self.candidates[*number];
            let y = 36 + row * ROW;
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                LEFT - 8,
                y + 12,
                escaped(&candidate.choice.to_string())
            );
            if let Some(time) = self.milliseconds(*number) {
                let color = if row == 0 { "#2a7f3f" } else { "#7aa6c2" };
                let _ = writeln!(
                    out,
                    "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{color}\"/>\n\
                     <text x=\"{:.1}\" y=\"{}\">{time:.4}</text>",
                    length(time),
                    ROW - 4,
                    LEFT as f64 + length(time) + 4.0,
                    y + 12
                );
            }
            if let Some(time) = expected(number) {
                let x = LEFT as f64 + length(time);
                let _ = writeln!(
                    out,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\" stroke=\"#b03030\" stroke-width=\"2\"/>",
                    y + ROW - 4
                );
            }
        }
        out + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
