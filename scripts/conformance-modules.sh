#!/bin/sh
# Modules with kprobes on booted kernels (make conformance-modules), under QEMU and in this program on a dump of the same boot:
# the kernel's own samples/kprobes, and modules with one fault each (testdata/modules). All are built by kbuild
# against the headers of Debian's packages. What a shell prints that loads a module, uses the probed system call, unloads the
# module and uses the call again, and what the kernel logs meanwhile, has to be the same in both but for the rules below, and
# exec --module has to name each fault. Twenty minutes for four kernels; the rows of the table in docs/measured/modules.md come out.
#
# SUITES, FLAVOURS, RELEASES and KERNEL pick the kernels as for make conformance. MODULES='sleeps init_fails' picks modules.
# OUT=FOLDER keeps what was printed.
# Ends with 0 when nothing differs, 1 when something does or a fault is not named, and 77 when a kernel, its headers or QEMU
# cannot be had.
undone='modules were NOT compared'
. "$(dirname "$0")/comparison.sh"
. "$scripts/modules.sh"

work=$root/.cache/conformance/modules
out=${OUT:-$work/out}
asked='bullseye bookworm trixie trixie-backports'
offer "$(kernels_asked "$asked")" # listing needs no kbuild
plain "$root" || die "kbuild takes no path with a blank or a colon, and this is one: $root"
mkdir -p "$work" "$out"

choose_kernels "$asked"
qemu=$(qemu) || cannot "QEMU cannot be had (see above)"
tool busybox bookworm busybox-static || cannot "there is no busybox (see above)"
busybox=$tools/busybox/bin/busybox

# suites RELEASE: the suites whose headers may be a kernel's.
suites() {
	case $1 in
	5.10.*) echo bullseye ;;
	*+deb13*) echo trixie trixie-backports ;;
	*) echo bookworm ;;
	esac
}

# samples SUITE RELEASE: prints the folder with samples/kprobes of the linux-source package of a kernel's series.
samples() (
	version=$(echo "$2" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
	dir=$work/samples-$version
	if [ ! -e "$dir/kprobe_example.c" ]; then
		state=$work/apt
		trap 'rm -rf "$state"' EXIT
		debian_open "$state" "$1"
		debian_download "linux-source-$version" "$state" || exit 1
		say "unpacking samples/kprobes of $version"
		mkdir -p "$dir.new"
		dpkg-deb --fsys-tarfile "$state/linux-source-$version.deb" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
			tar -xJ --strip-components=3 -C "$dir.new" --wildcards '*/samples/kprobes' || exit 1
		printf 'obj-m := kprobe_example.o kretprobe_example.o\n' >"$dir.new/Makefile"
		rm -f "$dir.new/Kconfig"
		mv "$dir.new" "$dir"
	fi
	printf '%s\n' "$dir"
)

# built RELEASE: builds all modules of a kernel, unless they are newer than their sources; puts them into $work/RELEASE.
built() {
	into=$work/$1
	if [ -e "$into/complete" ] && [ -z "$(find "$root/testdata/modules" -newer "$into/complete")" ]; then return; fi
	rm -rf "$into"
	mkdir -p "$into"
	for suite in $(suites "$1"); do
		headers=$("$scripts/kernel-headers.sh" "$suite" "$1") || continue
		sources=$(samples "$suite" "$1") || continue
		module_build "$root/testdata/modules" "$headers" "$into/faulty" || cannot "$module_why"
		module_build "$sources" "$headers" "$into/samples" || cannot "$module_why"
		: >"$into/complete"
		return
	done
	cannot "the headers or the sources of $1 cannot be had (see above)"
}

# The guest's script. Each command gets two seconds; one that has not ended by then is left alone.
cat >"$work/run.sh" <<'END'
b=/bin/busybox
step() {
	what=$1
	shift
	"$@" &
	child=$!
	$b sleep 2
	if kill -0 $child 2>/dev/null; then echo "$what: does not end"; else wait $child; echo "$what: $?"; fi
}
# A kernel tests its ciphers after the boot; a dump is of one at rest.
while $b pidof cryptomgr_test >/dev/null; do $b sleep 1; done
echo begins >/dev/kmsg
step load $b insmod /module.ko
step call $b hostname first
step unload $b rmmod "$1"
step 'call after it' $b hostname second
$b hostname
$b dmesg
END

# once leaves out the warnings of 7.3 about a task that ends twice. After a handler that sleeps the count of preemptions is wrong: a timer
# that falls between the task's state and its last schedule() has it scheduled once more. Where timers fall is not the same on two machines.
once() {
	awk -v rules="$work/rules" '
		/\] -+\[ cut here \]-+$/ { block = ""; inside = 1 }
		inside {
			block = block $0 "\n"
			if (/---\[ end trace/) {
				inside = 0
				if (block ~ /WARNING: [^\n]* at (cgroup_task_dead|css_set_move_task|refcount_warn_saturate|free_task)\+[^\n]* swapper/) print "tasks that end twice\t1" >>rules
				else printf "%s", block
			}
			next
		}
		{ print }
		END { if (inside) printf "%s", block }'
}

# same FILE: what is to be compared of an output: the shell's lines, then the kernel's from its mark on. Each rule counts the
# lines that it changes, in $work/rules.
same() {
	sed 's/\r$//; s/^<[0-9]*>//' "$1" | once | awk -v rules="$work/rules" '
		function rule(name, pattern, by,   before) {
			before = $0
			gsub(pattern, by)
			if ($0 != before) count[name]++
		}
		/^\[ *[0-9]+\.[0-9]+\] begins$/ { log_begins = 1; next }
		/^\[ *[0-9]+\.[0-9]+\]/ && !log_begins { next }
		/^kprobelab: |^booting |^at the stop point/ { next }
		/\] (RSP|RAX|RDX|RBP|R10|R13|FS|CS|CR2|DR0|DR3|PKRU): / { count["registers"]++; next }
		/\]  \? / { count["guessed frames"]++; next }
		{
			rule("times", "^\\[ *[0-9]+\\.[0-9]+\\] ", "")
			rule("times", "took [0-9]+ ns", "took T ns")
			rule("process numbers", "PID: [0-9]+", "PID: P")
			rule("process numbers", "[a-z]+[/\\[][0-9]+[/\\]]", "task/P/")
			rule("process numbers", "/[0-9]+$", "/P")
			rule("process numbers", "returned [0-9]+ and", "returned P and")
			rule("addresses", "(0x)?ffff[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]", "ADDRESS")
			rule("addresses", "(0x)?00000000[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]", "ADDRESS")
			rule("numbers of oopses", "end trace [0-9a-f]+ ", "end trace N ")
			rule("addresses", "PGD [0-9a-f]+( P4D [0-9a-f]+)?( PUD [0-9a-f]+)?( PMD [0-9a-f]+)?( PTE [0-9a-f]+)?", "PGD ADDRESSES")
			rule("addresses", " sp 00007ff[0-9a-f]+ ", " sp ADDRESS ")
			print
		}
		END { for (name in count) print name "\t" count[name] >>rules }'
}

# named MODULE: the words of exec --module that name the fault.
named() {
	case $1 in
	forgets_probe) echo 'its probe at .* is still there' ;;
	forgets_return) echo 'its return probe at .* is still there' ;;
	sleeps) echo "the handler of sleeps's probe at .* sleeps" ;;
	unregisters_inside) echo "the handler of unregisters_inside's probe at .* unregisters the probe at" ;;
	registers_twice) echo 'registers_twice registers its probe at .*, which is registered' ;;
	blacklisted) echo 'the kernel refuses the probe of blacklisted at get_kprobe+0x0, which is on its list' ;;
	frees_first) echo "the handler of frees_first's probe at .* uses memory that the module has freed" ;;
	init_fails) echo 'init_fails is not loaded, and its probe at .* is still there' ;;
	*) echo 'is unloaded, and has left nothing' ;;
	esac
}

status=0
: >"$work/rules"
while IFS= read -r kernel <&3; do
	release=${kernel##*/vmlinuz-}
	built "$release"
	dump=$work/$release/kernel.core
	boot() {
		"$lab" boot "$kernel" --qemu "$qemu" --append nopti --file "$busybox:/bin/busybox" "$@"
	}
	if [ ! -e "$dump" ]; then
		boot -o "$dump.new" --format elf --file "$busybox:/bin/sh" >"$out/said" 2>&1 || { cat "$out/said" >&2; cannot "the kernel does not boot"; }
		mv "$dump.new" "$dump"
	fi
	for module in ${MODULES:-kprobe_example kretprobe_example forgets_probe forgets_return sleeps unregisters_inside registers_twice blacklisted frees_first init_fails}; do
		file=$work/$release/faulty/$module.ko
		if [ ! -e "$file" ]; then file=$work/$release/samples/$module.ko; fi
		kept=$out/$release-$module
		there=0 here=0 judged=0
		timeout 300 "$lab" boot "$kernel" --qemu "$qemu" --append nopti --file "$busybox:/bin/busybox" --file "$file:/module.ko" --file "$work/run.sh:/run.sh" \
			--exec "/bin/busybox sh /run.sh $module" >"$kept.there" 2>"$kept.there.said" </dev/null || there=$?
		timeout 300 "$lab" exec --kernel "$dump" --file "$file:/module.ko" --file "$work/run.sh:/run.sh" \
			-- /bin/busybox sh /run.sh "$module" >"$kept.here" 2>"$kept.here.said" </dev/null || here=$?
		timeout 300 "$lab" exec --kernel "$dump" --module "$file" -- /bin/busybox hostname first >"$kept.judged" 2>&1 </dev/null || judged=$?
		same "$kept.there" >"$kept.there.same"
		same "$kept.here" >"$kept.here.same"
		lines=$(wc -l <"$kept.there.same")
		if [ "$lines" -gt 3 ] && diff "$kept.there.same" "$kept.here.same" >"$kept.differ"; then
			result=same
		else
			result="differs ($(grep -c '^[<>]' "$kept.differ") lines)"
			status=1
		fi
		if grep -q "$(named "$module")" "$kept.judged"; then fault=named; else fault='NOT named' status=1; fi
		printf '| %s | %s | %s lines, %s | %s | %s | %s |\n' "$module" "${release%%-*}" "$lines" "$result" "$there, $here" "$fault" "$judged"
	done
done 3<<END
$kernels
END
awk -F '\t' '{ n[$1] += $2 } END { for (name in n) printf "rule %s: %d lines of both\n", name, n[name] }' "$work/rules" | sort >&2
exit $status
