//! What does an answer mean? For what is known, for the engine, and for whoever asked.
//!
//! Never sends anything.

use soroi_engine::event::{Millis, Outcome};

use super::Cycle;
use crate::call::{Answer, Binding, Call};
use crate::course::{Stage, needs_plan};
use crate::kind::Kind;
use crate::lanes::Done;
use crate::world::root::Root;
use crate::{parsed, spoken};

impl Cycle {
    pub(super) fn answered(&mut self, done: &Done) {
        let now = self.clock.now_millis();
        self.lanes.ended(done, now);
        self.reins.observer.answered(done.write.call.word(), done.answer.word());
        if let Some(occurrence) = spoken::answered(&self.world, done) {
            self.voice.say(occurrence, self.clock.now());
        }
        let target = &done.write.target;
        match &done.answer {
            Answer::Object(json) => match parsed::read(target.kind, json, &self.context) {
                Ok(parsed) => self.world.take_answer(target.kind, parsed),
                Err(error) => tracing::warn!(%target, %error, "unreadable answer"),
            },
            Answer::Missing => self.world.take_missing(target),
            Answer::Accepted if matches!(done.write.call, Call::Delete(_)) => self.world.take_missing(target),
            Answer::Accepted | Answer::Refused(_) | Answer::Unknown(_) => {}
        }
        if matches!(target.kind, Kind::ClusterQueue | Kind::LocalQueue) {
            self.queues.written(target, self.clock.now());
        }
        if let Call::Bind(binding) = &done.write.call {
            self.bound(done, binding, now);
        }
        if let Answer::Refused(refusal) = &done.answer
            && refusal.code == 422
            && done.write.call.makes_workload_of().is_some()
            && let Some(root) = self.lane_root(&done.lane)
        {
            self.unmade.is_refused(&root, &refusal.message);
            // Its gang, if there is one yet, waits for another reason now.
            self.world.touch(root);
        }
        let refused = match &done.answer {
            Answer::Refused(refusal) => !refusal.is_conflict(),
            // The namespace, or the kind itself, is gone.
            Answer::Missing => matches!(done.write.call, Call::Create(_)),
            _ => false,
        };
        if refused && matches!(target.kind, Kind::GangPlan | Kind::Workload) {
            self.commit_refused(done, now);
            let root = self.lane_root(&done.lane);
            if let (Some(half_bound), Some(root)) = (&mut self.half_bound, root) {
                half_bound.groups.remove(&root);
            }
        }
        // Whoever asked looks again, also when nothing is seen to have changed.
        match self.lane_root(&done.lane) {
            Some(Root::Plan(gang)) => self.orphans.change(gang),
            Some(root) if is_of_a_member(done) => self.look_at(root),
            Some(root) => _ = self.todo.insert(root),
            None => {}
        }
    }

    /// A binding was answered. An unknown outcome is read back by the lanes.
    fn bound(&mut self, done: &Done, binding: &Binding, now: Millis) {
        let pod = &binding.pod;
        let outcome = match &done.answer {
            Answer::Accepted | Answer::Object(_) => {
                self.engine.confirm(Outcome::Bound(pod.clone()), now);
                self.world.take_bound(pod, &binding.node);
                None
            }
            Answer::Missing => Some(Outcome::NotBound { pod: pod.clone(), lost: true }),
            Answer::Refused(_) => Some(Outcome::NotBound { pod: pod.clone(), lost: false }),
            Answer::Unknown(_) => return,
        };
        if let Some(root) = self.lane_root(&done.lane)
            && let Some(unit) = self.units.get_mut(&root)
        {
            unit.course.binds.remove(pod);
        }
        if let Some(outcome) = outcome {
            self.engine.confirm(outcome, now);
        }
    }

    /// What writes an admission down was refused for good: nothing outside has changed, so the
    /// engine decides anew.
    fn commit_refused(&mut self, done: &Done, now: Millis) {
        let Some(unit) = self.lane_root(&done.lane).and_then(|root| self.units.get_mut(&root)) else {
            return;
        };
        let (Stage::Admitted { admission, committed: false, .. }
        | Stage::Holding { admission, written: false, .. }) = &unit.course.stage
        else {
            return;
        };
        let record = match &done.write.call {
            Call::Create(_) | Call::Replace(_) => needs_plan(admission),
            Call::MergeStatus(_) => !needs_plan(admission),
            _ => false,
        };
        if record {
            unit.course.stage = Stage::Waiting;
            self.engine.confirm(Outcome::NotCommitted(unit.composed.gang.id.clone()), now);
        }
    }
}

/// What was asked of one pod was done: one of many requests like it.
fn is_of_a_member(done: &Done) -> bool {
    done.write.target.kind == Kind::Pod
        && done.write.call != Call::Read
        && matches!(done.answer, Answer::Accepted | Answer::Object(_))
}
