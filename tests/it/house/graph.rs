//! Which files of a crate name items of which others, and the circles among them.
//!
//! An edge is every path in code, imported or not, that names an item of another file: it goes to
//! the file that defines the item, through all re-exports. A path that only names a module is none,
//! and neither is `mod`. Methods are not looked at: which file defines `lease.renew()` takes the
//! type of `lease` to know, and that type is named somewhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::sources::{Module, Name, Path, Sources};

/// For each file the files whose items it names, each with one such item.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Paths from a module of the crate that lead nowhere: an edge may be missing for each.
    pub(crate) unresolved: BTreeSet<String>,
    pub(crate) edges: BTreeMap<String, BTreeMap<String, String>>,
}

impl Graph {
    pub(crate) fn of(sources: &Sources) -> Self {
        let mut graph = Self::default();
        for (here, module) in &sources.modules {
            for path in &module.paths {
                let found = Search { sources, followed: Vec::new() }.path(here, path);
                if found.is_empty() {
                    graph.unresolved.insert(format!("{}: {}", module.file, path.join("::")));
                }
                for found in found {
                    graph.add(module, found);
                }
            }
        }
        graph
    }

    fn add(&mut self, from: &Module, found: Found) {
        if let Found::Item(file, item) = found
            && file != from.file
        {
            self.edges.entry(from.file.clone()).or_default().entry(file).or_insert(item);
        }
    }

    pub(crate) fn edges(&self) -> usize {
        self.edges.values().map(BTreeMap::len).sum()
    }

    /// The shortest circle of each set of files that all reach each other.
    pub(crate) fn circles(&self) -> Vec<Circle<'_>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|file| (&**file, self.paths_from(file).into_keys().collect())).collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|files| files.contains(to));
        let mut seen = BTreeSet::<&str>::new();
        let mut circles = Vec::new();
        for &file in reached.keys().filter(|file| reaches(file, file)) {
            if seen.contains(file) {
                continue;
            }
            let files: BTreeSet<_> =
                reached[file].iter().copied().filter(|other| reaches(other, file)).collect();
            seen.extend(&files);
            let ways =
                files.iter().map(|file| self.paths_from(file).remove(*file).expect("it reaches itself"));
            let shortest = ways.min_by_key(Vec::len).expect("a file");
            circles.push(Circle { files, shortest: self.show(&shortest) });
        }
        circles
    }

    /// The shortest way to every file that one reaches, both ends included.
    fn paths_from<'a>(&'a self, file: &'a str) -> BTreeMap<&'a str, Vec<&'a str>> {
        let mut ways = BTreeMap::new();
        let mut queue = VecDeque::from([vec![file]]);
        while let Some(way) = queue.pop_front() {
            for next in self.edges.get(way[way.len() - 1]).into_iter().flat_map(BTreeMap::keys) {
                if !ways.contains_key(&**next) {
                    let longer: Vec<&str> = way.iter().copied().chain([&**next]).collect();
                    ways.insert(&**next, longer.clone());
                    queue.push_back(longer);
                }
            }
        }
        ways
    }

    /// As in `one -Guard-> other -Lock-> one`.
    fn show(&self, way: &[&str]) -> String {
        let steps = way.windows(2).map(|pair| format!(" -{}-> {}", self.edges[pair[0]][pair[1]], pair[1]));
        way[0].to_owned() + &steps.collect::<String>()
    }
}

#[derive(Debug)]
pub(crate) struct Circle<'a> {
    pub(crate) files: BTreeSet<&'a str>,
    pub(crate) shortest: String,
}

/// What a path names.
enum Found {
    Module(Path),
    /// Another crate, or something local.
    Outside,
    /// A file and the item's name there.
    Item(String, String),
}

struct Search<'a> {
    sources: &'a Sources,
    /// The imports that led here, and what was looked for there: none is followed in a circle.
    followed: Vec<(&'a Path, String)>,
}

impl<'a> Search<'a> {
    fn path(&mut self, here: &Path, path: &[String]) -> Vec<Found> {
        let mut found = Vec::new();
        for (place, segment) in path.iter().enumerate() {
            found = match (&**segment, place) {
                ("crate", 0) => vec![Found::Module(Path::new())],
                ("self", 0) => vec![Found::Module(here.clone())],
                ("super", 0) => vec![Found::Module(above(here))],
                ("super", _) => {
                    found.iter().filter_map(Found::module).map(|m| Found::Module(above(m))).collect()
                }
                (name, 0) => self.first(here, name),
                (name, _) => found.into_iter().flat_map(|found| self.within(found, name)).collect(),
            };
        }
        found
    }

    fn first(&mut self, here: &Path, name: &str) -> Vec<Found> {
        let found = self.name(here, name);
        if !found.is_empty() {
            return found;
        }
        let is_crate = name == self.sources.crate_name;
        vec![if is_crate { Found::Module(Path::new()) } else { Found::Outside }]
    }

    /// What follows an item in a path, a variant or a function of a type, is in the item's file.
    fn within(&mut self, found: Found, name: &str) -> Vec<Found> {
        match found {
            Found::Module(module) => self.name(&module, name),
            item => vec![item],
        }
    }

    fn name(&mut self, module: &Path, name: &str) -> Vec<Found> {
        let Some(there) = self.sources.modules.get(module) else { return Vec::new() };
        let mut found = Vec::new();
        for meaning in there.names.get(name).into_iter().flatten() {
            match meaning {
                Name::Item => found.push(Found::Item(there.file.clone(), name.to_owned())),
                Name::Module => found.push(Found::Module([&**module, &[name.to_owned()]].concat())),
                Name::Import(path) => found.extend(self.follow(module, path, None)),
            }
        }
        if found.is_empty() {
            found.extend(there.globs.iter().flat_map(|glob| self.follow(module, glob, Some(name))));
        }
        found
    }

    /// What an import, or one name of a glob import, stands for.
    fn follow(&mut self, module: &Path, import: &'a Path, name: Option<&str>) -> Vec<Found> {
        let step = (import, format!("{module:?} {name:?}"));
        if self.followed.contains(&step) {
            return Vec::new();
        }
        self.followed.push(step);
        let mut found = self.path(module, import);
        if let Some(name) = name {
            let modules = found.iter().filter_map(Found::module).cloned().collect::<Vec<_>>();
            found = modules.iter().flat_map(|module| self.name(module, name)).collect();
        }
        self.followed.pop();
        found
    }
}

impl Found {
    fn module(&self) -> Option<&Path> {
        match self {
            Self::Module(module) => Some(module),
            _ => None,
        }
    }
}

fn above(module: &Path) -> Path {
    module[..module.len().saturating_sub(1)].to_vec()
}
