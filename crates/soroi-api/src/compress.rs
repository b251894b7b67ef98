//! Lists of similar names in little space: equal beginnings and endings are written once.
//!
//! Knows text only.

/// Names cut into what all begin with, what all end with, and what is between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) suffix: &'a str,
    pub(crate) roots: Vec<&'a str>,
}

/// Cuts names. Beginning and ending never overlap in any of them.
pub(crate) fn split<'a>(names: &[&'a str]) -> Parts<'a> {
    let Some((first, rest)) = names.split_first() else {
        return Parts { prefix: "", suffix: "", roots: Vec::new() };
    };
    let prefix_len = rest.iter().fold(first.len(), |len, name| common_start(&first[..len], name));
    let tail = &first[prefix_len..];
    let suffix_len =
        rest.iter().fold(tail.len(), |len, name| common_end(&tail[tail.len() - len..], &name[prefix_len..]));
    Parts {
        prefix: &first[..prefix_len],
        suffix: &first[first.len() - suffix_len..],
        roots: names.iter().map(|name| &name[prefix_len..name.len() - suffix_len]).collect(),
    }
}

fn common_start(a: &str, b: &str) -> usize {
    let len = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=len).rev().find(|len| a.is_char_boundary(*len)).unwrap_or(0)
}

fn common_end(a: &str, b: &str) -> usize {
    let len = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    (0..=len).rev().find(|len| a.is_char_boundary(a.len() - len)).unwrap_or(0)
}

/// What a group of names costs beside its roots, in bytes of JSON: the field names and brackets of
/// one more entry.
const GROUP_BYTES: usize = 48;

/// Cuts sorted names into runs that are worth a beginning and ending of their own. Gives the
/// length of each run, in order; the sum is the number of names.
///
/// Names that share a beginning are next to each other; a run is split where the beginnings part
/// if the pieces together are shorter than the whole.
pub(crate) fn runs(sorted: &[&str]) -> Vec<usize> {
    if sorted.is_empty() { Vec::new() } else { cheapest(sorted, 0).1 }
}

/// The cost of the names in bytes and the runs that reach it. All names have `known` bytes in common.
fn cheapest(names: &[&str], known: usize) -> (usize, Vec<usize>) {
    let whole = cost(names);
    let (first, last) = (names[0], names[names.len() - 1]);
    // The names are sorted: what the first and the last share, all share.
    let shared =
        known + first.bytes().skip(known).zip(last.bytes().skip(known)).take_while(|(a, b)| a == b).count();
    if names.len() < 2 || first.len() == shared && last.len() == shared {
        return (whole, vec![names.len()]);
    }
    let mut split = 0;
    let mut runs = Vec::new();
    for piece in names.chunk_by(|a, b| a.as_bytes().get(shared) == b.as_bytes().get(shared)) {
        // A piece that cannot pay for its own entry ends the search for this split.
        let (bytes, lengths) = if piece.len() * shared.max(1) < GROUP_BYTES / 4 {
            (cost(piece), vec![piece.len()])
        } else {
            cheapest(piece, shared)
        };
        split += bytes;
        runs.extend(lengths);
    }
    if split < whole { (split, runs) } else { (whole, vec![names.len()]) }
}

fn cost(names: &[&str]) -> usize {
    let parts = split(names);
    let roots: usize = parts.roots.iter().map(|root| root.len() + 3).sum();
    GROUP_BYTES + parts.prefix.len() + parts.suffix.len() + roots
}
