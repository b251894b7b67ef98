//! What `soroi explain` shows of the article's cluster, and of what it cannot explain.

use std::time::Duration;

use expect_test::{Expect, expect};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use soroi_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Topology};
use soroi_control::config::Config;
use soroi_control::snapshot::{Asked, Snapshot};
use soroi_engine::event::Policy;

use super::{json, object, text};
use crate::demo::manifests as article;
use crate::demo::site::{Hands, Site};

/// The article's cluster, with the hog and the job of four.
fn site() -> Site {
    let mut site = Site::start(Policy::Unified).unwrap();
    site.play(async |hands: Hands| {
        for node in article::nodes() {
            hands.create::<Node>(node).await.unwrap();
        }
        hands.create::<Topology>(article::topology()).await.unwrap();
        hands.create::<ResourceFlavor>(article::flavor()).await.unwrap();
        hands.create::<ClusterQueue>(article::cluster_queue()).await.unwrap();
        hands.create::<LocalQueue>(article::local_queue()).await.unwrap();
        hands.create::<Pod>(article::hog()).await.unwrap();
        hands.wait(Duration::from_secs(5)).await;
        hands.create::<Job>(article::job("train", 4, "60s", None)).await.unwrap();
        hands.wait(Duration::from_secs(5)).await;
    })
    .unwrap();
    site
}

async fn shown(hands: &Hands, what: &str) -> String {
    let (client, clock) = (hands.client.clone(), hands.clock.clone());
    let snapshot = Snapshot::read(client, clock, &Config::default(), Duration::from_secs(5)).await.unwrap();
    let object = object(what).unwrap();
    let answer = snapshot.explain(object.kind, "default", &object.name);
    text::page(object.kind, ("default", &object.name), &answer)
}

fn check(site: &mut Site, what: &str, expected: Expect) {
    let text = site.play(async |hands: Hands| shown(&hands, what).await).unwrap();
    expected.assert_eq(&text);
}

#[test]
fn the_gang_of_the_article_is_explained_until_it_runs() {
    let mut site = site();
    check(
        &mut site,
        "job/train",
        expect![[r#"
            Job default/train waits.
            It is decided as Workload default/job-train-7fc25.

              couldn't assign flavors to pod set main: topology "gpu-topology" allows to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu

              queue      ClusterQueue gpu-queue, first in line
              pod set    main: 4 pods, each 500m cpu, 1 example.com/gpu, 128Mi memory

              flavor gpu-flavor
                quota    cpu: 2 asked for, 16 free; the queue owns 16 and uses 0
                quota    example.com/gpu: 4 asked for, 4 free; the queue owns 4 and uses 0
                quota    memory: 512Mi asked for, 32Gi free; the queue owns 32Gi and uses 0
                room     3 of 4 pods: worker-2 2, worker-1 1
                nodes    2 Insufficient example.com/gpu: worker-1, worker-2
                short    worker-1: 1 more example.com/gpu for one pod more (1 free)
                         worker-2: 1 more example.com/gpu for one pod more (2 free)

              what would help, each by itself
                enough       pod default/hog leaves node worker-1
        "#]],
    );
    check(
        &mut site,
        "pod/hog",
        expect![[r#"
        Pod default/hog is for the scheduler default-scheduler: Soroi leaves it alone.
    "#]],
    );
    check(
        &mut site,
        "jobs.batch/other",
        expect![[r#"
        There is no Job default/other.
    "#]],
    );
    site.play(async |hands: Hands| {
        hands.cordon("worker-2").await.unwrap();
        hands.wait(Duration::from_secs(1)).await;
    })
    .unwrap();
    check(
        &mut site,
        "job/train",
        expect![[r#"
            Job default/train waits.
            It is decided as Workload default/job-train-7fc25.

              couldn't assign flavors to pod set main: topology "gpu-topology" allows to fit only 1 out of 4 pod(s). Total nodes: 2; excluded: unschedulable: 1; for one more, 0/2 nodes are available: 1 node(s) were unschedulable, 1 Insufficient example.com/gpu

              queue      ClusterQueue gpu-queue, first in line
              pod set    main: 4 pods, each 500m cpu, 1 example.com/gpu, 128Mi memory

              flavor gpu-flavor
                quota    cpu: 2 asked for, 16 free; the queue owns 16 and uses 0
                quota    example.com/gpu: 4 asked for, 4 free; the queue owns 4 and uses 0
                quota    memory: 512Mi asked for, 32Gi free; the queue owns 32Gi and uses 0
                room     1 of 4 pods: worker-1 1
                nodes    1 node(s) were unschedulable: worker-2
                         1 Insufficient example.com/gpu: worker-1
                short    worker-1: 1 more example.com/gpu for one pod more (1 free)

              what would help, each by itself
                not enough   node worker-2 is uncordoned
                not enough   pod default/hog leaves node worker-1
                enough       all of that together
        "#]],
    );
    site.play(async |hands: Hands| {
        hands.uncordon("worker-2").await.unwrap();
        hands.delete_pod("hog").await.unwrap();
        hands.wait(Duration::from_secs(20)).await;
    })
    .unwrap();
    check(
        &mut site,
        "job/train",
        expect![[r#"
        Job default/train runs: all 4 pods have their nodes.
        It is decided as Workload default/job-train-7fc25.
    "#]],
    );
}

#[test]
fn the_same_for_programs() {
    let mut site = site();
    let text = site.play(async |hands: Hands| {
        let (client, clock) = (hands.client.clone(), hands.clock.clone());
        let snapshot =
            Snapshot::read(client, clock, &Config::default(), Duration::from_secs(5)).await.unwrap();
        let answer = snapshot.explain(Asked::Job, "default", "train");
        json::page(Asked::Job, ("default", "train"), &answer).unwrap()
    });
    expect![[r#"
        {
          "before": 0,
          "clusterQueue": "gpu-queue",
          "gang": {
            "kind": "Workload",
            "name": "job-train-7fc25",
            "namespace": "default"
          },
          "kind": "Job",
          "message": "couldn't assign flavors to pod set main: topology \"gpu-topology\" allows to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu",
          "name": "train",
          "namespace": "default",
          "podSets": [
            {
              "count": 4,
              "flavors": [
                {
                  "flavor": "gpu-flavor",
                  "places": {
                    "asked": 4,
                    "closestDomain": null,
                    "domains": [],
                    "excluded": [
                      {
                        "nodes": [
                          "worker-1",
                          "worker-2"
                        ],
                        "reason": "Insufficient example.com/gpu"
                      }
                    ],
                    "fits": false,
                    "fitting": 3,
                    "fittingOnEmptyNodes": 4,
                    "labelsOfNoNode": [],
                    "message": "topology \"gpu-topology\" allows to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu",
                    "proven": true,
                    "short": [
                      {
                        "node": "worker-1",
                        "resources": [
                          {
                            "free": 1,
                            "missing": 1,
                            "resource": "example.com/gpu"
                          }
                        ]
                      },
                      {
                        "node": "worker-2",
                        "resources": [
                          {
                            "free": 2,
                            "missing": 1,
                            "resource": "example.com/gpu"
                          }
                        ]
                      }
                    ],
                    "takes": [
                      {
                        "node": "worker-2",
                        "pods": 2
                      },
                      {
                        "node": "worker-1",
                        "pods": 1
                      }
                    ]
                  },
                  "problem": null,
                  "quota": [
                    {
                      "asked": 2000,
                      "borrowed": 0,
                      "free": 16000,
                      "nominal": 16000,
                      "resource": "cpu",
                      "short": 0,
                      "used": 0
                    },
                    {
                      "asked": 4,
                      "borrowed": 0,
                      "free": 4,
                      "nominal": 4,
                      "resource": "example.com/gpu",
                      "short": 0,
                      "used": 0
                    },
                    {
                      "asked": 536870912,
                      "borrowed": 0,
                      "free": 34359738368,
                      "nominal": 34359738368,
                      "resource": "memory",
                      "short": 0,
                      "used": 0
                    }
                  ]
                }
              ],
              "name": "main",
              "places": null,
              "requests": {
                "cpu": 500,
                "example.com/gpu": 1,
                "memory": 134217728
              }
            }
          ],
          "remedies": [
            {
              "enough": true,
              "message": "pod default/hog leaves node worker-1",
              "step": "PodLeaves"
            }
          ],
          "state": "Waiting",
          "volcanoQueue": null
        }
    "#]].assert_eq(&text.unwrap());
}

#[test]
fn what_is_asked_about_is_named_as_kubectl_does() {
    let ask = |text: &str| match object(text) {
        Ok(object) => format!("{text}: {} {}", text::kind(object.kind), object.name),
        Err(error) => format!("{text}: {error}"),
    };
    let all = ["job/train", "workloads.kueue.x-k8s.io/w", "pg/ring", "po/p", "node/n", "train", "job/"];
    expect![[r#"
        job/train: Job train
        workloads.kueue.x-k8s.io/w: Workload w
        pg/ring: PodGroup ring
        po/p: Pod p
        node/n: "node" is none of job, workload, podgroup and pod
        train: must be KIND/NAME, such as job/train
        job/: the name is missing"#]]
    .assert_eq(&all.map(ask).join("\n"));
}
