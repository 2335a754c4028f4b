#!/bin/sh
# The kernel's own ftrace selftests for kprobe events, unmodified, over
# `kprobelab mount` (make selftests). They come from Debian's package
# linux-source-6.1 into .cache/selftests, and nothing of them leaves it.
#
# They run over the guest kernel inside the program; what does not pass there
# for want of symbols runs again over Debian's kernel image, where `make kernel`
# has left one. Everything happens in a mount namespace of its own, in which the
# mount's files stand over the host's: the host's tracing is not touched. It
# takes root (the tests ask for it) and /dev/fuse.
#
#   scripts/selftests.sh PROGRAM [TEST.tc|DIRECTORY...]
#
# Fails when a test does not pass that is not among those that cannot.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/selftests-fetch.sh"

dir=$root/.cache/selftests
tests=$dir/ftrace

# cannot TEST: why it cannot pass; nothing for one that has to.
cannot() {
	case $1 in
	kprobe_module) echo "loads a module (trace-printk) with the host's modprobe" ;;
	add_remove_uprobe) echo "has a program of the host hit a uprobe" ;;
	add_remove_eprobe | eprobes_syntax_errors) echo "about event probes, on the static events of system calls" ;;
	test_duplicates) echo "begins with an event probe" ;;
	add_remove_synth) echo "about synthetic events" ;;
	clear_select_events | generic_clear_event) echo "about synthetic events beside kprobe events" ;;
	esac
}

# run NAME TEST...: the tests over one image; results in $logs/NAME/results.
run() {
	name=$1
	shift
	mkdir -p "$logs/$name"
	unshare -m --propagation private "$scripts/selftests-inside.sh" "$program" "$tests" "$logs/$name" "$@" || :
	if [ ! -s "$logs/$name/results" ]; then die "the tests did not run over the $name ($logs/$name)"; fi
}

program=${1:?the kprobelab program}
shift
case $program in /*) ;; *) program=$PWD/$program ;; esac
if [ "$(id -u)" -ne 0 ]; then die "the kernel's selftests want to be run by root"; fi
if [ ! -c /dev/fuse ]; then die "/dev/fuse is not there: no selftests here"; fi
plain "$root" || die "the kernel's selftests take no path with a blank or a colon, and this is one: $root"
need unshare util-linux
selftests bookworm 6.1 "$dir"
if [ $# -eq 0 ]; then set -- "$tests/test.d/kprobe" "$tests/test.d/dynevent"; fi
logs=$dir/logs
rm -rf "$logs"
mkdir -p "$logs"

say "== over the guest kernel"
run guest "$@"
again=$(awk '$2 != "PASS" { print $1 }' "$logs/guest/results" | while read -r t; do
	if [ -z "$(cannot "$t")" ]; then find "$tests/test.d" -name "$t.tc"; fi
done)
if [ -n "$again" ]; then
	if image=$("$scripts/kernel.sh" --present 2>/dev/null); then
		say "== what did not pass, over $(basename "$image")"
		KPROBELAB_IMAGE=$image
		export KPROBELAB_IMAGE
		# shellcheck disable=SC2086
		run image $again
	else
		say "no kernel image for the tests that need more symbols; make kernel fetches one"
	fi
fi

echo
passed=0 total=0 bad=0
while read -r t result; do
	total=$((total + 1))
	where=guest
	if [ "$result" != PASS ] && [ -s "$logs/image/results" ]; then
		if grep -qx "$t PASS" "$logs/image/results"; then result=PASS where=image; fi
	fi
	if [ "$result" = PASS ]; then
		passed=$((passed + 1))
		printf 'pass  %-24s %s\n' "$t" "$where"
		continue
	fi
	why=$(cannot "$t")
	if [ -z "$why" ]; then
		bad=$((bad + 1))
		why="FAILED ($result): see $logs/*/*-$t.tc-log.*"
	fi
	printf '%-5s %-24s %s\n' no "$t" "$why"
done <"$logs/guest/results"
echo
echo "$passed of $total pass, $((total - passed - bad)) cannot, $bad failed"
[ "$bad" -eq 0 ]
