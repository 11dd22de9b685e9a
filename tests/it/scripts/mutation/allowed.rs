//! Changes that nobody can notice, and why.

use super::Mutant;

/// A change of a line that makes no difference.
struct Allowed {
    file: &'static str,
    line: &'static str,
    change: &'static str,
    why: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        file: "all/acquire",
        line: "return ',' .. grant.version .. ','",
        change: "',' -> ',~'",
        why: "what stands behind the version does not matter",
    },
    Allowed {
        file: "all/acquire",
        line: "return ','",
        change: "',' -> ',~'",
        why: "neither is nothing, and no version",
    },
    Allowed {
        file: "all/acquire",
        line: "if type(reply) == 'table' and reply[6] then reply[6] = version_of(reply[6], reply[2]) end",
        change: "6 -> 7",
        why: "the two come together",
    },
    Allowed {
        file: "all/acquire",
        line: "places = places + (tonumber(call('ZREM', names[i].queue, ticket)) or 1)",
        change: "1 -> 2",
        why: "both are more than none",
    },
    Allowed {
        file: "all/run",
        line: "replies[#replies + 1] = verb[1](names, unpack(ARGV, a + 2, a + 1 + verb[2]))",
        change: "1 -> 2",
        why: "a verb takes no notice of one argument more",
    },
    Allowed {
        file: "all/transfer",
        line: "for i = 1, #names do",
        change: "1 -> 2",
        why: "the first is looked at again before any is taken",
    },
    Allowed {
        file: "all/write",
        line: "local FOUND, KEY, RECORD, FENCE, ARGUMENTS = 1, 2, 3, 8, 11",
        change: "11 -> 12",
        why: "an argument that is not there is none",
    },
    Allowed {
        file: "all/write",
        line: "if fence and tonumber(fence) > (tonumber(highest) or 0) then highest = fence end",
        change: "0 -> 1",
        why: "every token is above both",
    },
    Allowed {
        file: "all/write",
        line: "if fence and tonumber(fence) > (tonumber(highest) or 0) then highest = fence end",
        change: "> -> >=",
        why: "where they are equal, both are the highest",
    },
    Allowed {
        file: "all/write",
        line: "one.text = highest and call('GET', one[RECORD])",
        change: "highest and call('GET', one[RECORD]) -> call('GET', one[RECORD])",
        why: "for speed: without a token no record is written",
    },
    Allowed {
        file: "all/write",
        line: "take_back(i - 1)",
        change: "i - 1 -> i",
        why: "what could not be written is as it was",
    },
    Allowed {
        file: "common/fence",
        line: "if not last or not grant or grant.owner ~= owner then return 'mine' end",
        change: "not last or not grant -> not grant",
        why: "without a token it is an error, which has no owner",
    },
    Allowed {
        file: "kinds/mutex",
        line: "return call('GET', key) and 1 or 0",
        change: "1 -> 2",
        why: "either is more than nothing",
    },
    Allowed {
        file: "common/head",
        line: "if now then return now end",
        change: "now -> false",
        why: "for speed: it is the same time",
    },
    Allowed {
        file: "kinds/semaphore",
        line: "if last[1] then",
        change: "1 -> 2",
        why: "there are both, or none",
    },
    Allowed {
        file: "kinds/semaphore",
        line: "local first = call('ZRANGE', name, 0, 0, 'WITHSCORES')",
        change: "0 -> 1",
        why: "for speed: the next one is not looked at",
    },
    Allowed {
        file: "kinds/semaphore",
        line: "if left < tonumber(kept) then done = call('PEXPIRE', name, format('%.0f', kept)) end",
        change: "< -> <=",
        why: "for speed: the key is given the TTL that it has",
    },
    Allowed {
        file: "kinds/semaphore",
        line: "if reply[1] ~= 'held' then return reply end",
        change: "reply[1] ~= 'held' -> false",
        why: "for speed: a reply of two words ends before its fifth, for Redis",
    },
    Allowed {
        file: "kinds/semaphore",
        line: "reply[5], reply[6], reply[7] = -1, reply[6] or '', reply[7] or 0",
        change: "0 -> 1",
        why: "no version is watched for any time",
    },
    Allowed {
        file: "kinds/semaphore",
        line: "reply[5], reply[6], reply[7] = -1, reply[6] or '', reply[7] or 0",
        change: "1 -> 2",
        why: "neither is a place",
    },
    Allowed {
        file: "kinds/redisson",
        line: "found = found or size(key)",
        change: "found or size(key) -> size(key)",
        why: "for speed: it is the same number",
    },
    Allowed {
        file: "kinds/fair",
        line: "local first = call('ZRANGE', queue, 0, 0, 'WITHSCORES')",
        change: "0 -> 1",
        why: "what stands behind the first does not matter",
    },
    Allowed {
        file: "kinds/reentrant",
        line: "local RECORD_TELLS = false",
        change: "local RECORD_TELLS = false -> local RECORD_TELLS",
        why: "neither is true",
    },
    Allowed {
        file: "common/head",
        line: "if now or no_vote or not guarded then return no_vote end",
        change: "now or no_vote -> no_vote",
        why: "for speed: what is looked at once more is the same",
    },
    Allowed {
        file: "common/head",
        line: "if now or no_vote or not guarded then return no_vote end",
        change: "now or no_vote -> now",
        why: "for speed: what is looked at once more is the same",
    },
    Allowed {
        file: "common/head",
        line: "if now or no_vote or not guarded then return no_vote end",
        change: "now or no_vote or not guarded -> not guarded",
        why: "for speed: what is looked at once more is the same",
    },
    Allowed {
        file: "verbs/inspect",
        line: "if reply then return to_watch(reply, record, ',') end",
        change: "',' -> ',~'",
        why: "neither is nothing, and no version is looked for",
    },
    Allowed {
        file: "common/lock",
        line: "if fence and fence < (tonumber(token) or 0) and #token > 1 then return note_release(record, token) end",
        change: "1 -> 2",
        why: "a token has sixteen digits",
    },
    Allowed {
        file: "fenced/set",
        line: "local key, fence, value, ttl = KEYS[1], ARGV[1] or '', ARGV[2], ARGV[3] or ''",
        change: "'' -> '~'",
        why: "neither is a fence",
    },
    Allowed {
        file: "fenced/set",
        line: "return string.find(text, '^[1-9]%d*$') and tonumber(text) < 9007199254740992",
        change: "9007199254740992 -> 9007199254740993",
        why: "Lua has one number for both",
    },
    Allowed {
        file: "master/hello",
        line: "return refuse('CLOCK its clock is %.3f s %s the others', math.abs(ahead) / 1000000, ahead > 0 and 'ahead of' or 'behind')",
        change: "0 -> 1",
        why: "it is far more, or far less",
    },
    Allowed {
        file: "master/hello",
        line: "return refuse('CLOCK its clock is %.3f s %s the others', math.abs(ahead) / 1000000, ahead > 0 and 'ahead of' or 'behind')",
        change: "> -> >=",
        why: "it is far more, or far less",
    },
    Allowed {
        file: "master/hello",
        line: "return string.match(redis.call('INFO', section), '\\n' .. field .. ':([^\\r\\n]*)')",
        change: "'\\n' .. field -> field",
        why: "no field of INFO has a name that ends with one of these, yet",
    },
    Allowed {
        file: "master/hello",
        line: "local its_run, until_us, its_terms = string.match(marker or '', '^([^|]*)|(%d+)|(.*)$')",
        change: "'' -> '~'",
        why: "neither is a marker",
    },
    Allowed {
        file: "verbs/acquire",
        line: "if there > 0 then found, reply, had = look(key, record, owner, round, there) end",
        change: "> -> >=",
        why: "for speed: to look at a free lock finds it absent, too",
    },
    Allowed {
        file: "verbs/acquire",
        line: "if there > 0 then found, reply, had = look(key, record, owner, round, there) end",
        change: "there > 0 -> true",
        why: "for speed: to look at a free lock finds it absent, too",
    },
    Allowed {
        file: "verbs/acquire",
        line: "if had then last = max(last, tonumber(had) or 0) end",
        change: "0 -> 1",
        why: "every token is above both",
    },
    Allowed {
        file: "verbs/acquire",
        line: "if had then last = max(last, tonumber(had) or 0) end",
        change: "had -> true",
        why: "for speed: none is less than any",
    },
    Allowed {
        file: "verbs/extend",
        line: "if now and (tonumber(fence) or 0) > tonumber(token) then return {'stale', fence} end",
        change: "0 -> 1",
        why: "every token is above both",
    },
    Allowed {
        file: "common/lock",
        line: "if count == '0' and guarded and fence then",
        change: "count == '0' and guarded and fence -> count == '0' and guarded",
        why: "what has no token has no record from before; SET takes nothing but text, and its error is passed over",
    },
    Allowed {
        file: "common/lock",
        line: "if fence and grant and grant.owner == owner and tonumber(grant.round) <= tonumber(round) then",
        change: "fence and grant -> grant",
        why: "without a token it is an error, which has no owner",
    },
    Allowed {
        file: "common/queue",
        line: "if failed(first) or #first == 0 then return end",
        change: "failed(first) or #first == 0 -> #first == 0",
        why: "an error is an empty list, too",
    },
    Allowed {
        file: "common/replies",
        line: "if seen == '' or not now or reply[1] ~= 'held' then return reply end",
        change: "seen == '' or not now or reply[1] ~= 'held' -> seen == '' or not now",
        why: "for speed: a reply of two words ends before its fifth, for Redis",
    },
    Allowed {
        file: "kinds/reentrant",
        line: "found = found or size(key)",
        change: "found or size(key) -> size(key)",
        why: "for speed: it is the same number",
    },
    Allowed {
        file: "common/lock",
        line: "local beyond = (left or -1) - ttl -- how much longer it lives already",
        change: "1 -> 2",
        why: "what lives for no time lives for less than any TTL",
    },
    Allowed {
        file: "common/lock",
        line: "if not failed(done) and (beyond < 0 or found ~= 'mine') then",
        change: "not failed(done) and (beyond < 0 or found ~= 'mine') -> not failed(done)",
        why: "for speed: the key is given the TTL that it has",
    },
    Allowed {
        file: "common/lock",
        line: "if not failed(done) and (beyond < 0 or found ~= 'mine') then",
        change: "'mine' -> 'mine~'",
        why: "for speed: the key is given the TTL that it has",
    },
    Allowed {
        file: "common/lock",
        line: "if not failed(done) and (beyond < 0 or found ~= 'mine') then",
        change: "< -> <=",
        why: "for speed: the key is given the TTL that it has",
    },
    Allowed {
        file: "common/lock",
        line: "if not failed(done) and (beyond < 0 or found ~= 'mine') then",
        change: "0 -> 1",
        why: "for speed: the key is given the TTL that it has",
    },
    Allowed {
        file: "common/lock",
        line: "done = call('PEXPIRE', key, beyond > 0 and left or ttl)",
        change: "> -> >=",
        why: "where they are equal, both are the TTL",
    },
    Allowed {
        file: "common/lock",
        line: "local err, kept = failed(done), beyond > 0 and watch + beyond or watch",
        change: "> -> >=",
        why: "for speed: nothing is added",
    },
    Allowed {
        file: "verbs/queue",
        line: "if before ~= '' then step_out(queue, before) end",
        change: "'' -> '~'",
        why: "for speed: nobody's ticket is empty",
    },
    Allowed {
        file: "verbs/queue",
        line: "if before ~= '' then step_out(queue, before) end",
        change: "before ~= '' -> true",
        why: "for speed: nobody's ticket is empty",
    },
    Allowed {
        file: "verbs/transfer",
        line: "fence, reply = next_fence(max(last, tonumber(fence) or 0), proposal)",
        change: "0 -> 1",
        why: "a token is far above both: the time is",
    },
    Allowed {
        file: "verbs/transfer",
        line: "local err = write(found, key, record, to, count, ttl, round, now and fence or nil, watch, left)",
        change: "now and fence or nil -> now and fence",
        why: "nil and false are both no token",
    },
    Allowed {
        file: "rw/queue",
        line: "local is_read = false",
        change: "local is_read = false -> local is_read",
        why: "neither is true",
    },
    Allowed {
        file: "rw/queue",
        line: "local first = call('ZRANGE', queue, 0, 0)",
        change: "0 -> 1",
        why: "for speed: the next one is not looked at",
    },
    Allowed {
        file: "rw/queue",
        line: "if failed(first) or #first == 0 then return end",
        change: "failed(first) or #first == 0 -> #first == 0",
        why: "an error is an empty list, too",
    },
    Allowed {
        file: "rw/queue",
        line: "if #waiting == 0 then return nil end -- or it cannot be read",
        change: "0 -> 1",
        why: "a ticket has a moment",
    },
    Allowed {
        file: "rw/queue",
        line: "if #waiting == 0 then return nil end -- or it cannot be read",
        change: "#waiting == 0 -> false",
        why: "for speed: who holds the lock is not looked at",
    },
    Allowed {
        file: "rw/write",
        line: "local RECORD_TELLS = false",
        change: "local RECORD_TELLS = false -> local RECORD_TELLS",
        why: "neither is true",
    },
    Allowed {
        file: "rw/write",
        line: "if #gone > 0 then call('HDEL', key, unpack(gone)) end",
        change: "#gone > 0 -> true",
        why: "for speed: a command without its words does nothing",
    },
    Allowed {
        file: "rw/write",
        line: "if #gone > 0 then call('HDEL', key, unpack(gone)) end",
        change: "> -> >=",
        why: "for speed: a command without its words does nothing",
    },
    Allowed {
        file: "rw/write",
        line: "token = token and #token > 1 and tonumber(token) or 0",
        change: "1 -> 2",
        why: "a token has sixteen digits",
    },
    Allowed {
        file: "rw/write",
        line: "if not one.reads or (of.reads and one.till > of.till) then of = one end",
        change: "> -> >=",
        why: "of equals either will do",
    },
    Allowed {
        file: "rw/write",
        line: "elseif is_reader(owner) and one.reads and (not kept or one.till > kept.till) then",
        change: "> -> >=",
        why: "of equals either will do",
    },
    Allowed {
        file: "rw/write",
        line: "stay[#stay + 1] = kept",
        change: "1 -> 2",
        why: "the next one is put in between",
    },
    Allowed {
        file: "rw/write",
        line: "local ends = time + max(ttl, left or 0) * 1000",
        change: "0 -> 1",
        why: "no TTL is so short",
    },
    Allowed {
        file: "verbs/inspect",
        line: "return grant and unreleased(grant, '', now, '') or ABSENT",
        change: "'' -> '~'",
        why: "neither is a reader",
    },
    Allowed {
        file: "rw/queue",
        line: "if not queue or not is_reader(owner) then return nil end",
        change: "not queue or not is_reader(owner) -> not is_reader(owner)",
        why: "for speed: a queue that is none cannot be read",
    },
    Allowed {
        file: "rw/write",
        line: "undo_grant(record, wrote > 0 and format('%.0f', wrote) or '') -- others left since",
        change: "0 -> 1",
        why: "no token is so low",
    },
    Allowed {
        file: "rw/write",
        line: "if wrote >= token then return end",
        change: ">= -> >",
        why: "it says the same again",
    },
];

/// Panics where a mutant survived that is not in the list, or one of the list did not.
pub(super) fn check(survivors: &[Mutant]) {
    let is_of = |mutant: &Mutant, allowed: &Allowed| {
        (mutant.file.name, mutant.edit.line(&mutant.file.text).1, &*mutant.change())
            == (allowed.file, allowed.line, allowed.change)
    };
    let unknown = survivors.iter().filter(|mutant| !ALLOWED.iter().any(|allowed| is_of(mutant, allowed)));
    let mut unknown: Vec<String> = unknown
        .map(|mutant| {
            let (number, line) = mutant.edit.line(&mutant.file.text);
            format!("{}.lua:{number}: {line}\n    {}", mutant.file.name, mutant.change())
        })
        .collect();
    unknown.sort();
    let gone = ALLOWED.iter().filter(|allowed| !survivors.iter().any(|mutant| is_of(mutant, allowed)));
    let gone: Vec<String> = gone
        .map(|Allowed { file, line, change, why }| format!("{file}.lua: {line}\n    {change}: {why}"))
        .collect();
    assert!(unknown.is_empty(), "{} survivors:\n{}", unknown.len(), unknown.join("\n"));
    assert!(gone.is_empty(), "in the list, but noticed, or not made any more:\n{}", gone.join("\n"));
}
