//! Starts and ends a control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
//! and simulated kubelets.
//!
//! RBAC and TLS are on, everything listens on loopback and on free ports, so that several control
//! planes live side by side.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::kubectl::Kubectl;
use super::nodes::{self, Wanted};
use super::{build, kubelets};

/// How long the API server may take until `/readyz` answers.
const READY_SECS_MAX: u64 = 60;
/// How long a process may take to end before it is killed.
const END_SECS_MAX: u64 = 10;

/// What kube-scheduler needs for its own gangs (1.36, all alpha).
const SCHEDULER_GATES: &str = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true,\
                               TopologyAwareWorkloadScheduling=true";

/// How soon a silent node and its pods are given up. The defaults are Kubernetes' own.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Patience {
    /// How often a node's lease is renewed, in seconds
    #[arg(long, default_value_t = 20)]
    heartbeat_secs: u32,
    /// How long a node may be silent before it is not ready, in seconds
    #[arg(long, default_value_t = 50)]
    node_grace_secs: u32,
    /// How long pods that do not say otherwise stay on such a node, in seconds
    #[arg(long, default_value_t = 300)]
    toleration_secs: u32,
}

/// What is not as usual about it.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Manner {
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// Serve Kubernetes' own gangs, too: `scheduling.k8s.io/v1alpha2`, alpha in 1.36
    #[arg(long)]
    pub(crate) native_gangs: bool,
    /// Take optimised kubelets: what is measured shares the machine with them
    #[arg(long)]
    pub(crate) release: bool,
}

impl Patience {
    /// For measurements: no node is given up, and heartbeats are few.
    pub(crate) const LONG: Self =
        Self { heartbeat_secs: 400, node_grace_secs: 4_000, toleration_secs: 4_000 };
    /// Kubernetes' own.
    pub(crate) const USUAL: Self = Self { heartbeat_secs: 20, node_grace_secs: 50, toleration_secs: 300 };

    /// How often nodes are looked at: kube-controller-manager's 5 s for its 50 s of grace.
    fn look_secs(&self) -> u32 {
        self.node_grace_secs.div_ceil(10)
    }
}

/// Starts it in `dir` with the wanted nodes, all of them Ready, and returns the kubeconfig's path.
///
/// # Errors
/// When the folder is in use, or a part does not come up.
pub(crate) fn up(dir: &Path, wanted: Wanted, manner: Manner) -> anyhow::Result<PathBuf> {
    let bin = build::binaries()?;
    let kubelets = kubelets::binary(manner.release)?;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    if dir.join("pids").exists() {
        bail!(
            "{} holds a control plane already; end it with: cargo xtask kubernetes down --dir …",
            dir.display()
        );
    }
    let plane = Plane { bin, dir: dir.clone(), ports: free_ports()?, manner };
    if let Err(error) = plane.start_all(&kubelets, wanted) {
        // What its parts have written stays, to see why.
        return Err(match down(&dir) {
            Ok(()) => error,
            Err(also) => error.context(also),
        });
    }
    Ok(dir.join("kubeconfig"))
}

/// Ends what `up` started, last first.
///
/// # Errors
/// When the folder's list of processes cannot be read.
pub(crate) fn down(dir: &Path) -> anyhow::Result<()> {
    let list = dir.join("pids");
    let pids = fs::read_to_string(&list)
        .with_context(|| format!("no control plane was started in {}", dir.display()))?;
    for line in pids.lines().rev() {
        let Some((pid, name)) = line.split_once(' ') else { continue };
        end(pid, name);
    }
    fs::remove_file(&list)?;
    let data = dir.join("etcd");
    if data.exists() {
        fs::remove_dir_all(data)?;
    }
    Ok(())
}

/// Ends a program of the control plane in `dir` and starts it again as it was started; returns when
/// the API server answers.
///
/// # Errors
/// When no such program runs there, or it does not come back.
pub(super) fn restart(dir: &Path, program: &str) -> anyhow::Result<()> {
    let list = dir.join("pids");
    let pids = fs::read_to_string(&list)
        .with_context(|| format!("no control plane was started in {}", dir.display()))?;
    let pid = pids.lines().filter_map(|line| line.split_once(' ')).find(|(_, name)| *name == program);
    let (pid, _) = pid.with_context(|| format!("{} holds no {program}", dir.display()))?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).with_context(|| format!("{program} does not run"))?;
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let (path, flags) = words.split_first().with_context(|| format!("{program} has no command line"))?;
    end(pid, program);
    let log = File::options().append(true).open(dir.join(format!("{program}.log")))?;
    let new = spawn(Path::new(path), flags, log)?;
    fs::write(&list, pids.replace(&format!("{pid} {program}\n"), &format!("{new} {program}\n")))?;
    let kubectl = Kubectl { program: build::binaries()?.join("kubectl"), kubeconfig: dir.join("kubeconfig") };
    for _ in 0..READY_SECS_MAX * 10 {
        if kubectl.run(&["get", "--raw", "/readyz"], None).is_ok() {
            return Ok(());
        }
        pause();
    }
    bail!("kube-apiserver was not ready within {READY_SECS_MAX} s")
}

/// Starts a program in a process group of its own; its number.
fn spawn(path: &Path, flags: &[String], log: File) -> anyhow::Result<u32> {
    let child = Command::new(path)
        .args(flags)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", path.display()))?;
    Ok(child.id())
}

struct Ports {
    etcd: u16,
    etcd_peer: u16,
    api: u16,
}

struct Plane {
    bin: PathBuf,
    dir: PathBuf,
    ports: Ports,
    manner: Manner,
}

impl Plane {
    fn start_all(&self, kubelets: &Path, wanted: Wanted) -> anyhow::Result<()> {
        self.write_keys()?;
        self.start_etcd()?;
        self.start_apiserver()?;
        self.wait_ready()?;
        self.start_controllers()?;
        let heartbeat = self.manner.patience.heartbeat_secs.to_string();
        let flags = [("--kubeconfig", self.path("kubeconfig")), ("--heartbeat-secs", heartbeat)];
        self.start_at(
            kubelets,
            kubelets::NAME,
            &flags.each_ref().map(|(flag, value)| (*flag, value.as_str())),
        )?;
        nodes::create(&self.kubectl(), wanted)?;
        self.wait_nodes(wanted)
    }

    /// A certificate authority, the server's certificate, the key that signs service account
    /// tokens, the admin's token, and the kubeconfigs.
    fn write_keys(&self) -> anyhow::Result<()> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "test-ca");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "127.0.0.1",
            "10.0.0.1",
        ];
        let mut params = CertificateParams::new(names.map(String::from))?;
        // A name of its own: OpenSSL takes a certificate that is called as its issuer for self-signed.
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &authority)?;
        self.write("ca.crt", &authority.pem())?;
        self.write("apiserver.crt", &leaf.pem())?;
        self.write("apiserver.key", &key.serialize_pem())?;
        let signer = KeyPair::generate()?;
        self.write("service-account.key", &signer.serialize_pem())?;
        self.write("service-account.pub", &signer.public_key_pem())?;
        let mut tokens = String::new();
        for (user, group) in [
            ("admin", "system:masters"),
            ("system:kube-controller-manager", "system:masters"),
            ("system:kube-scheduler", "system:masters"),
        ] {
            let token = secret()?;
            tokens.push_str(&format!("{token},{user},{user},\"{group}\"\n"));
            let name = user
                .strip_prefix("system:")
                .map_or("kubeconfig".to_owned(), |part| format!("{part}.kubeconfig"));
            self.write(&name, &self.kubeconfig(user, &token))?;
        }
        self.write("tokens.csv", &tokens)
    }

    fn kubeconfig(&self, user: &str, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters:\n- name: test\n  cluster:\n    server: https://127.0.0.1:{port}\n    certificate-authority: {ca}\n\
             contexts:\n- name: test\n  context: {{cluster: test, user: \"{user}\"}}\n\
             users:\n- name: \"{user}\"\n  user: {{token: {token}}}\n",
            port = self.ports.api,
            ca = self.path("ca.crt"),
        )
    }

    fn start_etcd(&self) -> anyhow::Result<()> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        self.start(
            "etcd",
            &[
                ("--data-dir", &self.path("etcd")),
                ("--listen-client-urls", &client),
                ("--advertise-client-urls", &client),
                ("--listen-peer-urls", &peer),
                ("--initial-advertise-peer-urls", &peer),
                ("--initial-cluster", &format!("default={peer}")),
                // Tests never outlive the machine, and a sync to disk would be most of their time.
                ("--unsafe-no-fsync", "true"),
                ("--log-level", "warn"),
            ],
        )
    }

    fn start_apiserver(&self) -> anyhow::Result<()> {
        let key = self.path("service-account.key");
        let toleration = self.manner.patience.toleration_secs.to_string();
        let native: &[(&str, &str)] = match self.manner.native_gangs {
            true => &[
                ("--feature-gates", "GenericWorkload=true"),
                ("--runtime-config", "scheduling.k8s.io/v1alpha2=true"),
            ],
            false => &[],
        };
        let (etcd, port) = (format!("http://127.0.0.1:{}", self.ports.etcd), self.ports.api.to_string());
        let (certs, tokens) = (self.path("certs"), self.path("tokens.csv"));
        let (certificate, secret) = (self.path("apiserver.crt"), self.path("apiserver.key"));
        let public = self.path("service-account.pub");
        let usual = [
            ("--etcd-servers", etcd.as_str()),
            ("--bind-address", "127.0.0.1"),
            ("--secure-port", &port),
            ("--cert-dir", &certs),
            ("--tls-cert-file", &certificate),
            ("--tls-private-key-file", &secret),
            ("--service-account-issuer", "https://kubernetes.default.svc"),
            ("--service-account-key-file", &public),
            ("--service-account-signing-key-file", &key),
            ("--token-auth-file", &tokens),
            ("--authorization-mode", "Node,RBAC"),
            ("--service-cluster-ip-range", "10.0.0.0/24"),
            // There is no network of Services: their endpoints are connected to.
            ("--enable-aggregator-routing", "true"),
            ("--default-not-ready-toleration-seconds", &toleration),
            ("--default-unreachable-toleration-seconds", &toleration),
            ("--max-requests-inflight", "3000"),
            ("--max-mutating-requests-inflight", "1500"),
        ];
        self.start("kube-apiserver", &[&usual, native].concat())
    }

    fn start_controllers(&self) -> anyhow::Result<()> {
        let kubeconfig = self.path("kube-controller-manager.kubeconfig");
        let (key, authority) = (self.path("service-account.key"), self.path("ca.crt"));
        let grace = format!("{}s", self.manner.patience.node_grace_secs);
        let look = format!("{}s", self.manner.patience.look_secs());
        let usual = [
            ("--kubeconfig", &*kubeconfig),
            ("--leader-elect", "false"),
            ("--service-account-private-key-file", &key),
            ("--root-ca-file", &authority),
            ("--use-service-account-credentials", "true"),
            ("--secure-port", "0"),
            ("--node-monitor-grace-period", &grace),
            ("--node-monitor-period", &look),
            ("--kube-api-qps", "500"),
            ("--kube-api-burst", "1000"),
        ];
        let native: &[(&str, &str)] = match self.manner.native_gangs {
            // It takes the finalizers off groups that are deleted.
            true => &[("--feature-gates", "GenericWorkload=true")],
            false => &[],
        };
        self.start("kube-controller-manager", &[&usual, native].concat())?;
        let kubeconfig = self.path("kube-scheduler.kubeconfig");
        let usual = [("--kubeconfig", &*kubeconfig), ("--leader-elect", "false"), ("--secure-port", "0")];
        let native: &[(&str, &str)] = match self.manner.native_gangs {
            true => &[
                ("--feature-gates", SCHEDULER_GATES),
                // A rival whose client waits for itself would not be measured.
                ("--kube-api-qps", "1000"),
                ("--kube-api-burst", "2000"),
            ],
            false => &[],
        };
        self.start("kube-scheduler", &[&usual, native].concat())
    }

    /// Starts a program in a process group of its own, with its output in a file.
    fn start(&self, program: &str, flags: &[(&str, &str)]) -> anyhow::Result<()> {
        self.start_at(&self.bin.join(program), program, flags)
    }

    fn start_at(&self, path: &Path, program: &str, flags: &[(&str, &str)]) -> anyhow::Result<()> {
        let log = File::create(self.dir.join(format!("{program}.log")))?;
        let flags: Vec<String> = flags.iter().map(|(flag, value)| format!("{flag}={value}")).collect();
        let pid = spawn(path, &flags, log)?;
        let mut list = File::options().create(true).append(true).open(self.dir.join("pids"))?;
        std::io::Write::write_all(&mut list, format!("{pid} {program}\n").as_bytes())?;
        Ok(())
    }

    fn kubectl(&self) -> Kubectl {
        Kubectl { program: self.bin.join("kubectl"), kubeconfig: self.dir.join("kubeconfig") }
    }

    fn wait_ready(&self) -> anyhow::Result<()> {
        let ready = || self.kubectl().run(&["get", "--raw", "/readyz"], None).is_ok();
        if self.wait_for(ready)? {
            return Ok(());
        }
        let log = self.path("kube-apiserver.log");
        bail!("kube-apiserver was not ready within {READY_SECS_MAX} s; its output is in {log}")
    }

    fn wait_nodes(&self, wanted: Wanted) -> anyhow::Result<()> {
        if self.wait_for(|| nodes::are_ready(&self.kubectl(), wanted).unwrap_or(false))? {
            return Ok(());
        }
        let (kubelets, controllers) =
            (self.path("soroi-kubelets.log"), self.path("kube-controller-manager.log"));
        bail!("the nodes were not ready within {READY_SECS_MAX} s; see {kubelets} and {controllers}")
    }

    /// Whether it came true in time.
    fn wait_for(&self, happened: impl Fn() -> bool) -> anyhow::Result<bool> {
        for _ in 0..READY_SECS_MAX * 10 {
            if happened() {
                return Ok(true);
            }
            if let Some(ended) = self.ended()? {
                bail!("{ended} ended at once; its output is in {}", self.path(&format!("{ended}.log")));
            }
            pause();
        }
        Ok(false)
    }

    /// The first program that was started and does not run any more.
    fn ended(&self) -> anyhow::Result<Option<String>> {
        let pids = fs::read_to_string(self.dir.join("pids"))?;
        let ended = pids.lines().filter_map(|line| line.split_once(' ')).find(|(pid, name)| !runs(pid, name));
        Ok(ended.map(|(_, name)| name.to_owned()))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

fn free_ports() -> anyhow::Result<Ports> {
    // All three are held at once, so that they differ.
    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0"));
    let [etcd, etcd_peer, api] = held.map(|listener| anyhow::Ok(listener?.local_addr()?.port()));
    Ok(Ports { etcd: etcd?, etcd_peer: etcd_peer?, api: api? })
}

/// 128 bits from the operating system, in hexadecimal.
fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn end(pid: &str, name: &str) {
    if !runs(pid, name) {
        return;
    }
    signal("-TERM", pid);
    for _ in 0..END_SECS_MAX * 10 {
        if !runs(pid, name) {
            return;
        }
        pause();
    }
    signal("-KILL", pid);
}

/// This process lives and is this program (a number may be used again for another).
fn runs(pid: &str, name: &str) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    line.is_ok_and(|line| line.contains(name)) && !stat.is_ok_and(|stat| stat.contains(") Z "))
}

fn signal(signal: &str, pid: &str) {
    // A process that ended in between is what was wanted.
    let _ = Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status();
}

#[allow(clippy::disallowed_methods, reason = "a chore waits for real processes")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}
