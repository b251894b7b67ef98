//! Which stories are there, and which of them are meant?
//!
//! Knows the folder of stories and how a run is called; it plays nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::play::Failure;
use crate::run::Kind;
use crate::scenario::{Placement, Scenario};

/// A story under one policy.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its page.
    pub path: PathBuf,
    /// What the page says.
    pub scenario: Scenario,
    /// The policy.
    pub placement: Placement,
    /// The one run that was asked for; `None`: all.
    pub only: Option<Kind>,
}

impl Case {
    /// What it is called in reports and filters.
    pub fn name(&self) -> String {
        format!("{}/{}", self.scenario.name, self.placement)
    }

    /// What a person needs to know of a failed run; `again` repeats it.
    pub fn told(&self, run: &str, failure: &Failure, again: &str) -> String {
        let line = failure.line.map(|line| format!(":{line}")).unwrap_or_default();
        let name = format!("{}/{run}", self.name());
        format!("FAILED {name}\nscenarios/{}.md{line}\n{failure}again: {again}", self.scenario.name)
    }
}

/// The stories whose name contains one of the filters, under each of their policies; all without a
/// filter. A filter that ends with a kind of run narrows its stories to that run.
///
/// # Errors
/// A page that cannot be read, with its line.
pub fn cases(filters: &[String]) -> Result<Vec<Case>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_none_or(|extension| extension != "md") || name == "README" {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let scenario =
            Scenario::parse(&name, &text).map_err(|error| format!("scenarios/{name}.md: {error}"))?;
        for placement in scenario.settings.placements.clone() {
            let case = Case { path: path.clone(), scenario: scenario.clone(), placement, only: None };
            cases.extend(chosen(case, filters));
        }
    }
    Ok(cases)
}

/// The case, if a filter means it.
fn chosen(case: Case, filters: &[String]) -> Option<Case> {
    if filters.is_empty() {
        return Some(case);
    }
    filters.iter().find_map(|filter| {
        let (stem, only) =
            match filter.rsplit_once('/').and_then(|(stem, kind)| Some((stem, Kind::parse(kind)?))) {
                Some((stem, kind)) => (stem, Some(kind)),
                None => (filter.as_str(), None),
            };
        case.name().contains(stem).then(|| Case { only, ..case.clone() })
    })
}
