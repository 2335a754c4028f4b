# Tools that make conformance needs, as an ordinary user: Debian packages with
# all that they depend on, unpacked under .cache/tools, each run by the loader
# and the libraries beside it. Sourced by conformance.sh, after debian.sh.
# shellcheck shell=sh

: "${root:?the repository, set by whoever sources it}"

# The release whose QEMU was used when the figures of docs were taken.
tools_suite=bookworm
tools=$root/.cache/tools

# tool NAME PACKAGE: makes .cache/tools/NAME hold the package and what it
# depends on. False when it cannot be had.
tool() (
	if [ -r "$tools/$1/complete" ]; then return; fi
	state=$tools/apt
	mkdir -p "$tools"
	debian_open "$state" "$tools_suite"
	say "fetching the package $2 and what it needs"
	# Nothing is installed: the state is empty, so apt gets every dependency.
	apt-get -c "$apt_conf" -qq -y --no-install-recommends --download-only install "$2" >&2 || exit 1
	rm -rf "${tools:?}/$1"
	mkdir -p "$tools/$1"
	for deb in "$state"/archives/*.deb; do
		dpkg-deb -x "$deb" "$tools/$1" || exit 1
	done
	rm -rf "$state"
	: >"$tools/$1/complete"
)

# wrap NAME PROGRAM ARGUMENTS: writes .cache/tools/NAME.sh, which runs the
# program with these arguments in front of its own.
wrap() {
	dir=$tools/$1
	lib=/lib/x86_64-linux-gnu
	program=$2
	shift 2
	cat >"$dir.sh" <<-END
		#!/bin/sh
		export QEMU_MODULE_DIR='$dir/usr$lib/qemu'
		exec '$dir/lib64/ld-linux-x86-64.so.2' --library-path '$dir$lib:$dir/usr$lib:$dir/usr/lib/llvm-14/lib' '$dir$program' $* "\$@"
	END
	chmod +x "$dir.sh"
	printf '%s\n' "$dir.sh"
}

# qemu: prints the command that starts qemu-system-x86_64: $KPROBELAB_QEMU,
# else Debian's package.
qemu() {
	if [ -n "${KPROBELAB_QEMU:-}" ]; then
		printf '%s\n' "$KPROBELAB_QEMU"
		return
	fi
	tool qemu qemu-system-x86 || return 1
	wrap qemu /usr/bin/qemu-system-x86_64 -L "'$tools/qemu/usr/share/qemu'" -L "'$tools/qemu/usr/share/seabios'"
}

# clang: prints the command of a clang that compiles for BPF: $KPROBELAB_CLANG,
# else Debian's package.
clang() {
	if [ -n "${KPROBELAB_CLANG:-}" ]; then
		printf '%s\n' "$KPROBELAB_CLANG"
		return
	fi
	tool clang clang-14 || return 1
	wrap clang /usr/lib/llvm-14/bin/clang-14
}
