# What it takes to build a kernel, as an ordinary user: Debian's sources under
# .cache/source, and of the commands and libraries those that the system has not,
# unpacked under .cache/tools. Sourced after debian.sh and conformance-tools.sh.
# shellcheck shell=sh

: "${root:?the repository, set by whoever sources it}"

build_bin=$root/.cache/tools/bin

# build_tools SUITE: everything but a compiler that make of a kernel calls.
build_tools() {
	need gcc gcc
	need make make
	need perl perl
	mkdir -p "$build_bin"
	PATH=$build_bin:$PATH
	build_command m4 "$1" || return 1
	build_command flex "$1" || return 1
	build_command bison "$1" || return 1
	build_command bc "$1" || return 1
	# bison's own files are where it was configured to be, or there.
	if [ -d "$tools/bison/usr/share/bison" ]; then export BISON_PKGDATADIR="$tools/bison/usr/share/bison"; fi
	M4=$(command -v m4)
	export M4 PATH
	if echo '#include <gelf.h>
		#include <zlib.h>
		int main(void) { return elf_version(EV_CURRENT); }' | gcc -xc - -o /dev/null -lelf -lz 2>/dev/null; then return; fi
	tool elf "$1" libelf-dev || return 1
	build_libelf "$tools/elf" "$tools/libelf"
}

# build_libelf PACKAGES FOLDER: has gcc find libelf and zlib of the unpacked packages, whatever flags a
# makefile gives it or leaves out (resolve_btfids of 5.10 takes none). The folder has links to these two
# alone: beside them are libc's files of the same packages.
build_libelf() {
	rm -rf "$2"
	mkdir -p "$2/include" "$2/lib"
	ln -s "$1"/usr/include/*elf*.h "$1/usr/include/elfutils" "$1"/usr/include/z*.h "$2/include"
	rm "$2/include/elf.h"
	ln -s "$1"/usr/lib/x86_64-linux-gnu/libelf* "$1"/usr/lib/x86_64-linux-gnu/libz.so "$1"/lib/x86_64-linux-gnu/libz.so* "$2/lib"
	export C_INCLUDE_PATH="$2/include" LIBRARY_PATH="$2/lib" LD_LIBRARY_PATH="$2/lib"
}

# build_command NAME SUITE: puts the package's command of that name on PATH,
# unless the system has it.
build_command() {
	rm -f "$build_bin/$1"
	if command -v "$1" >/dev/null 2>&1; then return; fi
	tool "$1" "$2" "$1" || return 1
	ln -s "$(wrap "$1" "/usr/bin/$1")" "$build_bin/$1"
}

# build_clang SUITE: prints the command of a clang that knows -fsanitize=kcfi (16
# and later; 7.3 wants 17): $KPROBELAB_KCFI_CLANG, the system's, else the package's.
build_clang() {
	for found in "${KPROBELAB_KCFI_CLANG:-}" clang clang-22 clang-21 clang-20 clang-19 clang-18 clang-17 clang-16; do
		# clang is a function here, too (conformance-tools.sh).
		if [ -n "$found" ] && command "$found" -fsanitize=kcfi -xc -c /dev/null -o /dev/null 2>/dev/null; then
			printf '%s\n' "$found"
			return
		fi
	done
	build_llvm "$1" clang-19 clang-19
}

# build_llvm SUITE PACKAGE PROGRAM: prints the command of a program of LLVM's packages.
# Some start themselves again, so that no loader may stand before them; the rest of
# their libraries are the system's.
build_llvm() {
	tool "$2" "$1" "$2" || return 1
	dir=$tools/$2
	llvm=$dir/usr/lib/llvm-${2##*-}
	printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$dir/usr/lib/x86_64-linux-gnu:$llvm/lib" "$llvm/bin/$3" >"$tools/$3.sh"
	chmod +x "$tools/$3.sh"
	printf '%s\n' "$tools/$3.sh"
}

# build_lto SUITE: prints the words for make of a link-time optimization by LLVM 16, a line each.
build_lto() {
	printf 'LLVM_IAS=1\n'
	while read -r word package program; do
		command=$(build_llvm "$1" "$package" "$program") || return 1
		printf '%s=%s\n' "$word" "$command"
	done <<-END
		CC clang-16 clang-16
		LD lld-16 ld.lld
		AR llvm-16 llvm-ar
		NM llvm-16 llvm-nm
		OBJCOPY llvm-16 llvm-objcopy
		OBJDUMP llvm-16 llvm-objdump
		READELF llvm-16 llvm-readelf
		STRIP llvm-16 llvm-strip
	END
}

# build_source SUITE: prints the folder with the suite's linux-source, fetched and
# unpacked (1.5 GB) unless it is there.
build_source() {
	tree=$root/.cache/source/$1
	if [ ! -e "$tree/complete" ] || [ -n "${REFRESH:-}" ]; then build_unpack "$1" || return 1; fi
	printf '%s\n' "$tree"
}

build_unpack() (
	lock "$root/.cache/source/lock"
	if [ -e "$tree/complete" ] && [ -z "${REFRESH:-}" ]; then exit; fi
	state=$root/.cache/source/apt
	trap 'rm -rf "$state"' EXIT
	debian_open "$state" "$1"
	package=$(apt-cache -c "$apt_conf" depends linux-source 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-source-[0-9]/ { print $2; exit }')
	if [ -z "$package" ]; then
		say "the package linux-source is not in $1"
		exit 1
	fi
	debian_download "$package" "$state" || exit 1
	say "unpacking $package"
	rm -rf "$tree"
	mkdir -p "$tree"
	dpkg-deb --fsys-tarfile "$state/$package.deb" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		tar -xJ --strip-components=1 -C "$tree" || exit 1
	dpkg-deb -f "$state/$package.deb" Version >"$tree/complete"
)
