//! Moving a tile between layouts that differ only within warps, by shuffles.
//!
//! If both layouts give a warp the same elements there is a linear map from a position of the result to a position of
//! the source: `T(register, lane) = (register', lane')`. One shuffle moves one element per lane: each lane sends one of
//! its registers, and reads from one lane. A plan has three parts, all of them functions of the lane that are linear
//! over GF(2):
//!
//! 1. *Send*: each lane exchanges its registers so that register `r` holds what was in `r ^ send(lane)`.
//! 2. *Rounds*: `received[i] = shfl(register rounds[i].register, from lane source_lane(lane) ^ rounds[i].lane)`.
//! 3. *Receive*: result `r` is `received[slot[r] ^ receive(lane)]`.
//!
//! Exchanges are butterflies of selects ([`LaneXor::stages`]): for each stage `(lanes, registers)` the pairs
//! `r, r ^ registers` swap in lanes where the parity of `lane & lanes` is odd.
//!
//! Why it works: a round delivers to lane l the element of result slot `i ^ receive(l)`. Let `S(l)` be the lane part of
//! `T(receive(l), l)` and `R(l)` its register part. Choosing `receive` so that `S(l) = 0` implies `R(l) = 0` makes the
//! register a function of the sending lane, and that is `send`.
//!
//! Example: rows of 4 elements in each of 32 lanes become columns of 4: T swaps two register bits with two lane bits,
//! `S` would be singular without help, so `receive` adds a slot bit for each of the two. The transpose takes 4 rounds
//! (one of which stays in the lane) and two stages of selects on either side.

use crate::gf2::{self, Span};
use crate::linear::{LANE_BITS, Layout};

/// A linear function from lanes to register numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LaneXor {
    /// Its value for each lane bit.
    pub columns: [u32; LANE_BITS],
}

impl LaneXor {
    /// The value in a lane.
    pub fn apply(self, lane: u32) -> u32 {
        (0..LANE_BITS).filter(|i| lane >> i & 1 == 1).fold(0, |sum, i| sum ^ self.columns[i])
    }

    /// The exchanges that realize `register r takes r ^ apply(lane)`: `(lanes, registers)` for each stage, to be
    /// applied in any order. In lanes where the parity of `lane & lanes` is odd, swap `r` and `r ^ registers`.
    pub fn stages(self) -> Vec<(u32, u32)> {
        let columns = self.columns.map(u64::from);
        let basis = gf2::independent(&[], &columns);
        let span = Span::of(basis.iter().copied());
        let mut stages: Vec<(u32, u32)> = basis.iter().map(|&registers| (0, registers as u32)).collect();
        for (lane_bit, &column) in columns.iter().enumerate() {
            let sum = span.express(column).expect("the basis spans the columns");
            for (i, stage) in stages.iter_mut().enumerate() {
                stage.0 |= ((sum >> i & 1) as u32) << lane_bit;
            }
        }
        stages
    }
}

/// One shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShuffleRound {
    /// The register that each lane sends, after the send exchange.
    pub register: u32,
    /// XORed to the source lane.
    pub lane: u32,
}

/// A conversion by shuffles; see the top of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    /// The exchange before the shuffles.
    pub send: LaneXor,
    /// The lane that lane 1 << i reads from, per lane bit.
    pub source_lane: [u32; LANE_BITS],
    /// The shuffles; a power of two of them.
    pub rounds: Vec<ShuffleRound>,
    /// The exchange after the shuffles, on round numbers.
    pub receive: LaneXor,
    /// For each register of the result, the round number (after the exchange) that delivers it.
    pub slot: Vec<u32>,
}

impl ShufflePlan {
    /// The lane that `lane` reads from in a round.
    pub fn source(&self, round: ShuffleRound, lane: u32) -> u32 {
        LaneXor { columns: self.source_lane }.apply(lane) ^ round.lane
    }

    /// If each lane reads from `lane ^ mask` in this round: the mask (0: no shuffle is needed, the value stays).
    pub fn butterfly(&self, round: ShuffleRound) -> Option<u32> {
        (0..LANE_BITS).all(|i| self.source_lane[i] == 1 << i).then_some(round.lane)
    }

    /// Shuffles and selects per thread, for elements of up to 32 bits.
    pub fn instructions(&self, src_registers: u32) -> u32 {
        let shuffles = self.rounds.iter().filter(|&&round| self.butterfly(round) != Some(0)).count() as u32;
        let selects = |exchange: LaneXor, registers: u32| exchange.stages().len() as u32 * registers;
        shuffles + selects(self.send, src_registers) + selects(self.receive, self.rounds.len() as u32)
    }
}

/// A plan for converting `src` to `dst` by shuffles within warps, if the construction finds one.
pub fn shuffle_plan(src: &Layout, dst: &Layout) -> Option<ShufflePlan> {
    if src.shape != dst.shape || src.warp != dst.warp || src.block != dst.block {
        return None;
    }
    let registers = src.register.len();
    let source = Span::of(src.register.iter().chain(&src.lane).copied());
    // Places are packed as register | lane << registers.
    let lane_of = |place: u64| place >> registers;
    let result = dst.without_duplicate_registers();
    let from_register: Vec<u64> = result.register.iter().map(|&v| source.express(v)).collect::<Option<_>>()?;
    let mut from_lane: Vec<u64> = dst.lane.iter().map(|&v| source.express(v)).collect::<Option<_>>()?;
    // Places that hold the same element differ by the kernel: where it allows that, stay in the same lane.
    let kernel = gf2::kernel(&[&src.register[..], &src.lane].concat());
    let kernel_lanes: Vec<u64> = kernel.iter().map(|&place| lane_of(place)).collect();
    for (bit, place) in from_lane.iter_mut().enumerate() {
        if let Some(choice) = gf2::solve(&kernel_lanes, lane_of(*place) ^ 1 << bit) {
            *place ^= gf2::apply(&kernel, choice);
        }
    }
    let mut receive = LaneXor::default();
    let mut chosen = Span::default();
    let mut clashing = Vec::new();
    let mut inserted: Vec<u64> = Vec::new();
    for (bit, &place) in from_lane.iter().enumerate() {
        if chosen.insert(lane_of(place)) {
            inserted.push(place);
        } else {
            inserted.push(0);
            clashing.push(bit);
        }
    }
    for bit in clashing {
        let sum = chosen.express(lane_of(from_lane[bit])).unwrap_or_default();
        // `chosen` counts clashing lanes as well; they are never part of a sum.
        if from_lane[bit] == gf2::apply(&inserted, sum) {
            continue; // a copy of what other lanes read: the same element from the same place
        }
        let by_kernel = kernel.iter().map(|&place| (place, 0));
        let by_slot = from_register.iter().enumerate().map(|(i, &place)| (place, 1u32 << i));
        let (place, slot) = by_kernel.chain(by_slot).find(|&(place, _)| !chosen.contains(lane_of(place)))?;
        from_lane[bit] ^= place;
        receive.columns[bit] = slot;
        chosen.insert(lane_of(from_lane[bit]));
        inserted.push(from_lane[bit]);
    }
    // The register sent is a function of the sending lane, zero on lanes that no one reads from.
    let mask = (1u64 << registers) - 1;
    let sender = gf2::independent(&[], &from_lane.iter().map(|&place| lane_of(place)).collect::<Vec<u64>>());
    let others = gf2::independent(&sender, &[1, 2, 4, 8, 16]);
    let every = Span::of(from_lane.iter().map(|&place| lane_of(place)).chain(others));
    let send_of = |lane: u64| {
        let sum = every.express(lane).unwrap_or_default() & 31;
        gf2::apply(&from_lane, sum) & mask
    };
    let send = LaneXor { columns: std::array::from_fn(|bit| send_of(1 << bit) as u32) };
    let rounds = (0..1u64 << from_register.len()).map(|slot| {
        let place = gf2::apply(&from_register, slot);
        // In the sending lane s = S(l) ^ lane(place): send(s) = R(l) ^ send(lane(place)).
        let constant = send.apply(lane_of(place) as u32);
        ShuffleRound { register: (place & mask) as u32 ^ constant, lane: lane_of(place) as u32 }
    });
    let independent = Span::of(result.register.iter().copied());
    let slot = (0..dst.registers()).map(|r| {
        let element = gf2::apply(&dst.register, r.into());
        independent.express(element).map(|slot| slot as u32)
    });
    Some(ShufflePlan {
        send,
        source_lane: std::array::from_fn(|bit| lane_of(from_lane[bit]) as u32),
        rounds: rounds.collect(),
        receive,
        slot: slot.collect::<Option<_>>()?,
    })
}
