//! Runs seeds.

fn main() {}
