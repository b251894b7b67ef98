//! Soroi's own reading of the same objects, and its answers.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use serde_json::Value;
use soroi_control::intake::{self, Defaults, Schedulers};
use soroi_engine::cluster::{Cluster, Occupant};
use soroi_engine::event::{self, Event, Gang, PodPhase, PodSet, Readiness, Shape, TopologyRequest, Who};
use soroi_engine::fit::Ask;
use soroi_engine::place::{PlaceRequest, PodSetRequest, place};
use soroi_engine::{Decision, Engine, Outcome};

use crate::draw::Situation;
use crate::theirs::Answer;

/// A cluster as Soroi knows it.
pub struct Ours {
    cluster: Cluster,
    engine: Engine,
    defaults: Defaults,
    nodes: Vec<event::Name>,
}

/// What Soroi knows of a pod that waits.
#[derive(Debug, PartialEq, Eq)]
pub struct Reading {
    shape: Arc<Shape>,
    who: Arc<Who>,
}

impl Ours {
    pub fn new(situation: &Situation, answer: &Answer) -> Self {
        let mut ours = Self {
            cluster: Cluster::default(),
            engine: Engine::new(soroi_engine::decision::Settings::default()),
            defaults: Defaults::default(),
            nodes: Vec::new(),
        };
        for namespace in &situation.namespaces {
            let event = intake::namespace(&parsed(namespace));
            if let Event::Namespace { name, labels } = &event {
                ours.cluster.set_namespace(name, Some(labels));
            }
            ours.engine.apply(event, 0);
        }
        for class in &situation.runtime_classes {
            ours.defaults.set_runtime_class(&parsed(class));
        }
        for node in &situation.nodes {
            let node = intake::node(&parsed(node)).unwrap();
            ours.nodes.push(node.name.clone());
            ours.cluster.upsert_node(&node);
            ours.engine.apply(Event::Node(node), 0);
        }
        for volume in &situation.volumes {
            let volume = intake::volume::volume(&parsed(volume)).unwrap();
            ours.cluster.set_volume(&volume.name, Some(&volume));
            ours.engine.apply(Event::Volume(volume), 0);
        }
        for claim in &situation.claims {
            let claim = intake::volume::claim(&parsed(claim));
            ours.cluster.set_claim(&claim.key, Some(&claim));
            ours.engine.apply(Event::Claim(claim), 0);
        }
        for node in &situation.csi_nodes {
            let limits = intake::volume::volume_limits(&parsed(node));
            let node: event::Name = node["metadata"]["name"].as_str().unwrap().into();
            ours.cluster.set_volume_limits(&node, &limits);
            ours.engine.apply(Event::VolumeLimits { node, limits }, 0);
        }
        for pod in answer.running.iter().filter_map(|stored| stored.pod.as_ref()) {
            let pod = intake::pod(pod, &Schedulers::default()).unwrap().alone();
            let ended = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
            if let Some(node) = pod.node.as_ref().filter(|_| !ended) {
                let occupant = Occupant::Pod(pod.uid.clone());
                ours.cluster.charge_as(occupant, node, &pod.shape, &pod.who, pod.terminating);
            }
            ours.engine.apply(Event::Pod(pod), 0);
        }
        ours
    }

    /// The pod as it is.
    pub fn read(&self, pod: &Pod) -> Reading {
        let pod = intake::pod(pod, &Schedulers::default()).unwrap().pod;
        Reading { shape: pod.shape, who: pod.who }
    }

    /// The pod as it would be made from a template.
    pub fn predict(&self, pod: &Value) -> Reading {
        let template: PodTemplateSpec = parsed(pod);
        let shape = intake::template(&template, namespace_of(pod), &self.defaults).unwrap();
        let who = intake::defaults::who(&template, namespace_of(pod));
        Reading { shape: Arc::new(shape), who: Arc::new(who) }
    }

    /// Whether the pod may be on the node: the only one that is left to it.
    pub fn takes(&mut self, node: &str, reading: &Reading) -> bool {
        let pod_set = PodSetRequest {
            name: "main".into(),
            count: 1,
            ask: Ask::plain(&reading.shape),
            who: Some(reading.who.clone()),
            ..PodSetRequest::default()
        };
        let excluded = self.nodes.iter().filter(|other| &***other != node).cloned().collect();
        let request = PlaceRequest { pod_sets: vec![pod_set], excluded, ..PlaceRequest::default() };
        place(&mut self.cluster, &request).is_ok()
    }

    /// Places for pods of several kinds at once, so many of each: the nodes of each kind, sorted. Or
    /// whether it is proven that there are none.
    pub fn place(&mut self, kinds: &[(Reading, usize)]) -> Result<Vec<Vec<String>>, bool> {
        let pod_sets = kinds.iter().enumerate().map(|(at, (reading, count))| PodSetRequest {
            name: at.to_string().into(),
            count: u32::try_from(*count).unwrap(),
            ask: Ask::plain(&reading.shape),
            who: Some(reading.who.clone()),
            ..PodSetRequest::default()
        });
        let request = PlaceRequest { pod_sets: pod_sets.collect(), ..PlaceRequest::default() };
        let placed = place(&mut self.cluster, &request)
            .map_err(|problems| !problems.iter().any(|(_, problem)| problem.unproven))?;
        let each = placed.pod_sets.into_iter().map(|places| {
            let nodes = places.nodes.into_iter();
            nodes.flat_map(|(node, count)| std::iter::repeat_n(node.to_string(), count as usize)).collect()
        });
        Ok(each.collect())
    }

    /// Where the pod is bound when it is the only one that waits.
    pub fn decide(&self, pod: &Pod) -> Option<String> {
        let mut engine = self.engine.clone();
        let schedulers = Schedulers { ours: "default-scheduler".into(), volcano: false };
        let pod = intake::pod(pod, &schedulers).unwrap().alone();
        engine.apply(Event::Gang(gang_of(&pod)), 0);
        engine.apply(Event::Pod(pod), 0);
        let mut bound = None;
        for decision in engine.decide(0) {
            if let Decision::Admit(admission) = &decision {
                engine.confirm(Outcome::Committed(admission.gang.clone()), 0);
            }
            bound = bound.or(node_of(decision));
        }
        bound.or_else(|| engine.decide(0).into_iter().find_map(node_of)).map(|node| node.to_string())
    }
}

fn node_of(decision: Decision) -> Option<event::Name> {
    match decision {
        Decision::Bind { node, .. } => Some(node),
        _ => None,
    }
}

fn gang_of(pod: &event::Pod) -> Gang {
    Gang {
        id: pod.uid.clone(),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        owners: vec![pod.uid.clone()],
        local_queue: None,
        volcano_queue: None,
        priority: 0,
        queued_at: 0,
        pod_sets: vec![PodSet {
            name: "main".into(),
            role: None,
            count: 1,
            least: None,
            shape: pod.shape.clone(),
            charged: None,
            topology: TopologyRequest::NONE,
            who: pod.who.clone(),
        }],
        minima: None,
        readiness: Readiness::Ready,
        checks: std::collections::BTreeSet::new(),
        policy: None,
        not_before: 0,
        foreign_scheduler: None,
        admitted: None,
        pods_ready: event::PodsReady::default(),
    }
}

fn namespace_of(pod: &Value) -> &str {
    pod["metadata"]["namespace"].as_str().unwrap()
}

fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}
