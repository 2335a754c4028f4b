#!/bin/sh
# Prints the command that starts a Chromium without windows: $KPROBELAB_CHROMIUM, the
# system's, else that of Debian's package, which is unpacked under .cache/tools with
# all that it depends on (no root needed).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
. "$scripts/browser.sh"

if [ -n "${KPROBELAB_CHROMIUM:-}" ]; then
	printf '%s\n' "$KPROBELAB_CHROMIUM"
	exit
fi
for found in chromium-headless-shell chromium google-chrome; do
	if command -v "$found"; then exit; fi
done
browser chromium chromium-headless-shell /usr/lib/chromium/chromium-headless-shell || die "Chromium cannot be had (see above)"
