#!/bin/sh
# The page in a Chromium without windows: its views, its lessons, its answers against
# the program's own, and axe-core's rules of accessibility (make test-page).
# $KPROBELAB_PICTURES is a folder for pictures of the views.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

KPROBELAB_CHROMIUM=$("$scripts/chromium.sh")
axe=$root/.cache/axe
if [ ! -e "$axe/package/axe.min.js" ]; then
	need npm npm
	mkdir -p "$axe"
	(cd "$axe" && npm pack --silent axe-core@4 >&2 && tar xzf axe-core-4*.tgz) || die "axe-core cannot be had (see above)"
fi
KPROBELAB_AXE=$axe/package/axe.min.js
export KPROBELAB_CHROMIUM KPROBELAB_AXE
cd "$root/internal/page/browser"
go test -timeout 60m "$@" ./...
