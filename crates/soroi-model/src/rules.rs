//! How much may go wrong, and which rules are broken on purpose.

use std::collections::BTreeSet;

use crate::state::Errand;

/// The size of a world and how often each fault may strike in one history. Every history within
/// these bounds is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Slots, of one pod each.
    pub slots: u8,
    /// Quota, in pods.
    pub quota: u8,
    /// A leader is killed, or its term ends: all that it knows is gone.
    pub crashes: u8,
    /// A write takes effect, or not, and nobody hears of it.
    pub losses: u8,
    /// A write arrives late, while other things happen.
    pub delays: u8,
    /// Only such requests are late; all, if not given.
    pub only: Option<Errand>,
    /// Late writes may outlive the term of their sender: it slept between its check and its send.
    pub sleepers: bool,
    /// A pod that nobody queued takes a slot.
    pub hogs: u8,
    /// Somebody deletes a member.
    pub deletions: u8,
    /// Somebody deletes a plan; its finalizer keeps it.
    pub wipes: u8,
    /// A time-out, or an administrator, ends a gang's start while it still goes on. (One that does
    /// not go on any more is ended as often as it takes.)
    pub timeouts: u8,
}

/// Faults that have struck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spent {
    /// See [`Bounds::crashes`].
    pub crashes: u8,
    /// See [`Bounds::losses`].
    pub losses: u8,
    /// See [`Bounds::delays`].
    pub delays: u8,
    /// See [`Bounds::hogs`].
    pub hogs: u8,
    /// See [`Bounds::deletions`].
    pub deletions: u8,
    /// See [`Bounds::wipes`].
    pub wipes: u8,
    /// See [`Bounds::timeouts`].
    pub timeouts: u8,
}

/// A rule of the protocol, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// Members are bound as they come.
    BindBeforeAllExist,
    /// A binding does not name the pod's uid.
    BindWithoutUid,
    /// A new leader begins while the old one still leads.
    OldLeaseNotWaitedOut,
    /// A leader decides while its list of plans is missing.
    DecideBeforeListsAreWhole,
    /// A commit whose answer was lost counts as refused.
    PlaceForgottenOnLostReply,
    /// A binding whose answer was lost counts as refused.
    LostBindCountsAsRefused,
    /// After a lost answer nothing is read back.
    NeverReadBack,
    /// The Job is released while the plan is being written.
    ReleaseWithoutPlan,
    /// A gang leaves by deleting its pods, and only then is its Job suspended.
    UndoByDeletingPods,
    /// A gang that is being taken back keeps no quota, though its pods still run.
    QuotaGivenBackWhilePodsRun,
    /// The plan is removed before the Job has stopped.
    RecordRemovedFirst,
    /// A new leader does not take up what is being taken back.
    UndoNotTakenUp,
    /// Places that a gang keeps are not kept from others.
    PlacesNotAssumed,
    /// The plan is removed while bound pods of the gang are still on their way out: nobody knows after
    /// a crash that they still use its quota.
    RecordGoesBeforePods,
    /// An undo counts as carried out while a request about the gang's Job or pods has no known
    /// outcome.
    UndoneWithRequestsUnderWay,
    /// A new pod has the name of the one before, so that a read-back of that one runs ahead of the
    /// watch.
    PodNamesUsedAgain,
    /// That the plan of a running gang says it is being taken back (a former leader's late write) is
    /// not noticed.
    LateUndoingNotNoticed,
    /// A plan that somebody deleted is let go, and written anew after that, when its gang gets other
    /// places.
    LeavingPlanLetGoFirst,
    /// A plan that is on its way out counts as written down for a gang that was not released.
    LeavingPlanCounts,
    /// What a former leader's late write starts again after an undo is not looked for while the plan
    /// still is there.
    UndoneNotWatched,
    /// What is found written down beyond the quota is released like anything else.
    BeyondQuotaReleased,
}

/// Which rules are broken. None by default.
pub type Mistakes = BTreeSet<Mistake>;
