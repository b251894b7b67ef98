//! `soroi up` with a token: kubectl through TLS, with the right papers and with wrong ones.

use std::fmt::Write as _;

use expect_test::expect;

use super::normal::normal;
use super::steps::{Shell, printed};
use super::up::Up;

/// Another certificate than the server's: what it was for does not matter.
const OTHERS: &str = "other.pem";

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn only_who_has_the_token_and_trusts_the_certificate_comes_in() {
    let papers = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("up/papers");
    std::fs::create_dir_all(&papers).unwrap();
    std::fs::write(papers.join("token"), "the-token-of-this-test\n").unwrap();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(papers.join(OTHERS), other.cert.pem()).unwrap();
    let token_file = papers.join("token");
    let flags = ["--address", "127.0.0.1", "--token-file", token_file.to_str().unwrap()];
    let up = Up::start("secure", &flags);
    let home = up.dir.join("home");
    let shell = Shell { kubeconfig: &up.kubeconfig, folder: &papers, home: &home };
    // What kubectl is told by flags; the rest comes from the kubeconfig that was written.
    let without = "kubectl config view --raw --minify | sed '/token:/d' > bare && KUBECONFIG=bare";
    let plain = "kubectl config view --raw --minify | sed 's/https:/http:/;/certificate-authority-data/d' > plain && \
                 KUBECONFIG=plain";
    let distrusting =
        "kubectl config view --raw --minify | sed '/certificate-authority-data/d' > open && KUBECONFIG=open";
    let mut seen = String::new();
    for (what, before, flags) in [
        ("all in order", "", ""),
        ("a wrong token", "", "--token=the-token-of-that-test"),
        ("half of the token", "", "--token=the-token"),
        ("no token", without, ""),
        ("another authority", distrusting, "--certificate-authority=other.pem"),
        ("no authority", distrusting, ""),
        ("no authority, and not looked at", distrusting, "--insecure-skip-tls-verify"),
        ("in the clear", plain, ""),
    ] {
        let output = shell.run(&format!("{before} kubectl get nodes -o name {flags} </dev/null"), "");
        let code = output.status.code().unwrap_or(-1);
        // client-go logs its tries beside what kubectl says, and TLS guesses at more.
        let lines = normal(&printed(&output));
        let lines = lines.lines().filter(|line| !line.starts_with('E') || line.starts_with("Error"));
        let lines = lines.map(|line| line.split(" (possibly").next().unwrap());
        let text = lines.collect::<Vec<_>>().join("\n");
        let _ = writeln!(seen, "{what}: exit {code}\n{text}");
    }
    expect![[r#"
        all in order: exit 0
        node/node-1
        node/node-2
        a wrong token: exit 1
        error: You must be logged in to the server (Unauthorized)
        half of the token: exit 1
        error: You must be logged in to the server (Unauthorized)
        no token: exit 1
        Please enter Username: error: EOF
        another authority: exit 1
        Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority
        no authority: exit 1
        Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority
        no authority, and not looked at: exit 0
        node/node-1
        node/node-2
        in the clear: exit 1
        Unable to connect to the server: net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x15\x03\x03\x00\x02\x022"
    "#]].assert_eq(&seen);
    // Watches go through it, too.
    let output = shell.run("kubectl wait --for=condition=Ready node --all --timeout=10s", "");
    assert!(output.status.success(), "{}", printed(&output));
}
