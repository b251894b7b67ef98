//! What was there before? One file per object, in a folder.
//!
//! The first copy of an object is the one that counts: an adoption that is repeated after a crash
//! finds some objects changed by itself already. Knows files; never what an object is for.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::object::{place, text};

/// Names the cluster that the files are from, by the uid of its namespace `kube-system`.
const CLUSTER: &str = "cluster";

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder that of a cluster.
    ///
    /// # Errors
    /// It is that of another one.
    pub(super) fn claim(&self, cluster: &str) -> anyhow::Result<()> {
        fs::create_dir_all(&self.path).with_context(|| format!("cannot make {}", self.path.display()))?;
        match fs::read_to_string(self.path.join(CLUSTER)) {
            Ok(_) => self.belongs_to(cluster),
            Err(_) => self.write(CLUSTER, cluster),
        }
    }

    /// Makes sure that the folder is that of a cluster.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn belongs_to(&self, cluster: &str) -> anyhow::Result<()> {
        let path = self.path.join(CLUSTER);
        let known = fs::read_to_string(&path)
            .with_context(|| format!("{} holds no adoption", self.path.display()))?;
        ensure!(known == cluster, "{} was saved from another cluster ({known})", self.path.display());
        Ok(())
    }

    /// Keeps an object, unless it is kept already.
    pub(super) fn keep(&self, object: &Value) -> anyhow::Result<()> {
        let name = format!("{}.{}.json", text(object, "/kind"), place(object).replace('/', "_"));
        if self.path.join(&name).exists() {
            return Ok(());
        }
        self.write(&name, &format!("{object:#}\n"))
    }

    /// All objects that are kept, in the order of their files' names.
    pub(super) fn objects(&self) -> anyhow::Result<Vec<Value>> {
        let mut paths = Vec::new();
        let entries =
            fs::read_dir(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        let read = |path: &PathBuf| {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("{} is no object", path.display()))
        };
        paths.iter().map(read).collect()
    }

    /// A file is there as a whole or not at all.
    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let (part, whole) = (self.path.join(format!("{name}.part")), self.path.join(name));
        let written = fs::File::create(&part).and_then(|mut file| {
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&part, &whole))
            .with_context(|| format!("cannot write {}", whole.display()))
    }
}
