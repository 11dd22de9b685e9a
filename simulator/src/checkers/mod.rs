//! The properties that every run must have, one a file.
