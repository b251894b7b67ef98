//! Bad days: crashes after every single write, lost replies, conflicts.

use expect_test::expect;
use serde_json::json;
use soroi_control::Config;
use soroi_testkit::wire::{Trouble, Wire};

use crate::story::{CLUSTER, HOG, Story, job, play};

/// A gang that waits for the hog, runs and ends, and another one that is switched off on the way.
async fn acts(story: &mut Story) {
    story.apply(HOG).await;
    let mut train = job("train", 4);
    train["spec"]["template"]["metadata"] = json!({ "annotations": { "soroi.dev/run-for": "60s" } });
    story.create(&train).await;
    story.wait(5).await;
    story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
    story.wait(20).await;
}

#[test]
fn a_crash_after_any_write_changes_nothing_in_the_end() {
    let writes = std::cell::Cell::new(1_u64);
    let seen = std::cell::RefCell::new(String::new());
    let mut at = 0;
    while at < writes.get() {
        at += 1;
        play(Config::default(), |mut story| {
            let (writes, seen) = (&writes, &seen);
            async move {
                story.crash().await;
                story.apply(CLUSTER).await;
                let wire = Wire::new(story.clock.clone(), Trouble::CrashAfterWrite(at));
                story.start_on(&wire);
                tokio::select! {
                    biased;
                    () = acts(&mut story) => {}
                }
                // Whether or not the crash has come by now: what is left must be finished.
                story.crash().await;
                writes.set(writes.get().max(wire.writes() + 1).min(80));
                story.start();
                story.wait(120).await;
                let board = story.board().await;
                if at == 1 {
                    *seen.borrow_mut() = board;
                } else {
                    assert_eq!(*seen.borrow(), board, "crash after write {at}");
                }
            }
        });
    }
    expect![[r#"
        pod       train-…      worker1      Succeeded
        pod       train-…      worker1      Succeeded
        pod       train-…      worker2      Succeeded
        pod       train-…      worker2      Succeeded
        job       train        released     active 0 succeeded 4
        workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); Finished (Reached expected number of succeeded pods)
        queue     gpu-queue    pending 0 admitted 0 gpu 0
    "#]].assert_eq(&seen.borrow());
}

#[test]
fn conflicts_and_lost_replies_change_nothing_in_the_end() {
    for seed in 0..10 {
        play(Config::default(), |mut story| async move {
            story.crash().await;
            story.apply(CLUSTER).await;
            let wire = Wire::new(story.clock.clone(), Trouble::Seed(seed));
            story.start_on(&wire);
            acts(&mut story).await;
            story.wait(200).await;
            let board = story.board().await;
            assert!(board.contains("Finished"), "seed {seed}:\n{board}");
            assert!(!board.contains("plan "), "seed {seed}:\n{board}");
        });
    }
}
