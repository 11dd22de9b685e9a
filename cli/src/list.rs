//! `quorate list`: which names are held or waited for.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use quorate::Error;

use crate::args::ListArgs;
use crate::exit::{self, Code, Failure};
use crate::say::{self, out};
use crate::status::{Name, dash};

pub(crate) async fn list(args: ListArgs) -> Result<Code, Failure> {
    let redlock = args.masters.client()?;
    let mut listing = redlock.list();
    let mut names: Vec<Name> = Vec::new();
    while let Some(page) = listing.next().await.map_err(failure)? {
        let mut page = page.iter().map(Name::new);
        if args.json {
            page.try_for_each(|name| say::json_line(&name))?;
        } else {
            names.extend(page);
        }
    }
    if !args.json {
        names.sort_by(|a, b| a.name.cmp(&b.name));
        out!("{}", table(&names));
        match names.len() {
            1 => out!("1 name is held or waited for"),
            count => out!("{count} names are held or waited for"),
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

fn table(names: &[Name]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["NAME", "KIND", "HELD BY", "WAITING", "HELD FOR", "REMAINING"]);
    for Name { name, kind, held, waiting, .. } in names {
        let first = held.first();
        table.add_row([
            name.clone(),
            kind.map_or_else(dash, str::to_owned),
            match first {
                Some(first) if held.len() > 1 => format!("{} and {} more", first.who(), held.len() - 1),
                Some(first) => first.who(),
                None => dash(),
            },
            waiting.to_string(),
            first.map_or_else(dash, |first| first.held_for()),
            first.map_or_else(dash, |first| first.remaining()),
        ]);
    }
    table
}
