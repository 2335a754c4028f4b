#!/bin/sh
# The kernel's own ftrace selftests about uprobes, unmodified, on a booted kernel's dump
# (make selftests-booted): Debian's 6.12 boots under QEMU with the tests of its
# source package and busybox, its memory is saved, and they run here, on the engine, by that kernel's
# own code: `kprobelab exec`. /bin/sh, which add_remove_uprobe has hit a
# uprobe, is busybox.
#
#   scripts/selftests-booted.sh PROGRAM [TEST.tc|DIRECTORY...]
#
# A test is named as in the folder test.d: kprobe/kprobe_args.tc, dynevent. All of both take a quarter of an hour and more.
# Ends with 0 when all pass, 1 when one does not, and 77 when the kernel, QEMU or busybox cannot be had.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"
. "$scripts/selftests-fetch.sh"

cannot() { say "the kernel's own tests were NOT run: $*"; exit 77; }
lab=${1:?the kprobelab program}
shift
if [ $# -eq 0 ]; then set -- dynevent/add_remove_uprobe.tc kprobe/uprobe_syntax_errors.tc; fi
plain "$root" || die "the kernel's selftests take no path with a blank or a colon, and this is one: $root"
dir=$root/.cache/selftests-6.12
selftests trixie 6.12 "$dir"
kernel=$(SUITE=trixie "$scripts/kernel.sh") || cannot "there is no kernel (see above)"
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
busybox=$tools/busybox/bin/busybox

dump=$dir/${kernel##*/}.core
if [ ! -e "$dump" ]; then
	cat >"$dir/inside.sh" <<-'END'
		/bin/busybox --install -s /bin
		export PATH=/bin
		cd /ftrace
		exec sh ./ftracetest -vv -l /logs "$@"
	END
	(
		tests=$(cd "$dir/ftrace" && find ftracetest test.d/functions test.d/kprobe test.d/dynevent test.d/template -type f)
		set -- --file "$busybox:/bin/busybox" --file "$busybox:/bin/sh" --file "$dir/inside.sh:/inside.sh"
		for f in $tests; do set -- "$@" --file "$dir/ftrace/$f:/ftrace/$f"; done
		"$lab" boot "$kernel" --qemu "$qemu" -o "$dump" --append nopti "$@" >&2
	) || cannot "the kernel does not boot (see above)"
fi
tests=
for t in "$@"; do tests="$tests test.d/$t"; done
"$lab" exec --kernel "$dump" --budget 100000000000 /bin/busybox sh /inside.sh $tests >"$dir/log" || :
sed -n '/^\[[0-9]*\]/p; /^	\[[A-Z]*\]$/p' "$dir/log"
awk '/^	\[[A-Z]*\]$/ { n++; passed += $1 == "[PASS]" } END { printf "%d of %d pass\n", passed, n; exit !(n > 0 && passed == n) }' "$dir/log" || {
	say "what they say is in $dir/log"
	exit 1
}
