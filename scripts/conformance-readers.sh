#!/bin/sh
# Has crash and drgn, Debian's, open dumps of booted kernels, with the kernels' debugging
# information, and compares the tasks and the memory that they see with those seen here;
# makedumpfile, too, reads what was written here, and what it filters is read and run here
# (make conformance-readers). DUMPS='6.1 6.12' are NAME.core; the debugging information is
# up to a gigabyte a kernel, and DEBUGINFO= does without it.
# Ends with 77 when a tool, a dump or a kernel cannot be had.
undone='the dumps were NOT opened by others'
. "$(dirname "$0")/comparison.sh"

# Debian 12's crash 8.0.2 does not find the tasks of 6.1.
tool crash trixie crash || cannot "crash cannot be had (see above)"
wrap crash /usr/bin/crash >/dev/null
tool drgn bookworm python3-drgn || cannot "drgn cannot be had (see above)"
wrap drgn "/usr/bin/$(readlink "$tools/drgn/usr/bin/python3")" >/dev/null
sed -i "1a export PYTHONHOME='$tools/drgn/usr' PYTHONPATH='$tools/drgn/usr/lib/python3/dist-packages'" "$tools/drgn.sh"
tool makedumpfile bookworm makedumpfile || cannot "makedumpfile cannot be had (see above)"
mkdir -p "$tools/bin"
ln -sf "$(wrap makedumpfile /usr/bin/makedumpfile)" "$tools/bin/makedumpfile"

for name in ${DUMPS:-6.1}; do
	"$scripts/dumps.sh" "$name" || cannot "$name.core cannot be had"
	if [ -z "${DEBUGINFO-yes}" ]; then continue; fi
	release=$("$root/bin/kprobelab" info "$root/.cache/dumps/$name.core" | awk '$1 == "release" { print $2; exit }')
	RELEASE=$release "$scripts/kernel.sh" --debuginfo || cannot "no debugging information of $release"
done
cd "$root"
status=0
go test -count=1 -timeout 1h -v -run '^Test(Crash|Drgn)OpensADump$' ./internal/integration/booted || status=1
PATH=$tools/bin:$PATH go test -count=1 -timeout 1h -v -run '^Test(Makedumpfile|AFilteredDump)' \
	./kimage/vmcore ./internal/integration/running || status=1
exit $status
