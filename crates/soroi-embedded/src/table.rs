//! How is a table written? Columns as kubectl draws them.
//!
//! Knows text only: cells come in ready, so that a table of the demo, of a benchmark and of a
//! scenario look alike.

use std::fmt;

/// Blank columns between two cells; as kubectl has it.
const GAP: usize = 3;

/// A table: a header and rows of cells. Its `Display` pads every column to its widest cell and
/// ends no line with blanks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column names.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells beyond the header are kept and drawn without a name.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Puts the rows in the order of their text.
    pub fn sort(&mut self) {
        self.rows.sort();
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            for (column, cell) in row.iter().enumerate() {
                let width = cell.chars().count();
                match widths.get_mut(column) {
                    Some(widest) => *widest = width.max(*widest),
                    None => widths.push(width),
                }
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + GAP));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "STATUS", "NODE"]);
        table.row(["train-1", "Pending", "-"]);
        table.row(["hog", "Running", "worker"]);
        table.sort();
        expect![[r#"
            NAME      STATUS    NODE
            hog       Running   worker
            train-1   Pending   -
        "#]]
        .assert_eq(&table.to_string());
    }

    #[test]
    fn letters_count_as_one_column_whatever_their_bytes() {
        let mut table = Table::new(["A", "B"]);
        table.row(["…", "1"]);
        table.row(["xx", "2"]);
        expect![[r#"
            A    B
            …    1
            xx   2
        "#]]
        .assert_eq(&table.to_string());
    }
}
