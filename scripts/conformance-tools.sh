# Tools that make conformance needs, as an ordinary user: Debian packages with
# all that they depend on, unpacked under .cache/tools, each run by the loader
# and the libraries beside it. Sourced after debian.sh by conformance.sh and others.
# shellcheck shell=sh

: "${root:?the repository, set by whoever sources it}"

# The suites whose QEMU and clang were used when the figures of docs were taken.
# Debian 12's QEMU 7.2 has a bug: a kernel dies now and then after cmpxchg16b.
qemu_suites='trixie trixie-backports'
clang_suites=bookworm
tools=$root/.cache/tools

# keep_folder: makes the folder that $KEEP names. Where nothing can be written, it ends the script at once,
# before anything is fetched or booted.
keep_folder() {
	if [ -n "${KEEP:-}" ] && ! { mkdir -p "$KEEP" && [ -w "$KEEP" ]; }; then
		say "KEEP=$KEEP: nothing can be kept there"
		exit 2
	fi
}

# tool NAME "SUITE..." PACKAGE: makes .cache/tools/NAME hold the package and what
# it depends on; of several suites, the last one's packages win. False when it
# cannot be had.
tool() (
	if [ "$(cat "$tools/$1/complete" 2>/dev/null)" = "$2 $3" ]; then return; fi
	lock "$tools/lock"
	if [ "$(cat "$tools/$1/complete" 2>/dev/null)" = "$2 $3" ]; then return; fi
	state=$tools/apt
	mkdir -p "$tools"
	debian_open "$state" "$2"
	say "fetching the package $3 and what it needs"
	# Nothing is installed: the state is empty, so apt gets every dependency.
	apt-get -c "$apt_conf" -qq -y --no-install-recommends --download-only -t "${2##* }" install "$3" >&2 || exit 1
	rm -rf "${tools:?}/$1"
	mkdir -p "$tools/$1"
	for deb in "$state"/archives/*.deb; do
		dpkg-deb -x "$deb" "$tools/$1" || exit 1
	done
	rm -rf "$state"
	printf '%s\n' "$2 $3" >"$tools/$1/complete"
)

# wrap NAME PROGRAM ARGUMENTS: writes .cache/tools/NAME.sh, which runs the
# program with these arguments in front of its own. Packages to Debian 12 have
# the loader and some libraries in /lib; later ones have them all in /usr.
wrap() {
	dir=$tools/$1
	lib=/lib/x86_64-linux-gnu
	loader=$dir/lib64/ld-linux-x86-64.so.2
	if [ ! -e "$loader" ]; then loader=$dir/usr$lib/ld-linux-x86-64.so.2; fi
	llvm=$(echo "$dir"/usr/lib/llvm-*/lib)
	program=$2
	shift 2
	cat >"$dir.sh.$$" <<-END
		#!/bin/sh
		export QEMU_MODULE_DIR='$dir/usr$lib/qemu'
		exec '$loader' --library-path '$dir$lib:$dir/usr$lib:$llvm' '$dir$program' $* "\$@"
	END
	chmod +x "$dir.sh.$$"
	mv "$dir.sh.$$" "$dir.sh"
	printf '%s\n' "$dir.sh"
}

# qemu: prints the command that starts qemu-system-x86_64: $KPROBELAB_QEMU,
# else Debian's package.
qemu() {
	if [ -n "${KPROBELAB_QEMU:-}" ]; then
		printf '%s\n' "$KPROBELAB_QEMU"
		return
	fi
	tool qemu "$qemu_suites" qemu-system-x86 || return 1
	wrap qemu /usr/bin/qemu-system-x86_64 -L "'$tools/qemu/usr/share/qemu'" -L "'$tools/qemu/usr/share/seabios'"
}

# clang: prints the command of a clang that compiles for BPF: $KPROBELAB_CLANG,
# else Debian's package.
clang() {
	if [ -n "${KPROBELAB_CLANG:-}" ]; then
		printf '%s\n' "$KPROBELAB_CLANG"
		return
	fi
	tool clang "$clang_suites" clang-14 || return 1
	wrap clang /usr/lib/llvm-14/bin/clang-14
}
