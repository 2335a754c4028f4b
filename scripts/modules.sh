# Builds modules for Debian's kernels: sourced after debian.sh by scripts that load one
# of their own.
# shellcheck shell=sh

# module_compiler HEADERS: the one that the kernel was compiled by, else the system's.
module_compiler() {
	theirs=$(sed -n 's/^CC = .*)\(gcc-[0-9]*\)$/\1/p' "$1/.kernelvariables")
	for cc in ${KPROBELAB_CC:-} $theirs gcc; do
		if command -v "$cc"; then return; fi
	done
	return 1
}

# module_build SOURCES HEADERS DIR: builds the module of a folder in another. False when
# that cannot be; why is in module_why.
module_build() {
	cc=$(module_compiler "$2") || {
		module_why='gcc is missing; as root: apt-get install gcc'
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
	make -s -C "$2" M="$3" CC="$cc" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$3/log" 2>&1 || {
		cat "$3/log" >&2
		module_why="the module does not build against the headers of ${2##*/linux-headers-} (above)"
		return 1
	}
}
