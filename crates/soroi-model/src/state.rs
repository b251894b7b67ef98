//! What is there? The objects in the API server, what a leader has seen of them and remembers, and
//! the requests that are on their way.
//!
//! Knows shapes only. Must never know what may happen next.

use crate::rules::Spent;

/// How many gangs there are.
pub const GANGS: usize = 2;
/// How many members a gang has: all of them, or none.
pub const MEMBERS: usize = 2;
/// Replicas that may lead.
pub const REPLICAS: usize = 2;
/// Requests that may be on their way at once, beside one that is answered at once.
pub const LATE_MAX: usize = 2;

/// A slot on a node that takes one pod.
pub type Slot = u8;

/// A Job, as its spec and its own controller's status show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// Suspended, no active pod, and the template is the user's.
    Idle,
    /// `suspend: false`, with what the release put into the template.
    Running,
    /// `suspend: true`, and the Job controller has not followed yet.
    Stopping,
    /// Suspended, no active pod, and the template still has what the release put there.
    Stopped,
}

/// A member's pod. Its name stays, its uid does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pod {
    /// There is none.
    Absent,
    /// It waits to be bound.
    Pending,
    /// It is bound and runs.
    Bound(Slot),
    /// It is bound and on its way out.
    Leaving(Slot),
}

impl Pod {
    /// The slot that it takes.
    pub fn slot(self) -> Option<Slot> {
        match self {
            Self::Bound(slot) | Self::Leaving(slot) => Some(slot),
            Self::Absent | Self::Pending => None,
        }
    }

    /// It exists and is not on its way out.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Bound(_))
    }
}

/// How far a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The decision stands.
    Committed,
    /// It is being taken back.
    Undoing,
}

/// Where each member belongs.
pub type Seats = [Option<Slot>; MEMBERS];

/// A GangPlan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plan {
    /// Its phase.
    pub phase: Phase,
    /// Deleted, and kept by its finalizer.
    pub leaving: bool,
    /// Places.
    pub seats: Seats,
}

/// The objects of one gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gang {
    /// Its Job.
    pub job: Job,
    /// Its plan.
    pub plan: Option<Plan>,
    /// Its Workload says `QuotaReserved=True`.
    pub reserved: bool,
    /// Its pods.
    pub pods: [Pod; MEMBERS],
}

impl Gang {
    /// Nothing was ever decided for it, or nothing of that is left.
    pub fn holds_nothing(&self) -> bool {
        *self == Self::waiting()
    }

    /// All of it runs, and everything says so.
    pub fn is_whole(&self) -> bool {
        let committed = self.plan.is_some_and(|plan| plan.phase == Phase::Committed);
        let bound = self.pods.iter().all(|pod| matches!(pod, Pod::Bound(_)));
        self.job == Job::Running && committed && self.reserved && bound
    }

    /// Some pod of it takes a slot.
    pub fn takes_slots(&self) -> bool {
        self.pods.iter().any(|pod| pod.slot().is_some())
    }

    fn waiting() -> Self {
        Self { job: Job::Idle, plan: None, reserved: false, pods: [Pod::Absent; MEMBERS] }
    }
}

/// All objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Objects {
    /// By gang.
    pub gangs: [Gang; GANGS],
    /// Where a pod sits that nobody queued.
    pub hog: Option<Slot>,
}

impl Objects {
    /// Pods of gangs in this slot.
    pub fn members_in(&self, slot: Slot) -> usize {
        self.gangs.iter().flat_map(|gang| &gang.pods).filter(|pod| pod.slot() == Some(slot)).count()
    }
}

/// The kinds that are listed and watched, each in its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// GangPlans.
    Plans,
    /// Jobs.
    Jobs,
    /// Workloads.
    Workloads,
    /// Pods, those that nobody queued included.
    Pods,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plans, Self::Jobs, Self::Workloads, Self::Pods];
}

/// One object that requests are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A gang's plan.
    Plan(usize),
    /// A gang's Job.
    Job(usize),
    /// A gang's Workload.
    Workload(usize),
    /// A member's pod.
    Pod(usize, usize),
}

impl Target {
    /// All of a kind.
    pub fn of(kind: Kind) -> impl Iterator<Item = Self> {
        let each = if kind == Kind::Pods { MEMBERS } else { 1 };
        (0..GANGS * each).map(move |at| match kind {
            Kind::Plans => Self::Plan(at),
            Kind::Jobs => Self::Job(at),
            Kind::Workloads => Self::Workload(at),
            Kind::Pods => Self::Pod(at / MEMBERS, at % MEMBERS),
        })
    }

    fn bit(self) -> u16 {
        let each = Targets::PER_GANG;
        1 << match self {
            Self::Plan(gang) => gang * each,
            Self::Job(gang) => gang * each + 1,
            Self::Workload(gang) => gang * each + 2,
            Self::Pod(gang, member) => gang * each + 3 + member,
        }
    }
}

/// A set of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Targets(u16);

impl Targets {
    /// Plan, Job, Workload, and the pods.
    const PER_GANG: usize = 3 + MEMBERS;

    /// The same under other names: by old gang, by old member.
    pub fn renamed(self, gangs: [usize; GANGS], members: [[usize; MEMBERS]; GANGS]) -> Self {
        let mut to = 0;
        for (old, new) in gangs.into_iter().enumerate() {
            let mine = self.0 >> (old * Self::PER_GANG);
            let mut bits = mine & 0b111;
            for (member, name) in members[old].into_iter().enumerate() {
                bits |= ((mine >> (3 + member)) & 1) << (3 + name);
            }
            to |= bits << (new * Self::PER_GANG);
        }
        Self(to)
    }

    /// Whether it is in the set.
    pub fn has(self, target: Target) -> bool {
        self.0 & target.bit() != 0
    }

    /// Puts it in, or takes it out.
    pub fn set(&mut self, target: Target, is_in: bool) {
        if is_in {
            self.0 |= target.bit();
        } else {
            self.0 &= !target.bit();
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What a leader has decided for a gang, and how much of that it knows to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Nothing.
    Waiting,
    /// Its Workload says that it has quota, and no plan says where: it gets places or leaves.
    Orphan,
    /// Admitted; not known to be written down.
    Assumed,
    /// Admitted, and written down.
    Committed,
    /// Being taken back.
    Undoing,
    /// Taken back but for the plan.
    Undone,
}

/// A gang in a leader's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Course {
    /// How far it is.
    pub stage: Stage,
    /// Places that are kept for it.
    pub seats: Seats,
    /// Quota of an admission that was taken back, kept while pods of it are seen in slots.
    pub lingers: bool,
    /// Its places were found in a plan: this leader did not choose them.
    pub found: bool,
}

impl Course {
    /// Nothing was decided.
    pub const WAITING: Self =
        Self { stage: Stage::Waiting, seats: [None; MEMBERS], lingers: false, found: false };

    /// Places are kept for it.
    pub fn keeps_seats(&self) -> bool {
        matches!(self.stage, Stage::Assumed | Stage::Committed | Stage::Undoing)
    }

    /// Quota is kept for it.
    pub fn keeps_quota(&self) -> bool {
        self.lingers || self.keeps_seats() || self.stage == Stage::Orphan
    }
}

/// What a replica is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Nothing: it was killed, or its term is over.
    Down,
    /// Its term has begun, and it reads. One bit per [`Kind`] that was read.
    Listing(u8),
    /// It decides and writes.
    Leading,
}

/// A replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    /// What it does.
    pub mode: Mode,
    /// What it has seen.
    pub seen: Objects,
    /// Objects of which it knows the present resource version; of pods: the present uid.
    pub fresh: Targets,
    /// Plans of which it knows the present uid.
    pub same: Targets,
    /// What must be read back before anything else is sent about it.
    pub unread: Targets,
    /// Pods that a binding was sent for, as long as its outcome is not known.
    pub sent: Targets,
    /// Its memory.
    pub courses: [Course; GANGS],
}

impl Replica {
    /// As after a crash.
    pub fn down() -> Self {
        Self {
            mode: Mode::Down,
            seen: Objects { gangs: [Gang::waiting(); GANGS], hog: None },
            fresh: Targets::default(),
            same: Targets::default(),
            unread: Targets::default(),
            sent: Targets::default(),
            courses: [Course::WAITING; GANGS],
        }
    }
}

/// A request that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Write {
    /// `POST` the plan. Refused when there is one.
    CreatePlan(Seats),
    /// `PUT` the plan at the version that was seen.
    ReplacePlan(Seats),
    /// Patch the plan's phase at the version that was seen.
    MarkUndoing,
    /// Delete the plan of this uid. Its finalizer keeps it.
    DeletePlan,
    /// Take the finalizer off, at the version that was seen.
    LetPlanGo,
    /// Release the Job, at the version that was seen.
    Release,
    /// Suspend the Job of this uid, whatever its version.
    Suspend,
    /// Give the template back, if the Job is suspended.
    Restore,
    /// `QuotaReserved=True`, at the version that was seen.
    Reserve,
    /// `QuotaReserved=False`, at the version that was seen.
    GiveBack,
    /// Bind the pod of this uid.
    Bind(usize, Slot),
    /// Delete the pod of this uid. Only a mistake does that.
    DeletePod(usize),
}

/// What a request is for, whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errand {
    /// [`Write::CreatePlan`].
    CreatePlan,
    /// [`Write::ReplacePlan`].
    ReplacePlan,
    /// [`Write::MarkUndoing`].
    MarkUndoing,
    /// [`Write::DeletePlan`].
    DeletePlan,
    /// [`Write::LetPlanGo`].
    LetPlanGo,
    /// [`Write::Release`].
    Release,
    /// [`Write::Suspend`].
    Suspend,
    /// [`Write::Restore`].
    Restore,
    /// [`Write::Reserve`].
    Reserve,
    /// [`Write::GiveBack`].
    GiveBack,
    /// [`Write::Bind`].
    Bind,
    /// [`Write::DeletePod`].
    DeletePod,
}

impl Errand {
    /// All that a leader is sent on, in the order of a gang's life.
    pub const ALL: [Self; 11] = [
        Self::CreatePlan,
        Self::Release,
        Self::Reserve,
        Self::Bind,
        Self::ReplacePlan,
        Self::MarkUndoing,
        Self::Suspend,
        Self::Restore,
        Self::GiveBack,
        Self::DeletePlan,
        Self::LetPlanGo,
    ];
}

impl Write {
    /// What it is for.
    pub fn errand(self) -> Errand {
        match self {
            Self::CreatePlan(_) => Errand::CreatePlan,
            Self::ReplacePlan(_) => Errand::ReplacePlan,
            Self::MarkUndoing => Errand::MarkUndoing,
            Self::DeletePlan => Errand::DeletePlan,
            Self::LetPlanGo => Errand::LetPlanGo,
            Self::Release => Errand::Release,
            Self::Suspend => Errand::Suspend,
            Self::Restore => Errand::Restore,
            Self::Reserve => Errand::Reserve,
            Self::GiveBack => Errand::GiveBack,
            Self::Bind(..) => Errand::Bind,
            Self::DeletePod(_) => Errand::DeletePod,
        }
    }

    /// The object that it is about.
    pub fn target(self, gang: usize) -> Target {
        match self {
            Self::CreatePlan(_) | Self::ReplacePlan(_) | Self::MarkUndoing => Target::Plan(gang),
            Self::DeletePlan | Self::LetPlanGo => Target::Plan(gang),
            Self::Release | Self::Suspend | Self::Restore => Target::Job(gang),
            Self::Reserve | Self::GiveBack => Target::Workload(gang),
            Self::Bind(member, _) | Self::DeletePod(member) => Target::Pod(gang, member),
        }
    }
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Late {
    /// Who sent it.
    pub by: usize,
    /// The gang that it is about.
    pub gang: usize,
    /// What it writes.
    pub write: Write,
    /// What it demands of the object (version, uid) still is so.
    pub holds: bool,
    /// The sender's term is over: nobody waits for the answer.
    pub orphaned: bool,
}

/// Everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// What the API server has.
    pub objects: Objects,
    /// Members that were created since the last release of their Job.
    pub made: [[bool; MEMBERS]; GANGS],
    /// Who leads or may lead.
    pub replicas: [Replica; REPLICAS],
    /// What is on its way, in order.
    pub late: [Option<Late>; LATE_MAX],
    /// What has gone wrong so far.
    pub spent: Spent,
    /// A bind took effect while not all members had been created, or without a plan.
    pub bound_early: bool,
    /// A pod of a Job that runs was deleted by us: the Job counts that as a failure.
    pub robbed: bool,
    /// Bindings that took effect after the term of their sender.
    pub overdue_binds: u8,
}

impl State {
    /// Nothing has happened yet.
    pub fn first() -> Self {
        Self {
            objects: Objects { gangs: [Gang::waiting(); GANGS], hog: None },
            made: [[false; MEMBERS]; GANGS],
            replicas: [Replica::down(); REPLICAS],
            late: [None; LATE_MAX],
            spent: Spent::default(),
            bound_early: false,
            robbed: false,
            overdue_binds: 0,
        }
    }

    /// Whether a request of this replica about this object is on its way.
    pub fn is_under_way(&self, by: usize, target: Target) -> bool {
        self.late
            .iter()
            .flatten()
            .any(|late| !late.orphaned && late.by == by && late.write.target(late.gang) == target)
    }

    /// Whether nothing may be sent about this object now.
    pub fn is_busy(&self, by: usize, target: Target) -> bool {
        self.replicas[by].unread.has(target) || self.is_under_way(by, target)
    }
}
