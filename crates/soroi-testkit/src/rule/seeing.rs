//! What can the product know, and what met it? Seen on its wire.
//!
//! A rule that gives the product time has to know how much of it was fair: a process that is dead, asleep
//! or still reads its lists can do nothing, and a request that was lost has to be sent again. So time
//! counts from the last thing that met the gang ([`Seeing::undisturbed`]), and no run needs patience
//! beside that. Knows processes and paths; never what a write is for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::kind::{self, Kind};
use crate::scenario::GangRef;
use crate::wire::sight::{Sender, Sight, What};
use crate::world::{Key, World, gangs_of_pod, gangs_of_workload};

/// Collections that must be read before anything is decided.
const READ_FIRST: [Kind; 7] =
    [kind::NODE, kind::POD, kind::JOB, kind::WORKLOAD, kind::CLUSTER_QUEUE, kind::POD_GROUP, kind::GANG_PLAN];
/// A lease that was not renewed for so long is held by nobody who works. (It is renewed every 2 s.)
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_secs(6);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seeing {
    /// By process: the collections that it has read, in its term.
    read: BTreeMap<Sender, Read>,
    /// When all gangs were last disturbed.
    shaken: Option<Timestamp>,
    /// When one was.
    touched: BTreeMap<GangRef, Timestamp>,
    /// Nobody looks at the wire.
    watched: bool,
}

/// The collections that a process has read.
#[derive(Clone, Debug, Default)]
struct Read {
    paths: BTreeSet<String>,
    /// How many of [`READ_FIRST`] are among them: asked after every step.
    first: usize,
}

impl Read {
    /// Whether this one was not read before.
    fn insert(&mut self, path: &str) -> bool {
        let new = self.paths.insert(path.to_owned());
        self.first += usize::from(new && is_read_first(path));
        new
    }
}

fn is_read_first(path: &str) -> bool {
    READ_FIRST.iter().any(|kind| kind.path(None) == path)
}

impl Seeing {
    /// Whether a process has read everything that it must.
    pub(super) fn has_read(&self, sender: &Sender) -> bool {
        self.read.get(sender).is_some_and(|read| read.first == READ_FIRST.len())
    }

    /// The story has stopped every process.
    pub(crate) fn stopped(&mut self) {
        self.read.clear();
    }

    /// A term has begun: whoever leads reads everything anew.
    pub(super) fn term_began(&mut self, now: Timestamp) {
        self.read.values_mut().for_each(|read| *read = Read::default());
        self.shaken = Some(now);
    }

    /// Something happened to a gang after which it may take its time.
    pub(super) fn touch(&mut self, gang: GangRef, now: Timestamp) {
        self.touched.insert(gang, now);
    }

    /// Everything is disturbed now.
    pub(super) fn shake(&mut self, now: Timestamp) {
        self.shaken = Some(now);
    }

    /// Since when the gang is undisturbed, as far as that is known.
    pub(super) fn undisturbed(&self, gang: &GangRef) -> Timestamp {
        let touched = self.touched.get(gang).copied();
        touched.into_iter().chain(self.shaken).max().unwrap_or(Timestamp::MIN)
    }

    /// Takes in what is seen of processes and of what meets them.
    pub(super) fn note(&mut self, sight: &Sight, now: Timestamp) {
        self.watched = true;
        match &sight.what {
            What::Began => {
                // Its predecessor is gone, however that ended.
                self.read.retain(|sender, _| sender.who != sight.sender.who);
                self.read.insert(sight.sender, Read::default());
                self.shaken = Some(now);
            }
            What::Crashed => {
                self.read.remove(&sight.sender);
                self.shaken = Some(now);
            }
            What::Listed => {
                let read = self.read.entry(sight.sender).or_default();
                if read.insert(&sight.path) {
                    self.shaken = Some(now);
                }
            }
            What::Hindered if is_read_first(&sight.path) => {
                self.shaken = Some(now);
            }
            What::Hindered | What::Wrote { .. } => {}
        }
    }
}

impl World {
    /// Whether a process of the product is there that knows what there is, and may act.
    pub(crate) fn is_seen_to(&self, now: Timestamp) -> bool {
        if !self.seeing.watched {
            return !self.is_away();
        }
        let leads = self.renewed.is_none_or(|at| now.duration_since(at) < RENEWED_WITHIN);
        let asleep = self.naps.iter().any(|nap| nap.until > now);
        let reads = self.seeing.read.keys().any(|sender| self.seeing.has_read(sender));
        leads && !asleep && reads && !self.is_away()
    }
}

/// The gangs that a request is about.
pub(super) fn gangs_of(world: &World, path: &str) -> BTreeSet<GangRef> {
    let Some((key, _)) = target(path) else { return BTreeSet::new() };
    let named = || GangRef { namespace: key.1.clone(), name: key.2.clone() };
    let object = world.get(key.0, &key.1, &key.2);
    match key.0 {
        kind::POD => object.map(gangs_of_pod).unwrap_or_default(),
        kind::WORKLOAD => object.map(gangs_of_workload).unwrap_or_default(),
        kind::JOB | kind::POD_GROUP => BTreeSet::from([named()]),
        kind::GANG_PLAN => {
            let of = object.and_then(|plan| {
                let gang = &plan["spec"]["gang"];
                let name = gang["name"].as_str()?;
                match gang["kind"].as_str()? {
                    "Workload" => world.get(kind::WORKLOAD, &key.1, name).map(gangs_of_workload),
                    _ => Some(BTreeSet::from([GangRef { namespace: key.1.clone(), name: name.to_owned() }])),
                }
            });
            of.unwrap_or_default()
        }
        _ => BTreeSet::new(),
    }
}

/// The object that a path leads to, and the subresource.
pub(super) fn target(path: &str) -> Option<(Key, &str)> {
    let (before, rest) = path.split_once("/namespaces/").unwrap_or((path, ""));
    let mut words = rest.split('/');
    let (namespace, plural, name) = (words.next()?, words.next()?, words.next()?);
    let kind = [kind::POD, kind::JOB, kind::WORKLOAD, kind::GANG_PLAN, kind::POD_GROUP]
        .into_iter()
        .find(|kind| kind.plural == plural && kind.path(None) == format!("{before}/{plural}"))?;
    Some(((kind, namespace.to_owned(), name.to_owned()), words.next().unwrap_or("")))
}
