# Builds modules for Debian's kernels: sourced after debian.sh by scripts that load one
# of their own. conformance-tools.sh comes before it.
# shellcheck shell=sh

# module_compiler HEADERS: the one that the kernel was compiled by, else the system's.
module_compiler() {
	theirs=$(sed -n 's/^CC = .*)\(gcc-[0-9]*\)$/\1/p' "$1/.kernelvariables")
	for cc in ${KPROBELAB_CC:-} $theirs gcc; do
		if command -v "$cc"; then return; fi
	done
	return 1
}

# module_loader HEADERS: has the programs of the package run with Debian 13's C library where the system's is too old
# for them. The first of them only chooses between programs by the architecture. False when that library cannot be had.
module_loader() {
	for program in tools/objtool/objtool scripts/mod/modpost scripts/basic/fixdep; do
		file=$1/$program
		real=$file
		for chosen in "$file.real-x86" "$file.real-lsb-64"; do
			if [ -e "$chosen" ]; then real=$chosen; fi
		done
		if [ -e "$file.elf" ] || ! "$real" 2>&1 </dev/null | grep -q 'version .GLIBC_.* not found'; then continue; fi
		tool kbuild-libc trixie libelf1t64 || return 1
		cp "$real" "$file.elf"
		libc=$tools/kbuild-libc/usr/lib/x86_64-linux-gnu
		rm "$file"
		printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$libc/ld-linux-x86-64.so.2" "$libc" "$(realpath "$file.elf")" >"$file"
		chmod +x "$file"
	done
}

# module_flags CC: words for make without which a compiler that is older than the kernel's own does not know the options.
module_flags() {
	if ! echo | "$1" -fmin-function-alignment=16 -xc -c - -o /dev/null 2>/dev/null; then
		echo CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=
	fi
}

# module_build SOURCES HEADERS DIR: builds the module of a folder in another. False when
# that cannot be; why is in module_why.
module_build() {
	cc=$(module_compiler "$2") || {
		module_why='gcc is missing; as root: apt-get install gcc'
		return 1
	}
	module_loader "$2" || {
		module_why="Debian 13's C library cannot be had, and the system's is too old for the kernel's package"
		return 1
	}
	objtool=$2/tools/objtool/objtool
	rm -rf "$3"
	mkdir -p "$3"
	SRCARCH=x86 "$objtool" --help >"$3/objtool" 2>&1 || grep -qi usage "$3/objtool" || {
		module_why="the objtool of the kernel's package does not run here (it needs libelf1, and a C library as new as its release): $(cat "$3/objtool")"
		return 1
	}
	cp "$1"/* "$3/"
	say "building the module for ${2##*/linux-headers-} with $cc"
	# No BTF: it takes pahole.
	make -s -C "$2" M="$3" CC="$cc" CONFIG_DEBUG_INFO_BTF_MODULES= $(module_flags "$cc") modules >"$3/log" 2>&1 || {
		cat "$3/log" >&2
		module_why="the module does not build against the headers of ${2##*/linux-headers-} (above)"
		return 1
	}
}
