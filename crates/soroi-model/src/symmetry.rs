//! Which states are the same but for names? Gangs, members of a gang and slots are alike, so of each
//! set of states that differ in their names only, one stands for all.
//!
//! Knows where names are. Must never know what they are used for.

use crate::state::{
    Course, GANGS, Gang, LATE_MAX, MEMBERS, Mode, Objects, Pod, Replica, Seats, Slot, State, Target, Targets,
    Write,
};

/// New names of gangs and members: by old gang, by old member.
#[derive(Clone, Copy)]
struct Names {
    gangs: [usize; GANGS],
    members: [[usize; MEMBERS]; GANGS],
}

impl Names {
    fn are_kept(&self) -> bool {
        self.gangs == [0, 1] && self.members == [[0, 1]; GANGS]
    }
}

/// The state that stands for all that are like this one.
pub fn representative(state: &State) -> State {
    let keys: [[u32; MEMBERS]; GANGS] =
        std::array::from_fn(|gang| std::array::from_fn(|member| member_key(state, gang, member)));
    let gang_keys: [u64; GANGS] = std::array::from_fn(|gang| gang_key(state, gang, keys[gang]));
    let mut least: Option<State> = None;
    for gangs in orders(gang_keys) {
        for first in orders(keys[0]) {
            for second in orders(keys[1]) {
                let names = Names { gangs, members: [first, second] };
                let mut other = if names.are_kept() { *state } else { renamed(state, names) };
                number_slots(&mut other);
                if least.as_ref().is_none_or(|least| other < *least) {
                    least = Some(other);
                }
            }
        }
    }
    least.expect("there is at least one order")
}

/// The ways to name two things in order of their keys.
fn orders<T: Ord>(keys: [T; 2]) -> impl Iterator<Item = [usize; 2]> {
    let kept = (keys[0] <= keys[1]).then_some([0, 1]);
    let swapped = (keys[0] >= keys[1]).then_some([1, 0]);
    kept.into_iter().chain(swapped)
}

fn member_key(state: &State, gang: usize, member: usize) -> u32 {
    let kind = |pod: Pod| match pod {
        Pod::Absent => 0,
        Pod::Pending => 1,
        Pod::Bound(_) => 2,
        Pod::Leaving(_) => 3,
    };
    let mut key = kind(state.objects.gangs[gang].pods[member]) * 2 + u32::from(state.made[gang][member]);
    let target = Target::Pod(gang, member);
    for one in &state.replicas {
        key = key * 4 + kind(one.seen.gangs[gang].pods[member]);
        for set in [one.fresh, one.unread, one.sent] {
            key = key * 2 + u32::from(set.has(target));
        }
    }
    key
}

fn gang_key(state: &State, gang: usize, members: [u32; MEMBERS]) -> u64 {
    let of = |gang: &Gang| {
        let plan = gang.plan.map_or(0, |plan| 1 + 2 * (plan.phase as u64) + u64::from(plan.leaving));
        (gang.job as u64 * 5 + plan) * 2 + u64::from(gang.reserved)
    };
    let mut key = of(&state.objects.gangs[gang]);
    for one in &state.replicas {
        key = key * 40 + of(&one.seen.gangs[gang]);
        key = key * 12 + one.courses[gang].stage as u64 * 2 + u64::from(one.courses[gang].lingers);
    }
    let (low, high) = (members[0].min(members[1]), members[0].max(members[1]));
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(low) << 32 | u64::from(high))
}

fn renamed(state: &State, names: Names) -> State {
    let mut to = *state;
    for gang in 0..GANGS {
        let new = names.gangs[gang];
        for member in 0..MEMBERS {
            to.made[new][names.members[gang][member]] = state.made[gang][member];
        }
    }
    to.objects = objects(&state.objects, names);
    for (to, from) in to.replicas.iter_mut().zip(&state.replicas) {
        if from.mode != Mode::Down {
            *to = replica(from, names);
        }
    }
    for late in to.late.iter_mut().flatten() {
        let old = late.gang;
        late.gang = names.gangs[old];
        late.write = match late.write {
            Write::CreatePlan(of) => Write::CreatePlan(seats(&of, names, old)),
            Write::ReplacePlan(of) => Write::ReplacePlan(seats(&of, names, old)),
            Write::Bind(member, slot) => Write::Bind(names.members[old][member], slot),
            Write::DeletePod(member) => Write::DeletePod(names.members[old][member]),
            other => other,
        };
    }
    to
}

fn replica(from: &Replica, names: Names) -> Replica {
    let mut courses = from.courses;
    for gang in 0..GANGS {
        let Course { seats: of, .. } = from.courses[gang];
        courses[names.gangs[gang]] = Course { seats: seats(&of, names, gang), ..from.courses[gang] };
    }
    let targets = |of: Targets| of.renamed(names.gangs, names.members);
    Replica {
        mode: from.mode,
        seen: objects(&from.seen, names),
        fresh: targets(from.fresh),
        same: targets(from.same),
        unread: targets(from.unread),
        sent: targets(from.sent),
        courses,
    }
}

fn objects(from: &Objects, names: Names) -> Objects {
    let mut to = *from;
    for (old, gang) in from.gangs.iter().enumerate() {
        let new = &mut to.gangs[names.gangs[old]];
        *new = *gang;
        for member in 0..MEMBERS {
            new.pods[names.members[old][member]] = gang.pods[member];
        }
        if let Some(plan) = &mut new.plan {
            plan.seats = seats(&plan.seats, names, old);
        }
    }
    to
}

fn seats(from: &Seats, names: Names, gang: usize) -> Seats {
    let mut to = *from;
    for (member, seat) in from.iter().enumerate() {
        to[names.members[gang][member]] = *seat;
    }
    to
}

/// Slots are numbered in the order in which they are met.
fn number_slots(state: &mut State) {
    let mut numbers: [Option<Slot>; Slot::BITS as usize] = Default::default();
    let mut next = 0;
    each_slot(state, |slot| {
        let number = numbers[usize::from(*slot)].get_or_insert_with(|| {
            next += 1;
            next - 1
        });
        *slot = *number;
    });
    state.late.sort();
}

/// Which slots are spoken of anywhere, one bit each. Others are all alike.
pub fn slots_in_use(state: &State) -> u8 {
    let mut used = 0;
    each_slot(&mut state.clone(), |slot| used |= 1 << *slot);
    used
}

fn each_slot(state: &mut State, mut at: impl FnMut(&mut Slot)) {
    of_objects(&mut state.objects, &mut at);
    for one in state.replicas.iter_mut().filter(|one| one.mode != Mode::Down) {
        of_objects(&mut one.seen, &mut at);
        one.courses.iter_mut().flat_map(|course| &mut course.seats).flatten().for_each(&mut at);
    }
    debug_assert!(state.late.len() == LATE_MAX);
    for late in state.late.iter_mut().flatten() {
        match &mut late.write {
            Write::CreatePlan(seats) | Write::ReplacePlan(seats) => {
                seats.iter_mut().flatten().for_each(&mut at)
            }
            Write::Bind(_, slot) => at(slot),
            _ => {}
        }
    }
}

fn of_objects(objects: &mut Objects, at: &mut impl FnMut(&mut Slot)) {
    for gang in &mut objects.gangs {
        for pod in &mut gang.pods {
            if let Pod::Bound(slot) | Pod::Leaving(slot) = pod {
                at(slot);
            }
        }
        gang.plan.iter_mut().flat_map(|plan| &mut plan.seats).flatten().for_each(&mut *at);
    }
    objects.hog.iter_mut().for_each(at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Bounds, Mistakes};
    use crate::steps;

    #[test]
    fn other_names_make_no_other_state() {
        let bounds = Bounds {
            slots: 3,
            quota: 4,
            delays: 1,
            losses: 1,
            crashes: 1,
            hogs: 1,
            timeouts: 1,
            ..Bounds::default()
        };
        let mut states = vec![State::first()];
        // Every 7th step from every state leads far in all directions.
        for at in 0..3_000 {
            let next = steps::all(&bounds, &Mistakes::new(), &states[at % states.len()]);
            states.extend(next.into_iter().map(|(_, then)| then).skip(at % 7).step_by(7));
        }
        assert!(states.len() > 1_000);
        for state in &states {
            let stands = representative(state);
            assert_eq!(representative(&stands), stands);
            for gangs in [[0, 1], [1, 0]] {
                for members in [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[1, 0], [1, 0]]] {
                    let mut other = renamed(state, Names { gangs, members });
                    each_slot(&mut other, |slot| *slot = (*slot + 1) % bounds.slots);
                    other.late.sort();
                    assert_eq!(representative(&other), stands, "{state:#?}");
                }
            }
        }
    }
}
