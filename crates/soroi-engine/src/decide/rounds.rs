//! Who is decided before whom? Rounds of heads, until nobody is left who could be decided.
//!
//! Kueue decides one gang of each ClusterQueue in a cycle, and parks those that do not fit until
//! something happens. When it has, all of them come back, and it goes through each queue again. The
//! outcome of all those cycles is reached here at once. A *wave* is all that is decided before something
//! happens outside; in round `n` of it each queue has its `n`-th want decided. Whoever sleeps because
//! nothing happened that could help it would be tried in vain, but its round passes, so that the heads
//! that meet in a round are those that meet in one of Kueue's cycles.
//!
//! Within a round those go first that need not borrow or borrow from nearer, then larger priority, then
//! the earlier time (Kueue 0.18, `scheduler.go`, `entryOrdering`); under fair sharing it is asked again
//! after each head whose turn it is (`tournament`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::search::Answer;
use super::tournament::{self, fairest};
use super::wanted::{Start, Wanted};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{GangId, Millis, Name, Policy};
use crate::queue::{LineKey, Turn, WantIx};

/// How far each line is.
#[derive(Default)]
struct Wave(BTreeMap<LineKey, Pace>);

/// How far a line is.
#[derive(Default)]
struct Pace {
    /// Rounds in which one of its gangs was decided.
    rounds: usize,
    /// The first gangs of wants that were tried in vain.
    tried: BTreeSet<Turn>,
}

/// The head of a line in its round.
struct Head {
    turn: Turn,
    want: WantIx,
    /// What it would get of the quota if it were its turn, perhaps after others have left. `None`: nothing, or
    /// nobody is there to be compared with.
    answer: Option<Answer>,
    /// How high in the cohorts it borrows, or would if those could leave who are in its way.
    borrow: u32,
}

impl Head {
    /// Whether it would still get the same.
    fn gets(&self, other: Option<&Answer>) -> bool {
        let key = |answer: &Answer| -> (u32, Vec<BTreeMap<Name, Name>>, Vec<GangId>) {
            let flavors = answer.sets.iter().map(|set| set.flavors.clone()).collect();
            (answer.borrow, flavors, answer.victims.iter().map(|(id, _)| id.clone()).collect())
        };
        self.answer.as_ref().map(key) == other.map(key)
    }
}

impl Engine {
    /// Decides everybody who waits and may be decided.
    pub(crate) fn start_waiting(&mut self, now: Millis, out: &mut Vec<Decision>) {
        self.start_some(|_| true, now, out);
    }

    /// Decides those who need quota alone and came anew, or come back because they were evicted, before those
    /// are woken who were asked in vain: Kueue brings these back a second later.
    pub(crate) fn start_newcomers(&mut self, now: Millis, out: &mut Vec<Decision>) {
        self.start_some(
            |wanted| matches!(wanted, Wanted::Start(start) if start.policy == Policy::QuotaOnly),
            now,
            out,
        );
    }

    fn start_some(&mut self, who: impl Fn(&Wanted) -> bool, now: Millis, out: &mut Vec<Decision>) {
        let mut wave = Wave::default();
        loop {
            self.hold_back();
            let mut heads = self.next_round(&wave, &who, now);
            if heads.is_empty() {
                return;
            }
            // In which trees somebody got something in this round.
            let mut taken: BTreeSet<Option<Name>> = BTreeSet::new();
            while !heads.is_empty() {
                let Some(head) = heads.remove(self.next_head(&heads)) else { return };
                let line = self.waiting.line_of(head.want).clone();
                let pace = wave.0.entry(line).or_default();
                pace.rounds += 1;
                let (tree, elsewhere) = self.tree_of(head.want);
                let competes = taken.contains(&tree) || (elsewhere && !taken.is_empty());
                // Whoever came before it took what it would have got: it competes again in the next round.
                if competes && !head.gets(self.nominate(&head.turn.id, head.want, now).0.as_ref()) {
                    continue;
                }
                let started = match self.settled(&head) {
                    Some((start, answer)) => {
                        self.begin(&head.turn.id, &start, answer, now, out);
                        true
                    }
                    None => self.start_one(&head.turn, head.want, now, out),
                };
                match started {
                    true => _ = taken.insert(tree),
                    false => _ = pace.tried.insert(head.turn),
                }
                if self.is_one_getting_ready() {
                    break;
                }
            }
        }
    }

    /// The heads that meet next, in their order.
    fn next_round(&mut self, wave: &Wave, who: &impl Fn(&Wanted) -> bool, now: Millis) -> VecDeque<Head> {
        let lines: Vec<LineKey> = self.lines_in_turn().cloned().collect();
        let mut heads: Vec<(usize, Turn, WantIx)> = Vec::new();
        for line in lines.into_iter().filter(|line| *line != LineKey::Admitted) {
            if let Some((turn, want)) = self.waiting.head(&line)
                && who(self.waiting.ask(want))
            {
                heads.push((self.round_of(wave, &line, &turn), turn, want));
            }
        }
        let Some(round) = heads.iter().map(|(round, ..)| *round).min() else { return VecDeque::new() };
        heads.retain(|(at, ..)| *at == round);
        let alone = heads.len() == 1;
        let head = |(_, turn, want): (usize, Turn, WantIx)| {
            let (answer, borrow) = if alone { (None, 0) } else { self.nominate(&turn.id, want, now) };
            Head { turn, want, answer, borrow }
        };
        let mut heads: Vec<Head> = heads.into_iter().map(head).collect();
        // Heads without quota come last, which only gives them their reason; but for those that keep some.
        heads.sort_by_cached_key(|head| {
            (head.borrow, self.line_priority(self.waiting.line_of(head.want)), head.turn.clone())
        });
        heads.into()
    }

    /// The tree of quotas in which a want competes, by its root, and whether it does in Volcano's too.
    fn tree_of(&self, want: WantIx) -> (Option<Name>, bool) {
        let Wanted::Start(start) = self.waiting.ask(want) else { return (None, false) };
        let root = start.cluster_queue.as_ref().and_then(|queue| self.quotas.kueue.root(queue));
        (root, start.volcano_queue.is_some())
    }

    /// What a head gets, where that is known: it was asked for and nothing else comes into it, neither places,
    /// nor what it holds itself, nor what a StrictFIFO head keeps. (Nobody took it meanwhile, or it was asked
    /// for again.)
    fn settled(&self, head: &Head) -> Option<(Arc<Start>, Answer)> {
        let Wanted::Start(start) = self.waiting.ask(head.want) else { return None };
        let answer = head.answer.as_ref().filter(|answer| answer.victims.is_empty())?;
        let by_quota = matches!(start.policy, Policy::QuotaOnly | Policy::AfterAdmission)
            && start.cluster_queue.is_some()
            && start.volcano_queue.is_none()
            && start.lingering.is_none()
            && self.strict_heads.is_empty();
        (by_quota && answer.without_victims.is_none()).then(|| (start.clone(), answer.clone()))
    }

    /// The lines in which somebody may be decided. As long as the first of a line waits for its victims, nobody
    /// else of it is, if quota alone counts (Kueue 0.18, `stickyWorkload`). Where places count, the others go on
    /// beside what is kept for it.
    pub(crate) fn lines_in_turn(&self) -> impl Iterator<Item = &LineKey> {
        let waiting = self.preemptors_in_front();
        let waits =
            move |line: &LineKey| matches!(line, LineKey::ClusterQueue(queue) if waiting.contains_key(queue));
        self.waiting.awake_lines().filter(move |line| !waits(line))
    }

    /// By ClusterQueue, the gang that waits for its victims and for which everybody else of the queue waits.
    pub(super) fn preemptors_in_front(&self) -> BTreeMap<&Name, &GangId> {
        let in_front = |id| {
            let hold = self.gangs.get(id)?.hold.as_ref()?;
            let queue = hold.admission.cluster_queue.as_ref()?;
            (hold.admission.policy == Policy::QuotaOnly).then_some((queue, id))
        };
        self.holders.iter().filter_map(in_front).collect()
    }

    /// Which of the heads is next: the first, but under fair sharing the fairest of its tree.
    fn next_head(&self, heads: &VecDeque<Head>) -> usize {
        if self.settings.fair_sharing.is_none() || heads.len() == 1 {
            return 0;
        }
        let queue = |head: &Head| match self.waiting.ask(head.want) {
            Wanted::Start(start) => start.cluster_queue.clone(),
            _ => None,
        };
        let tree = &self.quotas.kueue;
        let Some(first) = queue(&heads[0]) else { return 0 };
        let root = tree.root(&first);
        let related = heads.iter().enumerate().filter_map(|(at, head)| {
            let queue = queue(head).filter(|queue| tree.root(queue) == root)?;
            let usage = head.answer.as_ref().map(Answer::usage).unwrap_or_default();
            Some((at, queue, usage))
        });
        let related: Vec<_> = related.collect();
        let each = related.iter().map(|(at, queue, usage)| tournament::Head {
            turn: &heads[*at].turn,
            queue,
            usage,
        });
        let each: Vec<_> = each.collect();
        fairest(tree, &each).map_or(0, |next| related[next].0)
    }

    /// In which round a head has its turn: after those that were tried, and those that sleep before it.
    fn round_of(&self, wave: &Wave, line: &LineKey, turn: &Turn) -> usize {
        let pace = wave.0.get(line);
        let rounds = pace.map_or(0, |pace| pace.rounds);
        if !matches!(line, LineKey::ClusterQueue(_)) {
            return rounds;
        }
        let tried = pace.map_or(0, |pace| pace.tried.range(..turn.clone()).count());
        rounds + self.waiting.sleepers_before(line, turn).saturating_sub(tried)
    }

    /// What the head of a queue would get of the quota if it were its turn, perhaps after others have left, and
    /// how high it would borrow.
    fn nominate(&mut self, id: &GangId, want: WantIx, now: Millis) -> (Option<Answer>, u32) {
        let Wanted::Start(start) = self.waiting.ask(want).clone() else { return (None, u32::MAX) };
        if start.cluster_queue.is_none() {
            return (Some(Answer::default()), 0);
        }
        let strict = self.waiting.strict_head(self.waiting.line_of(want)).is_some();
        match self.first_answer(id, &start, false, now) {
            Ok(answer) => {
                let borrow = answer.borrow;
                (Some(answer), borrow)
            }
            Err(no) => (None, no.unmet.filter(|_| strict).map_or(u32::MAX, |unmet| unmet.borrow)),
        }
    }
}
