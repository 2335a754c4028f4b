#!/bin/sh
# Draws scripts of bpftrace's whose probes attach or not (wildcards, functions that cannot be
# attached to, aliases, names of several functions, split functions, fentry, tracepoints, lists,
# orders of options), runs them with the real bpftrace on a booted kernel, under QEMU's emulation,
# and with this program on a dump of the same kernel, and compares what is printed, the exit code
# and the number of probes (ATTACH=N make conformance-bpftrace).
#
# ATTACH is how many, 500 by default (some seconds each), SEED decides the choice; SUITE, FLAVOUR or
# RELEASE pick the kernel as for make kernel, or KERNEL=FILE is an image; TOOL=sid takes the bpftrace
# of sid in place of Debian 13's, whose words are others: what is compared then is whether a script is accepted,
# and each difference is counted by its rule. KEEP=FOLDER keeps what was answered there, and asks none of
# it again: a boot that ends early can be gone on with. Ends with 0 when nothing differs without a cause,
# 1 when something does or a command had no answer, and 77 when a kernel, QEMU or bpftrace cannot be had.
undone='the probes were NOT compared'
. "$(dirname "$0")/comparison.sh"

keep_folder
work=${KEEP:-$root/.cache/conformance/attach}
if [ -z "${KEEP:-}" ]; then rm -rf "$work"; fi
mkdir -p "$work/drawn"

kernel=${KERNEL:-$(SUITE=${SUITE:-bookworm} "$scripts/kernel.sh")} || cannot "there is no kernel (see above)"
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
name=bpftrace suites=trixie verdicts=
if [ "${TOOL:-}" = sid ]; then name=bpftrace-sid suites='trixie sid' verdicts=yes; fi
tool "$name" "$suites" bpftrace || cannot "bpftrace cannot be had (see above)"

libraries=/usr/lib/x86_64-linux-gnu
libraries_of "$tools/$name" "$tools/$name/usr/bin/bpftrace" >"$work/libraries"
echo 'root:x:0:0::/:/bin/sh' >"$work/passwd"
set -- --append 'nopti norandmaps'
"$lab" boot "$kernel" --qemu "$qemu" "$@" -o "$work/kernel.core" --format elf >&2 || cannot "the kernel does not boot (see above)"
build_program
"$compare" attach -draw -dump "$work/kernel.core" -folder "$work/drawn" -n "${ATTACH:-500}" -seed "${SEED:-1}" ${verdicts:+-verdicts} -answers "$work/all"
# bpftrace 0.27 has its compiler write to /dev/fd.
cat >"$work/drawn/all.sh" <<END
/bin/busybox ln -s /proc/self/fd /dev/fd
cd /scripts
one() {
	n=\$1
	shift
	$libraries/ld-linux-x86-64.so.2 --library-path $libraries /bin/bpftrace "\$@" >/tmp/out 2>/tmp/err
	echo "=== \$n \$?"
	/bin/busybox cat /tmp/out
	echo "=== err"
	/bin/busybox cat /tmp/err
	echo "=== end"
}
. ./commands.sh
END
while read -r library; do
	set -- "$@" --file "$library:$libraries/${library##*/}"
done <"$work/libraries"
# What hangs the kernel leaves the commands after it without an answer.
"$lab" boot "$kernel" --qemu "$qemu" "$@" --memory 1500M --timeout "${TIMEOUT:-90m}" --file "$tools/$name/usr/bin/bpftrace:/bin/bpftrace" \
	--file "$tools/busybox/bin/busybox:/bin/sh" --file "$tools/busybox/bin/busybox:/bin/busybox" --file "$work/passwd:/etc/passwd" \
	--file "$work/drawn:/scripts" --exec '/bin/sh /scripts/all.sh' >>"$work/all" || say "the boot did not end by itself"
"$compare" attach -dump "$work/kernel.core" -folder "$work/drawn" -answers "$work/all" -kprobelab "$lab" ${verdicts:+-verdicts}
