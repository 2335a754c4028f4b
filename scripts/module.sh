#!/bin/sh
# module.sh PATH: gives the project another module path (make module PATH=example.org/x/kprobelab).
#
# A make that got PATH=… as an argument has it in the environment of its commands, too: the one with folders is
# read from make's own environment, as it was when make began.
set -eu
case $PATH in
*/bin*) ;;
*) PATH=$(/bin/sed -zn 's/^PATH=//p' "/proc/$PPID/environ" | /usr/bin/tr '\0' '\n') ;;
esac
export PATH
scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/debian.sh"
cd "$scripts/.."
[ -n "${1:-}" ] || die "which path? make module PATH=example.org/x/kprobelab"
need go golang
CGO_ENABLED=0 GOFLAGS= go run ./internal/tools/module . "$1"
