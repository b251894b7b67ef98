//! Which story does a seed tell? A small cluster, gangs that come and go, and what befalls both.
//!
//! Everything is small on purpose: few nodes and few GPUs meet each other more often than many, and gangs are
//! as large as leaves no room for the next one. Between bouts of trouble there are lulls, in which only the
//! cluster changes: what makes room then must be noticed. The last steps end what befell the cluster, so that
//! what fits can be expected to run. Knows the words of `scenarios/README.md`; never a client.

mod scene;

use soroi_watch::SplitMix64;

use super::Drawn;
use crate::scenario::Placement;

/// Bouts of trouble, each followed by a lull.
const BOUTS: (u64, u64) = (1, 3);
/// Things that happen in a bout.
const IN_A_BOUT: (u64, u64) = (3, 10);
/// Things that happen in a lull.
const IN_A_LULL: (u64, u64) = (2, 5);
/// Lulls in which a scene is played in place of what chance brings.
const SCENES: (u64, u64) = (1, 2);
/// Gangs that are there from the beginning.
const CROWD: (u64, u64) = (2, 4);
/// Gangs of which some exist at once.
const NAMES: u64 = 6;
/// Whom the gangs of a queue preempt: half of the time nobody; the second half makes a difference only in a cohort.
const PREEMPTS: [&str; 8] = [
    "",
    "",
    " within=LowerPriority",
    " within=LowerOrNewerEqualPriority",
    "",
    " within=LowerPriority reclaim=Any",
    " within=LowerOrNewerEqualPriority reclaim=LowerPriority",
    " within=LowerPriority reclaim=LowerPriority whileborrowing",
];

/// How long pods may take to get ready, and what comes of it: mostly as long as they like.
const WAITS: [&str; 8] = [
    "",
    "",
    "",
    "",
    "",
    "{timeout: 30s, recoveryTimeout: 20s, requeuingStrategy: {backoffLimitCount: 2, backoffBaseSeconds: 5}}",
    "{timeout: 60s, requeuingStrategy: {timestamp: Creation, backoffBaseSeconds: 1}}",
    "{timeout: 20s, blockAdmission: true, requeuingStrategy: {backoffBaseSeconds: 2, backoffLimitCount: 3}}",
];

/// The story of `seed`.
pub fn draw(seed: u64) -> Drawn {
    let mut dice = Dice(SplitMix64::new(seed ^ 0x5eed_0f50_7261_6e67));
    // Unified promises most, so it is tried most.
    let placement = match dice.below(10) {
        0 => Placement::TopologyOnly,
        1 => Placement::QuotaOnly,
        2 | 3 => Placement::AfterAdmission,
        _ => Placement::Unified,
    };
    let replicas = if dice.chance(1, 3) { 2 } else { 1 };
    let astray = dice.one(&["0s", "3m", "10m"]);
    let wait = dice.one(&WAITS);
    let site = Site::drawn(&mut dice);
    let fair = site.cohort && dice.chance(1, 2);
    // Some stories have no storm: nothing hides what is not noticed in them.
    let fine = dice.chance(1, 5);
    let mut steps = site.steps();
    if fine {
        steps.push("lull".into());
    }
    let mut made = 0;
    for at in 0..dice.between(CROWD.0, CROWD.1) {
        site.job(&mut dice, &format!("g{at}"), &mut steps);
    }
    for _ in 0..dice.between(BOUTS.0, BOUTS.1) {
        for _ in 0..dice.between(IN_A_BOUT.0, IN_A_BOUT.1) {
            site.happening(&mut dice, &mut made, &mut steps);
            if dice.chance(2, 3) {
                steps.push(format!("wait {}", dice.span()));
            }
        }
        site.lull(&mut dice, &mut made, &mut steps);
        if !fine {
            steps.push("storm".into());
        }
    }
    if dice.chance(1, 2) {
        steps.push("lull".into());
    }
    steps.extend(site.calm());
    Drawn { seed, placement, replicas, astray, wait, fair, steps }
}

/// A source of choices.
struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// From `least` to `most`, both included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn chance(&mut self, of: u64, in_all: u64) -> bool {
        self.below(in_all) < of
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of.get(at).copied().unwrap_or("")
    }

    /// Mostly short, sometimes longer than a time-out.
    fn span(&mut self) -> &'static str {
        self.one(&["5ms", "20ms", "100ms", "300ms", "1s", "1s", "3s", "10s", "30s", "70s"])
    }
}

/// The cluster of a story.
struct Site {
    nodes: u64,
    gpus: u64,
    racks: u64,
    /// A topology of racks and hosts on the flavor.
    topology: bool,
    queues: Vec<Queue>,
    cohort: bool,
    /// Whom the queues' gangs preempt.
    preempts: &'static str,
}

/// A ClusterQueue of a story.
struct Queue {
    name: &'static str,
    gpus: u64,
    /// What it may borrow of its cohort, and what it lends; `None`: all.
    borrows: Option<u64>,
    lends: Option<u64>,
}

impl Site {
    fn drawn(dice: &mut Dice) -> Self {
        let (nodes, gpus) = (dice.between(2, 4), dice.between(1, 3));
        let all = nodes * gpus;
        let queue = |name, gpus| Queue { name, gpus, borrows: None, lends: None };
        let mut queues = vec![queue("main", dice.between(all.div_ceil(2), all + 2))];
        if dice.chance(1, 2) {
            queues.push(queue("side", dice.between(1, all)));
        }
        let cohort = queues.len() > 1 && dice.chance(2, 3);
        if cohort {
            for queue in &mut queues {
                queue.borrows = dice.chance(1, 3).then(|| dice.below(all));
                queue.lends = dice.chance(1, 4).then(|| dice.below(queue.gpus + 1));
            }
        }
        let (racks, topology) = (dice.between(1, 2), dice.chance(1, 2));
        let preempts = dice.one(if cohort { &PREEMPTS } else { &PREEMPTS[..4] });
        Self { nodes, gpus, racks, topology, queues, cohort, preempts }
    }

    fn steps(&self) -> Vec<String> {
        let mut steps: Vec<String> = (1..=self.nodes).map(|at| self.node(at)).collect();
        steps.extend(self.rules());
        steps.extend(["priority high value=100".into(), "priority low value=-5".into()]);
        steps
    }

    /// The lines that make what decides who may run, or make it again.
    fn rules(&self) -> Vec<String> {
        let mut steps = Vec::new();
        let mut flavor = "";
        if self.topology {
            steps.extend(["topology default rack host".into(), "flavor main topology=default".into()]);
            flavor = " flavor=main";
        }
        let cohort = if self.cohort { " cohort=all" } else { "" };
        for Queue { name, gpus, borrows, lends } in &self.queues {
            let limit = |word, limit: &Option<u64>| {
                limit.map(|gpus| format!(" {word}:gpu={gpus}")).unwrap_or_default()
            };
            let (borrows, lends) = (limit("borrow", borrows), limit("lend", lends));
            let preempts = self.preempts;
            steps.push(format!("queue {name} gpu={gpus}{borrows}{lends}{flavor}{cohort}{preempts}"));
        }
        steps
    }

    /// Something that decides who may run is deleted, sometimes by force, and mostly made again.
    fn rule_is_lost(&self, dice: &mut Dice, steps: &mut Vec<String>) {
        let flavor = if self.topology { "flavor main" } else { "flavor default" };
        let all = [flavor, "topology default", "queue main", "localqueue main", "queue side"];
        let what = dice.one(&all);
        steps.push(format!("delete {what}"));
        if what != "localqueue main" && dice.chance(1, 2) {
            steps.push(format!("patch {what} {{metadata: {{finalizers: null}}}}"));
        }
        steps.push(format!("wait {}", dice.span()));
        if dice.chance(3, 4) {
            steps.extend(self.rules());
        }
    }

    /// The line that makes a node, or sets it right again.
    fn node(&self, at: u64) -> String {
        format!("node w{at} gpu={} rack=r{}", self.gpus, at % self.racks)
    }

    /// Ends what befell the cluster, and has Soroi run.
    fn calm(&self) -> Vec<String> {
        let mut steps = self.set_right();
        steps.extend(["product start".into(), "wait 1s".into()]);
        steps
    }

    /// Ends what befell the cluster.
    fn set_right(&self) -> Vec<String> {
        let mut steps = vec!["refuse pods none".into()];
        for at in 1..=self.nodes {
            steps.extend([
                format!("kubelet w{at} alive"),
                self.node(at),
                format!("uncordon w{at}"),
                format!("taint w{at} broken-"),
            ]);
        }
        steps.extend(self.rules());
        for Queue { name, gpus, .. } in &self.queues {
            steps.push(format!("patch queue {name} {{spec: {{stopPolicy: None}}}}"));
            steps.push(self.quota(name, *gpus));
        }
        steps
    }

    fn quota(&self, queue: &str, amount: u64) -> String {
        let flavor = if self.topology { "main" } else { "default" };
        let known = self.queues.iter().find(|known| known.name == queue);
        let limit =
            |field, limit: Option<u64>| limit.map(|gpus| format!(", {field}: {gpus}")).unwrap_or_default();
        let borrows = limit("borrowingLimit", known.and_then(|queue| queue.borrows));
        // Nobody lends more than he has.
        let lends = limit("lendingLimit", known.and_then(|queue| queue.lends).map(|most| most.min(amount)));
        format!(
            "patch queue {queue} {{spec: {{resourceGroups: [{{coveredResources: [example.com/gpu], flavors: \
             [{{name: {flavor}, resources: [{{name: example.com/gpu, nominalQuota: {amount}{borrows}{lends}}}]}}]}}]}}}}"
        )
    }

    /// Nothing goes wrong but what happens to the cluster, and there is time to see what comes of it.
    fn lull(&self, dice: &mut Dice, made: &mut u64, steps: &mut Vec<String>) {
        steps.push("lull".into());
        if dice.chance(SCENES.0, SCENES.1) {
            return self.scene(dice, made, steps);
        }
        for _ in 0..dice.between(IN_A_LULL.0, IN_A_LULL.1) {
            let before = steps.len();
            self.happening(dice, made, steps);
            if steps.iter().skip(before).any(|step| step.starts_with("product")) {
                steps.truncate(before);
            }
            steps.push(format!("wait {}", dice.one(&["8s", "8s", "15s", "40s", "100s"])));
        }
    }

    fn happening(&self, dice: &mut Dice, made: &mut u64, steps: &mut Vec<String>) {
        let gang = format!("g{}", dice.below(NAMES));
        let group = format!("p{}", dice.below(NAMES));
        let either = if dice.chance(2, 3) { &gang } else { &group };
        let node = format!("w{}", dice.between(1, self.nodes));
        steps.push(match dice.below(62) {
            0..=11 => return self.job(dice, &gang, steps),
            47 => return self.rule_is_lost(dice, steps),
            48 | 49 => return self.duel(dice, steps),
            52..=55 => return self.taken_back(dice, either, steps),
            56 | 58 | 59 => return self.node_blinks(dice, steps),
            60 | 61 => return self.scene(dice, made, steps),
            50 | 51 | 57 => return self.some_refused(dice, &gang, steps),
            12..=14 => return self.group(dice, &group, steps),
            15 | 16 => format!("delete job {gang}"),
            17 => format!("delete group {group}"),
            18 | 19 => format!("delete pod of {either}"),
            20 => format!("evict pods of {either}"),
            21 => format!("delete pod of {either} on {node}"),
            22 => format!("cordon {node}"),
            23 => format!("uncordon {node}"),
            24 => format!("taint {node} broken=yes:{}", dice.one(&["NoSchedule", "NoExecute"])),
            25 => format!("taint {node} broken-"),
            26 => format!("kubelet {node} {}", dice.one(&["dead", "unreachable"])),
            27 => format!("kubelet {node} alive"),
            28 => format!("delete node {node}"),
            29 => self.node(dice.between(1, self.nodes)),
            30 => format!("label node {node} rack=r{}", dice.below(self.racks + 1)),
            31 | 32 => {
                *made += 1;
                format!("pod u{made} gpu=1 runs={} scheduler=default-scheduler", dice.span())
            }
            34 => {
                let kind = self.kind_of_member(dice);
                format!("pod {group}-x{} group={group}{kind}{}", dice.below(3), self.habits(dice))
            }
            40 => format!("patch job {gang} {{spec: {{parallelism: {}}}}}", dice.between(1, 5)),
            39 => format!("patch group {group} {{spec: {{minMember: {}}}}}", dice.between(1, 4)),
            33 => format!("patch job {gang} {{spec: {{suspend: {}}}}}", dice.one(&["true", "false"])),
            35 => format!(
                "patch workload of {either} {{spec: {{active: {}}}}}",
                dice.one(&["true", "false", "true"])
            ),
            36 => {
                let queue = dice.one(&["main", "main", "side"]);
                format!(
                    "patch queue {queue} {{spec: {{stopPolicy: {}}}}}",
                    dice.one(&["None", "Hold", "HoldAndDrain", "None"])
                )
            }
            37 => {
                let amount = dice.between(0, self.nodes * self.gpus);
                self.quota(dice.one(&["main", "main", "side"]), amount)
            }
            38 => format!(
                "patch node {node} status {{status: {{allocatable: {{example.com/gpu: '{}'}}}}}}",
                dice.below(self.gpus + 1)
            ),
            41..=43 => dice.one(&["product stop", "product start", "product start"]).to_owned(),
            _ => {
                let how = dice.one(&["", "", " suspended"]);
                format!("product sleep {}{how}", dice.one(&["3s", "10s", "30s", "70s"]))
            }
        });
    }

    /// A gang is stopped by somebody, or all of a queue, and mostly let go on.
    fn taken_back(&self, dice: &mut Dice, gang: &str, steps: &mut Vec<String>) {
        let (stop, go) = match dice.chance(1, 3) {
            true => {
                let queue = |policy| format!("patch queue main {{spec: {{stopPolicy: {policy}}}}}");
                (queue("HoldAndDrain"), queue("None"))
            }
            false => {
                let active = |yes| format!("patch workload of {gang} {{spec: {{active: {yes}}}}}");
                (active(false), active(true))
            }
        };
        steps.extend([stop, format!("wait {}", dice.span())]);
        if dice.chance(5, 6) {
            steps.push(go);
        }
    }

    /// A node is deleted and made again, before its pods are.
    fn node_blinks(&self, dice: &mut Dice, steps: &mut Vec<String>) {
        let at = dice.between(1, self.nodes);
        let wait = dice.one(&["5ms", "100ms", "1s", "3s", "10s"]);
        steps.extend([format!("delete node w{at}"), format!("wait {wait}"), self.node(at)]);
    }

    /// Some pods are refused by somebody's policy when their controller makes them: a gang comes bit by bit.
    fn some_refused(&self, dice: &mut Dice, gang: &str, steps: &mut Vec<String>) {
        steps.push(format!("refuse pods {}", dice.one(&["1/2", "1/2", "1/3"])));
        if dice.chance(1, 2) {
            self.job(dice, gang, steps);
            steps.push(format!("wait {}", dice.span()));
        }
        if dice.chance(1, 3) {
            steps.push("refuse pods none".into());
        }
    }

    /// Two gangs at once, of which there is room for one at most.
    fn duel(&self, dice: &mut Dice, steps: &mut Vec<String>) {
        let half = (self.nodes * self.gpus / 2 + 1).min(6);
        let first = dice.below(NAMES - 1);
        let names = [format!("g{first}"), format!("g{}", first + 1)];
        steps.extend(names.iter().map(|name| format!("delete job {name}")));
        steps.push(format!("wait {}", dice.span()));
        let habits = self.habits(dice);
        steps.extend(names.iter().map(|name| format!("job {name} pods={half} gpu=1{habits}")));
    }

    /// A name that is there is given anew.
    fn job(&self, dice: &mut Dice, name: &str, steps: &mut Vec<String>) {
        steps.push(format!("delete job {name}"));
        steps.push(format!("wait {}", dice.span()));
        let gpus = dice.between(1, 2.min(self.gpus));
        let most = (self.nodes * (self.gpus / gpus)).clamp(1, 6);
        // As many as there is room for now and then, and some that never have.
        let pods = if dice.chance(1, 2) { dice.between(most.div_ceil(2), most) } else { dice.between(1, 5) };
        let mut line = format!("job {name} pods={pods} gpu={gpus}");
        if dice.chance(1, 4) && self.queues.len() > 1 {
            line.push_str(" queue=side");
        }
        line.push_str(&self.habits(dice));
        // Where gangs preempt, they differ in rank.
        let ranked_in = if self.preempts.is_empty() { 5 } else { 2 };
        if dice.chance(1, ranked_in) {
            line.push_str(&format!(" priority={}", dice.one(&["high", "low"])));
        }
        if dice.chance(1, 4) {
            line.push_str(" indexed");
        }
        if dice.chance(1, 5) {
            line.push_str(&format!(" backoff={}", dice.below(3)));
        }
        if dice.chance(1, 6) {
            line.push_str(" replace=Failed");
        }
        if self.topology && dice.chance(1, 2) {
            let levels =
                ["required=rack", "required=host", "preferred=rack", "preferred=host", "unconstrained"];
            line.push_str(&format!(" {}", dice.one(&levels)));
        }
        steps.push(line);
    }

    /// How long its pods run and how they end.
    fn habits(&self, dice: &mut Dice) -> String {
        let mut line = String::new();
        if dice.chance(2, 3) {
            line.push_str(&format!(" runs={}", dice.one(&["1s", "5s", "20s", "60s", "300s"])));
            if dice.chance(1, 10) {
                line.push_str(" exit=1");
            }
        }
        if dice.chance(1, 5) {
            line.push_str(&format!(" starts={}", dice.one(&["1s", "10s"])));
        }
        if dice.chance(1, 5) {
            line.push_str(&format!(" stops={}", dice.one(&["1s", "10s", "25s"])));
        }
        if dice.chance(1, 8) {
            line.push_str(&format!(" ready={}", dice.one(&["1s", "10s", "90s"])));
        }
        line
    }

    /// Mostly members are alike; some are bigger, some of another role.
    fn kind_of_member(&self, dice: &mut Dice) -> String {
        let gpus = if dice.chance(1, 8) { 2.min(self.gpus) } else { 1 };
        let role = if dice.chance(1, 8) { " role=ps" } else { "" };
        format!(" gpu={gpus}{role}")
    }

    /// A PodGroup with bare pods: the group or its pods may come first, and not all pods at once.
    fn group(&self, dice: &mut Dice, name: &str, steps: &mut Vec<String>) {
        let pods = dice.between(1, 4);
        let least = dice.between(1, pods);
        let habits = self.habits(dice);
        let head = format!("group {name} min={least} queue=main");
        let members: Vec<String> = (0..pods)
            .map(|at| format!("pod {name}-{at} group={name}{}{habits}", self.kind_of_member(dice)))
            .collect();
        let first = dice.chance(3, 4);
        if first {
            steps.push(head.clone());
        }
        for member in members {
            steps.push(member);
            if dice.chance(1, 4) {
                steps.push(format!("wait {}", dice.span()));
            }
        }
        if !first {
            steps.push(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn every_seed_is_a_page_that_can_be_read_and_equal_seeds_are_equal_pages() {
        for seed in 0..500 {
            let drawn = draw(seed);
            let page = drawn.page();
            if let Err(error) = Scenario::parse("drawn", &page) {
                panic!("seed {seed}: {error}\n{page}");
            }
            assert_eq!(draw(seed), drawn);
        }
        assert_ne!(draw(1), draw(2));
    }
}
