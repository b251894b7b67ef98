//! A gang and what it holds: the words in which its life is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::hold::Hold;
use crate::decision::Admission;
use crate::event::{Gang, GangId, Labels, Millis, Name, PodSet, PodUid, Shape, Toleration, Who};
use crate::fit::Ask;
use crate::minima::Minima;
use crate::quota::Charge;
use crate::reason::{Reason, UndoReason};

/// What is known of a gang.
#[derive(Clone, Debug, Default)]
pub(crate) struct GangState {
    /// What its objects say; `None` while they are not known, or not any more.
    pub(crate) fact: Option<Gang>,
    /// Whose pods are its members: from its objects, else from its plan.
    pub(crate) owners: Vec<Name>,
    /// Its objects are gone for good; what is left are pods that still hold quota.
    pub(crate) gone: bool,
    /// What it holds since it was admitted.
    pub(crate) held: Option<Held>,
    /// Quota of an earlier admission, kept until its last bound pod is gone or terminal.
    pub(crate) lingering: Option<Lingering>,
    /// What is kept for it while its victims leave.
    pub(crate) hold: Option<Hold>,
    /// It leaves for this gang, whose its quota is already.
    pub(crate) given_up_to: Option<GangId>,
    /// Gangs that had it evicted and are still there.
    pub(crate) preempted_by: BTreeSet<GangId>,
    /// The ClusterQueue among whose payers it is noted, and the priority as which.
    pub(crate) pays: Option<(Name, i32)>,
    /// Shapes of pod sets as their real pods showed them, where they differ from the prediction.
    pub(crate) learnt: BTreeMap<Name, Arc<Shape>>,
    /// How often it was undone since it last was whole.
    pub(crate) undos: u32,
    /// It is not decided before this time, for what became of its last admission.
    pub(crate) not_before: Millis,
    /// Its admission has ended; what is heard of its plan is an echo until that is gone.
    pub(crate) plan_echoes: bool,
    /// The same of its status, until that was seen without an admission.
    pub(crate) status_echoes: bool,
    /// The reason that was told last.
    pub(crate) told: Option<Arc<Reason>>,
    /// Its entry among the timers.
    pub(crate) due: Option<Millis>,
}

/// Quota that outlives its admission.
#[derive(Clone, Debug)]
pub(crate) struct Lingering {
    pub(crate) charge: Charge,
    pub(crate) since: Millis,
}

/// How far an admission is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Decided, and not yet known to be written down.
    Assumed,
    /// Written down.
    Committed,
    /// Written down, but newer places of it are not yet known to be.
    Replacing,
    /// Being taken back.
    Undoing(UndoReason),
}

/// What an admitted gang holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) phase: Phase,
    pub(crate) admission: Admission,
    /// Per pod set, how many pods it pays quota for.
    pub(crate) paid: Vec<u32>,
    pub(crate) charge: Charge,
    /// The shapes of its pods were known when its places were charged.
    pub(crate) shaped: bool,
    /// Where its members sit, one entry per pod set, in the order of the admission. Changed
    /// through [`Held::sit`] only, which keeps what follows.
    pub(crate) sets: Vec<SeatSet>,
    /// Members that have a seat.
    pub(crate) seat_of: BTreeMap<PodUid, SeatRef>,
    /// Living members without a seat.
    pub(crate) unseated: BTreeSet<PodUid>,
    /// Seats by what they are.
    pub(crate) by_kind: BTreeMap<SeatKind, BTreeSet<SeatRef>>,
    /// Pods that the API server refused to bind for good; until something is heard of them.
    pub(crate) refused: BTreeSet<PodUid>,
    /// Its minimum ran together once.
    pub(crate) was_whole: bool,
    /// Found admitted and without places: it gets some at once, or leaves.
    pub(crate) orphan: bool,
    /// It got its quota alone, because of admission checks: when they are passed it gets places at once, or leaves.
    pub(crate) parked: bool,
    /// All of its members are bound, and that was told.
    pub(crate) settled: bool,
    /// When its places were decided.
    pub(crate) decided_at: Millis,
    /// When it got its quota.
    pub(crate) reserved_at: Millis,
    /// When something last went forward: a member was created, bound or lost.
    pub(crate) progressed_at: Millis,
    /// Nothing is tried again before this time.
    pub(crate) retry_at: Millis,
}

/// One pod set's seats and what all of them share.
#[derive(Clone, Debug)]
pub(crate) struct SeatSet {
    pub(crate) name: Name,
    /// The role of its pods, as the gang's objects say.
    pub(crate) role: Option<Name>,
    /// Its pods' predicted shape; `None` while the gang's objects have not said so.
    pub(crate) shape: Option<Arc<Shape>>,
    /// The Topology of its flavor.
    pub(crate) topology: Option<Name>,
    /// Node labels of its flavors.
    pub(crate) node_labels: Labels,
    /// Tolerations that its flavors give.
    pub(crate) tolerations: Vec<Toleration>,
    /// By ordinal. Empty where the policy decides no places.
    pub(crate) seats: Vec<Seat>,
    /// How many seats are of which kind.
    pub(crate) kinds: [u32; SeatKind::ALL],
}

/// One member's place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seat {
    /// Its node; `None` while it has none.
    pub(crate) node: Option<Name>,
    /// The shape that it is kept for, once that differs from the predicted one.
    pub(crate) shape: Option<Arc<Shape>>,
    pub(crate) state: SeatState,
}

/// Who sits there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum SeatState {
    /// Nobody. Its place is kept.
    #[default]
    Open,
    /// This pod will be bound there.
    Promised(PodUid),
    /// The binding of this pod was decided, and its outcome is not known.
    Sent(PodUid),
    /// This pod is bound.
    Bound(PodUid),
    /// This pod is on its way out and takes the place until it is gone.
    Vacating(PodUid),
    /// This pod ended well.
    Done(PodUid),
}

/// The kinds of [`SeatState`], in the order in which a new member looks for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SeatKind {
    Open,
    Done,
    Vacating,
    Promised,
    Sent,
    Bound,
}

impl SeatKind {
    /// How many kinds there are.
    const ALL: usize = 6;
}

/// Pod set and ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatRef {
    pub(crate) set: usize,
    pub(crate) ordinal: usize,
}

impl GangState {
    /// It is not decided before this time: after a step of ours failed, or as its objects ask.
    pub(crate) fn not_before(&self) -> Millis {
        self.fact.as_ref().map_or(self.not_before, |fact| self.not_before.max(fact.not_before))
    }

    /// What it would hold of the quota trees, for all that it keeps.
    pub(crate) fn charges(&self) -> impl Iterator<Item = &Charge> {
        let held = self.held.as_ref().map(|held| &held.charge);
        held.into_iter().chain(self.lingering.as_ref().map(|lingering| &lingering.charge))
    }

    /// The shape in which pods of a set are expected: the learnt one, else the predicted one.
    pub(crate) fn expected(&self, set: &Name) -> Option<&Arc<Shape>> {
        let predicted = || self.fact.as_ref()?.pod_sets.iter().find(|s| s.name == *set).map(|s| &s.shape);
        let before = || self.held.as_ref()?.sets.iter().find(|s| s.name == *set)?.shape.as_ref();
        self.learnt.get(set).or_else(predicted).or_else(before)
    }

    /// When it got its quota. Statuses have seconds, and what was decided here is no finer then, so that a
    /// restart changes no order.
    pub(crate) fn reserved_at(&self) -> Millis {
        let shown = self.fact.as_ref().and_then(|fact| fact.admitted.as_ref()).map(|shown| shown.reserved_at);
        let decided = || self.held.as_ref().map(|held| held.reserved_at);
        shown.filter(|shown| *shown > 0).or_else(decided).unwrap_or(0) / 1000 * 1000
    }

    /// As whom others mean the pods of a set.
    pub(crate) fn who(&self, set: &Name) -> Option<&Arc<Who>> {
        self.fact.as_ref()?.pod_sets.iter().find(|s| s.name == *set).map(|s| &s.who)
    }

    /// How many members must run together; `None` while its objects are not known. A minimum may
    /// be more than there are pods: then some are missing.
    pub(crate) fn minimum(&self) -> Option<Minima> {
        let fact = self.fact.as_ref()?;
        // Admitted with fewer than were asked for, those are all.
        let got = |name: &Name| self.held.as_ref()?.admission.pod_sets.iter().find(|set| set.name == *name);
        let size = |set: &PodSet| got(&set.name).map_or(set.count, |got| got.count.min(set.count));
        let all = || fact.pod_sets.iter().fold(0u32, |sum, set| sum.saturating_add(size(set)));
        Some(fact.minima.clone().unwrap_or_else(|| Minima::of(all())))
    }
}

impl Held {
    pub(crate) fn new(
        admission: Admission,
        paid: Vec<u32>,
        charge: Charge,
        sets: Vec<SeatSet>,
        phase: Phase,
        now: Millis,
    ) -> Self {
        Self {
            phase,
            admission,
            paid,
            charge,
            shaped: false,
            sets,
            seat_of: BTreeMap::new(),
            unseated: BTreeSet::new(),
            by_kind: BTreeMap::new(),
            refused: BTreeSet::new(),
            was_whole: false,
            orphan: false,
            parked: false,
            settled: false,
            decided_at: now,
            reserved_at: now,
            progressed_at: now,
            retry_at: now,
        }
    }

    /// Whether Soroi binds its members.
    pub(crate) fn binds(&self) -> bool {
        self.admission.policy.soroi_binds()
    }

    /// All seats with their positions.
    pub(crate) fn seats(&self) -> impl Iterator<Item = (SeatRef, &Seat)> {
        self.sets.iter().enumerate().flat_map(|(set, at)| {
            at.seats.iter().enumerate().map(move |(ordinal, seat)| (SeatRef { set, ordinal }, seat))
        })
    }

    pub(crate) fn seat(&self, at: SeatRef) -> &Seat {
        &self.sets[at.set].seats[at.ordinal]
    }

    pub(crate) fn seat_mut(&mut self, at: SeatRef) -> &mut Seat {
        &mut self.sets[at.set].seats[at.ordinal]
    }

    /// Changes who sits there. The one who sat there loses the seat.
    pub(crate) fn sit(&mut self, at: SeatRef, state: SeatState) {
        let old = std::mem::replace(&mut self.seat_mut(at).state, state.clone());
        if let Some(pod) = old.pod().filter(|pod| Some(*pod) != state.pod()) {
            self.seat_of.remove(pod);
        }
        if let Some(pod) = state.pod() {
            self.seat_of.insert(pod.clone(), at);
            self.unseated.remove(pod);
        }
        // Whoever is lost must be replaced before all are bound again.
        self.settled &= !matches!(state.kind(), SeatKind::Open | SeatKind::Vacating);
        self.by_kind.entry(old.kind()).or_default().remove(&at);
        self.by_kind.entry(state.kind()).or_default().insert(at);
        let kinds = &mut self.sets[at.set].kinds;
        kinds[old.kind() as usize] -= 1;
        kinds[state.kind() as usize] += 1;
    }

    /// Adds open seats to a pod set, one per node given.
    pub(crate) fn add_seats(&mut self, set: usize, nodes: impl Iterator<Item = Option<Name>>) {
        for node in nodes {
            let ordinal = self.sets[set].seats.len();
            self.sets[set].seats.push(Seat { node, ..Seat::default() });
            self.sets[set].kinds[SeatKind::Open as usize] += 1;
            self.by_kind.entry(SeatKind::Open).or_default().insert(SeatRef { set, ordinal });
        }
    }

    /// Takes a seat away. The last one of the set moves into its ordinal, which is returned if
    /// that is another.
    pub(crate) fn remove_seat(&mut self, at: SeatRef) -> SeatRef {
        let last = SeatRef { set: at.set, ordinal: self.sets[at.set].seats.len() - 1 };
        let settled = self.settled;
        self.sit(at, SeatState::Open);
        let state = self.seat(last).state.clone();
        self.sit(last, SeatState::Open);
        self.sets[at.set].seats.swap_remove(at.ordinal);
        self.by_kind.entry(SeatKind::Open).or_default().remove(&last);
        self.sets[at.set].kinds[SeatKind::Open as usize] -= 1;
        if at != last {
            self.sit(at, state);
        }
        self.settled = settled;
        last
    }

    /// The seats of a kind, in order.
    pub(crate) fn of_kind(&self, kind: SeatKind) -> impl Iterator<Item = SeatRef> {
        self.by_kind.get(&kind).into_iter().flatten().copied()
    }

    /// How many seats are of a kind.
    pub(crate) fn count(&self, kind: SeatKind) -> u32 {
        u32::try_from(self.by_kind.get(&kind).map_or(0, BTreeSet::len)).unwrap_or(u32::MAX)
    }

    /// Members that are bound or ended well.
    pub(crate) fn running_or_done(&self) -> u32 {
        self.count(SeatKind::Bound) + self.count(SeatKind::Done)
    }

    /// Per pod set, its role and how many seats are of these kinds.
    pub(crate) fn by_role<'a>(
        &'a self,
        kinds: &'a [SeatKind],
    ) -> impl Iterator<Item = (Option<&'a Name>, u32)> {
        let of = |set: &SeatSet| kinds.iter().map(|kind| set.kinds[*kind as usize]).sum();
        self.sets.iter().map(move |set| (set.role.as_ref(), of(set)))
    }

    /// Per pod set, its role and how many seats it has.
    pub(crate) fn seats_by_role(&self) -> impl Iterator<Item = (Option<&Name>, u32)> {
        self.sets.iter().map(|set| (set.role.as_ref(), u32::try_from(set.seats.len()).unwrap_or(u32::MAX)))
    }

    /// Whether a binding was decided, of members that still are.
    pub(crate) fn started(&self) -> bool {
        self.count(SeatKind::Bound) + self.count(SeatKind::Done) + self.count(SeatKind::Sent) > 0
    }
}

impl SeatSet {
    /// What a pod of this shape asks of a node here.
    pub(crate) fn ask(&self, shape: &Arc<Shape>) -> Ask {
        Ask {
            shape: shape.clone(),
            node_labels: self.node_labels.clone(),
            tolerations: self.tolerations.clone(),
        }
    }
}

impl SeatState {
    pub(crate) fn kind(&self) -> SeatKind {
        match self {
            SeatState::Open => SeatKind::Open,
            SeatState::Promised(_) => SeatKind::Promised,
            SeatState::Sent(_) => SeatKind::Sent,
            SeatState::Bound(_) => SeatKind::Bound,
            SeatState::Vacating(_) => SeatKind::Vacating,
            SeatState::Done(_) => SeatKind::Done,
        }
    }

    /// The pod that it is about.
    pub(crate) fn pod(&self) -> Option<&PodUid> {
        match self {
            SeatState::Open => None,
            SeatState::Promised(pod)
            | SeatState::Sent(pod)
            | SeatState::Bound(pod)
            | SeatState::Vacating(pod)
            | SeatState::Done(pod) => Some(pod),
        }
    }
}

/// The gangs, by identity.
pub(crate) type Gangs = BTreeMap<GangId, GangState>;
