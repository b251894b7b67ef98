//! What was a gang made of a while ago? The product sees the past: it may act on what was true lately.
//!
//! Knows members and minima over time; never who acts on them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::scenario::GangRef;
use crate::world::{GangView, gangs_of_pod, has_ended, text};

/// How old what the product knows may be: its watches are cut, lag, and are opened again.
const STALE_MAX: SignedDuration = SignedDuration::from_secs(30);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lately {
    /// By uid: whose members they are, and when they were last of use.
    members: BTreeMap<String, Member>,
    /// What each gang's minimum was, and from when.
    minima: BTreeMap<GangRef, Vec<(Timestamp, usize)>>,
}

#[derive(Clone, Debug)]
struct Member {
    gangs: BTreeSet<GangRef>,
    /// `None`: it is.
    until: Option<Timestamp>,
}

impl Lately {
    /// Notes how a pod is; `None`: it is gone.
    pub(super) fn pod(&mut self, before: Option<&Value>, pod: Option<&Value>, now: Timestamp) {
        let Some(any) = pod.or(before) else { return };
        let uid = text(&any["metadata"]["uid"]);
        let lives = pod.is_some_and(|pod| !has_ended(pod) && pod["metadata"]["deletionTimestamp"].is_null());
        match (lives, self.members.get_mut(uid)) {
            (true, None) => {
                let member = Member { gangs: gangs_of_pod(any), until: None };
                self.members.insert(uid.to_owned(), member);
            }
            (false, Some(member)) if member.until.is_none() => member.until = Some(now),
            _ => {}
        }
        self.members.retain(|_, member| member.until.is_none_or(|until| is_late(until, now)));
    }

    /// Notes the minimum of a gang as it is now.
    pub(super) fn gang(&mut self, view: &GangView<'_>, now: Timestamp) {
        let minimum = view.minimum();
        let known = self.minima.entry(view.gang.clone()).or_default();
        if known.last().is_none_or(|(_, last)| *last != minimum) {
            known.push((now, minimum));
        }
    }

    /// How many members the gang may have been seen to have.
    pub(super) fn members(&self, gang: &GangRef) -> usize {
        self.members.values().filter(|member| member.gangs.contains(gang)).count()
    }

    /// The least minimum that the gang may have been seen to have.
    pub(super) fn minimum(&self, gang: &GangRef, now: Timestamp) -> usize {
        let known = self.minima.get(gang).map(Vec::as_slice).unwrap_or_default();
        least(known, now).unwrap_or(0)
    }
}

fn is_late(until: Timestamp, now: Timestamp) -> bool {
    now.duration_since(until) < STALE_MAX
}

/// The values of a history that were in force lately: each stands until the next one.
pub(super) fn in_force<T: Copy>(history: &[(Timestamp, T)], since: Timestamp) -> impl Iterator<Item = T> {
    let ends = history.iter().skip(1).map(|(at, _)| Some(*at)).chain([None]);
    let each = history.iter().zip(ends);
    each.filter(move |(_, end)| end.is_none_or(|end| end >= since)).map(|((_, value), _)| *value)
}

/// Before this moment nothing is acted upon that is acted upon now.
pub(super) fn lately(now: Timestamp) -> Timestamp {
    now.checked_sub(STALE_MAX).unwrap_or(Timestamp::MIN)
}

fn least(history: &[(Timestamp, usize)], now: Timestamp) -> Option<usize> {
    in_force(history, lately(now)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_long_ago_is_not_in_force() {
        let at = |secs| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(secs);
        let history = [(at(0), 4), (at(100), 2), (at(200), 3)];
        assert_eq!(least(&history, at(210)), Some(2));
        assert_eq!(least(&history, at(229)), Some(2));
        assert_eq!(least(&history, at(231)), Some(3));
        assert_eq!(least(&[], at(0)), None);
    }
}
