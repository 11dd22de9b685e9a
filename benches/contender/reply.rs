//! As much of RESP as a floor needs: where a reply ends, and its last word.

/// The first reply in `bytes` when all of it is there: its length, and its last word. One with a
/// list in a list, by which an operation says that it was refused, has none.
pub(super) fn first(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (mut at, mut missing, mut lists, mut word) = (0, 1, 0, None);
    while missing > 0 {
        let line = line(bytes.get(at..)?)?;
        at += line.len() + 2;
        missing -= 1;
        let (kind, rest) = line.split_first()?;
        match kind {
            b'$' if rest == b"-1" => word = Some(&[][..]),
            b'*' => (missing, lists) = (missing + count(rest), lists + 1),
            b'$' => {
                let text = bytes.get(at..at + count(rest))?;
                at += text.len() + 2;
                word = Some(text);
            }
            b'-' => word = Some(line),
            _ => word = Some(rest),
        }
    }
    (at <= bytes.len()).then_some((at, word.filter(|_| lists < 2).unwrap_or_default()))
}

/// The bytes before the first end of a line.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&byte| byte == b'\r')?;
    (end + 1 < bytes.len()).then_some(&bytes[..end])
}

fn count(digits: &[u8]) -> usize {
    std::str::from_utf8(digits).unwrap().parse().expect("no reply of these scripts lacks a part")
}
