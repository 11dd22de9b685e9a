//! The kinds of locks, as they are typed.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use quorate_chaos::workload::Kind;

/// Takes one of them.
pub(crate) fn parser() -> impl TypedValueParser<Value = Kind> {
    let values = Kind::ALL.map(|kind| PossibleValue::new(kind.typed()).help(kind.about()));
    PossibleValuesParser::new(values).map(|typed| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.typed() == typed);
        kind.expect("it takes no others")
    })
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn every_kind_can_be_typed() {
        let kinds: Vec<Kind> = Kind::ALL
            .iter()
            .map(|kind| {
                let command = Command::new("chaos").arg(Arg::new("kind").value_parser(parser()));
                let typed = command.get_matches_from(["chaos", kind.typed()]);
                *typed.get_one("kind").unwrap()
            })
            .collect();
        assert_eq!(kinds, Kind::ALL);
    }
}
