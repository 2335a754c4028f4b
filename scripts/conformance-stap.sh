#!/bin/sh
# Has stap -p1 and kprobelab read scripts that are made of a corpus by changes at random, and
# compares what they say (make conformance-stap).
#
# Then TYPES=300 scripts with drawn types are asked in pass 2 (-p2).
# N and SEED are the scripts, KPROBELAB_STAP another stap; without one on the system, Debian's
# is fetched. POINTS=N has both resolve so many probe points, too (-p2), on a kernel with its
# debugging information, which is fetched, or IMAGE. Ends with 0 when 95 of 100 verdicts are the same and every script that is accepted
# here alone has a known cause, 1 when not, and 77 when stap cannot be had.
undone='the scripts were NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/stap
stap=${KPROBELAB_STAP:-$(command -v stap || :)}
if [ -z "$stap" ]; then
	tool stap bookworm systemtap || cannot "stap cannot be had (see above)"
	stap=$(wrap stap /usr/bin/stap) || cannot "stap cannot be had"
fi
# Pass 1 wants the look of a kernel's build folder, and reads all of its library: of that, its
# macros are enough, and take a tenth of the time.
mkdir -p "$work/tree/include/config" "$work/library/linux"
echo 6.1.0-56-cloud-amd64 >"$work/tree/include/config/kernel.release"
touch "$work/tree/.config" "$work/tree/Module.symvers" "$work/tree/System.map" "$work/tree/Makefile"
library=$tools/stap/usr/share/systemtap
[ -d "$library" ] || library=/usr/share/systemtap
cp "$library"/tapset/*.stpm "$work/library/"
cp "$library"/tapset/linux/*.stpm "$work/library/linux/"
export SYSTEMTAP_TAPSET="$work/library" SYSTEMTAP_RUNTIME="$library/runtime" SYSTEMTAP_DIR="$work/dir"
build_program
cd "$root"
"$compare" scripts -tool "$stap" -tree "$work/tree" -n "${N:-3000}" -seed "${SEED:-1}" -show "${SHOW:-0}" ${TABLE:+-table "$TABLE"}
"$compare" scripts -language stap-types -tool "$stap" -tree "$work/tree" -n "${TYPES:-300}" -seed "${SEED:-1}" -show "${SHOW:-0}"

[ "${POINTS:-0}" -gt 0 ] || exit 0
image=${IMAGE:-$("$scripts/kernel.sh" --debuginfo)} || cannot "no kernel with debugging information can be had (see above)"
ln -sf "$(realpath "$image")" "$work/tree/vmlinux"
CGO_ENABLED=0 go build -o "$work/kprobelab" ./cmd/kprobelab
status=0
"$compare" points -image "$image" -program "$work/kprobelab" -stap "$stap" -tree "$work/tree" -n "$POINTS" -seed "${SEED:-1}" -show "${SHOW:-10}" || status=$?
# The tests for which CI has no kernel with debugging information.
go test -count=1 -timeout 1h -v -run 'OfAKernelWithDWARF$|^TestSlideSocketTrace$' ./cmd/kprobelab || status=1
exit $status
