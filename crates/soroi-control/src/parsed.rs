//! What is kept of an object: parsed once, where it is decoded, before the next one is.
//!
//! Knows which intake function reads which kind. Must never know what follows from a fact.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use futures::stream::BoxStream;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::CSINode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use soroi_api::conditions;
use soroi_api::kueue::{
    AdmissionCheck, ClusterQueue, ClusterQueueStatus, Cohort, LocalQueue, LocalQueueStatus, ResourceFlavor,
    Topology, Workload, WorkloadPriorityClass, WorkloadStatus,
};
use soroi_api::plan::GangPlan;
use soroi_api::volcano::{PodGroup, PodGroupStatus, Queue};
use soroi_clock::Clock;
use soroi_engine::event::{self, Labels, Name};
use soroi_watch::{Change, Query};

use crate::intake::charge::Charging;
use crate::intake::{
    self, Defaults, GroupFacts, Invalid, JobFacts, PlanFacts, PodFacts, Schedulers, Shared, WorkloadFacts,
};
use crate::kind::Kind;
use crate::world::store::Meta;

mod partly;

/// What parsing needs to know beside the object.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) schedulers: Schedulers,
    /// What pods charge to quota.
    pub(crate) charging: Charging,
    /// Written where objects are taken in, read where Workloads are parsed.
    pub(crate) defaults: RwLock<Defaults>,
    /// What objects have in common.
    pub(crate) shared: Shared,
}

/// An object as it was read.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) meta: Meta,
    pub(crate) what: What,
    /// What of it cannot be used, where no status of it or of what waits for it says so.
    pub(crate) wrong: Option<Invalid>,
}

/// The facts of an object.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "taken apart at once, never stored in this form")]
pub(crate) enum What {
    Namespace(Labels),
    LimitRange(Box<LimitRange>),
    RuntimeClass(Box<RuntimeClass>),
    PriorityClass(PriorityClass),
    WorkloadPriorityClass(i32),
    /// Or what of it could not be understood.
    Topology(Result<event::Topology, Invalid>),
    Flavor(Box<FlavorState>),
    AdmissionCheck {
        active: bool,
        unread: Option<Invalid>,
    },
    Cohort(Box<CohortState>),
    ClusterQueue(Box<QueueState>),
    LocalQueue(Box<LocalQueueState>),
    VolcanoQueue(Box<VolcanoState>),
    Node(event::Node),
    VolumeLimits(BTreeMap<Name, u32>),
    Volume(event::Volume),
    Claim(event::Claim),
    GangPlan(Box<PlanFacts>),
    PodGroup(Box<GroupState>),
    Job(Box<JobFacts>),
    Workload(Box<WorkloadState>),
    Pod(Box<PodFacts>),
    /// It could not be understood at all.
    Invalid(Invalid),
}

/// A ResourceFlavor: the engine's fact, and the object as pods get it. There are few.
#[derive(Debug, PartialEq)]
pub(crate) struct FlavorState {
    /// Or what of it could not be understood: then nothing can be placed by it.
    pub(crate) flavor: Result<event::Flavor, Invalid>,
    pub(crate) object: ResourceFlavor,
}

/// A Cohort: the engine's fact, the share that its status shows, and what of it could not be understood: then
/// it has no quota of its own.
#[derive(Debug, PartialEq)]
pub(crate) struct CohortState {
    pub(crate) cohort: event::Cohort,
    pub(crate) share: Option<i64>,
    pub(crate) unread: Option<Invalid>,
}

/// A ClusterQueue with the status that it shows. Kept whole: there are few, and what its admission
/// checks make of it changes without it.
#[derive(Debug, PartialEq)]
pub(crate) struct QueueState {
    pub(crate) queue: ClusterQueue,
    pub(crate) status: ClusterQueueStatus,
    /// A part of it that cannot be read.
    pub(crate) unread: Option<Invalid>,
}

/// A LocalQueue with the status that it shows.
#[derive(Debug, PartialEq)]
pub(crate) struct LocalQueueState {
    pub(crate) queue: event::LocalQueue,
    pub(crate) status: LocalQueueStatus,
    /// A part of it that cannot be read. It is stopped then.
    pub(crate) unread: Option<Invalid>,
}

/// A Volcano Queue, and what it lacks of what Volcano's controller fills in.
#[derive(Debug, PartialEq)]
pub(crate) struct VolcanoState {
    pub(crate) queue: event::VolcanoQueue,
    /// Its status says a state.
    pub(crate) has_state: bool,
    /// Its specification names a parent.
    pub(crate) has_parent: bool,
    /// A part of it that cannot be understood.
    pub(crate) unread: Option<Invalid>,
}

/// A PodGroup with the status that it shows.
#[derive(Debug, PartialEq)]
pub(crate) struct GroupState {
    pub(crate) facts: GroupFacts,
    pub(crate) status: PodGroupStatus,
}

/// A Workload with the status that it shows.
#[derive(Debug, PartialEq)]
pub(crate) struct WorkloadState {
    pub(crate) facts: WorkloadFacts,
    pub(crate) status: WorkloadStatus,
}

/// Calls a macro with the type of a kind and the function that parses it.
macro_rules! each_kind {
    ($kind:expr, $with:ident) => {
        match $kind {
            Kind::Namespace => $with!(Namespace, namespace),
            Kind::LimitRange => $with!(LimitRange, limit_range),
            Kind::RuntimeClass => $with!(RuntimeClass, runtime_class),
            Kind::PriorityClass => $with!(PriorityClass, priority_class),
            Kind::WorkloadPriorityClass => $with!(WorkloadPriorityClass, workload_priority_class),
            Kind::Topology => $with!(Topology, topology),
            Kind::Flavor => $with!(ResourceFlavor, flavor),
            Kind::AdmissionCheck => $with!(AdmissionCheck, admission_check),
            Kind::Cohort => $with!(Cohort, cohort),
            Kind::ClusterQueue => $with!(ClusterQueue, cluster_queue),
            Kind::LocalQueue => $with!(LocalQueue, local_queue),
            Kind::VolcanoQueue => $with!(Queue, volcano_queue),
            Kind::Node => $with!(Node, node),
            Kind::VolumeLimits => $with!(CSINode, volume_limits),
            Kind::Volume => $with!(PersistentVolume, volume),
            Kind::Claim => $with!(PersistentVolumeClaim, claim),
            Kind::GangPlan => $with!(GangPlan, gang_plan),
            Kind::PodGroup => $with!(PodGroup, pod_group),
            Kind::Job => $with!(Job, job),
            Kind::Workload => $with!(Workload, workload),
            Kind::Pod => $with!(Pod, pod),
        }
    };
}

/// Follows all objects of a kind.
pub(crate) fn watch(
    client: kube::Client,
    clock: Clock,
    kind: Kind,
    seed: u64,
    context: &Arc<Context>,
) -> BoxStream<'static, Change<Parsed>> {
    let query = Query::path(kind.all());
    let context = Arc::clone(context);
    let again = Arc::clone(&context);
    macro_rules! follow {
        ($type:ty, $what:expr) => {{
            let whole = move |object: $type| parse(&object, &context, $what);
            soroi_watch::watch_mended(client, clock, query, seed, whole, move |object| {
                in_part::<$type>(object, &again, $what)
            })
        }};
    }
    each_kind!(kind, follow)
}

/// Reads an object of this kind from the answer to a request.
///
/// # Errors
/// What the decoder said.
pub(crate) fn read(kind: Kind, json: &str, context: &Context) -> Result<Parsed, serde_json::Error> {
    fn decode<T: DeserializeOwned + kube::Resource>(
        json: &str,
        context: &Context,
        what: fn(&T, &Context) -> Result<What, Invalid>,
    ) -> Result<Parsed, serde_json::Error> {
        match serde_json::from_str::<T>(json) {
            Ok(object) => Ok(parse(&object, context, what)),
            Err(error) => in_part::<T>(serde_json::from_str(json)?, context, what).ok_or(error),
        }
    }
    macro_rules! decode {
        ($type:ty, $what:expr) => {
            decode::<$type>(json, context, $what)
        };
    }
    each_kind!(kind, decode)
}

fn parse<T: kube::Resource>(
    object: &T,
    context: &Context,
    what: fn(&T, &Context) -> Result<What, Invalid>,
) -> Parsed {
    let mut meta = meta(object.meta());
    let mut what = what(object, context).unwrap_or_else(What::Invalid);
    if let What::Pod(facts) = &mut what {
        context.shared.pod(facts);
        let pod = &facts.pod;
        meta.uid = Arc::clone(&pod.uid);
        meta.namespace = Arc::clone(&pod.namespace);
        meta.name = Arc::clone(&pod.name);
    }
    Parsed { meta, wrong: what.wrong().cloned(), what }
}

/// An object of which something cannot be read; `None` if nothing says which it is.
fn in_part<T: DeserializeOwned + kube::Resource>(
    object: Value,
    context: &Context,
    what: fn(&T, &Context) -> Result<What, Invalid>,
) -> Option<Parsed> {
    let named = ObjectMeta::deserialize(&object["metadata"]).ok().filter(|meta| meta.uid.is_some())?;
    Some(match partly::read::<T>(object) {
        Ok((object, None)) => parse(&object, context, what),
        Ok((object, Some(unread))) => {
            let Parsed { meta, what, .. } = parse(&object, context, what);
            let what = what.without(unread);
            Parsed { meta, wrong: what.wrong().cloned(), what }
        }
        Err(invalid) => {
            Parsed { meta: meta(&named), wrong: Some(invalid.clone()), what: What::Invalid(invalid) }
        }
    })
}

impl What {
    /// The same, read without this part. What can go on without it says so.
    fn without(mut self, unread: Invalid) -> Self {
        let place = match &mut self {
            Self::Workload(state) => &mut state.facts.invalid,
            Self::PodGroup(state) => &mut state.facts.invalid,
            Self::ClusterQueue(state) => &mut state.unread,
            Self::Job(facts) => &mut facts.invalid,
            Self::Pod(facts) => &mut facts.invalid,
            Self::Cohort(state) => {
                state.cohort.groups.clear();
                &mut state.unread
            }
            Self::LocalQueue(state) => {
                // Perhaps that it should be stopped is what cannot be read.
                if state.queue.stop == event::StopPolicy::None {
                    state.queue.stop = event::StopPolicy::Hold;
                }
                &mut state.unread
            }
            Self::VolcanoQueue(state) => {
                state.queue.invalid = Some(unread.reason());
                &mut state.unread
            }
            Self::AdmissionCheck { active, unread } => {
                *active = false;
                unread
            }
            Self::Flavor(state) => {
                state.flavor = Err(unread);
                return self;
            }
            Self::Topology(_) => return Self::Topology(Err(unread)),
            _ => return Self::Invalid(unread),
        };
        *place = Some(unread);
        self
    }

    /// What of it cannot be used, where nothing else would say so: Workloads, groups and ClusterQueues show
    /// it in their status, Jobs by their Workload, and pods themselves or by their group.
    fn wrong(&self) -> Option<&Invalid> {
        match self {
            Self::Invalid(invalid) | Self::Topology(Err(invalid)) => Some(invalid),
            Self::Flavor(state) => state.flavor.as_ref().err(),
            Self::AdmissionCheck { unread: invalid, .. } => invalid.as_ref(),
            Self::Cohort(state) => state.unread.as_ref(),
            Self::LocalQueue(state) => state.unread.as_ref(),
            Self::VolcanoQueue(state) => state.unread.as_ref(),
            _ => None,
        }
    }
}

fn meta(meta: &ObjectMeta) -> Meta {
    let name = |text: &Option<String>| Name::from(text.as_deref().unwrap_or_default());
    Meta {
        uid: name(&meta.uid),
        namespace: name(&meta.namespace),
        name: name(&meta.name),
        version: name(&meta.resource_version),
        generation: meta.generation.unwrap_or(0),
        terminating: meta.deletion_timestamp.is_some(),
        finalizers: meta.finalizers.iter().flatten().map(|text| Name::from(text.as_str())).collect(),
    }
}

fn namespace(object: &Namespace, _: &Context) -> Result<What, Invalid> {
    match intake::namespace(object) {
        event::Event::Namespace { labels, .. } => Ok(What::Namespace(labels)),
        other => Err(Invalid::new("metadata", format!("is no namespace: {other:?}"))),
    }
}

fn limit_range(object: &LimitRange, _: &Context) -> Result<What, Invalid> {
    Ok(What::LimitRange(Box::new(object.clone())))
}

fn runtime_class(object: &RuntimeClass, _: &Context) -> Result<What, Invalid> {
    Ok(What::RuntimeClass(Box::new(object.clone())))
}

fn priority_class(object: &PriorityClass, _: &Context) -> Result<What, Invalid> {
    Ok(What::PriorityClass(object.clone()))
}

fn workload_priority_class(object: &WorkloadPriorityClass, _: &Context) -> Result<What, Invalid> {
    Ok(What::WorkloadPriorityClass(object.spec.value))
}

fn topology(object: &Topology, _: &Context) -> Result<What, Invalid> {
    Ok(What::Topology(Ok(intake::queue::topology(object))))
}

fn flavor(object: &ResourceFlavor, _: &Context) -> Result<What, Invalid> {
    Ok(What::Flavor(Box::new(FlavorState { flavor: intake::flavor(object), object: object.clone() })))
}

fn admission_check(object: &AdmissionCheck, _: &Context) -> Result<What, Invalid> {
    let shown = object.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let active = conditions::is_true(shown, conditions::queue::ACTIVE);
    Ok(What::AdmissionCheck { active, unread: None })
}

fn cohort(object: &Cohort, _: &Context) -> Result<What, Invalid> {
    let (cohort, unread) = match intake::cohort(object) {
        Ok(cohort) => (cohort, None),
        Err((cohort, invalid)) => (cohort, Some(invalid)),
    };
    let shown = object.status.as_ref().and_then(|status| status.fair_sharing.as_ref());
    let share = shown.map(|shown| shown.weighted_share);
    Ok(What::Cohort(Box::new(CohortState { cohort, share, unread })))
}

fn cluster_queue(object: &ClusterQueue, _: &Context) -> Result<What, Invalid> {
    let status = object.status.clone().unwrap_or_default();
    Ok(What::ClusterQueue(Box::new(QueueState { queue: object.clone(), status, unread: None })))
}

fn local_queue(object: &LocalQueue, _: &Context) -> Result<What, Invalid> {
    let status = object.status.clone().unwrap_or_default();
    Ok(What::LocalQueue(Box::new(LocalQueueState {
        queue: intake::local_queue(object),
        status,
        unread: None,
    })))
}

fn volcano_queue(object: &Queue, _: &Context) -> Result<What, Invalid> {
    let (queue, unread) = intake::volcano_queue(object);
    let has_state = object.status.as_ref().is_some_and(|status| status.state.is_some());
    let has_parent = object.spec.parent().is_some();
    Ok(What::VolcanoQueue(Box::new(VolcanoState { queue, has_state, has_parent, unread })))
}

fn node(object: &Node, _: &Context) -> Result<What, Invalid> {
    intake::node(object).map(What::Node)
}

fn volume_limits(object: &CSINode, _: &Context) -> Result<What, Invalid> {
    Ok(What::VolumeLimits(intake::volume::volume_limits(object)))
}

fn volume(object: &PersistentVolume, _: &Context) -> Result<What, Invalid> {
    intake::volume::volume(object).map(What::Volume)
}

fn claim(object: &PersistentVolumeClaim, _: &Context) -> Result<What, Invalid> {
    Ok(What::Claim(intake::volume::claim(object)))
}

fn gang_plan(object: &GangPlan, _: &Context) -> Result<What, Invalid> {
    intake::plan(object).map(|plan| What::GangPlan(Box::new(plan)))
}

fn pod_group(object: &PodGroup, _: &Context) -> Result<What, Invalid> {
    let facts = intake::group(object)?;
    let status = object.status.clone().unwrap_or_default();
    Ok(What::PodGroup(Box::new(GroupState { facts, status })))
}

fn job(object: &Job, _: &Context) -> Result<What, Invalid> {
    intake::job(object).map(|facts| What::Job(Box::new(facts)))
}

fn workload(object: &Workload, context: &Context) -> Result<What, Invalid> {
    let defaults = context.defaults.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    let facts = intake::workload(object, &defaults)?;
    let status = object.status.clone().unwrap_or_default();
    Ok(What::Workload(Box::new(WorkloadState { facts, status })))
}

fn pod(object: &Pod, context: &Context) -> Result<What, Invalid> {
    intake::pod(object, &context.schedulers).map(|facts| What::Pod(Box::new(facts)))
}
