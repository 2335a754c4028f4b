#!/bin/sh
# The scan of a whole kernel image beside objdump -d of its text.
# bench-scan.sh PROGRAM; IMAGE=FILE picks the image.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
image=$("$scripts/image.sh")
exec go run ./internal/tools/benchscan "$1" "$image"
