//! The engine's front door: tell it what happened, ask it what should happen.

use std::collections::{BTreeMap, BTreeSet};

use crate::account::Account;
use crate::cluster::Cluster;
use crate::decide::arriving::Arriving;
use crate::decide::ceiling::Ceilings;
use crate::decide::gang::Gangs;
use crate::decide::renew::Stale;
use crate::decide::shortage::Shortages;
use crate::decide::status::News;
use crate::decide::strict::StrictHeads;
use crate::decide::victims::Payers;
use crate::decide::wanted::Wanted;
use crate::decision::{ClusterQueueStatus, Decision, LocalQueueStatus, Settings};
use crate::event::{Event, GangId, Millis, Name, Outcome, Plan, PodUid};
use crate::queue::Waiting;
use crate::quota::Quotas;
use crate::reason::{QueueInactive, Reason};
use crate::world::World;

/// The state of a cluster and what follows from it.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) world: World,
    pub(crate) cluster: Cluster,
    pub(crate) quotas: Quotas,
    pub(crate) gangs: Gangs,
    /// The commit records, as read.
    pub(crate) plans: BTreeMap<GangId, Plan>,
    /// Gangs whose plan disappeared since the last decision.
    pub(crate) plans_lost: BTreeSet<GangId>,
    /// Who waits for quota or places.
    pub(crate) waiting: Waiting<Wanted>,
    pub(crate) shortages: Shortages,
    pub(crate) ceilings: Ceilings,
    /// The version of the nodes' facts that certificates were made with.
    pub(crate) nodes_seen: u64,
    pub(crate) stale: Stale,
    /// ClusterQueues that do not admit, and why.
    pub(crate) inactive: BTreeMap<Name, QueueInactive>,
    /// An object changed on which anything may depend.
    pub(crate) reconfigured: bool,
    /// Namespaces that changed since the last decision.
    pub(crate) changed_namespaces: BTreeSet<Name>,
    /// LocalQueues that did, by namespace and name.
    pub(crate) changed_doors: BTreeSet<(Name, Name)>,
    /// Gangs of which something was heard since the last decision, and of which of their pods.
    pub(crate) touched: BTreeMap<GangId, BTreeSet<PodUid>>,
    /// Gangs that keep quota until their pods end.
    pub(crate) lingering: BTreeSet<GangId>,
    /// Gangs that hold quota, by ClusterQueue.
    pub(crate) payers: Payers,
    /// Gangs for which something is kept while their victims leave.
    pub(crate) holders: BTreeSet<GangId>,
    /// Of those, whose hold has to be looked at: something was heard of it, or of one of its victims.
    pub(crate) holds_moved: BTreeSet<GangId>,
    /// Of which a plan says so, and that was not taken up yet.
    pub(crate) holds_found: BTreeSet<GangId>,
    /// Topmost cohorts (or queues without one) in which somebody who holds quota became easier to evict: his
    /// priority changed, or he leaves.
    pub(crate) reranked: BTreeSet<Name>,
    /// StrictFIFO heads that wait and keep something from others meanwhile.
    pub(crate) strict_heads: StrictHeads,
    /// Topmost cohorts (or queues without one) in which quota was given back.
    pub(crate) released: BTreeSet<Name>,
    /// Those in which such a head keeps nothing any more, or something else.
    pub(crate) unkept: BTreeSet<Name>,
    /// Gangs that hold quota and whose pods are not known to be ready; kept only where others wait for that.
    pub(crate) getting_ready: BTreeSet<GangId>,
    /// Gangs that wait for those.
    pub(crate) blocked: BTreeSet<GangId>,
    /// Groups whose pods are coming in, and who lets them go first.
    pub(crate) arriving: Arriving,
    /// When to look at a gang again although nothing is heard of it.
    pub(crate) timers: BTreeSet<(Millis, GangId)>,
    /// Gangs whose reason may have changed.
    pub(crate) to_tell: BTreeSet<GangId>,
    pub(crate) news: News,
}

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            world: World::default(),
            cluster: Cluster::default(),
            quotas: Quotas::default(),
            gangs: Gangs::new(),
            plans: BTreeMap::new(),
            plans_lost: BTreeSet::new(),
            waiting: Waiting::default(),
            shortages: Shortages::default(),
            ceilings: Ceilings::default(),
            nodes_seen: 0,
            stale: Stale::default(),
            inactive: BTreeMap::new(),
            reconfigured: false,
            changed_namespaces: BTreeSet::new(),
            changed_doors: BTreeSet::new(),
            touched: BTreeMap::new(),
            lingering: BTreeSet::new(),
            payers: Payers::new(),
            holders: BTreeSet::new(),
            holds_moved: BTreeSet::new(),
            holds_found: BTreeSet::new(),
            reranked: BTreeSet::new(),
            strict_heads: StrictHeads::new(),
            released: BTreeSet::new(),
            unkept: BTreeSet::new(),
            getting_ready: BTreeSet::new(),
            blocked: BTreeSet::new(),
            arriving: Arriving::default(),
            timers: BTreeSet::new(),
            to_tell: BTreeSet::new(),
            news: News::default(),
        }
    }

    /// Takes in a fact. Cheap, idempotent, and independent of the order in which objects of
    /// different types arrive. What is known when the first decision is asked for is taken as
    /// what a restart found.
    pub fn apply(&mut self, event: Event, now: Millis) {
        self.take_in(event, now);
    }

    /// Takes in how a decision turned out. May come before or after the watch event that shows
    /// the same.
    pub fn confirm(&mut self, outcome: Outcome, now: Millis) {
        self.take_outcome(outcome, now);
    }

    /// Decides all that can be decided now. What is returned is already reserved.
    pub fn decide(&mut self, now: Millis) -> Vec<Decision> {
        self.cycle(now)
    }

    /// When time alone changes an answer next (a time-out, the end of a back-off). Valid after
    /// [`decide`](Self::decide).
    pub fn next_wakeup(&self) -> Option<Millis> {
        let timer = self.timers.first().map(|(when, _)| *when);
        timer.into_iter().chain(self.stale.due()).min()
    }

    /// Why a gang waits, with the numbers as they were when it was last decided; `None` if it does
    /// not.
    pub fn reason(&self, gang: &GangId) -> Option<Reason> {
        self.reason_now(gang).map(|reason| (*reason).clone())
    }

    /// All that can be said of how a gang does and what would help it, as of the last decision; `None` if it is
    /// not known. For people who ask: it costs a decision on a copy of the state for everything that might help.
    pub fn explain(&self, gang: &GangId, now: Millis) -> Option<Account> {
        self.account_of(gang, now)
    }

    /// How many pods of each of its sets, in the order of its admission, an admitted gang pays for:
    /// fewer than it was admitted with when some ended or were lost and are not waited for.
    pub fn paid(&self, gang: &GangId) -> Option<&[u32]> {
        self.gangs.get(gang)?.held.as_ref().map(|held| held.paid.as_slice())
    }

    /// Whether a gang waits and is the first of its queue.
    pub fn is_head(&self, gang: &GangId) -> bool {
        self.waiting.is_first(gang)
    }

    /// ClusterQueues whose status changed since the last call, in name order.
    pub fn changed_cluster_queues(&mut self) -> Vec<ClusterQueueStatus> {
        self.take_cluster_queue_news()
    }

    /// Under fair sharing: Cohorts of which the weighted share (in thousandths) changed since the last
    /// call, in name order.
    pub fn changed_cohorts(&mut self) -> Vec<(Name, i64)> {
        self.take_cohort_news()
    }

    /// LocalQueues whose status changed since the last call, in name order.
    pub fn changed_local_queues(&mut self) -> Vec<LocalQueueStatus> {
        self.take_local_queue_news()
    }

    /// Verifies the invariants of ARCHITECTURE.md that the engine alone can see; number 5 by
    /// deciding from scratch. For tests: costs as much as a restart.
    ///
    /// # Errors
    /// One line per violation.
    pub fn check(&self, now: Millis) -> Result<(), Vec<String>> {
        crate::check::check(self, now)
    }

    /// Verifies that decisions reserved no more than there was room and quota for, given the
    /// engine as it was before them (and after it was told all that it knew then).
    ///
    /// # Errors
    /// One line per violation.
    pub fn check_decisions(
        &self,
        before: &Self,
        decisions: &[Decision],
        now: Millis,
    ) -> Result<(), Vec<String>> {
        crate::check::check_decisions(before, decisions, self, now)
    }
}
