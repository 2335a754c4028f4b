#!/bin/sh
# Unicorn >= 2.1 as .deps/unicorn/{include,lib}, with only the static archive
# in lib, so that the program links it in and runs from anywhere.
#
# In this order: $KPROBELAB_UNICORN (an unpacked package or an install prefix),
# the system's own by pkg-config, Debian 13's package, which links with any
# glibc >= 2.34. Debian 12 has only 2.0.1, whose every guest store is slow.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"

suite=trixie
out=$root/.deps/unicorn

# check_tools: what a build needs beside Unicorn, each named with its package.
check_tools() {
	if ! command -v go >/dev/null 2>&1; then
		die "go is missing; get Go 1.26, or any from 1.21 on that fetches it by itself, from https://go.dev/dl/"
	fi
	# Asked in the module, so that an older Go fetches the one go.mod names.
	(cd "$root" && go version >/dev/null) || die "this Go cannot run go.mod's toolchain; get Go 1.26 from https://go.dev/dl/"
	need gcc gcc
	if [ "$(cd "$root" && go env GOOS GOARCH | tr -d '\n')" != linuxamd64 ]; then
		die "Unicorn is for linux/amd64 here; elsewhere use: make build-nocgo"
	fi
}

# adopt INCLUDE ARCHIVE VERSION: makes .deps/unicorn of these; links, not copies.
adopt() {
	rm -rf "$out"
	mkdir -p "$out/include" "$out/lib"
	ln -s "$1/unicorn" "$out/include/unicorn"
	ln -s "$2" "$out/lib/libunicorn.a"
	finish "$3"
}

# finish VERSION: proves by a static program that header and archive fit.
finish() {
	cat >"$out/check.c" <<-'END'
		#include <stdio.h>
		#include <unicorn/unicorn.h>
		int main(void) {
			unsigned major, minor;
			uc_engine *uc;
			uc_version(&major, &minor);
			if (major != UC_API_MAJOR || minor < 1 || uc_open(UC_ARCH_X86, UC_MODE_64, &uc)) return 1;
			return uc_close(uc);
		}
	END
	if ! gcc -static -I"$out/include" -o "$out/check" "$out/check.c" -L"$out/lib" -lunicorn -lpthread -lm >"$out/check.log" 2>&1; then
		cat "$out/check.log" >&2
		die "a static program with Unicorn does not link; are libc's headers and static archive there? As root: apt-get install libc6-dev (Fedora: glibc-static)"
	fi
	"$out/check" || die "Unicorn $1 does not open an x86-64 engine"
	rm -f "$out/check" "$out/check.c" "$out/check.log"
	printf '%s\n' "$1" >"$out/version"
	say "Unicorn $1 is ready in .deps/unicorn"
}

# header_version INCLUDE: major.minor.patch as unicorn.h states it.
header_version() {
	awk '$2 == "UC_API_MAJOR" { a = $3 } $2 == "UC_API_MINOR" { b = $3 } $2 == "UC_API_PATCH" { c = $3 }
		END { print a "." b "." c }' "$1/unicorn/unicorn.h"
}

new_enough() {
	case $1 in
	2.[1-9]* | [3-9].*) return 0 ;;
	*) return 1 ;;
	esac
}

# from_folder DIR: an install prefix, or a Debian package unpacked there.
from_folder() {
	dir=$(cd "$1" 2>/dev/null && pwd) || die "KPROBELAB_UNICORN=$1: there is no such folder"
	header=$(find "$dir" -path '*/unicorn/unicorn.h' | head -n 1)
	archive=$(find "$dir" -name libunicorn.a | head -n 1)
	if [ -z "$header" ] || [ -z "$archive" ]; then
		die "KPROBELAB_UNICORN=$1: wanted unicorn/unicorn.h and libunicorn.a under it"
	fi
	include=${header%/unicorn/unicorn.h}
	version=$(header_version "$include")
	new_enough "$version" || die "KPROBELAB_UNICORN=$1 has Unicorn $version; 2.1 or newer is needed"
	adopt "$include" "$archive" "$version"
}

# from_system: true when pkg-config knows a new enough one with its archive.
from_system() {
	command -v pkg-config >/dev/null 2>&1 || return 1
	pkg-config --atleast-version=2.1 unicorn 2>/dev/null || return 1
	include=$(pkg-config --variable=includedir unicorn)
	archive=$(pkg-config --variable=libdir unicorn)/libunicorn.a
	[ -r "$include/unicorn/unicorn.h" ] && [ -r "$archive" ] || return 1
	adopt "$include" "$archive" "$(pkg-config --modversion unicorn)"
}

from_debian() {
	if ! command -v apt-get >/dev/null 2>&1; then
		die "no Unicorn >= 2.1 here, and no apt-get to fetch Debian's; install it with its static archive, or set KPROBELAB_UNICORN=DIR to an unpacked libunicorn-dev"
	fi
	state=$root/.deps/apt
	debian_open "$state" "$suite" main
	debian_download libunicorn-dev "$state" ||
		die "the package libunicorn-dev of $suite did not arrive (apt's message is above)"
	rm -rf "$out" "$state/root"
	dpkg-deb -x "$state/libunicorn-dev.deb" "$state/root"
	mkdir -p "$out/include" "$out/lib"
	mv "$state/root/usr/include/unicorn" "$out/include/"
	mv "$state"/root/usr/lib/*/libunicorn.a "$out/lib/"
	# GPL-2.0 asks that the terms travel with the archive.
	mv "$state/root/usr/share/doc/libunicorn-dev/copyright" "$out/"
	rm -rf "$state"
	version=$(header_version "$out/include")
	new_enough "$version" || die "the mirror's $suite has Unicorn $version; 2.1 or newer is needed (KPROBELAB_MIRROR=URL picks another mirror)"
	finish "$version"
}

check_tools
ready() { [ -r "$out/version" ] && [ -r "$out/lib/libunicorn.a" ] && [ -r "$out/include/unicorn/unicorn.h" ]; }
if ready; then exit 0; fi
lock "$root/.deps/lock"
if ready; then exit 0; fi
if [ -n "${KPROBELAB_UNICORN:-}" ]; then
	from_folder "$KPROBELAB_UNICORN"
elif ! from_system; then
	from_debian
fi
# Fetched here, so that a failure is one sentence and not part of a build.
say "fetching the Go modules"
(cd "$root" && go mod download) ||
	die "the Go modules did not arrive (go's message is above); certificates come with: apt-get install ca-certificates, another source is named by GOPROXY"
