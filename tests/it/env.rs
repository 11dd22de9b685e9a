//! Clients that the environment describes.

use std::process::Command;
use std::time::Duration;

use quorate::{Builder, Init, Redlock};
use quorate_testkit::Masters;

/// The same, from a machine that is not too busy to connect in time.
fn connected_with(variables: &[(&str, &str)]) -> String {
    let mut told = std::iter::repeat_with(|| with(variables)).take(20);
    told.find(|told| !told.contains("no connection within")).expect("an answer of the masters")
}

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
            Err(error) => format!("{error:#}"),
        },
        Err(error) => error.to_string(),
    };
    println!("\nit came to {outcome}");
}

/// Has new masters begin as a set, with this builder's terms.
fn begin(builder: Builder) {
    let redlock = builder.build().unwrap();
    let fingerprint = redlock.fingerprint_blocking().unwrap();
    redlock.init_blocking(Init::new().never_used(fingerprint)).unwrap();
}

#[test]
fn a_client_is_what_the_environment_says() {
    let masters = Masters::start(3);
    let builder = || Redlock::builder().masters(masters.urls());
    begin(builder().prefix("mine:").max_ttl(Duration::from_secs(9)).ttl(Duration::from_secs(9)));
    let urls = format!(" {} , {},, {}\t", masters[0].url(), masters[1].url(), masters[2].url());
    let urls = ("QUORATE_MASTERS", &*urls);
    let told = connected_with(&[urls, ("QUORATE_PREFIX", "mine:"), ("QUORATE_MAX_TTL", "9s")]);
    assert!(told.starts_with("a lock of 3 masters for 8 s"), "{told}");
    let told = connected_with(&[urls, ("QUORATE_PREFIX", "mine:")]);
    assert!(told.contains("other terms"), "{told}");
    let told = connected_with(&[urls]);
    assert!(told.contains("quorate init"), "it begins no set by itself: {told}");
}

#[test]
fn an_error_names_the_variable() {
    let masters = ("QUORATE_MASTERS", "redis://127.0.0.1:1");
    for (variables, said) in [
        (&[][..], "QUORATE_MASTERS: it names no master"),
        (&[("QUORATE_MASTERS", " , ")], "QUORATE_MASTERS: it names no master"),
        (&[("QUORATE_MASTERS", "redis://127.0.0.1:1,nowhere")], "QUORATE_MASTERS: "),
        (&[masters, ("QUORATE_MAX_TTL", "long")], "QUORATE_MAX_TTL: \"long\" is not a duration like"),
        (&[masters, ("QUORATE_PREFIX", ""), ("QUORATE_MAX_TTL", "")], "lock \"l\": "),
    ] {
        let told = with(variables);
        assert!(told.contains(said), "{told}");
    }
}
