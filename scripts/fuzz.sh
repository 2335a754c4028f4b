#!/bin/sh
# Runs every fuzz target of the tree for the given time each: fuzz.sh 20s
set -eu
cd "$(dirname "$0")/.."
time=${1:-20s}
failed=0
for pkg in $(go list ./...); do
	# A package that lists no target prints only its "ok" line.
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || :); do
		printf '== %s %s for %s\n' "$pkg" "$target" "$time"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg" || failed=1
	done
done
exit $failed
