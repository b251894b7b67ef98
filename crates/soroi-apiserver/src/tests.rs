use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use soroi_clock::Clock;

use crate::{ApiServer, Options};

#[test]
fn a_pod_is_created_and_read() {
    soroi_clock::simulated_runtime().unwrap().block_on(async {
        let server = ApiServer::new(Clock::simulated(Timestamp::UNIX_EPOCH), Options::default());
        let client = Client::new(server.service(), "default");
        let pods: Api<Pod> = Api::default_namespaced(client);
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}
        }))
        .unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        assert_eq!(pods.get("a").await.unwrap().metadata.name.as_deref(), Some("a"));
    });
}
