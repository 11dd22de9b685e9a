//! Clients that the environment describes.

use std::process::Command;

use quorate::Redlock;
use quorate_testkit::Masters;

/// What a process with these variables makes of them.
fn with(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--ignored", "--exact", "--nocapture", "env::a_process_with_variables"]).env_clear();
    let output = child.envs(variables.iter().copied()).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("it came to ")).expect(&told);
    line.to_owned()
}

#[tokio::test]
#[ignore = "the part of another process: the next tests run it"]
async fn a_process_with_variables() {
    let outcome = match Redlock::from_env() {
        Ok(redlock) => match redlock.lock("l").try_acquire().await {
            Ok(guard) => {
                let ttl = guard.remaining().as_secs();
                guard.release().await.unwrap();
                format!("a lock of {} masters for {ttl} s", redlock.master_status().len())
            }
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    println!("\nit came to {outcome}");
}

#[test]
fn a_client_is_what_the_environment_says() {
    let masters = Masters::start(3);
    let urls = format!(" {} , {},, {}\t", masters[0].url(), masters[1].url(), masters[2].url());
    let new = [("QUORATE_MASTERS", &*urls), ("QUORATE_COLD_START", "none")];
    let told = with(&[new[0], new[1], ("QUORATE_PREFIX", "mine:"), ("QUORATE_MAX_TTL", "9s")]);
    assert!(told.starts_with("a lock of 3 masters for 8 s"), "{told}");
    for server in masters.iter() {
        let marker: String = server.command(&["GET", "mine:marker"]);
        assert!(marker.contains("9000 ms") && !marker.contains("strict"), "{marker}");
    }
    let told = with(&[new[0], new[1], ("QUORATE_PREFIX", "strict:"), ("QUORATE_STRICT", "1")]);
    assert!(told.starts_with("a lock of 3 masters"), "{told}");
    let marker: String = masters[0].command(&["GET", "strict:marker"]);
    assert!(marker.contains("strict"), "{marker}");
}

#[test]
fn an_error_names_the_variable() {
    let masters = ("QUORATE_MASTERS", "redis://127.0.0.1:1");
    for (variables, said) in [
        (&[][..], "QUORATE_MASTERS: it names no master"),
        (&[("QUORATE_MASTERS", " , ")], "QUORATE_MASTERS: it names no master"),
        (&[("QUORATE_MASTERS", "redis://127.0.0.1:1,nowhere")], "QUORATE_MASTERS: "),
        (&[masters, ("QUORATE_COLD_START", "trust me")], "QUORATE_COLD_START: "),
        (&[masters, ("QUORATE_MAX_TTL", "long")], "QUORATE_MAX_TTL: \"long\" is not a duration like"),
        (&[masters, ("QUORATE_STRICT", "yes")], "QUORATE_STRICT: \"yes\" is neither 1"),
        (&[masters, ("QUORATE_STRICT", ""), ("QUORATE_MAX_TTL", "")], "lock \"l\": "),
    ] {
        let told = with(variables);
        assert!(told.contains(said), "{told}");
    }
}
