#!/bin/sh
# The page in a Chromium and a Firefox without windows: its views, its lessons, its answers against
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

# puppeteer-core drives Firefox by WebDriver BiDi. Later ones ask for what firefox-esr 140 does not have.
KPROBELAB_FIREFOX=$("$scripts/firefox.sh")
puppeteer=$root/.cache/puppeteer
KPROBELAB_PUPPETEER=$puppeteer/node_modules/puppeteer-core/lib/esm/puppeteer/puppeteer-core.js
if [ ! -e "$KPROBELAB_PUPPETEER" ]; then
	need npm npm
	mkdir -p "$puppeteer"
	(cd "$puppeteer" && npm install --silent --no-audit --no-fund --ignore-scripts puppeteer-core@~24.15.0 >&2) || die "puppeteer-core cannot be had (see above)"
fi
export KPROBELAB_CHROMIUM KPROBELAB_AXE KPROBELAB_FIREFOX KPROBELAB_PUPPETEER
cd "$root/internal/page/browser"
go test -timeout 60m "$@" ./...
