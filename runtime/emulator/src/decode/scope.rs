//! Resolution of names: registers, variables, labels, special registers.

use std::collections::HashMap;

use crate::code::{Reg, Special};

/// The object of a name.
#[derive(Clone, Debug)]
pub enum Symbol {
    /// A register and its width in bits.
    Register(Reg, u32),
    /// A variable of the function's frame: offset, size.
    Frame(u32, u32),
    /// A kernel parameter: offset.
    Param(u32),
    /// A shared variable: offset.
    Shared(u32),
    /// A variable in global or constant memory, by index.
    Global(usize),
    /// A label.
    Label(usize),
    /// A list of labels.
    Targets(Vec<String>),
}

/// The names of one pair of braces.
#[derive(Default)]
pub struct Scope {
    /// The names in scope.
    pub names: HashMap<String, Symbol>,
    /// `%r<10>`: start, count, width.
    pub ranges: HashMap<String, (Reg, u32, u32)>,
    /// Shared variables of functions, by name and line; outermost scope only.
    pub locals: HashMap<(String, u32), Symbol>,
}

impl Scope {
    /// Looks up a name.
    pub fn find(&self, name: &str) -> Option<Symbol> {
        if let Some(symbol) = self.names.get(name) {
            return Some(symbol.clone());
        }
        if self.ranges.is_empty() {
            return None;
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // The stem itself may end in a digit (`%r1_<3>` cannot, `%f1<3>` can): try longer stems too.
        (stem.len()..name.len()).find_map(|n| {
            let (start, count, width) = *self.ranges.get(&name[..n])?;
            let index: u32 = name[n..].parse().ok()?;
            (index < count).then_some(Symbol::Register(start + index, width))
        })
    }
}

/// A special register and its width.
pub fn special(name: &str) -> Option<(Special, u32)> {
    let dimension = |part: &str| match part {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if let Some((stem, part)) = name.split_once('.') {
        let n = dimension(part)?;
        let special = match stem {
            "%tid" => Special::Tid(n),
            "%ntid" => Special::Ntid(n),
            "%ctaid" => Special::Ctaid(n),
            "%nctaid" => Special::Nctaid(n),
            "%clusterid" => Special::ClusterId(n),
            "%nclusterid" => Special::NclusterId(n),
            "%cluster_ctaid" => Special::ClusterCtaid(n),
            "%cluster_nctaid" => Special::ClusterNctaid(n),
            _ => return None,
        };
        return Some((special, 32));
    }
    Some(match name {
        "%laneid" => (Special::Laneid, 32),
        "%warpid" => (Special::Warpid, 32),
        "%nwarpid" => (Special::Nwarpid, 32),
        "%smid" => (Special::Zero, 32),
        "%nsmid" => (Special::One, 32),
        "%gridid" => (Special::Zero, 64),
        "%cluster_ctarank" => (Special::ClusterCtarank, 32),
        "%cluster_nctarank" => (Special::ClusterNctarank, 32),
        "%lanemask_eq" => (Special::LanemaskEq, 32),
        "%lanemask_le" => (Special::LanemaskLe, 32),
        "%lanemask_lt" => (Special::LanemaskLt, 32),
        "%lanemask_ge" => (Special::LanemaskGe, 32),
        "%lanemask_gt" => (Special::LanemaskGt, 32),
        "%clock" => (Special::Clock, 32),
        "%clock_hi" => (Special::ClockHi, 32),
        "%clock64" | "%globaltimer" => (Special::Clock64, 64),
        "%dynamic_smem_size" => (Special::DynamicSmemSize, 32),
        "%total_smem_size" => (Special::TotalSmemSize, 32),
        _ => return None,
    })
}
