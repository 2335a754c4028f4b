#!/bin/sh
# Prints the command that starts a Firefox: $KPROBELAB_FIREFOX, the system's, else that of Debian's package firefox-esr,
# which is unpacked under .cache/tools with all that it depends on (no root needed).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
. "$scripts/browser.sh"

if [ -n "${KPROBELAB_FIREFOX:-}" ]; then
	printf '%s\n' "$KPROBELAB_FIREFOX"
	exit
fi
for found in firefox-esr firefox; do
	if command -v "$found"; then exit; fi
done
browser firefox firefox-esr /usr/lib/firefox-esr/firefox-esr || die "Firefox cannot be had (see above)"
