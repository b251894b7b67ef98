//! What many objects say alike is kept once.
//!
//! A hundred thousand pods have a few hundred shapes, and their namespaces, nodes and reasons are few, too.
//! Knows values; never what they mean.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use soroi_engine::event::{Shape, Who};

use super::PodFacts;

/// How many values there are before those that nobody has any more are looked for.
const PRUNE_MIN: usize = 1024;

/// The values that are kept.
#[derive(Debug, Default)]
pub struct Shared {
    shapes: Mutex<Pool<Shape>>,
    whos: Mutex<Pool<Who>>,
    names: Mutex<Pool<str>>,
}

impl Shared {
    /// Puts the one that is equal to it in the place of all that a pod has in common with others.
    pub fn pod(&self, pod: &mut PodFacts) {
        let PodFacts { pod, job, controller, group, queue, scheduler, gates, scheduled, .. } = pod;
        pod.shape = lock(&self.shapes).share(Arc::clone(&pod.shape));
        pod.who = self.who(Arc::clone(&pod.who));
        let own = pod.owner.as_ref() == Some(&pod.uid);
        let owner = pod.owner.iter_mut().filter(|_| !own);
        let said = scheduled.iter_mut().flat_map(|said| [&mut said.reason, &mut said.message]);
        let maybe = [&mut pod.node, &mut pod.pod_set, &mut pod.role, job, controller, group, queue];
        let names = [&mut pod.namespace, scheduler].into_iter().chain(maybe.into_iter().flatten());
        let mut known = lock(&self.names);
        for name in names.chain(owner).chain(said).chain(gates) {
            *name = known.share(Arc::clone(name));
        }
    }

    /// The same namespace and labels, with names that others have, too.
    fn who(&self, who: Arc<Who>) -> Arc<Who> {
        let mut whos = lock(&self.whos);
        if let Some(known) = whos.values.get(&who) {
            return Arc::clone(known);
        }
        let mut names = lock(&self.names);
        let labels = who.labels.iter();
        let labels =
            labels.map(|(key, value)| (names.share(Arc::clone(key)), names.share(Arc::clone(value))));
        let labels = labels.collect();
        let namespace = names.share(Arc::clone(&who.namespace));
        whos.share(Arc::new(Who { namespace, labels }))
    }
}

fn lock<T: ?Sized>(pool: &Mutex<Pool<T>>) -> std::sync::MutexGuard<'_, Pool<T>> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Pool<T: ?Sized> {
    values: BTreeSet<Arc<T>>,
    prune_at: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new(), prune_at: PRUNE_MIN }
    }
}

impl<T: Ord + ?Sized> Pool<T> {
    fn share(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.values.get(&*value) {
            return Arc::clone(known);
        }
        if self.values.len() >= self.prune_at {
            self.values.retain(|known| Arc::strong_count(known) > 1);
            self.prune_at = PRUNE_MIN.max(self.values.len().saturating_mul(2));
        }
        self.values.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(gpus: i64) -> Arc<Shape> {
        Arc::new(Shape { requests: [("gpu".into(), gpus)].into(), ..Shape::default() })
    }

    #[test]
    fn equal_values_are_one_and_what_nobody_has_goes() {
        let mut pool = Pool::default();
        let (one, other) = (pool.share(shape(1)), pool.share(shape(1)));
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &pool.share(shape(2))));
        for gpus in 0..10 * PRUNE_MIN as i64 {
            pool.share(shape(gpus));
        }
        assert!(pool.values.len() <= PRUNE_MIN);
        assert!(Arc::ptr_eq(&one, &pool.share(shape(1))));
    }

    #[test]
    fn pods_alike_share_what_they_say_and_keep_what_they_are() {
        let pod = |name: &str| {
            let json = serde_json::json!({
                "metadata": { "name": name, "uid": format!("uid-{name}"), "namespace": "team" },
                "spec": {
                    "nodeName": "n1", "schedulerName": "soroi",
                    "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1" } } }],
                },
            });
            super::super::pod(&serde_json::from_value(json).unwrap(), &Default::default()).unwrap()
        };
        let shared = Shared::default();
        let (mut a, mut b) = (pod("a"), pod("b"));
        shared.pod(&mut a);
        shared.pod(&mut b);
        assert_eq!((&a, &b), (&pod("a"), &pod("b")));
        assert!(Arc::ptr_eq(&a.pod.shape, &b.pod.shape));
        assert!(Arc::ptr_eq(&a.pod.namespace, &b.pod.namespace));
        assert!(Arc::ptr_eq(a.pod.owner.as_ref().unwrap(), &a.pod.uid));
    }
}
