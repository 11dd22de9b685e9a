//! What a proxy does to connections with a real server, and that it is over when it is removed.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use quorate_testkit::{Cut, Proxy, RedisServer, Toxic, ToxicId, Way, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

/// What does not come within this does not come by itself.
const A_WHILE: Duration = Duration::from_millis(200);

const PONG: &str = "+PONG\r\n";

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A connection that sends what a test says.
struct Talk(TcpStream);

impl Talk {
    async fn with(proxy: &Proxy) -> Self {
        Self(TcpStream::connect(proxy.address()).await.unwrap())
    }

    async fn say(&mut self, command: &str) {
        self.0.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
    }

    /// Reads so much as this answer has.
    async fn hears(&mut self, answer: &str) {
        let mut received = vec![0; answer.len()];
        timeout(SOON, self.0.read_exact(&mut received)).await.expect("an answer in time").unwrap();
        assert_eq!(String::from_utf8(received).unwrap(), answer);
    }

    async fn hears_nothing(&mut self) {
        let read = timeout(A_WHILE, self.0.read(&mut [0])).await;
        assert!(read.is_err(), "{read:?}");
    }

    /// Reads to the end: what there was, and how it ended.
    async fn end(&mut self) -> (Vec<u8>, std::io::Result<usize>) {
        let mut received = Vec::new();
        let end = timeout(SOON, self.0.read_to_end(&mut received)).await.expect("an end in time");
        (received, end)
    }

    /// How long a PING and its answer take.
    async fn ping(&mut self) -> Duration {
        let begun = Instant::now();
        self.say("PING").await;
        self.hears(PONG).await;
        begun.elapsed()
    }

    /// Takes a name by which the server knows it.
    async fn is_called(&mut self, name: &str) {
        self.say(&format!("CLIENT SETNAME {name}")).await;
        self.hears("+OK\r\n").await;
    }
}

async fn stage() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.address()).await;
    (server, proxy)
}

fn knows(server: &RedisServer, name: &str) -> bool {
    let list: String = server.command(&["CLIENT", "LIST"]);
    list.contains(&format!("name={name} "))
}

async fn is_forgotten(server: &RedisServer, name: &str) {
    eventually(SOON, || if knows(server, name) { Err("it is there") } else { Ok(()) }).await;
}

fn has(server: &RedisServer, key: &str) -> bool {
    server.command(&["EXISTS", key])
}

#[tokio::test]
async fn latency_is_added_each_way_with_jitter() {
    let (_server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.ping().await;
    let mut slow = Vec::new();
    for way in [Way::There, Way::Back] {
        let toxic = proxy.add(way, Toxic::Latency { delay: ms(60), jitter: ms(60) });
        for _ in 0..6 {
            slow.push(talk.ping().await);
        }
        proxy.remove(toxic);
    }
    assert!(slow.iter().all(|took| *took >= ms(60)), "{slow:?}");
    let (least, most) = (slow.iter().min().unwrap(), slow.iter().max().unwrap());
    assert!(*least < ms(120) && *most - *least > ms(5), "twelve draws, not all of them late: {slow:?}");
    assert!(fastest(&mut talk).await < ms(60), "it is over");
}

async fn fastest(talk: &mut Talk) -> Duration {
    let mut fastest = SOON;
    for _ in 0..10 {
        fastest = fastest.min(talk.ping().await);
    }
    fastest
}

#[tokio::test]
async fn what_follows_is_not_held_up_and_stays_in_order() {
    const DELAY: Duration = ms(300);
    let server = RedisServer::start();
    let proxy = Proxy::start_slow(server.address(), DELAY).await;
    let mut talk = Talk::with(&proxy).await;
    let mut took = Vec::new();
    // One after the other they would never take less than three times the delay.
    while took.iter().all(|took| *took >= DELAY * 11 / 4) {
        assert!(took.len() < 10, "{took:?}");
        let begun = Instant::now();
        for word in ["1", "2"] {
            talk.say(&format!("ECHO {word}")).await;
            tokio::time::sleep(DELAY / 10).await; // so that each is a chunk, which leaves while the first one goes
        }
        talk.hears("$1\r\n1\r\n").await;
        assert!(begun.elapsed() >= DELAY * 2, "{:?}", begun.elapsed());
        talk.hears("$1\r\n2\r\n").await;
        took.push(begun.elapsed());
    }
    talk.0.shutdown().await.unwrap(); // an end of the stream passes, too
    assert_eq!(talk.end().await.1.unwrap(), 0);
}

#[tokio::test]
async fn a_narrow_line_takes_its_time_until_it_is_wide_again() {
    const SIZE: usize = 60_000;
    let (server, proxy) = stage().await;
    let _: () = server.command(&["SET", "k", &"x".repeat(SIZE)]);
    let mut talk = Talk::with(&proxy).await;
    let answer = format!("${SIZE}\r\n{}\r\n", "x".repeat(SIZE));
    let narrow = proxy.add(Way::Back, Toxic::Bandwidth { bytes_per_second: 120_000 });
    let begun = Instant::now();
    talk.say("GET k").await;
    talk.hears(&answer).await;
    assert!(begun.elapsed() >= ms(480), "{:?}", begun.elapsed());
    proxy.remove(narrow);
    let narrow = proxy.add(Way::Back, Toxic::Bandwidth { bytes_per_second: 1_000 });
    talk.say("GET k").await;
    talk.hears("$").await;
    proxy.remove(narrow); // the rest would take a minute, and may take 20 seconds
    talk.hears(&answer[1..]).await;
}

#[tokio::test]
async fn a_hole_on_the_way_there_keeps_commands_until_it_is_removed() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.ping().await;
    let hole = proxy.add(Way::There, Toxic::Blackhole);
    talk.say("SET k v").await;
    talk.hears_nothing().await;
    assert!(!has(&server, "k"));
    let mut newcomer = Talk::with(&proxy).await;
    newcomer.say("PING").await;
    newcomer.hears_nothing().await;
    assert!(proxy.remove(hole));
    talk.hears("+OK\r\n").await;
    newcomer.hears(PONG).await;
    assert!(has(&server, "k") && !proxy.remove(hole));
}

#[tokio::test]
async fn a_hole_on_the_way_back_keeps_answers_and_commands_run() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    let hole = proxy.add(Way::Back, Toxic::Blackhole);
    talk.say("SET k v").await;
    eventually(SOON, || if has(&server, "k") { Ok(()) } else { Err("it has not run") }).await;
    talk.hears_nothing().await;
    proxy.remove(hole);
    talk.hears("+OK\r\n").await;
}

#[tokio::test]
async fn holes_both_ways_part_them_and_their_ends() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.is_called("x").await;
    proxy.add(Way::Both, Toxic::Blackhole);
    drop(talk);
    tokio::time::sleep(A_WHILE).await;
    assert!(knows(&server, "x"));
    proxy.clear();
    is_forgotten(&server, "x").await;
}

#[tokio::test]
async fn a_server_is_not_told_that_its_client_is_gone() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.is_called("x").await;
    let half = proxy.add(Way::There, Toxic::HalfOpen);
    drop(talk);
    tokio::time::sleep(A_WHILE).await;
    assert!(knows(&server, "x"));
    Talk::with(&proxy).await.ping().await; // everything else gets through
    proxy.remove(half);
    is_forgotten(&server, "x").await;
}

/// The client's talk with a server that has closed the connection, and has forgotten it.
async fn closed_by_the_server(
    server: &RedisServer,
    proxy: &Proxy,
    way: Way,
    toxic: Toxic,
) -> (Talk, ToxicId) {
    let mut talk = Talk::with(proxy).await;
    talk.is_called("x").await;
    let toxic = proxy.add(way, toxic);
    let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    is_forgotten(server, "x").await;
    (talk, toxic)
}

#[tokio::test]
async fn a_client_is_not_told_that_its_server_is_gone() {
    let (server, proxy) = stage().await;
    let (mut talk, half) = closed_by_the_server(&server, &proxy, Way::Back, Toxic::HalfOpen).await;
    talk.say("PING").await;
    talk.hears_nothing().await;
    proxy.remove(half);
    assert_eq!(talk.end().await.0, b"");
}

#[tokio::test]
async fn a_slow_close_is_told_late_or_when_it_is_removed() {
    let (server, proxy) = stage().await;
    let slow = |delay| Toxic::SlowClose { delay };
    let begun = Instant::now();
    let (mut talk, toxic) = closed_by_the_server(&server, &proxy, Way::Back, slow(ms(300))).await;
    let _ = talk.end().await;
    assert!(begun.elapsed() >= ms(300), "{:?}", begun.elapsed());
    proxy.remove(toxic);
    let (mut talk, toxic) = closed_by_the_server(&server, &proxy, Way::Back, slow(SOON * 3)).await;
    talk.hears_nothing().await;
    proxy.remove(toxic);
    let _ = talk.end().await;
}

#[tokio::test]
async fn connections_are_reset_those_that_there_are_and_those_to_come() {
    let (_server, proxy) = stage().await;
    let mut old = Talk::with(&proxy).await;
    old.ping().await;
    let reset = proxy.add(Way::Both, Toxic::Reset);
    assert_eq!(old.end().await.1.unwrap_err().kind(), ErrorKind::ConnectionReset);
    // It is connected before it is reset, or it hears of the reset when it looks at itself.
    let new = TcpStream::connect(proxy.address()).await;
    let end = match new {
        Ok(stream) => Talk(stream).end().await.1,
        Err(error) => Err(error),
    };
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    proxy.remove(reset);
    Talk::with(&proxy).await.ping().await;
}

#[tokio::test]
async fn a_reset_once_is_over_at_once() {
    let (server, proxy) = stage().await;
    let mut old = Talk::with(&proxy).await;
    old.is_called("x").await;
    proxy.reset();
    Talk::with(&proxy).await.ping().await;
    assert_eq!(old.end().await.1.unwrap_err().kind(), ErrorKind::ConnectionReset);
    is_forgotten(&server, "x").await;
}

/// As when a client's machine starts again: its server keeps a connection that nobody has.
#[tokio::test]
async fn a_connection_that_is_reset_at_one_end_can_be_half_open_at_the_other() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.is_called("x").await;
    let half = proxy.add(Way::There, Toxic::HalfOpen);
    proxy.reset_at(Way::Back);
    assert_eq!(talk.end().await.1.unwrap_err().kind(), ErrorKind::ConnectionReset);
    tokio::time::sleep(A_WHILE).await;
    assert!(knows(&server, "x"));
    proxy.remove(half);
    is_forgotten(&server, "x").await;
}

/// What there is of an answer of 1,007 bytes.
async fn what_is_left(proxy: &Proxy) -> usize {
    let mut talk = Talk::with(proxy).await;
    talk.say("GET k").await;
    let (received, end) = talk.end().await;
    end.unwrap();
    received.len()
}

#[tokio::test]
async fn answers_are_cut_where_the_seed_says() {
    let server = RedisServer::start();
    let _: () = server.command(&["SET", "k", &"x".repeat(998)]);
    let mut left = Vec::new();
    for seed in [1, 1, 2] {
        let proxy = Proxy::start_seeded(server.address(), seed).await;
        let toxic = proxy.add(Way::Back, Toxic::Cut { per_mille: 1_000 });
        let lengths = [what_is_left(&proxy).await, what_is_left(&proxy).await];
        assert!(lengths.iter().all(|length| (1..1_007).contains(length)), "{lengths:?}");
        assert_eq!(proxy.cuts(), 2);
        left.push(lengths);
        proxy.remove(toxic);
        let mut talk = Talk::with(&proxy).await;
        for _ in 0..10 {
            talk.ping().await;
        }
    }
    assert!(left[0] == left[1] && left[1] != left[2], "{left:?}");
}

#[tokio::test]
async fn a_command_that_is_cut_does_not_run() {
    let (server, proxy) = stage().await;
    proxy.add(Way::There, Toxic::Cut { per_mille: 1_000 });
    for _ in 0..10 {
        let mut talk = Talk::with(&proxy).await;
        talk.say("SET k v").await;
        let _ = talk.end().await;
    }
    assert!(!has(&server, "k") && proxy.cuts() == 10);
}

#[tokio::test]
async fn one_reply_is_cut_at_its_beginning_or_in_its_midst() {
    let (server, proxy) = stage().await;
    let _: () = server.command(&["SET", "k", &"x".repeat(998)]);
    proxy.cut_next(Cut::AtReply);
    assert_eq!(what_is_left(&proxy).await, 0);
    proxy.cut_next(Cut::InReply);
    assert!((1..1_007).contains(&what_is_left(&proxy).await));
    Talk::with(&proxy).await.ping().await;
    proxy.cut_next(Cut::AtReply);
    proxy.cut_next(Cut::None);
    Talk::with(&proxy).await.ping().await;
    assert_eq!((proxy.cuts(), proxy.connections()), (2, 4));
}

#[tokio::test]
async fn a_command_in_flight_arrives_when_it_is_delivered() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.is_called("x").await;
    proxy.cut_next(Cut::InFlight);
    talk.say("SET k v").await;
    assert_eq!(talk.end().await.0, b"");
    Talk::with(&proxy).await.ping().await;
    assert!(knows(&server, "x") && !has(&server, "k"));
    proxy.deliver();
    eventually(SOON, || if has(&server, "k") { Ok(()) } else { Err("it has not arrived") }).await;
    is_forgotten(&server, "x").await;
}

#[tokio::test]
async fn new_connections_lead_to_another_server() {
    let (server, proxy) = stage().await;
    let other = RedisServer::start();
    let (mut old, name) = (Talk::with(&proxy).await, "x");
    old.ping().await;
    proxy.lead_to(other.address());
    Talk::with(&proxy).await.is_called(name).await;
    old.say("SET k v").await;
    old.hears("+OK\r\n").await;
    assert!(has(&server, "k") && !has(&other, "k"));
}

#[tokio::test]
async fn a_dropped_proxy_closes_its_connections() {
    let (server, proxy) = stage().await;
    let mut talk = Talk::with(&proxy).await;
    talk.is_called("x").await;
    drop(proxy);
    let _ = talk.end().await;
    is_forgotten(&server, "x").await;
}
