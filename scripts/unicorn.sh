#!/bin/sh
# unicorn.sh FOLDER: Unicorn for a release, built from the C source that comes with its Go binding: go.mod names the version, go.sum has
# the checksum. FOLDER gets include, lib with the static archive, source (the Go module and its version) and copyright. Only x86 is
# built. The same source and the same packages of gcc's and libc's make the same bytes, in any folder. cmake is the system's, or Debian's
# package, unpacked as an ordinary user. make test-unicorn tests with it; KPROBELAB_UNICORN=FOLDER make deps builds with it.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
[ -n "${1:-}" ] || die "which folder gets Unicorn? unicorn.sh FOLDER"
prefix=$1
module=github.com/unicorn-engine/unicorn
need go golang
need gcc gcc
need make make
need git git

# cmake_command: prints the command of cmake. cmake starts itself again, by the name cmake beside its own program.
cmake_command() {
	if command -v cmake; then return; fi
	tool cmake "$(debian_codename)" cmake || return 1
	bin=$tools/cmake/usr/bin
	if [ ! -e "$bin/cmake-program" ]; then mv "$bin/cmake" "$bin/cmake-program"; fi
	wrap cmake /usr/bin/cmake-program >/dev/null
	ln -sf ../../../cmake.sh "$bin/cmake"
	printf '%s\n' "$bin/cmake"
}

# quietly COMMAND...: its output is printed only if it fails.
quietly() {
	if "$@" >"$work/log" 2>&1; then return; fi
	tail -n 40 "$work/log" >&2
	die "Unicorn is not built: $1 failed (above)"
}

cmake=$(cmake_command) || die "cmake did not arrive (apt's message is above)"
# The source's configure takes no path with a blank.
work=$(mktemp -d /tmp/kprobelab-unicorn.XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$root"
export LC_ALL=C GOFLAGS=
go mod download "$module" || die "the module $module did not arrive (go's message is above)"
version=$(go list -m -f '{{.Version}}' "$module")
say "building Unicorn from $module $version"
mkdir "$work/source"
cp -R "$(go list -m -f '{{.Dir}}' "$module")/." "$work/source"
chmod -R u+w "$work/source"
unset CC CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MFLAGS
# As Debian builds it: with the engine's checks of itself (without NDEBUG; emu comes back from a check that fails) and with the
# compiler's guards of the stack. The archive has no times, whatever ar does by itself.
quietly "$cmake" -S "$work/source" -B "$work/build" -G 'Unix Makefiles' -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release \
	-DCMAKE_C_FLAGS="-ffile-prefix-map=$work=." -DCMAKE_C_FLAGS_RELEASE='-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2' \
	-DCMAKE_C_ARCHIVE_CREATE='<CMAKE_AR> qcD <TARGET> <LINK_FLAGS> <OBJECTS>' -DCMAKE_C_ARCHIVE_FINISH='<CMAKE_RANLIB> -D <TARGET>' \
	-DUNICORN_ARCH=x86 -DBUILD_SHARED_LIBS=OFF -DUNICORN_LEGACY_STATIC_ARCHIVE=ON -DUNICORN_BUILD_TESTS=OFF
quietly make -C "$work/build" -j"$(getconf _NPROCESSORS_ONLN)" unicorn_archive

rm -rf "$prefix"
mkdir -p "$prefix/include" "$prefix/lib"
cp -R "$work/source/include/unicorn" "$prefix/include/"
cp "$work/build/libunicorn.a" "$prefix/lib/"
# The texts of the licences, and the notices of all files that were compiled.
{
	for text in COPYING COPYING.LGPL2 COPYING_GLIB CREDITS.TXT qemu/LICENSE; do
		printf '== %s\n\n' "$text"
		cat "$work/source/$text"
	done
	printf '\n== notices in the source files\n'
	find "$work/build" -name '*.o.d' -exec cat {} + | tr ' ' '\n' | grep "^$work/source/" | sort -u | while read -r file; do
		awk '/\/\*/ { in_it = 1 } in_it { text = text $0 "\n" } /\*\// { exit } !in_it && NF { exit } END { if (text ~ /[Cc]opyright|[Ll]icen[cs]e/) printf "\n%s", text }' "$file"
	done | awk -v RS= '!seen[$0]++ { printf "\n%s\n", $0 }'
} >"$prefix/copyright"
printf '%s %s\n' "$module" "$version" >"$prefix/source"
say "Unicorn is ready in $prefix"
