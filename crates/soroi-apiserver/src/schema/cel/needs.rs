//! What of a value does a rule look at?
//!
//! Most rules look at a few fields of a large object. Converting the rest for them costs far more than
//! asking them, so what an expression may look at is read from its syntax once, and only that is converted.
//! Whatever is not a plain path from a variable, or a walk over the items at its end, counts as everything.
//! Knows syntax; never a value.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{EntryExpr, Expr};

/// The part of a value that is looked at, by fields as CEL spells them. The value itself is looked at always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Everything.
    pub(super) whole: bool,
    pub(super) fields: BTreeMap<String, Needs>,
    /// Of each item of a list.
    pub(super) items: Option<Box<Needs>>,
}

/// A part of everything.
pub(super) static WHOLE: Needs = Needs { whole: true, fields: BTreeMap::new(), items: None };

#[derive(Clone, Debug)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

/// Variables, the innermost last, with the part of the value that they stand for.
type Scopes<'a> = Vec<(&'a str, Option<Vec<Step<'a>>>)>;

impl Needs {
    /// Adds what an expression looks at of a variable.
    pub(super) fn add(&mut self, expression: &Expr, variable: &str) {
        self.walk(expression, &mut vec![(variable, Some(Vec::new()))]);
    }

    fn at(&mut self, path: &[Step<'_>]) -> &mut Self {
        path.iter().fold(self, |here, step| match step {
            Step::Field(name) => here.fields.entry((*name).to_owned()).or_default(),
            Step::Item => here.items.get_or_insert_default(),
        })
    }

    fn walk<'a>(&mut self, expression: &'a Expr, scopes: &mut Scopes<'a>) {
        if let Some(path) = path(expression, scopes) {
            let there = self.at(&path);
            there.whole |= !matches!(expression, Expr::Select(select) if select.test);
            return;
        }
        match expression {
            Expr::Select(select) => self.walk(&select.operand.expr, scopes),
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.walk(&target.expr, scopes));
                call.args.iter().for_each(|argument| self.walk(&argument.expr, scopes));
            }
            Expr::Comprehension(all) => {
                let over = path(&all.iter_range.expr, scopes).filter(|_| all.iter_var2.is_none());
                let each = over.map(|mut path| {
                    path.push(Step::Item);
                    // How many there are matters, even where nothing of them does.
                    self.at(&path);
                    path
                });
                if each.is_none() {
                    self.walk(&all.iter_range.expr, scopes);
                }
                self.walk(&all.accu_init.expr, scopes);
                let outside = scopes.len();
                scopes.push((&all.iter_var, each));
                scopes.extend(all.iter_var2.iter().map(|name| (name.as_str(), None)));
                scopes.push((&all.accu_var, None));
                for inner in [&all.loop_cond, &all.loop_step, &all.result] {
                    self.walk(&inner.expr, scopes);
                }
                scopes.truncate(outside);
            }
            Expr::List(list) => list.elements.iter().for_each(|item| self.walk(&item.expr, scopes)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.walk_entry(&entry.expr, scopes)),
            Expr::Struct(fields) => {
                fields.entries.iter().for_each(|entry| self.walk_entry(&entry.expr, scopes));
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn walk_entry<'a>(&mut self, entry: &'a EntryExpr, scopes: &mut Scopes<'a>) {
        match entry {
            EntryExpr::StructField(field) => self.walk(&field.value.expr, scopes),
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key.expr, scopes);
                self.walk(&entry.value.expr, scopes);
            }
        }
    }
}

/// The part of the value that an expression is, if it is one.
fn path<'a>(expression: &'a Expr, scopes: &Scopes<'a>) -> Option<Vec<Step<'a>>> {
    match expression {
        Expr::Ident(name) => scopes.iter().rev().find(|(known, _)| known == name)?.1.clone(),
        Expr::Select(select) => {
            let mut path = path(&select.operand.expr, scopes)?;
            path.push(Step::Field(&select.field));
            Some(path)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};
    use kube_cel::cel::Program;

    use super::*;

    fn draw(needs: &Needs, name: &str, out: &mut String) {
        if needs.whole || needs.fields.is_empty() && needs.items.is_none() {
            let mark = if needs.whole { "" } else { "?" };
            write!(out, " {name}{mark}").unwrap();
        }
        needs.fields.iter().for_each(|(field, inner)| draw(inner, &format!("{name}.{field}"), out));
        needs.items.iter().for_each(|inner| draw(inner, &format!("{name}[]"), out));
    }

    /// What is looked at, a part in each word; `?`: only that it is there.
    fn check(rule: &str, expected: Expect) {
        let program = Program::compile(rule).unwrap();
        let mut drawn = String::new();
        for variable in ["self", "oldSelf"] {
            let mut needs = Needs::default();
            needs.add(&program.expression().expr, variable);
            if needs != Needs::default() {
                draw(&needs, variable, &mut drawn);
            }
        }
        expected.assert_eq(drawn.trim());
    }

    #[test]
    fn paths_are_looked_at_as_far_as_they_go() {
        check("has(self.a.b) && self.a.c == 1", expect!["self.a.b? self.a.c"]);
        check("self.a == oldSelf.a || size(self.b) > 2", expect!["self.a self.b oldSelf.a"]);
        check("self.a[0].b == 'x'", expect!["self.a"]);
        check("1 < 2", expect![""]);
    }

    #[test]
    fn of_items_only_what_is_asked_of_each() {
        check("self.all(x, x.a == 1 && has(x.b))", expect!["self[].a self[].b?"]);
        check("self.a.exists(x, x.b.all(y, y.c > self.d))", expect!["self.a[].b[].c self.d"]);
        check("self.a.all(x, true)", expect!["self.a[]?"]);
        check("self.a.map(x, x.b) == ['c']", expect!["self.a[].b"]);
        // What is filtered is looked at by whoever gets it.
        check("size(self.a.filter(x, x.b == 1)) == 1", expect!["self.a[] self.a[].b"]);
    }

    #[test]
    fn whatever_is_no_path_counts_as_everything() {
        check("self == oldSelf", expect!["self oldSelf"]);
        check("{'a': self}.a.b == 1", expect!["self"]);
        check("[self][0].a == 1", expect!["self"]);
        check("self.a.all(self, self.b == 1)", expect!["self.a[].b"]);
        check("[1].all(self, self == 1)", expect![""]);
    }
}
