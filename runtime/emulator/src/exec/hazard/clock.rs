//! What a warp knows to have happened: vector clocks.

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

    /// Learns what another clock knows.
    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether an epoch is known to be over.
    pub fn covers(&self, epoch: Epoch) -> bool {
        self.get(epoch.agent) >= epoch.time
    }
}

/// What is handed from warp to warp at a barrier.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// What happened.
    pub seen: Clock,
    /// What of it the asynchronous proxy sees too: what happened before a `fence.proxy.async`.
    pub fenced: Clock,
}

impl Knowledge {
    /// Learns what another one knows.
    pub fn join(&mut self, other: &Knowledge) {
        self.seen.join(&other.seen);
        self.fenced.join(&other.fenced);
    }
}
