//! Small scripts and odd commands: what they reply, and how they fail.

use quorate::seam::Script;

use crate::operations::Request;
use crate::pair::{Pair, command};

const SCRIPTS: &[&str] = &[
    "return redis.call('NOPE')",
    "return redis.pcall('NOPE')",
    "return redis.pcall('HLEN').err",
    "return redis.call('HLEN')",
    "return redis.pcall('hlen', 'text').err",
    "return redis.call('HLEN', 'text')",
    "return redis.pcall('HSET', 'h', 'a', '1', 'b').err",
    "return redis.pcall().err",
    "return redis.call()",
    "return redis.pcall(nil).err",
    "return redis.pcall('GET', {}).err",
    "return redis.pcall('GET', nil).err",
    "return redis.pcall('GET', true).err",
    "return redis.error_reply('X')",
    "return redis.error_reply('My Err')",
    "return redis.error_reply('-My Err')",
    "return redis.error_reply(1)",
    "return redis.error_reply()",
    "return redis.status_reply('X')",
    "return redis.status_reply()",
    "return {err='X'}",
    "return {err='-X y'}",
    "return {err=1}",
    "return {ok='fine'}",
    "return {ok=2}",
    "return {1, {ok='fine'}, {2, {3, false}}, 'x', true}",
    "return {1, 2, nil, 3}",
    "return {1, function() end, 2}",
    "local t = {} for i = 1, 500 do t[i] = i end return t",
    "return 3.99",
    "return -3.99",
    "return 1e300",
    "return -1e300",
    "return 0/0",
    "return 9007199254740993",
    "return true",
    "return false",
    "return nil",
    "return function() end",
    "return",
    "error('x')",
    "error('x', 0)",
    "error('x', 2)",
    "error(5)",
    "error(nil)",
    "error({err='My thing'})",
    "local function f()\n  redis.call('NOPE')\nend\n\nf()",
    "local x = nil\nreturn x.y",
    "return nil < 1",
    "local a = 1 - {} return a",
    "return 'a' .. 1e15",
    "syntax(",
    "x = 1",
    "return x",
    "return _G.y",
    "return print",
    "return os",
    "local ok, err = pcall(redis.call, 'NOPE') return {type(err), err}",
    "local ok, err = pcall(error, 'boo') return err",
    "local ok, err = pcall(error, {1}) return type(err)",
    "return {pcall(function() return 1, nil, 3 end)}",
    "return redis.sha1hex('')",
    "return redis.sha1hex(12)",
    "return redis.sha1hex()",
    "return redis.log(redis.LOG_NOTICE, 'x')",
    "return {KEYS[1], KEYS[2], ARGV[1], #KEYS, #ARGV}",
    "redis.call('SET', 'n', 1e15) return redis.call('GET', 'n')",
    "redis.call('SET', 'n', 0.1) return redis.call('GET', 'n')",
    "redis.call('SET', 'n', 2^53) return redis.call('GET', 'n')",
    "redis.call('SET', 'n', -1e-7) return redis.call('GET', 'n')",
    "redis.call('SET', 'n', '\\0\\255') return redis.call('GET', 'n')",
    "return type(redis.call('GET', 'none'))",
    "return redis.call('SET', 'n', 1).ok",
    "return #redis.call('TIME')",
    "return redis.pcall('TIME', 'x').err",
    "return redis.call('HMGET', 'none', 'a', 'b')",
    "return tostring(redis.call('HMGET', 'none', 'a')[1])",
    "return redis.call('PUBLISH', 'nobody', 'x')",
    "return redis.pcall('CONFIG', 'SET', 'maxmemory', '0')",
    "return redis.pcall('REPLICAOF', 'NO', 'ONE')",
    "return redis.pcall('ACL', 'SETUSER', 'default')",
];

/// What a client may not do, or a server not be asked for: the settings, and then both the commands
/// of clients and of scripts.
const SETTINGS: &[&str] = &[
    "CONFIG SET maxmemory 1073741824",
    "CONFIG SET maxmemory-policy allkeys-lru",
    "CONFIG SET nothing 1",
    "ACL SETUSER default -set -HSET",
    "ACL SETUSER default +hset -get",
    "ACL SETUSER default set",
    "ACL SETUSER default -sets",
    "REPLICAOF 127.0.0.1 1",
    "ACL SETUSER default +set +get",
    "REPLICAOF NO ONE",
    "CONFIG SET maxmemory-policy noeviction",
    "CONFIG SET maxmemory 1",
    "CONFIG SET maxmemory 0",
];

const COMMANDS: &[&str] = &[
    "NOPE",
    "NOPE a b",
    "HSET h",
    "HSET h a 1 b",
    "hset h a 1 b 2 a 3",
    "HSET text a 1",
    "HGETALL h",
    "HSET h2 f v",
    "HRANDFIELD h2 10 WITHVALUES",
    "HRANDFIELD none 10 WITHVALUES",
    "HRANDFIELD text 10 WITHVALUES",
    "HRANDFIELD h x WITHVALUES",
    "HGETALL text",
    "HGET h a",
    "HGET h none",
    "HGET none a",
    "HMGET h a none b",
    "HDEL h a none a",
    "HDEL none a",
    "HLEN h",
    "HINCRBY h n 5",
    "HINCRBY h n -7",
    "HINCRBY h n x",
    "HINCRBY h n 1.5",
    "HSET h w x max 9223372036854775807",
    "HINCRBY h w 1",
    "HINCRBY h max 1",
    "HDEL h a b n w max",
    "EXISTS h text none text",
    "TYPE text",
    "TYPE none",
    "GET text",
    "GET none",
    "GET z",
    "SET s v PX",
    "SET s v PX 0",
    "SET s v PX x",
    "SET s v PX -1",
    "SET s v PX 9223372036854775807",
    "SET s v EX 9223372036854775",
    "SET s v EX 100 PX 5",
    "SET s v NX XX",
    "SET s v nonsense",
    "SET s v XX",
    "SET s v NX px 60000",
    "SET s w NX",
    "SET s w XX",
    "PTTL s",
    "PTTL none",
    "PEXPIRE s 100000",
    "PTTL s",
    "PEXPIRE s",
    "PEXPIRE s x",
    "PEXPIRE s 5 sometimes",
    "PEXPIRE s 9223372036854775807",
    "PEXPIRE none 9223372036854775807",
    "PEXPIRE none 5",
    "PERSIST s",
    "PTTL s",
    "PERSIST s",
    "PERSIST none",
    "PERSIST",
    "PEXPIRE s 100000",
    "PEXPIRE s -9223372036854775808",
    "EXISTS s",
    "ZADD z 1 a 2 b 1.5 c 0.1 d 1e20 e -inf f +inf g 1e-5 h 3 a",
    "ZADD z NX 7 a 8 new",
    "ZADD z XX 7 a 8 newer",
    "ZADD z CH 9 a 8 newest",
    "ZADD z XX NX 1 a",
    "ZADD z 1",
    "ZADD z 1 a 2",
    "ZADD z NX",
    "ZADD z x a",
    "ZADD z 1 a x b",
    "ZADD z nan a",
    "ZADD z 1e999 a",
    "ZADD text 1 a",
    "ZADD text x a",
    "ZADD none XX 1 a",
    "ZADD z 5 tie2 5 tie1 5 tie",
    "ZCARD z",
    "ZCARD none",
    "ZCARD text",
    "ZRANK z a",
    "ZRANK z none",
    "ZRANK none a",
    "ZSCORE z a",
    "ZSCORE z none",
    "ZSCORE none a",
    "ZSCORE text a",
    "ZSCORE z",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZRANGE z 1 -3",
    "ZRANGE z -100 1",
    "ZRANGE z 3 2",
    "ZRANGE z a b",
    "ZPOPMIN z",
    "ZPOPMIN z 0",
    "ZPOPMIN z -1",
    "ZPOPMIN z x",
    "ZPOPMIN z 1 2",
    "ZREM z tie none tie",
    "ZREM none a",
    "ZPOPMIN z 100",
    "ZPOPMIN z",
    "EXISTS z",
    "DEL h h2",
    "DEL",
    "DBSIZE",
    "PUBLISH c",
    "PUBLISH c m",
    "FLUSHALL nonsense",
    "FLUSHALL ASYNC",
    "DBSIZE",
];

#[test]
fn small_scripts_reply_and_fail_alike() {
    let Some(mut pair) = Pair::of_the_same_words() else { return };
    let set_up = Script::new("none", "");
    for &source in SCRIPTS {
        let set = command(&["SET", "text", "v"]);
        let eval = Request::Script(vec!["k".to_owned()], vec!["a".to_owned(), "b".to_owned()]);
        pair.ask(&set_up, &[set]);
        let (embedded, real) = pair.ask(&Script::new("small", source), &[eval]).remove(0);
        assert_eq!(embedded, real, "embedded and real: {source}");
    }
}

#[test]
fn odd_commands_are_answered_alike() {
    let Some(mut pair) = Pair::of_the_same_words() else { return };
    let none = Script::new("none", "");
    pair.ask(&none, &[command(&["SET", "text", "v"])]);
    for &line in COMMANDS {
        let words: Vec<&str> = line.split(' ').collect();
        let (embedded, real) = pair.ask(&none, &[command(&words)]).remove(0);
        assert!(crate::pair::same(&embedded, &real), "{line}\nembedded {embedded:?}\nreal     {real:?}");
    }
    pair.compare_keys(&none);
}

#[test]
fn settings_change_what_is_answered_alike() {
    const ASKS: &str = "local function info(section, field) \
        return string.match(redis.call('INFO', section), '\\n' .. field .. ':([^\\r\\n]*)') end \
        return {redis.pcall('SET', 's', 'v').err or 1, redis.pcall('HSET', 'h', 'f', 'v').err or 1, \
        redis.pcall('DEL', 'h').err or 1, redis.pcall('GET', 's').err or 1, redis.pcall('SET').err, \
        info('memory', 'maxmemory'), info('memory', 'maxmemory_policy'), info('replication', 'role')}";
    let Some(mut pair) = Pair::of_the_same_words() else { return };
    let asks = Script::new("asks", ASKS);
    pair.ask(&asks, &[command(&["SET", "s", "v"])]);
    for &line in SETTINGS {
        let words: Vec<&str> = line.split(' ').collect();
        let commands =
            [&words[..], &["SET", "s", "v"], &["SET", "s"], &["HSET", "h", "f", "v"], &["GET", "s"]];
        let mut requests: Vec<Request> = commands.map(command).into();
        requests.push(Request::Script(Vec::new(), Vec::new()));
        for (i, (embedded, real)) in pair.ask(&asks, &requests).into_iter().enumerate() {
            assert_eq!(embedded, real, "embedded and real: {line}, {:?}", requests[i]);
        }
    }
}
