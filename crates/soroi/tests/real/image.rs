//! The program as it runs in its image: its libraries alone, a user without a name, a root that cannot
//! be written. The image itself needs a registry to be built; what is in it does not.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::board::text;
use crate::installed::{HEAD, manifests, webhooks};
use crate::plane::{Plane, job};
use crate::product::SHORT;

/// What `deploy/Containerfile`'s last stage brings: glibc and libgcc.
const LIBRARIES: [&str; 4] = ["ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6"];

/// Makes a root of the program and its libraries, which nobody can write, and enters it.
/// $1: the folder, $2: the program, $3: the folder of its settings.
const ENTER: &str = r#"
set -eu
mount -t tmpfs none "$1"
mkdir -p "$1/usr/local/bin" "$1/etc/soroi" "$1/proc" "$1/dev"
touch "$1/usr/local/bin/soroi"
mount --bind "$2" "$1/usr/local/bin/soroi"
ldd "$2" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$1$(dirname "$library")"
    cp "$library" "$1$library"
done
mount --bind "$3" "$1/etc/soroi"
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -o remount,ro "$1"
mount -o remount,ro,bind "$1/etc/soroi"
exec chroot --userspec=65532:65532 "$1" /usr/local/bin/soroi run --install=never \
    --kubeconfig=/etc/soroi/kubeconfig --config=/etc/soroi/configuration.yaml
"#;

/// Killed when dropped, with all of its group.
struct Boxed(Child);

impl Drop for Boxed {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

fn libraries(program: &str) -> BTreeSet<String> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let name = |line: &str| {
        let word = line.split_whitespace().next()?;
        Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned())
    };
    said.lines().filter_map(name).filter(|name| !name.starts_with("linux-vdso")).collect()
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_user_without_a_name_needs_nothing_but_the_program() {
    let program = env!("CARGO_BIN_EXE_soroi");
    let needed = libraries(program);
    let brought: BTreeSet<String> = LIBRARIES.map(str::to_owned).into();
    assert!(needed.is_subset(&brought), "{needed:?}");

    let plane = Plane::up("image");
    let settings = format!("{SHORT}{}http: {{bindAddress: '127.0.0.1:0'}}\n", webhooks(""));
    plane.install(&manifests(&plane, &settings.replace("127.0.0.1:0", "0.0.0.0:8081"), &[]));
    let etc = plane.dir.join("etc");
    std::fs::create_dir_all(&etc).unwrap();
    let kubeconfig = std::fs::read_to_string(plane.account()).unwrap();
    std::fs::copy(plane.dir.join("ca.crt"), etc.join("ca.crt")).unwrap();
    let authority = plane.dir.join("ca.crt").display().to_string();
    std::fs::write(etc.join("kubeconfig"), kubeconfig.replace(&authority, "/etc/soroi/ca.crt")).unwrap();
    std::fs::write(etc.join("configuration.yaml"), format!("{HEAD}{settings}")).unwrap();
    Command::new("chmod").args(["-R", "a+rX"]).arg(&etc).status().unwrap();

    let (root, log) = (plane.dir.join("root"), plane.dir.join("image.log"));
    std::fs::create_dir_all(&root).unwrap();
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", ENTER, "sh"])
        .args([&root, Path::new(program), &etc])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let boxed = Boxed(child);
    let said = || std::fs::read_to_string(&log).unwrap();
    plane.wait(60, &format!("it works; see {}", log.display()), || said().contains("admission works"));

    // Whoever it is has no rights, and nowhere to write.
    let proc = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", boxed.0.id())).unwrap();
    let status = proc("status");
    for line in ["Uid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000"] {
        assert!(status.contains(line), "{status}");
    }
    let mounts = proc("mountinfo");
    let of =
        |point: &str| mounts.lines().find(|line| line.split(' ').nth(4) == Some(point)).unwrap().to_owned();
    for point in ["/", "/etc/soroi"] {
        let options = of(point).split(' ').nth(5).unwrap().to_owned();
        assert!(options.split(',').any(|option| option == "ro"), "{point}: {options}");
    }

    plane.apply(include_str!("queues.yaml"));
    plane.create(&job("train", "team-a", 4, "1h"));
    plane.wait(30, "a gang runs", || {
        let bound = |pod: &&serde_json::Value| !text(&pod["spec"]["nodeName"]).is_empty();
        plane.list("pods").iter().filter(bound).count() == 4
    });
}
