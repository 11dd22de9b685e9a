//! Reports as one HTML page that needs nothing else: no script, no other file, no network. Pure,
//! except for writing the file.

pub mod scale;

use std::path::Path;

use crate::exit::{self, Failure};

const STYLE: &str = include_str!("style.css");

/// A page with this content, and what its style has besides.
pub fn page(title: &str, style: &str, content: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{STYLE}{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{content}</main>
</body>
</html>
"#
    )
}

/// Text as it may stand in HTML, between tags or in a quoted attribute.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The numbers that most people look for: what, how much, and its unit.
pub fn tiles(tiles: &[(String, String, &str)]) -> String {
    let tile = |(what, value, unit): &(String, String, &str)| {
        format!("<div><dt>{what}</dt><dd>{value} <small>{unit}</small></dd></div>\n")
    };
    format!("<dl class=\"tiles\">\n{}</dl>\n", tiles.iter().map(tile).collect::<String>())
}

/// A section of a page.
pub fn section(title: &str, text: &str, content: &str) -> String {
    format!("<section>\n<h2>{title}</h2>\n<p>{text}</p>\n{content}</section>\n")
}

/// A table, by its heads and rows.
pub fn table(heads: &str, rows: &str) -> String {
    format!(
        "<div class=\"scroll\"><table>\n<thead>\n{heads}\n</thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

/// A command line that can be typed again.
pub fn command(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("<span>{}</span>", escaped(word))).collect();
    format!("<pre>{}</pre>\n", words.join(" "))
}

/// A whole number, with its thousands set apart.
pub fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Finds out before what is reported happens, not after it, that a file cannot be there.
pub fn check_place(option: &str, file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = match (folder.is_dir(), file.is_dir()) {
        (false, _) => format!("there is no folder {}", folder.display()),
        (true, true) => "it is a folder".to_owned(),
        (true, false) => return Ok(()),
    };
    Err(Failure::of_file(exit::USAGE, option, file, wrong))
}

/// Writes a page there.
pub fn write(option: &str, file: &Path, page: String) -> Result<(), Failure> {
    std::fs::write(file, page).map_err(|error| Failure::of_file(exit::FAILED, option, file, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_html_is_escaped() {
        assert_eq!(escaped("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0.4, 999.0, 1e3, 1_234_567.0].map(whole), ["0", "999", "1,000", "1,234,567"]);
    }
}
