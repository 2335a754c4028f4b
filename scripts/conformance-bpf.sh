#!/bin/sh
# Runs all of Debian's libbpf-tools on booted kernels, under QEMU's emulation and by kprobelab exec on dumps of the same boots,
# each tool beside one workload (scripts/bpf/all.sh), and compares what they print (make conformance-bpf; docs/measured/bpf-tools.md has the table).
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance; TOOL=sid has the tools of another suite of Debian's than trixie;
# TOOLS='opensnoop tcplife' picks some. OUT=FOLDER keeps the answers.
# Ends with 0 when nothing differs without a rule, 1 when something does, and 77 when a kernel, QEMU or the tools cannot be had.
undone='the tools were NOT compared'
. "$(dirname "$0")/comparison.sh"

choose_kernels 'bookworm trixie trixie-backports'
suite=${TOOL:-trixie}
out=${OUT:-$root/.cache/conformance/bpf-$suite}
mkdir -p "$out"
package=libbpf-tools
if [ "$suite" != trixie ]; then package=libbpf-tools-$suite; fi
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
tool "$package" "$suite" libbpf-tools || cannot "libbpf-tools cannot be had (see above)"
tree=$tools/$package
libraries=/usr/lib/x86_64-linux-gnu
build_program

# Most tools run to SIGINT without an argument.
arguments() {
	case $1 in
	funclatency) echo vfs_read ;;
	ksnoop) echo trace vfs_read ;;
	fsdist | fsslower) echo -t ext4 ;;
	filetop | slabratetop | tcptop | biotop) echo -C 1 4 ;;
	cachestat | vfsstat) echo 1 4 ;;
	memleak) echo -a 2 2 ;;
	llcstat) echo 2 ;;
	# Of a user stack, the tool reads through NULL when the process has ended, under QEMU and here: which process it samples is chance.
	profile) echo -K 2 ;;
	esac
}
: >"$out/tools.sh"
"$compare" bpftools -workload files,processes,signals,mounts,sockets >"$out/work.sh"
echo kprobelab >"$out/hostname"
echo 'root:x:0:0::/:/bin/sh' >"$out/passwd"
set -- --file "$tools/busybox/bin/busybox:/bin/busybox" --file "$tools/busybox/bin/busybox:/bin/sh" --file "$scripts/bpf/all.sh:/scripts/all.sh" \
	--file "$out/tools.sh:/scripts/tools.sh" --file "$out/work.sh:/scripts/work.sh" --file "$out/hostname:/etc/hostname" --file "$out/passwd:/etc/passwd"
for file in "$tree"/usr/sbin/*-libbpf; do
	name=$(basename "$file" -libbpf)
	case " ${TOOLS:-$name} " in
	*" $name "*) ;;
	*) continue ;;
	esac
	echo "one $name $(arguments "$name")" >>"$out/tools.sh"
	set -- "$@" --file "$file:/usr/sbin/$name-libbpf"
done
sed -n 's/^one \([^ ]*\).*/\1/p' "$out/tools.sh" | while read -r name; do
	"$tree$libraries/ld-linux-x86-64.so.2" --library-path "$tree$libraries" --list "$tree/usr/sbin/$name-libbpf"
done | awk '$3 ~ /^\// { print $3 }' | sort -u >"$out/libraries"
differs=0

# compare KERNEL FILES...
compare() {
	kernel=$1
	shift
	release=${kernel##*/vmlinuz-}
	here=$out/$release
	"$lab" boot "$kernel" --qemu "$qemu" --append 'nopti norandmaps' --memory 512M -o "$here.core" --format elf >&2 || cannot "$release does not boot (see above)"
	"$lab" exec --kernel "$here.core" --budget 200000000000 --root "$tree" "$@" /bin/sh /scripts/all.sh >"$here.ours" 2>"$here.ours.err" || say "$release: the dump's shell ended with $?"
	set -- "$@" --file "$tree$libraries/ld-linux-x86-64.so.2:/lib64/ld-linux-x86-64.so.2"
	while read -r library; do
		set -- "$@" --file "$library:$libraries/${library##*/}"
	done <"$out/libraries"
	"$lab" boot "$kernel" --qemu "$qemu" --append 'nopti norandmaps' --memory 512M --timeout 60m "$@" --exec '/bin/sh /scripts/all.sh' \
		>"$here.theirs" 2>"$here.theirs.err" || cannot "the tools do not run on $release (see $here.theirs.err)"
	echo "$release, libbpf-tools of $suite"
	"$compare" bpftools -theirs "$here.theirs" -ours "$here.ours" || differs=1
	rm -f "$here.core"
}

while IFS= read -r chosen <&3; do
	compare "$chosen" "$@"
done 3<<END
$kernels
END
exit $differs
