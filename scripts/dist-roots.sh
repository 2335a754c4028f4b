#!/bin/sh
# dist-roots.sh NAME...: bare root file systems of Debian as .cache/dist/roots/NAME.tar: a suite with its essential packages alone, or
# wine, which is trixie with Wine: bookworm's Wine 8 has no bcryptprimitives.dll, which Go's programs load. Needs root (it makes devices).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
need mmdebstrap mmdebstrap
keep=$root/.cache/dist/roots
mkdir -p "$keep"
for name in "$@"; do
	if [ -e "$keep/$name.tar" ]; then continue; fi
	suite=$name variant=essential
	if [ "$name" = wine ]; then suite=trixie variant="minbase --include=wine,wine64"; fi
	say "making a root file system of $name"
	# A mirror of sid may be some weeks late: its index is signed all the same.
	# shellcheck disable=SC2086
	debian_sources "$suite" | mmdebstrap --aptopt='Acquire::Check-Valid-Until "false"' --mode=root --variant=$variant --architectures=amd64 "$suite" "$keep/.$name.tar" - >&2 ||
		die "no root file system of $name (mmdebstrap's message is above)"
	mv "$keep/.$name.tar" "$keep/$name.tar"
done
