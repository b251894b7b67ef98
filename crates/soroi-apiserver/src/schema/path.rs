//! Where in an object? A path that costs nothing until it is printed.

use std::fmt;

/// A path from the root of an object, linked from its end to its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A field.
    Field(&'a Path<'a>, &'a str),
    /// A key of a map.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list.
    Item(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Path::Field(self, name)
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Self {
        Path::Key(self, name)
    }

    pub(crate) fn item(&'a self, index: usize) -> Self {
        Path::Item(self, index)
    }

    /// The path without the indexes of lists, as Go's decoder names fields.
    pub(crate) fn without_items(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(parent, name) | Path::Key(parent, name) => {
                let before = parent.without_items();
                if before.is_empty() { (*name).to_owned() } else { format!("{before}.{name}") }
            }
            Path::Item(parent, _) => parent.without_items(),
        }
    }
}

/// `spec.labels[app].items[2]`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) | Path::Key(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) | Path::Key(parent, name) => write!(f, "{parent}.{name}"),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
