#!/bin/sh
# Prints the path of a real kernel image to show the work on: $IMAGE, else a
# readable one under /boot, else the cached one, else a fetched one. Fails
# with one sentence when there is none; with 2 when $IMAGE cannot be read.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)

if [ -n "${IMAGE:-}" ]; then
	if [ ! -r "$IMAGE" ]; then
		printf 'IMAGE=%s cannot be read\n' "$IMAGE" >&2
		exit 2
	fi
	printf '%s\n' "$IMAGE"
	exit
fi
# The running kernel first, then the newest that an ordinary user may read.
newest=$(find /boot -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | sort -rV)
for f in "/boot/vmlinuz-$(uname -r)" $newest; do
	if [ -r "$f" ] && [ -s "$f" ]; then
		printf '%s\n' "$f"
		exit
	fi
done
exec "$scripts/kernel.sh"
