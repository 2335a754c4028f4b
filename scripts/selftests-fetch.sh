# The kernel's own ftrace selftests, of a Debian source package: sourced after debian.sh by
# selftests.sh and selftests-booted.sh. Nothing of them leaves .cache.
# shellcheck shell=sh

: "${root:?the repository, set by whoever sources it}"

# selftests SUITE VERSION FOLDER: puts the tests of the package linux-source-VERSION into
# FOLDER/ftrace, unless they are there.
selftests() {
	if [ -x "$3/ftrace/ftracetest" ]; then return; fi
	need xz xz-utils
	state=$3/apt
	trap 'rm -rf "$state"' EXIT
	debian_open "$state" "$1"
	debian_download "linux-source-$2" "$state" || die "the package linux-source-$2 did not arrive (apt's message is above)"
	say "unpacking the ftrace selftests of $2"
	(cd "$state" && dpkg-deb --fsys-tarfile "linux-source-$2.deb" | tar -xf - "./usr/src/linux-source-$2.tar.xz" &&
		tar -xJf "usr/src/linux-source-$2.tar.xz" "linux-source-$2/tools/testing/selftests/ftrace")
	mv "$state/linux-source-$2/tools/testing/selftests/ftrace" "$3/ftrace"
	rm -rf "$state"
	trap - EXIT
}
