//! The order of the folders of `src`: code names only what its own layer or an earlier one defines.

use super::graph::Graph;
use super::{crates, files};

/// The layers below the public API, each with its folders and files of `src`. The public API is
/// every other file.
const LAYERS: [(&str, &[&str]); 11] = [
    // Errors, limits, and the seams for randomness and tasks.
    (
        "ground",
        &[
            "backoff", "config", "error", "executor", "fence", "held", "invalid", "json", "owner", "random",
            "sync", "text", "vote",
        ],
    ),
    ("wire", &["wire"]),
    ("time", &["time"]),
    ("renewal", &["renewal"]),
    ("set", &["set"]),
    ("link", &["link"]),
    ("round", &["round"]),
    ("wake", &["handover", "wake"]),
    ("engine", &["engine"]),
    ("admin", &["admin"]),
    // What all handles of a client share.
    ("client", &["blocking", "inner"]),
];

const API: &str = "public API";

/// The folder of `src` that a file is in, or its own name without its ending.
fn place(file: &str) -> &str {
    let file = file.strip_prefix("src/").expect("a file of the library");
    file.split_once('/').map_or_else(|| file.trim_end_matches(".rs"), |(folder, _)| folder)
}

/// The number of a file's layer, and what it is called.
fn layer(file: &str) -> (usize, &'static str) {
    let place = place(file);
    let found = LAYERS.iter().position(|(_, places)| places.contains(&place));
    found.map_or((LAYERS.len(), API), |layer| (layer, LAYERS[layer].0))
}

/// What names items of a later layer.
fn against_the_order(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (from, edges) in &graph.edges {
        for (to, item) in edges {
            let here = layer(from);
            let there = layer(to);
            if there.0 > here.0 {
                found.push(format!("{from} ({}) names {item} of {to} ({})", here.1, there.1));
            }
        }
    }
    found
}

#[test]
fn a_layer_names_only_earlier_ones() {
    let sources = crates().into_iter().find(|sources| sources.crate_name == "quorate").unwrap();
    let graph = Graph::of(&sources);
    let found = against_the_order(&graph);
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
    let between = |(from, edges): (&String, &std::collections::BTreeMap<String, String>)| {
        edges.keys().filter(|to| layer(to).0 < layer(from).0).count()
    };
    let seen: usize = graph.edges.iter().map(between).sum();
    assert!(seen > 300, "only {seen} files name items of an earlier layer");
}

#[test]
fn each_folder_has_a_layer() {
    let all = files("src", ".rs");
    for (name, _) in &all {
        let is_in_folder = name.matches('/').count() > 1;
        assert!(!is_in_folder || layer(name).1 != API, "{name} is in a folder without a layer");
    }
    for place in LAYERS.iter().flat_map(|(_, places)| *places) {
        assert!(all.iter().any(|(name, _)| self::place(name) == *place), "there is no src/{place}");
    }
}

#[test]
fn a_name_of_a_later_layer_is_found() {
    let graph = |from: &str, to: &str| {
        let edges = [(to.to_owned(), "Type".to_owned())].into();
        Graph { edges: [(from.to_owned(), edges)].into(), ..Graph::default() }
    };
    let found = |from, to| !against_the_order(&graph(from, to)).is_empty();
    assert!(found("src/engine/wait.rs", "src/admin/list.rs") && found("src/error.rs", "src/wire/op.rs"));
    assert!(found("src/admin/list.rs", "src/client.rs") && found("src/wire/op.rs", "src/time/clock.rs"));
    assert!(found("src/round/tally.rs", "src/engine/hold.rs"));
    assert!(!found("src/admin/list.rs", "src/engine/wait.rs") && !found("src/lock.rs", "src/client.rs"));
}
