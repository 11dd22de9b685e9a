//! Habits of code that cost a reader more than they save a writer.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprLit, ExprMatch, Lit, Local, Pat};

use super::files;

/// Where these habits are in one file.
#[derive(Default)]
struct Habits {
    found: Vec<(usize, &'static str)>,
}

impl<'ast> Visit<'ast> for Habits {
    fn visit_local(&mut self, local: &'ast Local) {
        if let (Pat::Tuple(_), Some(init)) = (&local.pat, &local.init)
            && matches!(*init.expr, Expr::Tuple(_))
            && init.diverge.is_none()
        {
            self.found.push((local.span().start().line, "several values in one `let`: a line each"));
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_match(&mut self, expr: &'ast ExprMatch) {
        let is_bool = |pat: &Pat| matches!(pat, Pat::Lit(ExprLit { lit: Lit::Bool(_), .. }));
        if expr.arms.iter().any(|arm| is_bool(&arm.pat)) {
            self.found.push((expr.span().start().line, "a `match` on a bool: `if` and `else`"));
        }
        visit::visit_expr_match(self, expr);
    }
}

fn habits(text: &str) -> Vec<(usize, &'static str)> {
    let mut habits = Habits::default();
    habits.visit_file(&syn::parse_file(text).unwrap());
    habits.found
}

#[test]
fn no_line_is_saved_at_a_readers_cost() {
    let folders = ["src", "cli/src", "chaos/src", "history/src", "lab/src", "simulator/src", "testkit/src"];
    let files = folders.iter().flat_map(|folder| files(folder, ".rs"));
    let found: Vec<String> = files
        .flat_map(|(name, text)| {
            habits(&text).into_iter().map(move |(line, what)| format!("{name}:{line}: {what}"))
        })
        .collect();
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_habit_is_found() {
    let text = "fn f(a: bool) {\n    let (b, c) = (1, 2);\n    let (d, e) = g();\n    match a {\n        true => {}\n        false => {}\n    }\n}\n";
    assert_eq!(habits(text).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4]);
}
