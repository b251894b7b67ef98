//! Who leaves for whom, in the words of objects.

use soroi_api::plan::PlanVictim;
use soroi_engine::event::GangId;
use soroi_engine::preempt::Cause;
use soroi_engine::reason::Preempted;

use super::Cycle;
use crate::events::words;
use crate::project::status;
use crate::spoken;
use crate::world::gang::Composed;

impl Cycle {
    /// The gang with its objects, while there are any.
    fn composed(&self, id: &GangId) -> Option<&Composed> {
        Some(&self.units.get(self.gangs.get(id)?)?.composed)
    }

    /// What a victim is told, and the reason of its condition Preempted.
    pub(super) fn preemption_by(&self, preempted: &Preempted) -> (String, String) {
        let part = self.composed(&preempted.by).and_then(|composed| composed.parts.first());
        let workload = part.map_or(&preempted.by, |part| &part.workload);
        let job = part.and_then(|part| part.job.as_deref());
        let (cause, _) = status::cause_words(preempted.cause);
        (status::preemption(preempted, workload, job), cause.to_owned())
    }

    /// What is said of it to the victim and to whom it leaves for.
    pub(super) fn tell_of_preemption(&mut self, victim: &GangId, preempted: &Preempted, message: &str) {
        let priorities = words::priorities(preempted.by_priority, preempted.priority);
        let workloads = |id: &GangId| {
            let parts = self.composed(id).into_iter().flat_map(|composed| &composed.parts);
            parts.filter_map(|part| self.world.workloads.by_uid(&part.workload)).map(|known| &known.meta)
        };
        let queue = preempted.path.rsplit('/').next().unwrap_or_default();
        let mut said = Vec::new();
        for gone in workloads(victim) {
            said.push(words::preempted(spoken::workload(gone), message, &priorities));
            let named = format!("{}/{} (UID: {})", gone.namespace, gone.name, gone.uid);
            let by = workloads(&preempted.by).next();
            said.extend(
                by.map(|by| words::preempted_workload(spoken::workload(by), &named, queue, &priorities)),
            );
        }
        let now = self.clock.now();
        said.into_iter().for_each(|occurrence| self.voice.say(occurrence, now));
    }

    /// The victims as a plan names them.
    pub(super) fn named_victims(&self, victims: &[(GangId, Cause)]) -> Vec<PlanVictim> {
        let named = |(id, cause): &(GangId, Cause)| {
            let composed = self.composed(id);
            let kind = composed.map_or("Workload", |composed| composed.stands_for().0);
            let (namespace, name) = match composed {
                Some(composed) => (composed.gang.namespace.to_string(), composed.gang.name.to_string()),
                // Its objects are gone, and what is left of it leaves anyway.
                None => ("unknown".to_owned(), id.to_string()),
            };
            let (reason, _) = status::cause_words(*cause);
            PlanVictim {
                kind: kind.into(),
                namespace,
                name,
                uid: id.to_string(),
                reason: Some(reason.into()),
            }
        };
        victims.iter().map(named).collect()
    }
}
