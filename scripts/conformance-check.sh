#!/bin/sh
# Has Debian 13's bpftool load and attach objects with drawn sections on booted kernels, and
# compares what it and the kernel say with kprobelab check (make conformance-check).
#
# N=600 sections are drawn for each kernel by SEED=1: every kind of section, functions of every
# sort; or SECTIONS=FILE has them, one a line. SUITES='bookworm trixie trixie-backports' are Debian's releases whose kernels are asked;
# FLAVOURS, RELEASES='6.1.0-56-cloud-amd64 ...' and KERNEL=FILE as for conformance.sh.
# Ends with 0 when every answer is the same, or differs by a cause that is named, 1 when one does
# not, and 77 when a kernel, QEMU, bpftool or busybox cannot be had.
undone='objects were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=${WORK:-$root/.cache/conformance/check}
mkdir -p "$work"
cd "$root"

choose_kernels 'bookworm trixie trixie-backports'
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
tool bpftool trixie bpftool || cannot "bpftool cannot be had (see above)"
build_program

libraries=/usr/lib/x86_64-linux-gnu
tree=$tools/bpftool$libraries
libraries_of "$tools/bpftool" "$tools/bpftool/usr/sbin/bpftool" >"$work/libraries"
cat >"$work/all.sh" <<END
box() { /bin/busybox "\$@"; }
box mount -t bpf bpf /sys/fs/bpf
for object in /objects/*.o; do
	echo "=== \${object##*/}"
	$libraries/ld-linux-x86-64.so.2 --library-path $libraries /bin/bpftool prog loadall \$object /sys/fs/bpf/drawn autoattach 2>&1
	echo "ended with \$?"
	box rm -rf /sys/fs/bpf/drawn
done
END
set -- --file "$tree/ld-linux-x86-64.so.2:$libraries/ld-linux-x86-64.so.2"
while read -r library; do
	set -- "$@" --file "$library:$libraries/${library##*/}"
done <"$work/libraries"

status=0
IFS='
'
for kernel in $kernels; do
	unset IFS
	name=$(basename "$kernel")
	dir=$work/$name
	rm -rf "$dir/objects"
	"$compare" objects draw -kernel "$kernel" -n "${N:-600}" -seed "${SEED:-1}" ${SECTIONS:+-sections "$SECTIONS"} -o "$dir"
	"$lab" boot "$kernel" --qemu "$qemu" --memory 1G --timeout 10h --append 'nopti rcupdate.rcu_expedited=1' "$@" \
		--file "$tools/bpftool/usr/sbin/bpftool:/bin/bpftool" --file "$tools/busybox/bin/busybox:/bin/busybox" \
		--file "$tools/busybox/bin/busybox:/bin/sh" --file "$dir/objects:/objects" --file "$work/all.sh:/all.sh" \
		--exec '/bin/sh /all.sh' >"$dir/answers" || { say "$name was NOT asked to the end"; status=1; continue; }
	"$compare" objects compare -kernel "$kernel" "$dir" || status=1
	IFS='
'
done
exit $status
