#!/bin/sh
# Runs a program of many system calls on booted kernels, each with the same events
# (internal/tools/conformance/traces/testdata): under QEMU, where the kernel traces them
# itself, and in this program, from a dump of the same boot. Compares the two files
# trace, stacks too, line by line (make conformance-trace). A minute of CPU a kernel.
#
# SUITES='bullseye bookworm trixie' are Debian's releases whose kernels are asked;
# FLAVOURS, RELEASES='6.1.0-56-cloud-amd64 ...' and KERNEL=FILE as for conformance.sh.
# Ends with 0 when no line differs without a reason that is known, 1 when some do, and 77
# when a kernel or QEMU cannot be had.
undone='the traces were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/traces
given=$root/internal/tools/conformance/traces/testdata
mkdir -p "$work"

choose_kernels 'bullseye bookworm trixie'
build_program

# lines FILE FLAG: the lines of a file that are no comments, each after the flag, for set.
# A path may have blanks in it, and so has a definition: only the ends of lines divide.
lines() { sed "/^#/d;/^\$/d;s/^/$2\n/" "$1"; }
set -f
IFS='
'
# attaching FILE KERNEL: the definitions of the file that the kernel takes. A small kernel has no network, and a
# compiler leaves a function as a clone alone.
attaching() {
	"$lab" check --json - "$2" <"$1" | awk '
		FNR == NR && /"line":/ { line = $2 + 0 }
		FNR == NR && /"kprobe_events_errno": 0,/ { takes[line] }
		FNR < NR && FNR in takes' - "$1"
}

# of FILE EVENTS: the settings of the file, without those of an event that is not among the events.
of() {
	awk '
		FNR == NR { sub(/^[^:]*:/, ""); there[$1] }
		FNR < NR && split($0, path, "/") > 2 && path[1] path[2] == "eventskprobes" && !(path[3] in there) { next }
		FNR < NR' "$2" "$1"
}

status=0
for kernel in $kernels; do
	say "$kernel"
	# An ENDBR before the site is 4 bytes more.
	entry=5
	echo 'p do_exit+5' | "$lab" check - "$kernel" >/dev/null 2>&1 || entry=9
	sed "/^#/d;s/+ENTRY /+$entry /" "$given/events" >"$work/all"
	attaching "$work/all" "$kernel" >"$work/events" || :
	of "$given/settings" "$work/events" >"$work/settings"
	settings=$(lines "$work/settings" --tracefs)
	say "$(wc -l <"$work/events") of $(wc -l <"$work/all") events: the functions of the others are not in this kernel"
	# The program ends with exit code 7.
	"$lab" boot "$kernel" -o "$work/kernel.core" --format elf --append 'nopti norandmaps' --file "$root/testdata/calls.elf:/bin/calls" \
		--tracing "$work/events" $settings --trace-output "$work/kernels" --exec /bin/calls >"$work/out.kernels" 2>"$work/err" || {
		[ $? = 7 ] || { cat "$work/err" >&2; cannot "the kernel did not run the program"; }
	}
	"$lab" exec --kernel "$work/kernel.core" --budget 20000000000 $(lines "$work/events" -e) $settings --trace-output "$work/ours" \
		/bin/calls >"$work/printed.ours" 2>"$work/err" || [ $? = 7 ] || { cat "$work/err" >&2; status=1; continue; }
	sed '$d' "$work/out.kernels" >"$work/printed.kernels" # the last line is the command's own
	cmp "$work/printed.ours" "$work/printed.kernels" || status=1
	"$compare" traces "$work/ours" "$work/kernels" || status=1
done
rm -f "$work/kernel.core"
exit $status
