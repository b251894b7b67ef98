//! A situation as it is written: the set-up, the steps, and what was recorded after each.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A set-up and what happens in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Situation {
    /// Its name.
    pub name: String,
    /// What it is about, if it was made by hand.
    #[serde(default)]
    pub probes: Option<String>,
    /// It was played with fair sharing.
    #[serde(default)]
    pub fair_sharing: bool,
    /// Specs of ResourceFlavors by name.
    pub flavors: BTreeMap<String, Value>,
    /// Specs of Cohorts.
    #[serde(default)]
    pub cohorts: BTreeMap<String, Value>,
    /// Specs of ClusterQueues.
    pub cluster_queues: BTreeMap<String, Value>,
    /// Specs of LocalQueues.
    pub local_queues: BTreeMap<String, Value>,
    /// Fewer recordings than were made agree on it.
    #[serde(default)]
    pub agreeing: Option<Value>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// What is done.
    #[serde(flatten)]
    pub act: Act,
    /// What differs from the step before in what is seen.
    pub after: Value,
}

/// What is done in a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Act {
    /// Creates Workloads one after the other.
    Create {
        /// What they ask for.
        workloads: Vec<Asked>,
    },
    /// The Workload has ended.
    Finish {
        /// Its name.
        workload: String,
    },
    /// The Workload is deleted.
    Delete {
        /// Its name.
        workload: String,
    },
    /// `spec.active: false`.
    Deactivate {
        /// Its name.
        workload: String,
    },
    /// `spec.active: true`.
    Activate {
        /// Its name.
        workload: String,
    },
    /// Pods that will not run again.
    Reclaim {
        /// Its name.
        workload: String,
        /// By pod set.
        pods: BTreeMap<String, u32>,
    },
    /// `spec.priority`.
    SetPriority {
        /// Its name.
        workload: String,
        /// The new one.
        priority: i32,
    },
    /// Changes one quota of a ClusterQueue or Cohort.
    SetQuota {
        /// The ClusterQueue, or
        #[serde(default)]
        cluster_queue: Option<String>,
        /// the Cohort.
        #[serde(default)]
        cohort: Option<String>,
        /// Which flavor's.
        flavor: String,
        /// Which resource's.
        resource: String,
        /// New values; null takes one away.
        set: Map<String, Value>,
    },
    /// Stops or resumes a ClusterQueue or LocalQueue.
    SetStop {
        /// The ClusterQueue, or
        #[serde(default)]
        cluster_queue: Option<String>,
        /// the LocalQueue.
        #[serde(default)]
        local_queue: Option<String>,
        /// `stopPolicy`.
        stop_policy: String,
    },
    /// Merges into the spec of a ClusterQueue.
    PatchQueue {
        /// Its name.
        cluster_queue: String,
        /// The patch.
        spec: Value,
    },
}

/// A Workload to be created.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// Its LocalQueue.
    pub queue: String,
    /// Its priority.
    #[serde(default)]
    pub priority: i32,
    /// Its pod sets.
    #[serde(rename = "podSets")]
    pub pod_sets: Vec<AskedSet>,
}

/// A pod set of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedSet {
    /// Its name.
    pub name: String,
    /// How many pods.
    pub count: u32,
    /// How few would do.
    #[serde(default)]
    pub min_count: Option<u32>,
    /// What each pod requests.
    pub requests: Value,
    /// Its node selector.
    #[serde(default)]
    pub node_selector: Option<Value>,
    /// Its tolerations.
    #[serde(default)]
    pub tolerations: Option<Value>,
}

impl Act {
    /// Its word in the recordings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Finish { .. } => "finish",
            Self::Delete { .. } => "delete",
            Self::Deactivate { .. } => "deactivate",
            Self::Activate { .. } => "activate",
            Self::Reclaim { .. } => "reclaim",
            Self::SetPriority { .. } => "setPriority",
            Self::SetQuota { .. } => "setQuota",
            Self::SetStop { .. } => "setStop",
            Self::PatchQueue { .. } => "patchQueue",
        }
    }
}

impl Asked {
    /// The spec of the Workload.
    pub fn spec(&self) -> Value {
        let pod_sets: Vec<Value> = self.pod_sets.iter().map(AskedSet::spec).collect();
        json!({ "queueName": self.queue, "priority": self.priority, "podSets": pod_sets })
    }
}

impl AskedSet {
    fn spec(&self) -> Value {
        let mut pod = json!({
            "restartPolicy": "Never",
            "containers": [{ "name": "c", "image": "none", "resources": { "requests": self.requests } }],
        });
        for (key, value) in [("nodeSelector", &self.node_selector), ("tolerations", &self.tolerations)] {
            if let Some(value) = value {
                pod[key] = value.clone();
            }
        }
        let mut set = json!({ "name": self.name, "count": self.count, "template": { "spec": pod } });
        if let Some(least) = self.min_count {
            set["minCount"] = least.into();
        }
        set
    }
}

impl Situation {
    /// Reads situations, one a line.
    ///
    /// # Errors
    /// The line that cannot be read, and why.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let each = lines.map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
        });
        each.collect()
    }

    /// The whole picture that was recorded after each step.
    pub fn pictures(&self) -> Vec<Value> {
        let mut now = json!({ "workloads": {}, "clusterQueues": {}, "cohortShares": {} });
        let each = self.steps.iter().map(|step| {
            for part in ["workloads", "clusterQueues", "cohortShares"] {
                for (name, entry) in step.after[part].as_object().into_iter().flatten() {
                    let Some(entries) = now[part].as_object_mut() else { continue };
                    match entry {
                        Value::Null => _ = entries.remove(name),
                        entry => _ = entries.insert(name.clone(), entry.clone()),
                    }
                }
            }
            let evictions = match &step.after["evictions"] {
                Value::Null => json!([]),
                evictions => evictions.clone(),
            };
            now["evictions"] = evictions;
            now.clone()
        });
        each.collect()
    }
}
