//! What is different? Expected lines beside those that were seen.
//!
//! Knows lines of text.

use crate::look::line_matches;

/// The lines of both, `-` for what was expected, `+` for what was seen instead. Lines that match
/// stand once; the longest common sequence is kept.
pub fn lines(expected: &[String], seen: &[String]) -> String {
    let mut common = vec![vec![0_usize; seen.len() + 1]; expected.len() + 1];
    for (i, old) in expected.iter().enumerate().rev() {
        for (j, new) in seen.iter().enumerate().rev() {
            common[i][j] = if line_matches(old, new) {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut text = String::new();
    let (mut i, mut j) = (0, 0);
    let mut push = |sign: char, line: &str| {
        text.push_str(&format!("  {sign} {line}\n"));
    };
    while i < expected.len() || j < seen.len() {
        match (expected.get(i), seen.get(j)) {
            (Some(old), Some(new)) if line_matches(old, new) => {
                push(' ', new);
                (i, j) = (i + 1, j + 1);
            }
            (Some(old), new) if new.is_none() || common[i + 1][j] >= common[i][j + 1] => {
                push('-', old);
                i += 1;
            }
            (_, Some(new)) => {
                push('+', new);
                j += 1;
            }
            // Unreachable by the loop's condition; ending is better than turning for ever.
            (_, None) => break,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn lines_that_differ_stand_side_by_side() {
        let list = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        let text = lines(
            &list("NAME  STATE/a  Pending …/b  Pending"),
            &list("NAME STATE/a  Admitted/b  Pending/c  Pending"),
        );
        // The first line keeps the blanks that all others begin with.
        expect![[r#"
            diff
                NAME STATE
              - a  Pending …
              + a  Admitted
                b  Pending
              + c  Pending
        "#]]
        .assert_eq(&format!("diff\n{text}"));
    }
}
