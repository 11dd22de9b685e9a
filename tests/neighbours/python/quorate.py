#!/usr/bin/env python3
"""A client of the distributed lock of docs/PROTOCOL.md (version 2), with Python's standard library alone.

It has the reentrant lock (slot `lock`), one name at a time, with a new owner for each acquire: it polls, and takes no
place in a queue. It never writes a master's record (section 3): others begin the set, and take masters back that forgot.
Nor does it follow a change of the set: it needs the new list then.
An event loop in a thread of its own talks to the masters, so their state needs no locks. Moments and times are in us
inside, and in seconds outside. "Section" is one of docs/PROTOCOL.md.
"""
import argparse, asyncio, collections, hashlib, itertools, math, os, pathlib, random, secrets, signal, statistics, subprocess
import sys, threading, time, urllib.parse, uuid

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / 'docs' / 'protocol'
HELLO, HOT, LOCK = ((SCRIPTS / name).read_bytes() for name in ('hello.lua', 'hot.lua', 'exclusive.lua'))
NOT_HANDLED = -1  # section 7
BAND, UNSEEN, VAGUE, TOGETHER = 250_000, 500_000, 1_000_000, 2_000_000  # section 1
RECONNECT = 50_000  # a master that could not be reached is not tried again for so long (not in the specification)
NOTHING_RAN = ('NOSCRIPT', 'LOADING', 'BUSY', 'MASTERDOWN', 'NOAUTH', 'WRONGPASS')  # section 8
NOTHING_WRITTEN = ('FORGOT', 'CLOCK', 'NOTIME', 'QUARANTINE', 'KIND')  # section 8: the first five rows
TELL = ('KIND', 'WRONGTYPE', 'NOPERM', 'ERR ACL failure in script', 'ERR The user executing the script', 'REPLICA', 'EVICTS',
        'NOSET', 'OTHERSET', 'OTHERTERMS')  # waiting does not help
FIELDS = {'set', 'member', 'members', 'incarnation', 'run_id', 'replid2', 'stamp', 'quarantine', 'generation', 'protocol',
          'max_ttl', 'state'}  # section 3: those of a record that this client reads
CHANGED = 'its set has changed, and nobody told it yet'


class NotAcquired(Exception):
    """No quorum granted the lock in time."""


class Lost(Exception):
    """The lease has ended, or somebody else has the lock."""


class Failure(str):
    """An error that Redis answered."""


def clock():
    """The clock of `sent` (section 1): it never steps, and counts while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, 'CLOCK_BOOTTIME', time.CLOCK_MONOTONIC)) // 1000


def encode(words):
    words = [w if isinstance(w, bytes) else str(w).encode('utf-8', 'surrogateescape') for w in words]
    return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)


async def read_reply(reader):
    line = (await reader.readuntil(b'\r\n'))[:-2].decode('utf-8', 'surrogateescape')
    kind, rest = line[0], line[1:]
    if kind == ':':
        return int(rest)
    if kind in '+-':
        return rest if kind == '+' else Failure(rest)
    if int(rest) < 0:
        return None
    if kind == '$':
        return (await reader.readexactly(int(rest) + 2))[:-2].decode('utf-8', 'surrogateescape')
    return [await read_reply(reader) for _ in range(int(rest))]


async def command(stream, *words):
    stream[1].write(encode(words))
    return await read_reply(stream[0])


def pack(operations, keys_of, record_key, stamp, votes_from, kept_free):
    """The words of a call behind its script (section 6). An operation is (verb, names, arguments)."""
    keys, words = [], [record_key, stamp, votes_from, kept_free]
    for verb, names, arguments in operations:
        keys += [key for name in names for key in keys_of(name)]
        words += [verb, len(names), len(arguments), *arguments]
    return [len(keys), *keys, *words]


def pack_hot(operations, keys_of, *header):
    """The same for hot.lua (section 7). An operation is (verb, name, *arguments)."""
    keys = [keys_of(name)[0] for _, name, *_ in operations]
    return [len(keys), *keys, *header, *(word for verb, _, *arguments in operations for word in (verb, *arguments))]


def in_few_words(operation):
    """The operation for hot.lua, or None."""
    verb, [name, *_], arguments = operation
    if verb == 'acquire' and len(arguments) == 6:
        return verb, name, *arguments
    if verb == 'release':
        slot, owner, holds, number, token, first, _, place, breaks = arguments
        if token and not (holds or first or place or breaks):
            return verb, name, slot, owner, number, token
    return None


async def evaluate(stream, script, words):
    """Section 6: NOSCRIPT means that nothing ran. EVAL loads the script, too."""
    reply = await command(stream, 'EVALSHA', hashlib.sha1(script).hexdigest(), *words)
    if isinstance(reply, Failure) and reply.startswith('NOSCRIPT'):
        reply = await command(stream, 'EVAL', script, *words)
    return reply


def apart(one, other):
    """Section 1: whether two estimates (low, high) are more than BAND away from each other."""
    return one[0] > other[1] + BAND or one[1] < other[0] - BAND


class Master:
    """A master, with one connection. Its calls go out one by one, in the order in which they were begun."""

    def __init__(self, client, url):
        self.client, self.url = client, urllib.parse.urlsplit(url)
        self.lock, self.stream, self.clock = asyncio.Lock(), None, None
        self.run_id, self.connection, self.broken = None, None, None
        self.stamp, self.votes_from, self.down_until = None, '0', 0
        self.record = None  # the one that was seen last
        self.last, self.before, self.latest = None, [], 0  # the incarnations that voted, and the latest quarantine's end

    def drop(self):
        if self.connection:  # what was sent on it may still arrive: it is closed on the server first (section 2)
            self.broken = (self.run_id, self.connection)
        if self.stream:
            self.stream[1].transport.abort()
        self.stream = self.connection = self.stamp = None

    def estimate(self, now):
        """By how much its clock is ahead of ours: (low, high), wider with its age (section 1)."""
        low, high, at = self.clock
        return low - (now - at) // 100, high + (now - at) // 100

    async def connect(self):
        """Why it cannot be used, or None."""
        if self.stream and self.stream[0].at_eof():
            self.drop()
        if self.stamp:
            return None
        if clock() < self.down_until:
            return self.down_why
        try:
            why = await asyncio.wait_for(self.handshake(), self.client.timeout / 1e6)
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            why = f'out of reach: {error!r}'
        if why:
            self.drop()
            self.down_until, self.down_why = clock() + RECONNECT, why
        return why

    async def handshake(self):
        """Section 3: on each new connection, and where the master has another record."""
        client, url = self.client, self.url
        if not self.stream:
            self.stream = await asyncio.open_connection(url.hostname, url.port or 6379)
            login = [urllib.parse.unquote(w) for w in (url.username, url.password) if w]
            database = url.path.strip('/')
            for words in [['AUTH', *login]] * bool(login) + [['SELECT', database]] * bool(database):
                reply = await command(self.stream, *words)
                if isinstance(reply, Failure):
                    return str(reply)
        while True:
            asked, known = clock(), client.time(clock())
            reply = await evaluate(
                self.stream, HELLO,
                [0, client.prefix + 'master', known and known[0] + known[1] // 2 or time.time_ns() // 1000,
                 client.prefix + 'decree'])
            if isinstance(reply, Failure):
                return str(reply)
            client.note(self, int(reply[2] if reply[0] == 'refused' else reply[1]), asked, clock())
            is_exact = known and known[1] < VAGUE
            if is_exact or reply[0] != 'refused' or not reply[1].startswith('CLOCK'):
                break
            while not client.time(clock()):  # for as long as a connection may take
                await asyncio.sleep(0.002)
        if reply[0] == 'refused':
            return reply[1]
        run_id, replid2, decree, record = reply[2], reply[3], reply[4], dict(zip(reply[5::2], reply[6::2]))
        if any(other.run_id == run_id for other in client.masters if other is not self):
            return 'it is the same server as another master of the list'
        self.run_id = run_id
        why = self.without_vote(run_id, replid2, decree, record)
        if why:
            return why
        connection = await command(self.stream, 'CLIENT', 'ID')
        if self.broken and self.broken[0] == run_id and self.broken[1] != connection:  # section 2: undo and release
            await command(self.stream, 'CLIENT', 'KILL', 'ID', self.broken[1])
        self.connection, self.broken = connection if isinstance(connection, int) else None, None
        self.stamp, self.votes_from = record['stamp'], record['quarantine']
        return None

    def without_vote(self, run_id, replid2, decree, record):
        """Section 3, for a client that writes no record: why this master has no vote, or None."""
        if record and not FIELDS <= record.keys():
            return 'what it has is no record that this client knows'
        client, self.record = self.client, record
        others = [other.record for other in client.masters if other is not self and other.record]
        if not record:
            if others:
                return 'it lost its record'
            heard = all(other.record is not None for other in client.masters if other is not self)
            return 'NOSET it has no record of a set' if heard else 'it has no record, and another one was not heard yet'
        if (record['protocol'], record['max_ttl']) != client.terms:
            return f'OTHERTERMS {record["protocol"]}, a max TTL of {record["max_ttl"]} ms'
        mine = [other for other in others if other['set'] == record['set']]
        strangers = [other for other in others if other['set'] != record['set'] and other['state'] == 'member']
        is_twice = any(other['member'] == record['member'] for other in mine)
        members = [line.split(' ', 1)[1] for line in record['members'].split('\n')]
        names = [f'redis://{m.url.hostname}:{m.url.port or 6379}' for m in client.masters]
        is_other = len(members) != len(names) or record['generation'] != '0' and sorted(members) != sorted(names)
        if is_other:
            self.record = None  # a client with this list does not go by it
        if strangers or is_twice or is_other:
            return 'OTHERSET its set is ' + record['members'].replace('\n', ', ')
        if any(int(other['generation']) > int(record['generation']) for other in mine):
            return CHANGED
        for other in client.masters:  # votes are of one generation
            if other.record in mine and other.record['generation'] != record['generation']:
                other.stamp = None
        has_copied = replid2 != record['replid2'] and replid2.strip('0')
        went_back = record['incarnation'] in self.before or int(record['quarantine']) < self.latest
        if run_id != record['run_id'] or has_copied or decree != record['incarnation'] or went_back:
            return 'it may have forgotten grants, and nobody wrote its record anew yet'
        if record['state'] != 'member':
            return 'it is no member yet'
        if self.last not in (None, record['incarnation']):
            self.before = self.before[-15:] + [self.last]
        self.last, self.latest = record['incarnation'], int(record['quarantine'])
        return None

    async def ready(self):
        async with self.lock:
            return ['unsent', await self.connect()]

    async def call(self, operation, deadline, wanted=lambda: True):
        """The reply of section 7, or [unsent, WHY], [unknown, WHY], or [off, REPLY] of a clock that is off."""
        hot = in_few_words(operation)
        async with self.lock:
            reply = await self.send(HOT, pack_hot, hot, deadline, wanted) if hot else NOT_HANDLED
            if reply != NOT_HANDLED:
                return reply
            reply = await self.send(LOCK, pack, operation, deadline, wanted)
            may_be_half_done = hot and isinstance(reply, list) and reply[0] == 'unsent'
            return ['unknown', reply[1]] if may_be_half_done else reply

    async def send(self, script, packs, operation, deadline, wanted):
        why = await self.connect()
        if why or not wanted() or clock() >= deadline:  # section 2: what was given up is not sent any more
            return ['unsent', why or 'it was too late']
        client, asked = self.client, clock()
        timer = client.loop.call_later((deadline - asked) / 1e6, self.drop)
        header = client.prefix + 'master', self.stamp, self.votes_from, client.kept_free
        try:
            reply = await evaluate(self.stream, script, packs([operation], client.keys_of, *header))
        except (OSError, EOFError) as error:
            self.drop()
            return ['unknown', f'no answer: {error!r}']  # section 8: no vote, and has to be undone
        finally:
            timer.cancel()
        if isinstance(reply, Failure):
            return ['unsent' if reply.startswith(NOTHING_RAN) else 'refused', str(reply)]
        at, reply = reply
        off = bool(at) and client.note(self, at, asked, clock())
        if at is None or (isinstance(reply, list) and reply[1:] and str(reply[1]).startswith('READONLY')):
            self.stamp = None  # FORGOT: the handshake again before the next call (section 3)
        return ['off', reply] if off and isinstance(reply, int) and reply > 0 else reply


def granted(answers):
    return {master: reply for master, reply in answers.items() if isinstance(reply, int) and reply > 0}


def gone(answers):
    """How many masters say that there is no such lease: `held` or 0."""
    return sum(reply == 0 or (isinstance(reply, list) and reply[0] == 'held') for reply in answers.values())


def in_one_generation(answers):
    """Section 3: a round counts under one generation of the set."""
    generation = lambda master: int(master.record['generation'])
    newest = max(map(generation, granted(answers)), default=0)
    earlier = [master for master in granted(answers) if generation(master) < newest]
    return {**answers, **{master: ['refused', CHANGED] for master in earlier}}


def is_off(reply):
    return isinstance(reply, list) and reply[0] == 'off'


class Lease:
    def __init__(self, client, name, ttl):
        self.client, self.name, self.ttl = client, name, ttl
        self.owner, self.first = f'{client.id}:{secrets.randbelow(2**64 - 1) + 1}', next(client.rounds)  # section 2
        self.token, self.end, self.given_up = None, 0, False
        given = min(UNSEEN, ttl // 10)  # section 1: DRIFT, GIVEN, kept
        self.valid, self.keeps = ttl - (ttl // 100 + 2000) - given, ttl + UNSEEN - given
        self.time_out = min(client.timeout, ttl // 4)
        self.over = 0  # when its entries are over on any master, by our clock

    def sending(self):
        """Section 1: `sent` first, then T."""
        sent = clock()
        now, width = self.client.time(clock()) or (1, 0)
        self.kept = -(-(self.keeps + width) // 1000)
        self.over = sent + self.kept * 1010 + 3_000_000  # T may be 2 s old, and a clock 1 s off
        return sent, now

    @property
    def valid_until(self):
        return time.monotonic() + (self.end - clock()) / 1e6

    def extend(self):
        """True if the lease is longer now; False if it still ends when it did. Raises Lost."""
        return self.client.run(self.client.extend(self))

    def release(self):
        """Raises Lost if the lock was lost before."""
        self.client.run(self.client.release(self))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.release()
        except Lost:
            if not kind:
                raise


class Client:
    def __init__(self, urls, prefix='quorate:', max_ttl=30.0, timeout=0.25):
        if not 1 <= len(urls) <= 15 or len(prefix.encode()) > 256 or set(prefix) & set('{}'):
            raise ValueError('1 to 15 masters; a prefix of 256 bytes at most, without braces')
        self.id, self.rounds = str(uuid.uuid4()), itertools.count(1)
        self.prefix, self.timeout, self.max_ttl = prefix, int(timeout * 1e6), int(max_ttl * 1e6)
        self.quorum, self.proposed = len(urls) // 2 + 1, 0
        self.terms = 'v2', str(self.max_ttl // 1000)  # section 3
        self.quarantine = self.max_ttl * 101 // 100 + 4_000_000  # Q of section 3
        self.kept_free = -(-(self.quarantine + 60_000_000) // 1000)  # R of section 9, H8
        self.loop, self.cleaning = asyncio.new_event_loop(), set()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.masters = [Master(self, url) for url in urls]

    def keys_of(self, name):
        return f'{self.prefix}{{{name}}}', f'{self.prefix}waiting:{{{name}}}'  # section 4

    # The trusted time: section 1.

    def estimates(self, now):
        """Those that count together; None for the other masters."""
        made = sorted((master.clock[2] for master in self.masters if master.clock), reverse=True)
        last = made[self.quorum - 1] if len(made) >= self.quorum else math.inf
        counts = lambda master: master.clock and abs(master.clock[2] - last) <= TOGETHER
        return [master.estimate(now) if counts(master) else None for master in self.masters]

    def median(self, now):
        seen = [one for one in self.estimates(now) if one]
        if not seen:
            return None
        median = [int(statistics.median(side)) for side in zip(*seen)]
        agree = [one for one in seen if not apart(one, median)]
        return median if 2 * len(agree) > len(self.masters) else None

    def time(self, now):
        """T and the width of its interval, or None as long as it is not known."""
        if not self.median(now):
            return None
        ends = [one or (-math.inf, math.inf) for one in self.estimates(now)]
        low, high = (int(statistics.median(side)) for side in zip(*ends))
        return now + low, high - low

    async def ask_for_time(self, name):
        """Section 1: three times at most, where it is known to within a second or more."""
        is_vague = lambda: (self.time(clock()) or (1, 0))[1] >= VAGUE
        for _ in range(3):
            if not is_vague():
                return
            deadline = clock() + self.timeout
            calls = {master: master.call(('inspect', [name], ['lock']), deadline) for master in self.masters}
            tasks = {master: self.loop.create_task(call) for master, call in calls.items()}
            await self.hear(tasks, deadline, lambda _: not is_vague())

    def note(self, master, at, asked, heard):
        """Learns a master's time; whether its clock is off."""
        new = at - heard, at - asked
        old = master.clock and master.estimate(heard)
        overlap = old and new[0] <= old[1] and old[0] <= new[1]
        low, high = (max(new[0], old[0]), min(new[1], old[1])) if overlap else new
        master.clock = low, high, heard
        median = self.median(heard)
        return bool((old and apart(new, old)) or (median and apart(new, median)))

    # A round: section 1. Every operation goes to all masters at the same time.

    def ask(self, lease, verb, arguments, deadline):
        wanted = lambda: not lease.given_up and (not lease.token or clock() < lease.end)
        operation = verb, [lease.name], ['lock', lease.owner, *arguments]
        return {master: self.loop.create_task(master.call(operation, deadline, wanted)) for master in self.masters}

    async def hear(self, tasks, deadline, is_decided):
        while True:
            answers = {master: task.result() for master, task in tasks.items() if task.done()}
            left = deadline - clock()
            if len(answers) == len(tasks) or left <= 0 or is_decided(answers):
                return answers
            waiting = [task for task in tasks.values() if not task.done()]
            await asyncio.wait(waiting, timeout=left / 1e6, return_when=asyncio.FIRST_COMPLETED)

    def is_decided(self, answers):
        """Section 2: a quorum granted, or can no longer."""
        yes = len(granted(answers))
        return yes >= self.quorum or yes + len(self.masters) - len(answers) < self.quorum

    def agreed(self, answers):
        """Section 2, Tokens: the one that a quorum of N gave, or None."""
        for token, count in collections.Counter(granted(answers).values()).most_common(1):
            return token if count >= self.quorum else None

    def believes(self, answers):
        """Section 1: the clocks of all that granted are checked once more. Whether a quorum is left."""
        now = clock()
        median = self.median(now)
        return bool(median) and sum(not apart(master.estimate(now), median) for master in granted(answers)) >= self.quorum

    async def attempt(self, name, ttl):
        """Section 2, Acquire. Returns a lease, or the masters' answers."""
        if not self.time(clock()):
            tasks = {master: self.loop.create_task(master.ready()) for master in self.masters}
            answers = await self.hear(tasks, clock() + self.timeout, lambda _: self.time(clock()))
            if not self.time(clock()):
                return answers
        await self.ask_for_time(name)
        lease = Lease(self, name, ttl)
        sent, now = lease.sending()
        self.proposed = min(max(now, self.proposed + 1), now + 100_000)
        tasks = self.ask(lease, 'acquire', [lease.first, self.proposed, lease.kept, ''], sent + lease.time_out)
        try:
            answers = votes = in_one_generation(await self.hear(tasks, sent + lease.time_out, self.is_decided))
            if len(granted(answers)) >= self.quorum:
                token = self.agreed(answers)
                if not token:  # wait twice as long as the slowest took; look again
                    until = min(clock() + 2 * (clock() - sent), sent + lease.time_out)
                    answers = in_one_generation(await self.hear(tasks, until, self.agreed))
                    token = self.agreed(answers)
                if token:
                    votes = {master: reply for master, reply in answers.items() if reply == token}
                else:  # confirm the highest
                    token, (confirmed, now) = max(granted(answers).values()), lease.sending()
                    arguments = [1, next(self.rounds), now, lease.kept, '', token, '', lease.first]
                    votes = self.ask(lease, 'extend', arguments, confirmed + lease.time_out)
                    votes = await self.hear(votes, confirmed + lease.time_out, self.is_decided)
                    undone = [master for master, task in tasks.items() if task.done() and is_off(task.result())]
                    votes = {master: reply for master, reply in votes.items() if master not in undone}
                end = sent + lease.valid
                if len(granted(votes)) >= self.quorum and clock() < end and self.believes(votes):
                    lease.token, lease.end = token, end
                    return lease
        finally:
            lease.given_up, number = not lease.token, next(self.rounds)
            for master, task in tasks.items():
                self.clean(self.undo(lease, master, task, number))
        return {**answers, **votes}

    # Undo and release: section 2.

    async def undo(self, lease, master, task, number):
        """Takes an acquire back that came to nothing, or a grant that does not count: behind it, and before any extend."""
        reply = await task
        why, text = reply if isinstance(reply, list) and len(reply) == 2 else (None, '')
        if lease.token:  # this grant does not count: its clock is off, or its token is above the lease's
            is_needed = is_off(reply) or isinstance(reply, int) and reply > lease.token
        else:
            changed_nothing = why == 'unsent' or why == 'refused' and text.startswith(NOTHING_WRITTEN)
            is_needed = not changed_nothing and not gone({master: reply})
        if is_needed:
            await self.take_back(lease, master, number, ['', lease.first], is_once=why == 'refused')

    def clean(self, coroutine):
        task = self.loop.create_task(coroutine)
        self.cleaning.add(task)
        task.add_done_callback(self.cleaning.discard)
        return task

    async def take_back(self, lease, master, number, token_and_first, is_once=False):
        arguments = ['lock', lease.owner, 0, number, *token_and_first, f'{self.prefix}wake:', '', '']
        pause, errors_until = 0.02, clock() + 60_000_000
        while True:
            reply = await master.call(('release', [lease.name], arguments), clock() + self.timeout)
            if is_once or isinstance(reply, int) or reply[0] in ('held', 'stale') or reply[1].startswith('WRONGTYPE'):
                return reply
            if clock() > (min(lease.over, errors_until) if reply[0] == 'refused' else lease.over):
                return reply
            await asyncio.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, 1)

    def is_lost(self, answers):
        """Section 2: so many answered `held` or 0 that the rest are no quorum."""
        return gone(answers) > len(self.masters) - self.quorum

    def is_settled(self, answers):
        return len(granted(answers)) >= self.quorum or self.is_lost(answers)

    async def release(self, lease):
        if lease.given_up:
            return
        lease.given_up, number = True, next(self.rounds)
        tasks = {m: self.clean(self.take_back(lease, m, number, [lease.token, ''])) for m in self.masters}
        answers = await self.hear(tasks, clock() + self.timeout, self.is_settled)
        if self.is_lost(answers):
            raise Lost(f'{lease.name} was lost before it was released: {[*answers.values()]}')

    async def extend(self, lease):
        """Section 2, Extend. What has ended by our clock does not come back."""
        if lease.given_up or clock() >= lease.end:
            raise Lost(f'the lease of {lease.name} has ended')
        await self.ask_for_time(lease.name)
        sent, now = lease.sending()
        deadline = min(sent + lease.time_out, lease.end)
        tasks = self.ask(lease, 'extend', [1, next(self.rounds), now, lease.kept, '', lease.token, 1], deadline)
        answers = await self.hear(tasks, deadline, self.is_settled)
        if self.is_lost(answers) or clock() >= lease.end:
            lease.end = 0
            raise Lost(f'the lease of {lease.name} was lost')
        if len(granted(answers)) < self.quorum or not self.believes(answers):
            return False
        lease.end = sent + lease.valid
        return True

    async def wait_for(self, name, ttl, wait):
        """Section 2: polls, after 2 ms, then twice as long each time, up to 100 ms, drawn between half and all."""
        until, pause = clock() + wait, 2000
        while True:
            answers = await self.attempt(name, ttl)
            if isinstance(answers, Lease):
                return answers
            texts = [str(r[1]) for r in answers.values() if isinstance(r, list) and r[0] != 'off' and r[1:]]
            is_hopeless = sum(text.startswith(TELL) for text in texts) > len(self.masters) - self.quorum
            if is_hopeless or clock() + pause > until:
                raise NotAcquired(f'{name}: ' + '; '.join(sorted(set(texts))))
            await asyncio.sleep(random.uniform(pause / 2, pause) / 1e6)
            pause = min(2 * pause, 100_000)

    # What callers use.

    def run(self, coroutine):
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def acquire(self, name, ttl=10.0, wait=60.0):
        if not 1 <= len(name.encode()) <= 512 or not 10_000 <= ttl * 1e6 <= self.max_ttl:
            raise ValueError('a name has 1 to 512 bytes; the TTL is 10 ms to the max TTL')
        return self.run(self.wait_for(name, int(ttl * 1e6), int(wait * 1e6)))

    def close(self, patience=0.5):
        """Gives releases and undos that are under way some time, and ends all connections."""
        async def end():
            if self.cleaning:
                await asyncio.wait(list(self.cleaning), timeout=patience)
            for task in self.cleaning:
                task.cancel()
            for master in self.masters:
                master.drop()
        self.run(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def run(client, name, ttl, wait, words):
    """The exit code: the command's, 75 if the lock was not acquired, 76 if it was lost."""
    try:
        lease = client.acquire(name, ttl, wait)
    except NotAcquired as error:
        print(f'quorate: not acquired: {error}', file=sys.stderr)
        return 75
    with lease:
        try:
            child = subprocess.Popen(words, env={**os.environ, 'QUORATE_TOKEN': str(lease.token)}, start_new_session=True)
        except OSError as error:
            print(f'quorate: {error}', file=sys.stderr)
            return 127
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            signal.signal(number, lambda number, _: os.killpg(child.pid, number))
        renew_at = time.monotonic() + ttl / 3  # section 2, Extend
        while True:
            try:
                code = child.wait(max(0, min(renew_at, lease.valid_until) - time.monotonic()))
                return code if code >= 0 else 128 - code
            except subprocess.TimeoutExpired:
                asked = time.monotonic()
            try:
                renew_at = asked + (ttl / 3 if lease.extend() else ttl / 18)
            except Lost as error:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                print(f'quorate: lost: {error}', file=sys.stderr)
                return 76


def main(arguments):
    parser = argparse.ArgumentParser(description='Runs a command while a lock is held.')
    run_parser = parser.add_subparsers(required=True).add_parser('run', usage='%(prog)s [options] NAME -- COMMAND...')
    run_parser.add_argument('--masters', required=True, metavar='URL,URL,URL')
    run_parser.add_argument('--ttl', type=int, default=10_000, metavar='MS')
    run_parser.add_argument('--wait', type=int, default=60_000, metavar='MS')
    run_parser.add_argument('--max-ttl', type=int, default=30_000, metavar='MS')
    run_parser.add_argument('name', metavar='NAME')
    at = arguments.index('--') if '--' in arguments else len(arguments)
    options, words = parser.parse_args(arguments[:at]), arguments[at + 1:]
    if not words:
        run_parser.error('which command? NAME -- COMMAND...')
    client = Client(options.masters.split(','), max_ttl=options.max_ttl / 1000)
    try:
        return run(client, options.name, options.ttl / 1000, options.wait / 1000, words)
    except Lost as error:  # found by the release, after the command ended
        print(f'quorate: lost: {error}', file=sys.stderr)
        return 76
    finally:
        client.close()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
