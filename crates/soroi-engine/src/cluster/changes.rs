//! Which nodes changed since when? Positions only grow; readers keep their own.

use super::NodeIx;

/// The log is cut in half when it is longer than this and than twice the nodes it speaks of: a
/// reader that is so far behind is as quick to read all nodes anew.
const LEN_MIN: usize = 4096;

/// The numbers of changed nodes, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeLog {
    /// Position of the first entry.
    base: u64,
    entries: Vec<NodeIx>,
    /// A node that changes many times in a row is written once, unless somebody has read it since.
    read_up_to: u64,
    nodes_max: usize,
}

impl ChangeLog {
    pub(crate) fn push(&mut self, node: NodeIx) {
        if self.entries.last() == Some(&node) && self.end() > self.read_up_to {
            return;
        }
        self.nodes_max = self.nodes_max.max(node.index() + 1);
        if self.entries.len() >= LEN_MIN.max(2 * self.nodes_max) {
            let half = self.entries.len() / 2;
            self.entries.drain(..half);
            self.base += half as u64;
        }
        self.entries.push(node);
    }

    /// Every reader must read all nodes anew.
    pub(crate) fn forget_all(&mut self) {
        self.base = self.end() + 1;
        self.entries.clear();
    }

    /// The position after the last change, for somebody who knows everything up to now.
    pub(crate) fn read_all(&mut self) -> u64 {
        self.read_up_to = self.end();
        self.end()
    }

    /// What changed from this position on; `None` if that is not known any more. Whoever reads
    /// goes on from [`Self::read_all`].
    pub(crate) fn since(&self, position: u64) -> Option<&[NodeIx]> {
        let skip = usize::try_from(position.checked_sub(self.base)?).ok()?;
        self.entries.get(skip..)
    }

    fn end(&self) -> u64 {
        self.base + self.entries.len() as u64
    }
}
