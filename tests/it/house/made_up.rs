//! The graph of small made-up crates: what makes an edge, and what does not.

use super::graph::Graph;
use super::sources::Sources;

/// The graph of a crate of these modules, whose root only declares them.
fn graph(modules: &[(&str, &str)]) -> Graph {
    let root: String = modules.iter().map(|(name, _)| format!("mod {name}; ")).collect();
    let files = modules.iter().map(|(name, text)| (format!("src/{name}.rs"), (*text).to_owned()));
    let files = files.chain([("src/lib.rs".to_owned(), root)]).collect();
    Graph::of(&Sources::read("made_up", "src/lib.rs", &files))
}

/// The edges of a crate of three modules.
fn edges(a: &str, b: &str, c: &str) -> Vec<String> {
    let graph = graph(&[("a", a), ("b", b), ("c", c)]);
    assert!(graph.unresolved.is_empty(), "{:?}", graph.unresolved);
    let edges = graph.edges.iter().flat_map(|(from, to)| {
        to.iter().map(move |(to, item)| format!("{from} {item} {to}").replace("src/", "").replace(".rs", ""))
    });
    edges.collect()
}

const C: &str = "pub struct Type; impl Type { pub fn new() -> Self { Self } } pub fn function() {}";

#[test]
fn an_import_is_an_edge() {
    assert_eq!(edges("use crate::c::Type;", "", C), ["a Type c"]);
    assert_eq!(edges("use super::{b, c::{self, Type as Other}};", "", C), ["a Type c"]);
}

#[test]
fn a_path_in_code_is_an_edge() {
    for code in [
        "fn a() { crate::c::function() }",
        "fn a() { made_up::c::function() }",
        "use crate::c; fn a() { c::Type::new(); }",
        "use super::c as other; impl other::Type {}",
        "fn a(_: Vec<Option<&super::c::Type>>) {}",
        "fn a() { use crate::c; let c::Type = todo(); }",
        "#[derive(crate::c::Type)] struct A;",
        "mod below { fn a() { super::super::c::function() } }",
    ] {
        let found = edges(code, "", C);
        assert!(found == ["a Type c"] || found == ["a function c"], "{code}: {found:?}");
    }
}

#[test]
fn a_path_in_a_macro_is_an_edge() {
    assert_eq!(edges("fn a() { vec![(1, { crate::c::Type::new() })]; }", "", C), ["a Type c"]);
    assert_eq!(edges("macro_rules! a { () => { $crate::c::function() } }", "", C), ["a function c"]);
}

#[test]
fn a_re_export_leads_to_the_file_that_defines_the_item() {
    let through = "pub use crate::c::Type as Other;";
    assert_eq!(edges("fn a(_: crate::b::Other) {}", through, C), ["a Type c", "b Type c"]);
    assert_eq!(edges("use crate::b::inner;", "pub use crate::c as inner;", C), Vec::<String>::new());
    assert_eq!(edges("use crate::b::inner::Type;", "pub use crate::c as inner;", C), ["a Type c"]);
}

#[test]
fn a_glob_leads_to_what_is_named_of_it() {
    assert_eq!(edges("use crate::c::*; fn a() { function() }", "", C), ["a function c"]);
    assert_eq!(edges("use crate::b::*; type A = Type;", "pub use crate::c::*;", C), ["a Type c"]);
    assert_eq!(edges("use crate::c::*;", "", C), Vec::<String>::new());
}

#[test]
fn tests_and_declarations_and_modules_are_no_edges() {
    for code in [
        "#[cfg(test)] mod tests { use crate::c::Type; }",
        "#[cfg(all(test, unix))] use crate::c::Type;",
        "struct A; impl A { #[cfg(test)] fn a() { crate::c::function() } }",
        "use crate::c; fn a(c: u8) {}",
        "pub(in crate::a) struct Type; fn a() { Type::new() }",
        "use other::c::Type; fn a() { other::c::function() }",
    ] {
        assert_eq!(edges(code, "", C), Vec::<String>::new(), "{code}");
    }
    assert_eq!(edges("#[cfg(not(test))] use crate::c::Type;", "", C), ["a Type c"]);
}

#[test]
fn a_module_and_a_function_may_share_a_name() {
    let graph = graph(&[("a", "mod a { pub fn a() {} } pub use a::a;"), ("b", "use crate::a::a;")]);
    assert_eq!(graph.edges["src/b.rs"]["src/a.rs"], "a");
}

#[test]
fn a_path_that_leads_nowhere_is_reported() {
    let graph = graph(&[("a", "use crate::b::{self, Gone};"), ("b", "pub use crate::a::Gone;")]);
    assert_eq!(graph.unresolved.len(), 2, "{:?}", graph.unresolved);
}

#[test]
fn circles_are_found_and_named() {
    let alone = graph(&[("a", "use crate::b::B;"), ("b", "pub struct B; use crate::c::Type;"), ("c", C)]);
    assert!(alone.circles().is_empty());
    let (a, b) = ("pub struct A; use crate::b::B;", "pub struct B; pub use crate::c::C;");
    let c = "pub struct C; fn c(_: crate::a::A, _: crate::d::D) {}";
    let circled = graph(&[("a", a), ("b", b), ("c", c), ("d", "pub struct D; use crate::b::C;")]);
    let circles = circled.circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].files.len(), 4);
    assert_eq!(circles[0].shortest, "src/c.rs -D-> src/d.rs -C-> src/c.rs");
}
