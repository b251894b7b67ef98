//! How is a scenario laid out on its page? Markdown into blocks, blocks into steps, and back.
//!
//! Knows fences and prompts; the words inside a console line belong to `command`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::words::span;
use super::{
    Action, Injection, Only, ParseError, Placement, Scenario, Settings, Step, WaitForPodsReady, command,
};

/// YAML blocks with a name, for `$ apply NAME`.
pub(crate) type Files = BTreeMap<String, Vec<Value>>;

/// More would say nothing new.
const REPLICAS_MAX: usize = 3;

/// What starts a step within a console block.
const PROMPT: &str = "$ ";

/// A fenced block: where it is, what its info string says, and what is inside.
struct Block<'a> {
    /// Line of the opening fence, from 1.
    line: usize,
    language: &'a str,
    /// The words after the language.
    words: Vec<&'a str>,
    lines: Vec<&'a str>,
}

pub(crate) fn parse(name: &str, text: &str) -> Result<Scenario, ParseError> {
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(name).to_owned();
    let mut scenario =
        Scenario { name: name.to_owned(), title, settings: Settings::default(), steps: Vec::new() };
    let mut files = Files::new();
    for block in blocks(text)? {
        match (block.language, block.words.as_slice()) {
            ("yaml", ["settings"]) => scenario.settings = settings(&block)?,
            ("yaml", ["apply", only @ ..]) => {
                let manifests = yaml(block.line + 1, &block.lines.join("\n"))?;
                scenario.steps.push(block_step(&block, only, Action::Apply(manifests))?);
            }
            ("yaml", ["inject", only @ ..]) => {
                let injection = injection(&block)?;
                scenario.steps.push(block_step(&block, only, Action::Inject(injection))?);
            }
            ("yaml", [file]) => {
                files.insert((*file).to_owned(), yaml(block.line + 1, &block.lines.join("\n"))?);
            }
            ("console", only) => {
                let only = runs(block.line, only)?;
                scenario.steps.extend(console(&block, &only, &files)?);
            }
            // Anything else is prose: an example in another language.
            _ => {}
        }
    }
    if scenario.steps.is_empty() {
        return Err(ParseError {
            line: 1,
            text: "there is no step (a ```console or ```yaml apply block)".into(),
        });
    }
    Ok(scenario)
}

fn blocks(text: &str) -> Result<Vec<Block<'_>>, ParseError> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let mut words = info.split_whitespace();
                open = Some(Block {
                    line: number + 1,
                    language: words.next().unwrap_or(""),
                    words: words.collect(),
                    lines: Vec::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line),
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err(ParseError { line: block.line, text: "the block is never closed".into() }),
        None => Ok(blocks),
    }
}

fn block_step(block: &Block<'_>, only: &[&str], action: Action) -> Result<Step, ParseError> {
    let only = runs(block.line, only)?;
    let text = format!("{} {}", block.language, block.words.join(" "));
    Ok(Step { line: block.line, text, only, action, expected: Vec::new() })
}

/// The words behind a block's language: policies, and `plain`.
fn runs(line: usize, words: &[&str]) -> Result<Only, ParseError> {
    let policies: Vec<&str> = words.iter().copied().filter(|word| *word != "plain").collect();
    Ok(Only { placements: placements(line, &policies)?, plain: policies.len() < words.len() })
}

fn placements(line: usize, words: &[&str]) -> Result<Vec<Placement>, ParseError> {
    let known = |word: &&str| {
        Placement::of_name(word)
            .ok_or_else(|| ParseError { line, text: format!("`{word}` is no placement policy") })
    };
    words.iter().map(known).collect()
}

fn console(block: &Block<'_>, only: &Only, files: &Files) -> Result<Vec<Step>, ParseError> {
    let mut steps: Vec<Step> = Vec::new();
    for (offset, line) in block.lines.iter().enumerate() {
        let number = block.line + 1 + offset;
        if let Some(text) = line.strip_prefix(PROMPT) {
            // What stands behind ` # ` is a remark.
            let text = text.split(" # ").next().unwrap_or(text).trim();
            let action = command::parse(number, text, files)?;
            let only = only.clone();
            steps.push(Step { line: number, text: text.to_owned(), only, action, expected: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            step.expected.push((*line).to_owned());
        } else if !line.trim().is_empty() {
            return Err(ParseError { line: number, text: format!("a step starts with `{PROMPT}`") });
        }
    }
    for step in &mut steps {
        while step.expected.last().is_some_and(|line| line.trim().is_empty()) {
            step.expected.pop();
        }
        // A look without a table would pass whatever there is; its first line names the columns.
        let bare = matches!(step.action, Action::Get(_)) && step.expected.is_empty();
        if bare {
            return Err(ParseError { line: step.line, text: "the header of the table is missing".into() });
        }
    }
    Ok(steps)
}

/// Reads YAML documents; empty ones are left out.
pub(crate) fn yaml(line: usize, text: &str) -> Result<Vec<Value>, ParseError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| ParseError { line, text: format!("YAML: {error}") })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSettings {
    placements: Option<Vec<String>>,
    within: Option<String>,
    recovery: Option<String>,
    patience: Option<String>,
    skip: Option<BTreeMap<String, String>>,
    slow: Option<String>,
    replicas: Option<usize>,
    astray: Option<String>,
    #[serde(rename = "waitForPodsReady")]
    wait_for_pods_ready: Option<RawWait>,
    #[serde(rename = "fairSharing", default)]
    fair_sharing: bool,
}

/// As in the product's configuration, with spans of time as on a page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawWait {
    timeout: String,
    recovery_timeout: Option<String>,
    #[serde(default)]
    block_admission: bool,
    #[serde(default)]
    requeuing_strategy: RawStrategy,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawStrategy {
    timestamp: RawTimestamp,
    backoff_limit_count: Option<u32>,
    backoff_base_seconds: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum RawTimestamp {
    #[default]
    Eviction,
    Creation,
}

fn settings(block: &Block<'_>) -> Result<Settings, ParseError> {
    let fault = |text: String| ParseError { line: block.line, text };
    let raw: RawSettings =
        serde_saphyr::from_str(&block.lines.join("\n")).map_err(|error| fault(format!("YAML: {error}")))?;
    let mut settings = Settings::default();
    if let Some(names) = raw.placements {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        settings.placements = placements(block.line, &names)?;
    }
    let time = |text: Option<String>, usual: Duration| match text {
        Some(text) => span(&text).ok_or_else(|| fault(format!("`{text}` is no span of time"))),
        None => Ok(usual),
    };
    settings.within = time(raw.within, settings.within)?;
    settings.recovery = time(raw.recovery, settings.recovery)?;
    settings.patience = time(raw.patience, settings.patience)?;
    settings.skip = raw.skip.unwrap_or_default();
    settings.slow = raw.slow;
    settings.astray = time(raw.astray, settings.astray)?;
    if let Some(raw) = raw.wait_for_pods_ready {
        let timeout = time(Some(raw.timeout), Duration::ZERO)?;
        let strategy = raw.requeuing_strategy;
        settings.wait_for_pods_ready = Some(WaitForPodsReady {
            timeout,
            recovery_timeout: time(raw.recovery_timeout, timeout)?,
            block_admission: raw.block_admission,
            keeps_place: strategy.timestamp == RawTimestamp::Creation,
            limit: strategy.backoff_limit_count,
            pause: Duration::from_secs(strategy.backoff_base_seconds.unwrap_or(60).into()),
        });
    }
    settings.fair_sharing = raw.fair_sharing;
    settings.replicas = raw.replicas.unwrap_or(settings.replicas);
    if !(1..=REPLICAS_MAX).contains(&settings.replicas) {
        return Err(fault(format!("replicas: from 1 to {REPLICAS_MAX}")));
    }
    let kinds = ["seeds", "crashes", "real"];
    if let Some(kind) = settings.skip.keys().find(|kind| !kinds.contains(&kind.as_str())) {
        return Err(fault(format!("skip: `{kind}` is no kind of run ({})", kinds.join(", "))));
    }
    Ok(settings)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInjection {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    container: Value,
}

fn injection(block: &Block<'_>) -> Result<Injection, ParseError> {
    let raw: RawInjection = serde_saphyr::from_str(&block.lines.join("\n"))
        .map_err(|error| ParseError { line: block.line, text: format!("YAML: {error}") })?;
    Ok(Injection { labels: raw.labels, container: raw.container })
}

/// Puts `seen` below its steps in place of the lines that stood there.
pub(crate) fn rewrite(scenario: &Scenario, text: &str, seen: &BTreeMap<usize, Vec<String>>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut page = String::new();
    let mut next = 0;
    for step in &scenario.steps {
        let Some(found) = seen.get(&step.line) else { continue };
        // Line numbers start at 1, so this is the index of the line below the step.
        let below = step.line;
        for line in lines.iter().take(below).skip(next) {
            page.push_str(line);
            page.push('\n');
        }
        for line in found {
            page.push_str(line);
            page.push('\n');
        }
        next = below + step.expected.len();
    }
    for line in lines.iter().skip(next) {
        page.push_str(line);
        page.push('\n');
    }
    page
}
