#!/usr/bin/env bash
# Runs the demo, and draws what it prints as docs/demo.svg, the picture of the README.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/demo.sh --pause 0s | fold -s -w 100 | awk '
  { gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/ +$/, ""); line[NR] = $0 }
  END {
    height = NR * 18 + 24
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"" height "\">"
    print "<rect width=\"900\" height=\"" height "\" rx=\"8\" fill=\"#1d2128\"/>"
    print "<g font-family=\"monospace\" font-size=\"14\" fill=\"#d7dce2\" xml:space=\"preserve\">"
    for (i = 1; i <= NR; i++) print "<text x=\"16\" y=\"" i * 18 + 12 "\">" line[i] "</text>"
    print "</g></svg>"
  }' >docs/demo.svg.new
mv docs/demo.svg.new docs/demo.svg
