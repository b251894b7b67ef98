//! What is kept stays within bounds, however large what comes is.

use serde_json::json;
use tower::Service as _;

use super::run;
use super::watching::Watch;
use crate::Options;

/// A ConfigMap with so many bytes of text.
fn large(bytes: usize) -> String {
    json!({ "metadata": { "name": "a" }, "data": { "a": "x".repeat(bytes) } }).to_string()
}

#[test]
fn an_object_does_not_grow_beyond_what_etcd_takes() {
    run(Options::default(), async |world| {
        let (code, _, _) = world.send("POST", "configmaps", &large(1_000_000)).await;
        assert_eq!(code, 201);
        let more = json!({ "data": { "b": "x".repeat(1_000_000) } }).to_string();
        for method in ["PATCH:merge", "PATCH:strategic"] {
            let (code, status, _) = world.send(method, "configmaps/a", &more).await;
            assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")), "{method}");
        }
        let (code, _, _) = world.send("POST", "configmaps", &large(2_000_000)).await;
        assert_eq!(code, 413);
    });
}

#[test]
fn large_objects_are_not_remembered_as_long_as_small_ones() {
    run(Options::default(), async |world| {
        let (_, made, _) = world.send("POST", "configmaps", &large(1_000_000)).await;
        let mut revisions = vec![made["metadata"]["resourceVersion"].as_str().unwrap().to_owned()];
        for count in 0..40 {
            let body = json!({ "data": { "count": count.to_string() } }).to_string();
            let (_, changed, _) = world.send("PATCH:merge", "configmaps/a", &body).await;
            revisions.push(changed["metadata"]["resourceVersion"].as_str().unwrap().to_owned());
        }
        // 32 MiB are some 33 of them.
        for (at, expected) in [(0, "ERROR"), (5, "ERROR"), (15, "MODIFIED"), (39, "MODIFIED")] {
            let path = format!("configmaps?watch=true&resourceVersion={}", revisions[at]);
            let (events, _) = Watch::start(&world, &path).await.events(&world).await;
            assert_eq!(events[0]["type"], expected, "{at}");
        }
    });
}

/// The code of the answer to a body that is sent as it stands.
async fn post(world: &super::World, media: &str, body: String) -> u16 {
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", media)
        .body(http_body_util::Full::new(bytes::Bytes::from(body)))
        .unwrap();
    world.server.service().call(request).await.unwrap().status().as_u16()
}

#[test]
fn small_bodies_that_would_be_endless_are_refused() {
    // Each line ten times the one before: ten to the ninth of them at the end.
    let mut laughs = "metadata: {name: a}\ndata: {a: &a [x, x, x, x, x, x, x, x, x, x]}\n".to_owned();
    for (this, last) in ('b'..='i').zip('a'..) {
        let ten = vec![format!("*{last}"); 10].join(", ");
        laughs += &format!("{this}: &{this} [{ten}]\n");
    }
    let deep = |open: &str, close: &str| {
        let nested = open.repeat(100_000) + "1" + &close.repeat(100_000);
        format!("{{\"metadata\": {{\"name\": \"a\"}}, \"data\": {{\"a\": {nested}}}}}")
    };
    run(Options::default(), async |world| {
        for (media, body) in [
            ("application/yaml", laughs),
            ("application/yaml", deep("[", "]")),
            ("application/json", deep("[", "]")),
            ("application/json", deep("{\"a\":", "}")),
            ("application/vnd.kubernetes.protobuf", format!("k8s\0{}", "\n\u{7f}".repeat(100_000))),
        ] {
            let code = post(&world, media, body).await;
            assert!((400..500).contains(&code), "{media}: {code}");
        }
    });
}
