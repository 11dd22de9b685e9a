//! Runs the Lua of scripts against a store, as Redis 7.0 does.
//!
//! There is one Lua state a thread, for all stores: a script leaves nothing behind in it, and what
//! it makes of its arguments and of the store does not depend on what ran before. Two things of Lua
//! are not the same from run to run, and no script should look at them: the order in which `pairs`
//! goes through keys that are tables or functions, and `tostring` of those.
//!
//! Not there, unlike in Redis: `cjson`, `cmsgpack`, `struct`, `bit`, `math.random`, `load`,
//! `loadstring`, `collectgarbage`, the RESP3 forms of a reply, and limits on how long a script
//! runs.

mod convert;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};
use quorate::seam::Script;

use super::resp::Resp;
use super::store::Store;
use super::wall_clock::WallClock;

/// A script of this name is what error messages speak of.
const CHUNK: &str = "@user_script";

/// The globals that a script has from Lua itself.
const NAMES: &str = "assert coroutine error getmetatable ipairs math next pairs rawequal rawget select setmetatable \
    string table tonumber tostring type unpack xpcall _VERSION";

/// How much garbage there may be, in percent of what is alive: what lives is little, and to look
/// for it often costs more.
const GARBAGE: i32 = 200;

thread_local! {
    static INTERPRETER: Interpreter = Interpreter::new().expect("a Lua state of our own making");
}

/// What commands of the script that runs now are about.
#[derive(Default)]
struct Stage {
    store: Store,
    clock: Option<WallClock>,
}

/// A Lua state, and the scripts that it has compiled.
struct Interpreter {
    lua: Lua,
    stage: Rc<RefCell<Stage>>,
    globals: Table,
    run: Function,
    /// By their digests.
    scripts: RefCell<BTreeMap<String, Function>>,
}

/// Runs a script. Its commands find the time on `clock`.
pub(super) fn run<'a>(
    script: &Script,
    keys: impl Iterator<Item = &'a str>,
    args: impl Iterator<Item = &'a str>,
    store: &mut Store,
    clock: &WallClock,
) -> Resp {
    INTERPRETER.with(|interpreter| {
        let compiled = match interpreter.compile(script) {
            Ok(compiled) => compiled,
            Err(error) => return Resp::Error(error),
        };
        store.freeze(clock());
        interpreter.enter(store, Some(clock.clone()));
        let reply = interpreter.run(&compiled, keys, args);
        interpreter.enter(store, None);
        store.thaw();
        convert::reply(reply, script.sha1())
    })
}

impl Interpreter {
    fn new() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.gc_set_mode(mlua::state::GcMode::Incremental(mlua::state::GcIncParams::default().pause(GARBAGE)));
        let math: Table = lua.globals().get("math")?;
        math.set("random", Value::Nil)?;
        math.set("randomseed", Value::Nil)?;
        let stage = Rc::new(RefCell::new(Stage::default()));
        let on_stage = |run: fn(&Lua, &RefCell<Stage>, &MultiValue) -> mlua::Result<Value>| {
            let stage = stage.clone();
            lua.create_function(move |lua, words: MultiValue| run(lua, &stage, &words))
        };
        let call = on_stage(call)?;
        let native = on_stage(pcall)?;
        let raised = lua.create_function(|_, error: mlua::Error| Ok(raised(&error)))?;
        let position = lua.create_function(|lua, ()| Ok(position(lua)))?;
        let sha1hex = lua.create_function(|_, words: MultiValue| sha1hex(&words))?;
        let harness = lua.load(include_str!("harness.lua")).set_name("=harness");
        let (globals, run) = harness.call((call, native, raised, position, sha1hex, NAMES))?;
        Ok(Self { lua, stage, globals, run, scripts: RefCell::default() })
    }

    fn compile(&self, script: &Script) -> Result<Function, String> {
        if let Some(compiled) = self.scripts.borrow().get(script.sha1()) {
            return Ok(compiled.clone());
        }
        let text = self.lua.load(script.source()).set_name(CHUNK).set_environment(self.globals.clone());
        let compiled = text.into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => {
                format!("ERR Error compiling script (new function): {message}")
            }
            other => format!("ERR {other}"),
        })?;
        self.scripts.borrow_mut().insert(script.sha1().to_owned(), compiled.clone());
        Ok(compiled)
    }

    /// Puts a store on the stage, or takes it from there.
    fn enter(&self, store: &mut Store, clock: Option<WallClock>) {
        let mut stage = self.stage.borrow_mut();
        std::mem::swap(&mut stage.store, store);
        stage.clock = clock;
    }

    fn run<'a>(
        &self,
        compiled: &Function,
        keys: impl Iterator<Item = &'a str>,
        args: impl Iterator<Item = &'a str>,
    ) -> mlua::Result<MultiValue> {
        let keys = self.lua.create_sequence_from(keys)?;
        let args = self.lua.create_sequence_from(args)?;
        self.run.call((compiled, keys, args))
    }
}

/// `redis.pcall`: carries a command out on the store on the stage.
fn pcall(lua: &Lua, stage: &RefCell<Stage>, words: &MultiValue) -> mlua::Result<Value> {
    convert::value(lua, command(stage, words))
}

/// `redis.call`: the same, and raises an error.
fn call(lua: &Lua, stage: &RefCell<Stage>, words: &MultiValue) -> mlua::Result<Value> {
    match command(stage, words) {
        Resp::Error(text) => Err(mlua::Error::RuntimeError(text)),
        reply => convert::value(lua, reply),
    }
}

fn command(stage: &RefCell<Stage>, words: &MultiValue) -> Resp {
    let reply = convert::with_words(words, |words| {
        let stage = &mut *stage.borrow_mut();
        let now = stage.clock.as_ref().map_or(0, |clock| clock());
        stage.store.execute_for_script(now, words)
    });
    reply.unwrap_or_else(|| {
        Resp::Error("ERR Lua redis lib command arguments must be strings or integers".to_owned())
    })
}

fn sha1hex(words: &MultiValue) -> mlua::Result<String> {
    let digest = convert::with_words(words, |words| match words {
        [text] => Some(sha1_smol::Sha1::from(text).digest().to_string()),
        _ => None,
    });
    digest.flatten().ok_or_else(|| mlua::Error::RuntimeError("ERR wrong number of arguments".to_owned()))
}

/// The words of an error that was raised on this side.
fn raised(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => raised(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        other => format!("ERR {other}"),
    }
}

/// Where the script failed, as `@user_script:7`: in its own code that was run last.
fn position(lua: &Lua) -> Option<String> {
    for level in 1.. {
        let found = lua.inspect_stack(level, |frame| {
            let is_script = frame.source().source.as_deref() == Some(CHUNK);
            is_script.then(|| frame.current_line()).flatten()
        })?;
        if let Some(line) = found {
            return Some(format!("{CHUNK}:{line}"));
        }
    }
    None
}

#[cfg(test)]
mod tests;
