//! Which keys hold a lock: what a master remembers of a name that nobody holds stays for a while.

/// How the keys end of what a master knows of its set. That of a name ends with a brace.
const OF_SET: [&str; 2] = ["master", "decree"];

/// Of these keys, those at which somebody holds a lock or waits for one, by a clock that shows
/// `now` (us since 1970); and those that are none of Quorate's. `fields` are the fields and values
/// of a key that is a hash, one after the other.
pub fn in_use(mut keys: Vec<String>, now: u64, fields: impl Fn(&str) -> Option<Vec<String>>) -> Vec<String> {
    let is_held = |fields: Vec<String>| held_until(&fields).is_none_or(|until| until >= now);
    keys.retain(|key| !OF_SET.iter().any(|end| key.ends_with(end)) && fields(key).is_none_or(is_held));
    keys
}

/// When the last entry of a hash ends (us since 1970), or 0 where there is none; `None` if it is no
/// name of Quorate's. `fields` are its fields and values, one after the other. An entry is `UNTIL
/// TOKEN ROUND HOLDS`; without holds it is the word of a reader that left, and holds nothing.
pub fn held_until(fields: &[String]) -> Option<u64> {
    let is_of_quorate = fields.iter().step_by(2).any(|field| field == "kind" || field == "fence");
    let end = |value: &String| {
        let words: Vec<u64> = value.split(' ').map_while(|word| word.parse().ok()).collect();
        if let [until, _, _, (1..)] = words[..] { Some(until) } else { None }
    };
    is_of_quorate.then(|| fields.iter().skip(1).step_by(2).filter_map(end).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_only_remembered_is_not_in_use() {
        let is_in_use = |fields: &[&str]| {
            let fields: Vec<String> = fields.iter().map(|word| (*word).to_owned()).collect();
            !in_use(vec!["q:{a}".to_owned()], 100, |_| Some(fields.clone())).is_empty()
        };
        assert!(is_in_use(&["kind", "lock", "fence", "7", "x", "101 7 1 1", "o:x", "me"]));
        assert!(!is_in_use(&["kind", "lock", "fence", "7", "x", "99 7 1 1", "o:x", "me"]), "it is over");
        assert!(!is_in_use(&["kind", "rw", "r:me", "101 7 1 0"]), "it left");
        assert!(!is_in_use(&["kind", "lock", "fence", "7", "last", "7"]));
        assert!(!is_in_use(&["fence", "7"]), "it was released");
        assert!(is_in_use(&["somebody", "1"]), "it is Redisson's");
        let record = |_: &str| Some(["stamp", "one"].map(str::to_owned).into());
        for of_set in ["q:master", "q:decree"] {
            assert!(in_use(vec![of_set.to_owned()], 100, record).is_empty());
        }
        assert!(!in_use(vec!["q:waiting:{a}".to_owned()], 100, |_| None).is_empty());
    }
}
