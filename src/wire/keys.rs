//! The keys of a lock on a master.

use std::fmt;

use super::call::Words;

/// These words, and the keys of a name: its hash, and its queue. The name is in braces, so that
/// both are in the same slot of a cluster, but for a name that begins with `}`: Redis takes that
/// for no tag
/// (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags>).
pub(super) fn with_keys(words: Words, prefix: &str, name: &str) -> Words {
    words.with(format_args!("{prefix}{{{name}}}")).with(format_args!("{prefix}waiting:{{{name}}}"))
}

/// The same for a key of another library, which is the name itself. It has a queue of its own,
/// beside that of Quorate's lock of the same name.
pub(super) fn with_shared_keys(words: Words, prefix: &str, name: &str) -> Words {
    words.with(name).with(format_args!("{prefix}waiting:shared:{{{name}}}"))
}

/// The name whose hash has this key.
pub(crate) fn name_of<'a>(prefix: &str, key: &'a str) -> Option<&'a str> {
    key.strip_prefix(prefix)?.strip_prefix('{')?.strip_suffix('}')
}

/// The pattern of the hashes of all names, as SCAN has it.
pub(crate) fn key_pattern(prefix: &str) -> String {
    let mut pattern = String::new();
    for c in prefix.chars() {
        pattern.extend("*?[]\\".contains(c).then_some('\\'));
        pattern.push(c);
    }
    pattern + "{*}"
}

/// What the names of the channels begin with that clients are woken on. A client's UUID follows.
pub(crate) struct WakeChannelPrefix<'a>(pub(crate) &'a str);

impl fmt::Display for WakeChannelPrefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}wake:", self.0)
    }
}

/// Stands between two names.
const BETWEEN: char = '+';

/// Stands before a character of a name that would mean something else. Alone, it is what no names
/// are joined to.
const ESCAPE: char = '\\';

/// One name for several, the same in whatever order they come.
pub(crate) fn join_names(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let escaped = |name: &str| {
        name.chars().fold(String::new(), |mut escaped, c| {
            escaped.extend([BETWEEN, ESCAPE].contains(&c).then_some(ESCAPE));
            escaped.push(c);
            escaped
        })
    };
    let mut names: Vec<String> = names.into_iter().map(|name| escaped(name.as_ref())).collect();
    names.sort_unstable();
    if names.is_empty() { ESCAPE.to_string() } else { names.join(&BETWEEN.to_string()) }
}

/// The names that were joined.
pub(super) fn split_names(joined: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = joined.chars();
    while let Some(c) = chars.next() {
        let last = names.last_mut().expect("there is one");
        match c {
            BETWEEN => names.push(String::new()),
            ESCAPE => match chars.next() {
                Some(c) => last.push(c),
                None => return Vec::new(),
            },
            c => last.push(c),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(with: fn(Words, &str, &str) -> Words, prefix: &str, name: &str) -> Vec<String> {
        with(Words::new(2), prefix, name).keys().map(str::to_owned).collect()
    }

    #[test]
    fn the_name_is_the_hash_tag_of_its_keys() {
        assert_eq!(keys(with_keys, "quorate:", "a"), ["quorate:{a}", "quorate:waiting:{a}"]);
        assert_eq!(keys(with_shared_keys, "quorate:", "a"), ["a", "quorate:waiting:shared:{a}"]);
    }

    #[test]
    fn a_name_is_found_in_its_key() {
        for name in ["a", "}", "{a}", "a*"] {
            assert_eq!(name_of("q:", &keys(with_keys, "q:", name)[0]), Some(name));
        }
        assert_eq!(name_of("q:", "q:waiting:{a}"), None);
        assert_eq!(key_pattern("a*[b]?\\:"), "a\\*\\[b\\]\\?\\\\:{*}");
    }

    #[test]
    fn the_joined_name_is_read_at_a_glance() {
        assert_eq!(join_names(["b", "a"]), "a+b");
        assert_eq!(join_names(["a+b", "c\\"]), "a\\+b+c\\\\");
        assert_eq!(join_names(["a"]), "a");
    }

    proptest! {
        /// Whatever the names are, they are the same again, and no other names are joined alike.
        #[test]
        fn names_are_split_as_they_were_joined(names in proptest::collection::vec("[ab+\\\\é]{0,4}", 0..5)) {
            let joined = join_names(&names);
            let mut split = split_names(&joined);
            prop_assert_eq!(&join_names(&split), &joined);
            let mut names = names;
            names.sort();
            split.sort();
            prop_assert_eq!(split, names);
        }
    }
}
