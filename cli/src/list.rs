//! `quorate list`: which names are held or waited for.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use quorate::{Error, Inspection};
use quorate_cli::out;

use crate::args::ListArgs;
use crate::exit::{self, Code, Failure};
use crate::say;
use crate::status::{dash, held_for, remaining, who};

pub(crate) async fn list(args: ListArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let mut listing = redlock.list();
    let mut rows = Vec::new();
    while let Some(page) = listing.next().await.map_err(failure)? {
        if args.json {
            page.iter().try_for_each(say::json_line)?;
        } else {
            rows.extend(page.iter().map(row));
        }
    }
    if !args.json {
        rows.sort();
        let count = rows.len();
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["NAME", "KIND", "HELD BY", "WAITING", "HELD FOR", "REMAINING"]);
        out!("{}", table.add_rows(rows).trim_fmt());
        match count {
            1 => out!("1 name is held or waited for"),
            _ => out!("{count} names are held or waited for"),
        }
    }
    Ok(exit::OK)
}

/// Too few masters answered, or they are no set: that is about no name.
fn failure(error: Error) -> Failure {
    let votes = error.votes().to_string();
    let is_without_set = exit::is_without_set(error.votes());
    let failure = Failure::from(error);
    let message = match failure.code {
        _ if is_without_set => exit::NO_SET.to_owned(),
        exit::NO_QUORUM | exit::REFUSED => format!("too few masters answer to list names [{votes}]"),
        _ => return failure,
    };
    Failure { message, ..failure }
}

fn row(seen: &Inspection) -> [String; 6] {
    let first = seen.held().first().map(|held| &held.holder);
    [
        seen.name().to_owned(),
        seen.kind().map_or_else(dash, |kind| kind.to_string()),
        match seen.held() {
            [] => dash(),
            [one] => who(&one.holder),
            [first, others @ ..] => format!("{} and {} more", who(&first.holder), others.len()),
        },
        seen.waiting().to_string(),
        first.map_or_else(dash, held_for),
        first.map_or_else(dash, |first| remaining(first.remaining)),
    ]
}
