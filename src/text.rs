//! Any text, shown in one line and shortened.

/// The most characters of an error's line.
const LINE: usize = 160;

/// The first digits of a text's SHA-1, which is the same everywhere.
pub(crate) fn digest(text: &str, digits: usize) -> String {
    let digest = sha1_smol::Sha1::from(text).digest().to_string();
    digest[..digits].to_owned()
}

/// At most `most` characters of a text: what could break the line is escaped, and the middle of a
/// longer text is left out.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let quoted = format!("{text:?}");
    clipped(&quoted[1..quoted.len() - 1], most)
}

/// The same in quotes.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    format!("\"{}\"", shortened(text, most))
}

/// Whether this fits an error's line.
pub(crate) fn fits_a_line(text: &str) -> bool {
    text.chars().count() <= LINE
}

/// An error's text, which is one line already, cut to the line's length.
pub(crate) fn line(text: &str) -> String {
    clipped(text, LINE)
}

fn clipped(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let head = most / 2;
    let tail = most.saturating_sub(head + 1);
    let mut clipped: String = text.chars().take(head).collect();
    clipped.push('…');
    clipped.extend(text.chars().skip(length - tail));
    clipped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_is_left_out() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefghi", 8), "abcd…ghi");
        assert_eq!(shortened("größer als", 6), "grö…ls");
        assert_eq!(quoted("a\n\"b\"\u{2028}", 40), r#""a\n\"b\"\u{2028}""#);
    }

    proptest! {
        #[test]
        fn a_text_is_never_longer_than_it_may_be(text: String, most in 1usize..100) {
            let short = shortened(&text, most);
            prop_assert!(short.chars().count() <= most, "{short:?}");
            prop_assert!(!short.chars().any(char::is_control), "{short:?}");
        }
    }
}
