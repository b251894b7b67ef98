//! What must be noticed, brought about on purpose.
//!
//! Left to chance somebody hardly ever waits for one thing alone, and then that one thing comes. So a scene first
//! sets the cluster right and sends everybody away; what follows is the only thing that happens. Who takes part, how
//! large he is and how long things take is drawn. What must come of it is said by no scene: the rules know.

use super::{Dice, NAMES, Site};

impl Site {
    /// One of them.
    pub(super) fn scene(&self, dice: &mut Dice, made: &mut u64, steps: &mut Vec<String>) {
        self.cleared(steps);
        let first = dice.below(NAMES);
        let second = (first + 1 + dice.below(NAMES - 1)) % NAMES;
        let pair = [format!("g{first}"), format!("g{second}")];
        match dice.below(7) {
            0 => self.hog_leaves(dice, made, &pair, steps),
            1 => self.quota_comes_back(dice, &pair, steps),
            2 => self.rank_counts(dice, &pair, steps),
            3 => self.members_refused(dice, &pair, steps),
            4 => self.place_is_lost(dice, &pair, steps),
            5 => self.spare_is_near(dice, &pair, steps),
            _ => self.node_comes_back(dice, &pair, steps),
        }
    }

    /// Nobody is there, and nothing is broken.
    fn cleared(&self, steps: &mut Vec<String>) {
        for at in 0..NAMES {
            steps.extend([format!("delete job g{at}"), format!("delete group p{at}")]);
            steps.push(format!("delete pods of p{at}"));
        }
        steps.extend(self.set_right());
        steps.push("wait 40s".into());
    }

    fn all(&self) -> u64 {
        self.nodes * self.gpus
    }

    /// Somebody else's pod takes room that a gang needs, and ends.
    fn hog_leaves(&self, dice: &mut Dice, made: &mut u64, [gang, _]: &[String; 2], steps: &mut Vec<String>) {
        *made += 1;
        let (node, taken) = (dice.between(1, self.nodes), dice.between(1, self.gpus));
        steps.extend([
            self.quota("main", self.all()),
            format!("pod u{made} gpu={taken} on=w{node} runs=20s"),
            format!("wait {}", dice.one(&["100ms", "1s", "3s"])),
            format!("job {gang} pods={} gpu=1 runs=20s", self.all()),
            format!("wait {}", dice.one(&["40s", "60s"])),
        ]);
    }

    /// There are places for both, and quota for one at a time.
    fn quota_comes_back(&self, dice: &mut Dice, pair: &[String; 2], steps: &mut Vec<String>) {
        let half = (self.all() / 2).max(1);
        steps.push(self.quota("main", half));
        steps.extend(pair.iter().map(|gang| format!("job {gang} pods={half} gpu=1 runs=10s")));
        steps.push(format!("wait {}", dice.one(&["40s", "60s"])));
    }

    /// Who counts for more comes second.
    fn rank_counts(&self, dice: &mut Dice, [low, high]: &[String; 2], steps: &mut Vec<String>) {
        let all = self.all();
        let stops = dice.one(&["", " stops=10s", " stops=25s"]);
        steps.extend([
            self.quota("main", all),
            format!("job {low} pods={all} gpu=1 runs=300s priority=low{stops}"),
            format!("wait {}", dice.one(&["1s", "10s"])),
            format!(
                "job {high} pods={} gpu=1 runs=20s{}",
                dice.between(1, all),
                dice.one(&["", " priority=high"])
            ),
            format!("wait {}", dice.one(&["40s", "60s"])),
        ]);
    }

    /// A gang's pods are refused for longer than it may wait for them, and then no longer.
    fn members_refused(&self, dice: &mut Dice, [gang, _]: &[String; 2], steps: &mut Vec<String>) {
        steps.extend([
            self.quota("main", self.all()),
            "refuse pods 1/1".into(),
            format!("job {gang} pods={} gpu=1", dice.between(1, self.all())),
            format!("wait {}", dice.one(&["62s", "65s", "100s"])),
            "refuse pods none".into(),
            "wait 100s".into(),
        ]);
    }

    /// A gang that has everything loses a node for good: it cannot be made whole.
    fn place_is_lost(&self, dice: &mut Dice, [gang, _]: &[String; 2], steps: &mut Vec<String>) {
        let node = dice.between(1, self.nodes);
        let how = match dice.below(3) {
            0 => vec![format!("delete node w{node}")],
            1 => vec![format!("kubelet w{node} dead")],
            _ => vec![format!("cordon w{node}"), format!("delete pods of {gang} on w{node}")],
        };
        steps.extend([
            self.quota("main", self.all()),
            format!("job {gang} pods={} gpu=1 runs=300s backoff=9", self.all()),
            "wait 10s".into(),
        ]);
        steps.extend(how);
        steps.push("wait 100s".into());
    }

    /// A member has to move, and there is room near its gang and far from it.
    fn spare_is_near(&self, dice: &mut Dice, [gang, _]: &[String; 2], steps: &mut Vec<String>) {
        let node = dice.between(1, self.nodes);
        let level = if self.topology { dice.one(&[" required=rack", " preferred=rack"]) } else { "" };
        let pods = dice.between(1, (self.all() / 2).max(1));
        steps.extend([
            self.quota("main", self.all()),
            format!("job {gang} pods={pods} gpu=1 runs=300s backoff=9{level}"),
            "wait 10s".into(),
            format!("cordon w{node}"),
            format!("delete pod of {gang} on w{node}"),
            "wait 30s".into(),
        ]);
    }

    /// A node is gone for a moment, and others come meanwhile.
    fn node_comes_back(&self, dice: &mut Dice, [gang, other]: &[String; 2], steps: &mut Vec<String>) {
        let pods = dice.between(1, self.all());
        steps.extend([
            self.quota("main", self.all() * 2),
            format!("job {gang} pods={pods} gpu=1 runs=300s"),
            "wait 10s".into(),
        ]);
        self.node_blinks(dice, steps);
        steps.push(format!("job {other} pods={} gpu=1 runs=20s", dice.between(1, self.all())));
        steps.push("wait 40s".into());
    }
}
