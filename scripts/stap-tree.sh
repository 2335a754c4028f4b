# What stap takes for a kernel's build folder and for its own runtime. Sourced after
# conformance-tools.sh by conformance-stap-output.sh and conformance-stap-aliases.sh.
# shellcheck shell=sh
# shellcheck disable=SC2154

# stap_tree WORK HEADERS DEBUGINFO: makes WORK/tree of the headers and, beside them, the kernel
# with its debugging information, which others who use the headers must not find there, and
# WORK/runtime, stap's with the names of that kernel; sets what stap finds its library by.
stap_tree() {
	tree=$1/tree
	rm -rf "$tree" "$1/runtime"
	mkdir -p "$tree" "$1/dir"
	for f in "$2"/* "$2"/.config "$2"/.kernelvariables; do
		ln -s "$f" "$tree/"
	done
	common=${2%/*}/$(sed -n 's|^include \.\./\(.*\)/Makefile$|\1|p' "$2/Makefile")
	ln -s "$common" "$tree/source"
	ln -s "$3" "$tree/vmlinux"
	nm -n "$3" >"$tree/System.map" 2>/dev/null || return 1
	# Two names of 6.1 are other ones than that stap knows: what a kretprobe's instance belongs to, and
	# what cancels a task's work.
	rm "$tree/Makefile"
	cat >"$tree/Makefile" <<-END
		ifneq (\$(M),)
		\$(shell sed -i 's/pi->rp->data_size/get_kretprobe(pi)->data_size/' \$(M)/*_src.c 2>/dev/null)
		endif
		include $common/Makefile
	END
	library=$tools/stap/usr/share/systemtap
	cp -r "$library/runtime" "$1/runtime"
	if grep -q task_work_cancel_func "$common/include/linux/task_work.h"; then
		sed -i '/stp_task_work_func_done/!s/\btask_work_cancel\b/task_work_cancel_func/' "$1/runtime/stp_task_work.c"
	fi
	export SYSTEMTAP_TAPSET="$library/tapset" SYSTEMTAP_RUNTIME="$1/runtime" SYSTEMTAP_DIR="$1/dir"
}
