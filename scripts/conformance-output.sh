#!/bin/sh
# Runs scripts with Debian's bpftrace on a booted kernel, under QEMU's emulation, and in this
# program on a dump of the same boot, each under the same program (testdata/init/deep.c), and
# compares what they print byte for byte, as text and as JSON (make conformance-output).
#
# SUITE, FLAVOUR or RELEASE pick the kernel as for make kernel, or KERNEL=FILE is an image;
# SCRIPTS=FOLDER has others than internal/script/bpftrace/testdata/booted, PROGRAM=FILE is another static program. With N, so many are drawn by
# internal/tools/conformance/values (SEED=1; PER=5 in a file), under testdata/init/values.c. TOOL=SUITE has the bpftrace
# of another suite of Debian's than trixie; of newer ones only those scripts are drawn that mean the same in 0.23.2. Frames of BPF's own
# code in a stack of the kernel's are taken out of what bpftrace prints: it does not run here.
# Ends with 0 when nothing differs, 1 when something does, and 77 when a kernel, QEMU,
# bpftrace or a C compiler cannot be had.
undone='the output was NOT compared'
. "$(dirname "$0")/comparison.sh"

work=$root/.cache/conformance/output${N:+-drawn-${SUITE:-bookworm}}${TOOL:+-$TOOL}
given=${SCRIPTS:-$root/internal/script/bpftrace/testdata/booted}
suite=${TOOL:-trixie}
tool=bpftrace
shared=
if [ "$suite" != trixie ]; then tool=bpftrace-$suite shared=yes; fi
program=deep formats='text json'
if [ -n "${PROGRAM:-}" ]; then program=$(basename "$PROGRAM"); fi
rm -rf "$work"
mkdir -p "$work/ours" "$work/theirs"

kernel=${KERNEL:-$(SUITE=${SUITE:-bookworm} "$scripts/kernel.sh")} || cannot "there is no kernel (see above)"
qemu=$(qemu) || cannot "there is no QEMU (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
tool "$tool" "$suite" bpftrace || cannot "bpftrace cannot be had (see above)"
if [ -n "${N:-}" ]; then
	program=values formats=text given=$work/drawn
	mkdir -p "$given"
	build_program
	"$compare" values -n "$N" -seed "${SEED:-1}" -per "${PER:-5}" ${shared:+-shared} -to "$given"
fi
if [ -n "${PROGRAM:-}" ]; then
	cp "$PROGRAM" "$work/$program.elf"
else
	make -s -C "$root/testdata/init" OUT="$work" BOOT="$work" "$work/$program.elf" >&2 || cannot "there is no C compiler (see above)"
fi

# It asks a shell for the compiler's folders, and takes none for an answer, but not that there is no shell.
libraries=/usr/lib/x86_64-linux-gnu
tree=$tools/$tool$libraries
llvm=$(echo "$tools/$tool"/usr/lib/llvm-*/lib)
libraries_of "$tools/$tool" "$tools/$tool/usr/bin/bpftrace" >"$work/libraries"
# bpftrace 0.27 has its compiler write to /dev/fd.
cat >"$work/all.sh" <<END
/bin/busybox ln -s /proc/self/fd /dev/fd
cd /scripts
for script in *.bt; do
	name=\$script
	for format in $formats; do
		echo "=== \${name%.bt}.\$format"
		$libraries/ld-linux-x86-64.so.2 --library-path $libraries /bin/bpftrace -f \$format \$script -c /bin/$program 2>/tmp/said
		code=\$?
		[ \$code = 0 ] || { echo "ended with \$code"; while IFS= read -r line; do echo "\$line"; done </tmp/said; }
	done
done
END
echo 'root:x:0:0::/:/bin/sh' >"$work/passwd"
set -- --append 'nopti norandmaps' --file "$work/$program.elf:/bin/$program"
"$lab" boot "$kernel" --qemu "$qemu" "$@" -o "$work/kernel.core" --format elf >&2 || cannot "the kernel does not boot (see above)"
while read -r library; do
	set -- "$@" --file "$library:$libraries/${library##*/}"
done <"$work/libraries"
"$lab" boot "$kernel" --qemu "$qemu" "$@" --memory 1500M --timeout 60m --file "$tools/$tool/usr/bin/bpftrace:/bin/bpftrace" \
	--file "$tools/busybox/bin/busybox:/bin/sh" --file "$tools/busybox/bin/busybox:/bin/busybox" --file "$work/passwd:/etc/passwd" --file "$given:/scripts" --file "$work/all.sh:/all.sh" \
	--exec '/bin/sh /all.sh' >"$work/all" || cannot "bpftrace does not run on the kernel (see above)"
# Frames of BPF's own. bpftrace knows no symbols of some of them, and names the last one before, a long way off.
own='bpf_(prog|trampoline|trace_run)[a-z0-9_]*\+[0-9]+|ftrace_trampoline\+[0-9]+|[a-z0-9_]+\+[0-9]{7,}'
sed -E "/^ +($own)\$/d; s/\\\\+n +($own)//g" "$work/all" | awk -v to="$work/theirs/" '/^=== / { f = to $2; printf "" >f; next } { print >f }'

status=0 same=0
for f in "$work"/theirs/*; do
	name=${f##*/}
	# From the same folder: a script's name is in what is said of its lines.
	code=0
	(cd "$given" && "$lab" bpftrace ${shared:+-q} -r "$work/kernel.core" -f "${name##*.}" -c "/bin/$program" "${name%.*}.bt") >"$work/ours/$name" 2>"$work/said" || code=$?
	[ $code = 0 ] || { echo "ended with $code"; grep -v '^kprobelab: the script is not accepted$' "$work/said" || :; } >>"$work/ours/$name"
	if cmp -s "$f" "$work/ours/$name"; then
		same=$((same + 1))
	else
		[ -z "${N:-}" ] || continue # said below, script by script
		status=1
		diff -u --label "bpftrace: $name" --label "kprobelab: $name" "$f" "$work/ours/$name" || :
	fi
done
[ -z "${N:-}" ] || "$compare" values -compare "$work/theirs" "$work/ours" || status=1
say "$same of $(ls "$work/theirs" | wc -l) outputs are the same ($(basename "$kernel"), $("$tree/ld-linux-x86-64.so.2" --library-path "$tree:$llvm" "$tools/$tool/usr/bin/bpftrace" --version))"
exit $status
