//! Exit codes besides those of `quorate`.

use quorate_cli::exit::Code;

/// A property does not hold.
pub(crate) const VIOLATED: Code = Code(79);
/// Nothing was found, and not everything could be looked at.
pub(crate) const INCONCLUSIVE: Code = Code(80);
/// Nothing was found except that acquires were too slow.
pub(crate) const TOO_SLOW: Code = Code(82);

/// The codes, for the help.
pub(crate) const HELP: &str = "\
Exit codes:
    0  nothing was found
   64  wrong usage, or a value outside its limits
   70  another failure
   79  a property of the locks does not hold
   80  nothing was found, but the search for an order was given up for some locks
   82  nothing was found, but acquires were too slow while the set of masters changed
  128 + N  signal N ended the run

Durations are written like 500ms, 10s, 5m or 1h.";
