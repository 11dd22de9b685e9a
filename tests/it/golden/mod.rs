//! The scripts of docs/protocol: that they are what the library sends, and that masters, real and
//! embedded ones, do what the golden vectors say.

mod scene;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

use quorate::seam::{HELLO, RECORD, SCRIPTS, Script};
use quorate_testkit::RedisServer;
use scene::{Master, Scene, Step};
use serde_json::Value;

/// Fewer mean that some were not found.
const LEAST_SCENES: usize = 350;

/// A scene of the golden vectors.
#[derive(Debug)]
pub(crate) struct Vector {
    file: String,
    about: String,
    /// The name of the script that it is about.
    pub(crate) script_name: String,
    only: Option<String>,
    steps: Vec<Value>,
}

/// All of them.
pub(crate) fn vectors() -> Vec<Vector> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root("docs/protocol/vectors")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let of_file = |path: PathBuf| {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let scenes: Vec<Value> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        scenes.into_iter().map(move |scene| Vector {
            about: scene["about"].as_str().unwrap().to_owned(),
            script_name: file.split('-').next().unwrap().to_owned(),
            only: scene.get("only").map(|only| only.as_str().unwrap().to_owned()),
            steps: scene["steps"].as_array().unwrap().clone(),
            file: file.clone(),
        })
    };
    files.into_iter().flat_map(of_file).collect()
}

impl Vector {
    fn is_for(&self, master: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == master)
    }

    /// Plays it on an embedded master with this script in place of its own. Answers what is not as
    /// it should be.
    pub(crate) fn play_embedded(&self, script: &Script) -> Step {
        if !self.is_for("embedded") {
            return Ok(());
        }
        Scene::new(Master::embedded(self.only.is_some()), script).play(&self.steps)
    }

    fn play_on(&self, server: &RedisServer, connection: &Mutex<redis::Connection>) -> Step {
        if !self.is_for("redis") {
            return Ok(());
        }
        let play = || Scene::new(Master::Real(server, connection), self.script()).play(&self.steps);
        // A stall of the machine in the middle of a scene moves its moments.
        play().or_else(|_| play()).or_else(|_| play())
    }

    /// The script that it is about.
    fn script(&self) -> &'static Script {
        scripts().find(|script| script.name() == self.script_name).unwrap()
    }
}

/// All scripts of docs/protocol.
fn scripts() -> impl Iterator<Item = &'static Script> {
    [&HELLO, &RECORD].into_iter().chain(SCRIPTS.iter().copied())
}

/// Plays every scene, and tells all that are not as they should be.
fn replay(play: impl Fn(&Vector) -> Step) {
    let vectors = vectors();
    let wrong = |vector: &Vector| Some(format!("{}: {}: {}", vector.file, vector.about, play(vector).err()?));
    let wrong: Vec<String> = vectors.iter().filter_map(wrong).collect();
    println!("{} scenes", vectors.len());
    assert!(vectors.len() >= LEAST_SCENES, "only {} scenes", vectors.len());
    assert!(wrong.is_empty(), "{} of {} scenes:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
}

#[test]
fn real_masters_do_what_the_vectors_say() {
    let server = RedisServer::start();
    let connection = Mutex::new(redis::Client::open(server.url()).unwrap().get_connection().unwrap());
    replay(|vector| vector.play_on(&server, &connection));
}

#[test]
fn embedded_masters_do_what_the_vectors_say() {
    replay(|vector| vector.play_embedded(vector.script()));
}

/// With QUORATE_WRITE=1 they are made so.
#[test]
fn the_scripts_of_the_docs_are_those_that_are_sent() {
    let mut table = String::new();
    for script in scripts() {
        let (name, file) = (script.name(), root(&format!("docs/protocol/{}.lua", script.name())));
        if env::var_os("QUORATE_WRITE").is_some() {
            fs::write(&file, script.source()).unwrap();
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        assert!(text == script.source(), "docs/protocol/{name}.lua is not what is sent: QUORATE_WRITE=1");
        table += &format!("| [{name}.lua]({name}.lua) | `{}` |\n", script.sha1());
    }
    let readme = root("docs/protocol/README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let (before, old) = text.split_once("|---|---|\n").unwrap();
    if env::var_os("QUORATE_WRITE").is_some() {
        fs::write(&readme, format!("{before}|---|---|\n{table}")).unwrap();
    } else {
        assert!(old == table, "docs/protocol/README.md has other SHA1s: QUORATE_WRITE=1");
    }
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
