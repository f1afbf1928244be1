//! Vector clocks of warps: the events that happened before.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A moment of an agent: a warp, or something that works for one asynchronously. Time 0 is before the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Who, see [`super::Agents`].
    pub agent: u32,
    /// When, in its own count.
    pub time: u32,
}

/// Up to which time each agent's actions are known; agents beyond the end are known up to 0.
#[derive(Clone, Debug, Default)]
pub struct Clock(Vec<u32>);

impl Clock {
    /// The time of an agent.
    pub fn get(&self, agent: u32) -> u32 {
        self.0.get(agent as usize).copied().unwrap_or(0)
    }

    /// Learns that an agent reached a time.
    pub fn raise(&mut self, agent: u32, time: u32) {
        let i = agent as usize;
        if self.0.len() <= i {
            self.0.resize(i + 1, 0);
        }
        self.0[i] = self.0[i].max(time);
    }

    /// Joins another clock.
    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an epoch is known to be over.
    pub fn covers(&self, epoch: Epoch) -> bool {
        self.get(epoch.agent) >= epoch.time
    }
}

/// The clocks of other clusters, by cluster and agent. Mostly empty.
#[derive(Clone, Debug, Default)]
pub struct World(Option<Arc<BTreeMap<(u32, u32), u32>>>);

impl World {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Up to which time the actions of an agent of a cluster are known.
    pub fn get(&self, cluster: u32, agent: u32) -> u32 {
        self.0.as_ref().and_then(|known| known.get(&(cluster, agent))).copied().unwrap_or(0)
    }

    /// Joins another one.
    pub fn join(&mut self, other: &World) {
        let Some(theirs) = &other.0 else { return };
        match &mut self.0 {
            None => self.0 = Some(theirs.clone()),
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let mine = Arc::make_mut(mine);
                for (agent, time) in theirs.iter() {
                    let known = mine.entry(*agent).or_default();
                    *known = (*known).max(*time);
                }
            }
        }
    }

    /// Joins the clock of a cluster for its own agents.
    pub fn add(&mut self, cluster: u32, clock: &Clock) {
        let mine = Arc::make_mut(self.0.get_or_insert_default());
        for (agent, time) in clock.0.iter().enumerate().filter(|(_, time)| **time > 0) {
            let known = mine.entry((cluster, agent as u32)).or_default();
            *known = (*known).max(*time);
        }
    }

    /// The part for a cluster, as that one's clock.
    pub fn of(&self, cluster: u32) -> Clock {
        let mut clock = Clock::default();
        for (agent, time) in self.0.iter().flat_map(|known| known.range((cluster, 0)..=(cluster, u32::MAX))) {
            clock.raise(agent.1, *time);
        }
        clock
    }
}

/// The clocks that a barrier passes from warp to warp.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// The events that happened before.
    pub seen: Clock,
    /// The part that is visible to the asynchronous proxy: events before a `fence.proxy.async`.
    pub fenced: Clock,
    /// Events in other clusters.
    pub world: World,
}

impl Knowledge {
    /// Joins another one.
    pub fn join(&mut self, other: &Knowledge) {
        self.seen.join(&other.seen);
        self.fenced.join(&other.fenced);
        self.world.join(&other.world);
    }
}
