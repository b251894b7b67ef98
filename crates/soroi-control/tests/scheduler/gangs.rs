//! Gangs: whether their pods can come one after the other so that kube-scheduler would allow each.

use crate::draw::Situation;
use crate::known;
use crate::ours::{Ours, Reading};
use crate::theirs::Answer;

/// What was compared.
#[derive(Default)]
pub struct Gangs {
    pub asked: u32,
    pub fitting: u32,
    /// There were places, and the search was cut short.
    pub missed: u32,
    pub wrong: Vec<String>,
}

/// Asks both about the gangs of a situation. Those to which a known difference may matter are left out.
pub fn compare(seed: u64, situation: &Situation, answer: &Answer, ours: &mut Ours, tally: &mut Gangs) {
    for (gang, ways) in situation.gangs.iter().zip(&answer.gangs) {
        let Some(ways) = ways else { continue };
        let pods = gang.iter().filter_map(|at| answer.waiting[*at].pod.as_ref());
        if known::may_matter(situation, pods) {
            continue;
        }
        tally.asked += 1;
        tally.fitting += u32::from(!ways.is_empty());
        let problem = match ours.place(&kinds(gang, answer, ours)) {
            Ok(places) if ways.contains(&places.concat()) => continue,
            Ok(places) => format!("Soroi puts it on {places:?}, which is none of {} ways", ways.len()),
            Err(_) if ways.is_empty() => continue,
            Err(false) => {
                tally.missed += 1;
                continue;
            }
            Err(true) => format!("Soroi says that there are no places, and {:?} are some", ways[0]),
        };
        tally.wrong.push(format!("seed {seed}, gang {gang:?}: {problem}"));
    }
}

/// The kinds of pods of a gang, with how many there are.
fn kinds(gang: &[usize], answer: &Answer, ours: &Ours) -> Vec<(Reading, usize)> {
    let runs = gang.chunk_by(|one, other| one == other);
    let kind = |run: &[usize]| {
        let pod =
            answer.waiting[run[0]].pod.as_ref().expect("a gang with ways to be placed has all its pods");
        (ours.read(pod), run.len())
    };
    runs.map(kind).collect()
}
