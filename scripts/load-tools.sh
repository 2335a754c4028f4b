#!/bin/sh
# Asks booted kernels about every program of Debian's libbpf-tools, by the objects inside of them, and writes the table of docs/measured/load-tools.md, with the
# line of C to blame for each program that fails (make load-tools). Then bpftool prog loadall … autoattach loads the same objects in a guest, and
# its results are compared.
#
# DUMPS='5.10 6.1' picks kernels by the names of dumps.sh; TOOL=sid has the tools of another suite of Debian's than trixie; BESIDE='6.12' compares with
# bpftool on other kernels than 6.1 and the newest. OUT=FOLDER keeps objects and answers; an answer that is kept (OUT/kept) is not asked again.
# Ends with 0 when nothing differs without a cause, 1 when something does, and 77 when a kernel, QEMU or the tools cannot be had.
undone='tools were NOT loaded'
. "$(dirname "$0")/comparison.sh"

names=${DUMPS:-5.10 6.1 6.12 6.18 newest}
suite=${TOOL:-trixie}
package=libbpf-tools
if [ "$suite" != trixie ]; then package=libbpf-tools-$suite; fi
out=${OUT:-$root/.cache/conformance/load-tools-$suite}
page=$root/docs/measured/load-tools.md
mkdir -p "$out"
# The maps of some tools are larger than a guest of 128 MB.
dumps=$out
# shellcheck disable=SC2086 # several names
MEMORY=512M KPROBELAB_DUMPS=$dumps "$scripts/dumps.sh" $names ${BESIDE:-6.1 newest} || cannot "a kernel cannot be had (see above)"
for config in "$root"/.cache/kernel/*/config-*; do
	[ ! -e "$config" ] || cp "$config" "$dumps/" # values of the kernel's configuration
done
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
tool bpftool trixie bpftool || cannot "bpftool cannot be had (see above)"
tool "$package" "$suite" libbpf-tools || cannot "libbpf-tools cannot be had (see above)"
(cd "$root" && CGO_ENABLED=0 GOFLAGS='' go build -o "$out/bpfloader.new" ./internal/bpfloader)
cmp -s "$out/bpfloader.new" "$out/bpfloader" || rm -rf "$out/kept" # another loader's answers
mv "$out/bpfloader.new" "$out/bpfloader"
build_program unicorn
rm -rf "$out/objects"
mkdir -p "$out/objects" "$out/kept"
"$compare" skeletons objects -o "$out/objects" "$tools/$package"/usr/sbin/*-libbpf
say "$(ls "$out/objects" | wc -l) objects of libbpf-tools of $suite"
set --
for name in $names; do set -- "$@" -kernel "$name=$dumps/$name.core"; done
{
	sed '/^| tool |/,$d' "$page"
	"$compare" skeletons table -kept "$out/kept" -loader "$out/bpfloader" "$@" "$out/objects"/*.o
} >"$out/page.md"
if [ "$suite" = trixie ] && [ -z "${DUMPS:-}" ]; then cp "$out/page.md" "$page"; fi

cat >"$out/all.sh" <<'END'
busybox mount -t bpf bpf /sys/fs/bpf
for object in /objects/*.o; do
	echo "=== $object"
	/usr/sbin/bpftool prog loadall "$object" /sys/fs/bpf/tool autoattach 2>&1
	echo "ended with $?"
	busybox rm -rf /sys/fs/bpf/tool
done
END
status=0
for name in ${BESIDE:-6.1 newest}; do
	"$lab" exec --kernel "$dumps/$name.core" --budget 100000000000000 --root "$tools/bpftool" --file "$tools/bpftool/usr/sbin/bpftool:/usr/sbin/bpftool" --file "$out/objects:/objects" \
		--file "$tools/busybox/bin/busybox:/bin/busybox" --file "$tools/busybox/bin/busybox:/bin/sh" --file "$out/all.sh:/all.sh" \
		/bin/sh /all.sh >"$out/$name.theirs" 2>"$out/$name.theirs.err" || say "$name: the shell ended with $?"
	echo "$name"
	"$compare" skeletons bpftool -kept "$out/kept" -loader "$out/bpfloader" -kernel "$name=$dumps/$name.core" -theirs "$out/$name.theirs" "$out/objects"/*.o || status=1
done
exit $status
