//! All possibilities, good ones first.
//!
//! Choice after choice (the scarcest first): a region, and in it piece after piece: how many pods
//! on which node. A branch ends as soon as some piece that is still to come finds no region that
//! could take it alone, or the resources do not suffice for all of them. Of nodes that are the
//! same, the earlier takes at least as many pods as the later.

use super::Model;
use crate::event::Amount;

/// The nodes that a piece may use, in the order in which they are tried.
struct Rooms {
    nodes: Vec<Room>,
    /// Room from this node on.
    rest: Vec<u64>,
}

struct Room {
    node: usize,
    pods: u32,
    /// The same as the one before it.
    twin: bool,
}

/// Choices in the order in which they are made, each with its pieces.
type Plan = Vec<(usize, Vec<usize>)>;

impl Model {
    /// Whether there is a way; `None` if the work was used up before that was known. If there is,
    /// the pods are placed.
    pub(super) fn exhaust(&mut self) -> Option<bool> {
        let plan = self.plan();
        if self.hopeful(&plan, 0, 0) && self.try_choice(&plan, 0) {
            return Some(true);
        }
        (self.work > 0).then_some(false)
    }

    fn plan(&mut self) -> Plan {
        let mut order: Vec<(u64, usize, Vec<usize>)> = Vec::new();
        for choice in 0..self.choices.len() {
            let mut pieces: Vec<(u64, usize)> = Vec::new();
            for piece in self.choices[choice].pieces.clone() {
                let count = u64::from(self.pieces[piece].count.max(1));
                let regions = 0..self.choices[choice].regions.len();
                let room: u64 = regions.map(|region| self.room_in(piece, choice, region)).sum();
                pieces.push((room.saturating_mul(1024) / count, piece));
            }
            pieces.sort_unstable();
            let scarcest = pieces.first().map_or(0, |(slack, _)| *slack);
            order.push((scarcest, choice, pieces.into_iter().map(|(_, piece)| piece).collect()));
        }
        order.sort();
        order.into_iter().map(|(_, choice, pieces)| (choice, pieces)).collect()
    }

    fn try_choice(&mut self, plan: &Plan, at: usize) -> bool {
        let Some(&(choice, _)) = plan.get(at) else { return true };
        for region in 0..self.choices[choice].regions.len() {
            self.chosen[choice] = region;
            if self.work == 0 {
                return false;
            }
            if self.try_piece(plan, (at, 0)) {
                return true;
            }
        }
        false
    }

    fn try_piece(&mut self, plan: &Plan, step: (usize, usize)) -> bool {
        let Some(&piece) = plan[step.0].1.get(step.1) else { return self.try_choice(plan, step.0 + 1) };
        let rooms = self.in_order(piece);
        self.try_spread(plan, step, &rooms, (0, u32::MAX), self.pieces[piece].count)
    }

    /// Places `count` pods of the step's piece on nodes from `from.0` on; `from.1` pods went on
    /// the node before that.
    fn try_spread(
        &mut self,
        plan: &Plan,
        step: (usize, usize),
        rooms: &Rooms,
        from: (usize, u32),
        count: u32,
    ) -> bool {
        let next = (step.0, step.1 + 1);
        if count == 0 && !self.is_sliced(plan[step.0].1[step.1]) {
            return false;
        }
        if count == 0 {
            return self.hopeful(plan, next.0, next.1) && self.try_piece(plan, next);
        }
        let piece = plan[step.0].1[step.1];
        let (start, mut before) = from;
        for at in start..rooms.nodes.len() {
            if rooms.rest[at] < u64::from(count) || self.work == 0 {
                return false;
            }
            let room = &rooms.nodes[at];
            let most = if room.twin { room.pods.min(before) } else { room.pods };
            for here in (1..=most.min(count)).rev() {
                if rooms.rest.get(at + 1).copied().unwrap_or(0) < u64::from(count - here) {
                    break;
                }
                self.spend(1);
                self.put(piece, room.node, here);
                if self.try_spread(plan, step, rooms, (at + 1, here), count - here) {
                    return true;
                }
                self.lift(piece, room.node, here);
            }
            before = 0;
        }
        false
    }

    /// The rooms of a piece: the largest first, equal nodes side by side.
    fn in_order(&mut self, piece: usize) -> Rooms {
        let mut rooms = self.rooms(piece);
        let free = |node: usize| &self.free[node * self.resources..(node + 1) * self.resources];
        let likeness = |node: usize| (self.kinds[node], free(node));
        rooms.sort_by(|(a, a_pods), (b, b_pods)| {
            b_pods.cmp(a_pods).then_with(|| likeness(*a).cmp(&likeness(*b))).then(a.cmp(b))
        });
        let twin = |at: usize| at > 0 && likeness(rooms[at].0) == likeness(rooms[at - 1].0);
        let nodes: Vec<Room> =
            rooms.iter().enumerate().map(|(at, &(node, pods))| Room { node, pods, twin: twin(at) }).collect();
        let mut rest = vec![0u64; nodes.len()];
        let mut sum = 0u64;
        for at in (0..nodes.len()).rev() {
            sum += u64::from(nodes[at].pods);
            rest[at] = sum;
        }
        Rooms { nodes, rest }
    }

    /// Whether the pieces from here on could still find room: each alone, and all together as far
    /// as amounts can tell.
    fn hopeful(&mut self, plan: &Plan, at: usize, within: usize) -> bool {
        let mut wanted = vec![0i128; self.resources];
        for (step, (choice, pieces)) in plan.iter().enumerate().skip(at) {
            let (regions, pieces) = if step == at && within > 0 {
                let chosen = self.chosen[*choice];
                (chosen..chosen + 1, &pieces[within..])
            } else {
                (0..self.choices[*choice].regions.len(), &pieces[..])
            };
            for &piece in pieces {
                let count = u64::from(self.pieces[piece].count);
                if !regions.clone().any(|region| self.room_in(piece, *choice, region) >= count) {
                    return false;
                }
                for (resource, amount) in &self.pieces[piece].requests {
                    wanted[*resource] += i128::from(*amount) * i128::from(count);
                }
            }
        }
        self.spend(self.nodes.len());
        let free = |resource: usize| {
            let nodes = self.free.iter().skip(resource).step_by(self.resources.max(1));
            nodes.map(|free: &Amount| i128::from(*free)).sum::<i128>()
        };
        wanted.iter().enumerate().all(|(resource, wanted)| *wanted <= free(resource))
    }

    fn room_in(&mut self, piece: usize, choice: usize, region: usize) -> u64 {
        self.rooms_in(piece, choice, region).iter().map(|(_, pods)| u64::from(*pods)).sum()
    }
}
