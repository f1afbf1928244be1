//! Instructions with a member mask: shuffles, votes, matches, reductions.

use rtc_ptx::Modifier;

use super::atomics::{Unit, combine};
use super::step::Step;
use super::warp::{Next, Wait, lanes_where, mask_of};
use crate::alu::Lanes;
use crate::code::{NONE, ShuffleMode, Src, WarpOp};
use crate::fault::FaultKind;

impl Step<'_, '_> {
    pub(super) fn together(&mut self, op: &WarpOp, members: Src) -> Result<Next, (FaultKind, u32)> {
        let masks = *self.source(members);
        let (mut rest, mut waiting, mut needed_by_waiting) = (self.active, 0, 0);
        let mut complete = Vec::new();
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let mask = masks[lane as usize] as u32;
            let same = lanes_where(rest, |lane| masks[lane] as u32 == mask);
            rest &= !same;
            let stranger = same & !mask;
            if stranger != 0 {
                let lane = stranger.trailing_zeros();
                let text = format!("lane {lane} is not in its own member mask {mask:#010x}");
                return Err((FaultKind::InvalidInstruction(text), lane));
            }
            self.inspect_members(same, mask);
            // Lanes that ended take no part any more.
            if mask & self.warp.live & !same == 0 {
                complete.push(same);
            } else {
                waiting |= same;
                needed_by_waiting |= mask;
            }
        }
        for lanes in complete {
            self.perform(lanes, op);
        }
        if waiting == 0 {
            return Ok(Next::Step);
        }
        self.warp.split_waiting(self.group, waiting, Wait::Together { needed: needed_by_waiting });
        self.group.pc += 1;
        Ok(Next::Choose)
    }

    fn perform(&mut self, lanes: u32, op: &WarpOp) {
        let source = |source: Src| *self.source(source);
        match *op {
            WarpOp::Barrier => {}
            WarpOp::Shuffle(mode, to, predicate, [a, b, c]) => {
                let (values, inside, from) = shuffle(mode, &source(a), &source(b), &source(c));
                if self.state.sanitizer.is_some() {
                    self.inspect_shuffle(lanes, &from);
                }
                self.write_lanes(to, lanes, &values);
                self.write_lanes(predicate, lanes, &inside);
            }
            WarpOp::Vote(which, to, predicate) => {
                let held = mask_of(&source(predicate)) & lanes;
                let value = match which {
                    Modifier::All => u32::from(held == lanes),
                    Modifier::Any => u32::from(held != 0),
                    Modifier::Uni => u32::from(held == lanes || held == 0),
                    _ => held,
                };
                self.write_lanes(to, lanes, &[value.into(); 32]);
            }
            WarpOp::Match(all, to, predicate, value) => {
                let values = source(value);
                let matching: Lanes =
                    std::array::from_fn(|i| u64::from(lanes_where(lanes, |lane| values[lane] == values[i])));
                if all {
                    let equal = matching[lanes.trailing_zeros() as usize] as u32 == lanes;
                    self.write_lanes(to, lanes, &[if equal { lanes.into() } else { 0 }; 32]);
                    self.write_lanes(predicate, lanes, &[equal.into(); 32]);
                } else {
                    self.write_lanes(to, lanes, &matching);
                    self.write_lanes(predicate, lanes, &[1; 32]);
                }
            }
            WarpOp::Reduce(op, signed, to, value) => {
                let values = source(value);
                let ty = if signed { Modifier::S32 } else { Modifier::U32 };
                let members = (0..32).filter(|lane| lanes >> lane & 1 == 1).map(|lane| values[lane]);
                let result = members.reduce(|a, b| combine(op, ty, a, b, Unit::Thread)).unwrap_or(0);
                self.write_lanes(to, lanes, &[result; 32]);
            }
            WarpOp::Elect(to, predicate) => {
                let leader = lanes.trailing_zeros();
                self.write_lanes(to, lanes, &[leader.into(); 32]);
                if predicate != NONE {
                    let is_leader: Lanes = std::array::from_fn(|lane| u64::from(lane as u32 == leader));
                    self.write_lanes(predicate, lanes, &is_leader);
                }
            }
        }
    }
}

/// Values and predicates of `shfl`, and the lanes that the values are from.
fn shuffle(mode: ShuffleMode, a: &Lanes, b: &Lanes, c: &Lanes) -> (Lanes, Lanes, Lanes) {
    let (mut values, mut inside, mut lanes) = ([0; 32], [0; 32], [0; 32]);
    for lane in 0..32i64 {
        let i = lane as usize;
        let distance = (b[i] & 31) as i64;
        let (clamp, segment) = ((c[i] & 31) as i64, (c[i] >> 8 & 31) as i64);
        let highest = (lane & segment) | (clamp & !segment);
        let lowest = lane & segment;
        let (from, within) = match mode {
            ShuffleMode::Up => (lane - distance, lane - distance >= highest),
            ShuffleMode::Down => (lane + distance, lane + distance <= highest),
            ShuffleMode::Butterfly => (lane ^ distance, (lane ^ distance) <= highest),
            ShuffleMode::Index => {
                let from = lowest | (distance & !segment);
                (from, from <= highest)
            }
        };
        let from = if within { from } else { lane };
        lanes[i] = (from & 31) as u64;
        values[i] = a[(from & 31) as usize];
        inside[i] = u64::from(within);
    }
    (values, inside, lanes)
}
