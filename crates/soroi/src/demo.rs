//! The whole story in one command: one cluster, four placement policies, side by side.

mod board;
pub(crate) mod manifests;
mod report;
pub(crate) mod site;
mod story;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use soroi_engine::event::Policy;

use crate::Output;
use crate::show::{Paint, Tone};
use board::Line;
use site::Site;
use story::{Beat, Facts};

/// The policies in the order of the columns.
const POLICIES: [Policy; 4] =
    [Policy::QuotaOnly, Policy::TopologyOnly, Policy::AfterAdmission, Policy::Unified];
/// Width of a policy's column; four of them and the indent stay within 100.
const COLUMN: usize = 24;
const INDENT: &str = "   ";

/// How the demo is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut show = Show { out, paint: Paint::for_stdout(), on: args.output == Output::Table };
    show.opening()?;
    let mut theatre = Vec::new();
    for policy in POLICIES {
        let mut site = Site::start(policy)?;
        site.play(story::prepare)??;
        theatre.push((site, Facts::new(policy)));
    }
    for (number, beat) in Beat::ALL.into_iter().enumerate() {
        show.title(number + 1, beat)?;
        let mut cells = Vec::new();
        for (site, facts) in &mut theatre {
            let played = site.play(|hands| story::play(beat, hands, facts.clone()))?;
            *facts = played.with_context(|| format!("step {} under {}", number + 1, facts.configuration))?;
            cells.push(site.play(|hands| async move { board::seen(&hands, beat).await })??);
        }
        show.cells(&cells)?;
        let unified = theatre.iter().find(|(_, facts)| facts.configuration == "Unified");
        show.remark(beat, unified.map(|(_, facts)| facts))?;
    }
    let facts: Vec<Facts> = theatre.into_iter().map(|(_, facts)| facts).collect();
    close(args.output, &mut show, &facts)
}

/// The end: table or JSON, and whether Unified kept its promise.
fn close(output: Output, show: &mut Show<'_>, facts: &[Facts]) -> anyhow::Result<ExitCode> {
    let broken: Vec<String> = facts
        .iter()
        .filter(|facts| facts.configuration == "Unified")
        .flat_map(report::broken_promises)
        .collect();
    match output {
        Output::Json => {
            serde_json::to_writer_pretty(&mut *show.out, facts)?;
            writeln!(show.out)?;
            // The output is for programs; the person who reads the exit status wants the reason.
            for line in &broken {
                eprintln!("Unified is not as promised: {line}");
            }
        }
        Output::Table => show.ending(facts, &broken)?,
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where the story is told.
struct Show<'a> {
    out: &'a mut dyn Write,
    paint: Paint,
    /// Whether the story is told at all, or only its result.
    on: bool,
}

impl Show<'_> {
    fn opening(&mut self) -> anyhow::Result<()> {
        if !self.on {
            return Ok(());
        }
        let heading = self.paint.tone(Tone::Strong, "One cluster, one story, four placement policies");
        writeln!(self.out, "{heading}\n")?;
        writeln!(
            self.out,
            "Two workers with 2 GPUs each, and a queue that owns 4 GPUs. The same story on four embedded"
        )?;
        writeln!(
            self.out,
            "clusters (real controllers, simulated time), each with another policy of Soroi:\n"
        )?;
        for (policy, meaning) in POLICIES.into_iter().zip([
            "quota first; a scheduler then places pods one by one (like Kueue alone)",
            "quota and topology, pods pinned by node selectors (like Kueue with topologies)",
            "quota first, pods created, then the gang is placed (like Kueue + Volcano)",
            "quota and places in one decision (the default)",
        ]) {
            writeln!(self.out, "{INDENT}{:<16} {meaning}", story::policy_name(policy))?;
        }
        writeln!(self.out, "\n{}", self.paint.tone(Tone::Faint, board::LEGEND))?;
        self.out.flush()?;
        Ok(())
    }

    fn title(&mut self, number: usize, beat: Beat) -> anyhow::Result<()> {
        if self.on {
            let title = format!("{number}. {}", beat.title());
            writeln!(self.out, "\n{}", self.paint.tone(Tone::Strong, &title))?;
            // The title is there before the clusters have played the step.
            self.out.flush()?;
        }
        Ok(())
    }

    fn cells(&mut self, cells: &[Vec<Line>]) -> anyhow::Result<()> {
        if !self.on {
            return Ok(());
        }
        let header: Vec<Line> =
            POLICIES.iter().map(|policy| (story::policy_name(*policy).to_owned(), Tone::Faint)).collect();
        self.line(&header.iter().collect::<Vec<_>>())?;
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let empty = (String::new(), Tone::Faint);
        for row in 0..height {
            let line: Vec<&Line> = cells.iter().map(|cell| cell.get(row).unwrap_or(&empty)).collect();
            self.line(&line)?;
        }
        self.out.flush()?;
        Ok(())
    }

    fn line(&mut self, cells: &[&Line]) -> anyhow::Result<()> {
        let mut text = String::from(INDENT);
        let last = cells.len().saturating_sub(1);
        for (place, (cell, tone)) in cells.iter().enumerate() {
            text.push_str(&self.paint.tone(*tone, cell));
            if place < last {
                text.extend(std::iter::repeat_n(' ', COLUMN.saturating_sub(cell.chars().count())));
            }
        }
        writeln!(self.out, "{}", text.trim_end())?;
        Ok(())
    }

    /// What a reader should notice at this step.
    fn remark(&mut self, beat: Beat, unified: Option<&Facts>) -> anyhow::Result<()> {
        let Some(facts) = unified.filter(|_| self.on) else { return Ok(()) };
        let remark = match beat {
            Beat::Train => format!("Unified says why: {}", facts.why),
            Beat::NoSpareTries => {
                "No scheduler can help here: the Job controller counts the deleted pod as failed.".to_owned()
            }
            _ => return Ok(()),
        };
        for line in wrapped(&remark, 96) {
            writeln!(self.out, "{INDENT}{}", self.paint.tone(Tone::Faint, &line))?;
        }
        Ok(())
    }

    fn ending(&mut self, facts: &[Facts], broken: &[String]) -> anyhow::Result<()> {
        let heading = self.paint.tone(Tone::Strong, "What became of `train`");
        writeln!(self.out, "\n{heading}\n")?;
        write!(self.out, "{}", report::table(facts))?;
        writeln!(self.out, "\n{}", self.paint.tone(Tone::Faint, report::NOTES))?;
        if broken.is_empty() {
            let kept = "Unified kept its promise: nothing held while the gang did not fit, all of it started when it did.";
            writeln!(self.out, "{}", self.paint.tone(Tone::Good, kept))?;
        }
        for line in broken {
            writeln!(
                self.out,
                "{}",
                self.paint.tone(Tone::Bad, &format!("Unified is not as promised: {line}"))
            )?;
        }
        Ok(())
    }
}

/// `text` in lines of at most `width` columns, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let fits = lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() <= width);
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if fits => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
