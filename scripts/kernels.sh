# Debian's kernel images by release, from apt's index of many suites: sourced
# after debian.sh by kernel.sh and by the scripts that boot kernels.
#
# To 6.18 a kernel is in linux-image-RELEASE, with its configuration in /boot.
# From 6.19 on that package is empty: linux-binary-RELEASE has the image, and
# linux-base-RELEASE the configuration, which the archive keeps less long.
# shellcheck shell=sh

: "${root:?the repository, set by whoever sources it}"

# The suites that have kernels; each brings its security updates.
kernel_suites='bullseye bookworm bookworm-backports trixie trixie-backports forky sid experimental'
kernel_index=$root/.cache/kernel/index

# kernels_open: apt's state with the index of every suite, at most a day old
# ($REFRESH asks for a new one). Two hundred MB that every later call needs again.
kernels_open() {
	apt_state=$kernel_index
	apt_conf=$kernel_index/apt.conf
	if kernels_fresh; then return; fi
	(
		lock "$root/.cache/kernel/lock"
		if kernels_fresh; then exit; fi
		debian_open "$kernel_index" "$kernel_suites"
		: >"$kernel_index/complete"
	)
}

kernels_fresh() { [ -z "${REFRESH:-}" ] && [ -n "$(find "$kernel_index/complete" -mtime -1 2>/dev/null)" ]; }

# kernels_list: the RELEASE (as uname -r says it) of every kernel in the index,
# newest first. Packages that hold no kernel but name one are small.
kernels_list() {
	apt-cache -c "$apt_conf" dumpavail | awk '
		/^Package:/ { name = $2 }
		/^Size:/ { size = $2 }
		/^$/ { one() }
		END { one() }
		function one() {
			if (name ~ /^linux-(image|binary)-[0-9].*amd64(-unsigned)?$/ && size > 1000000) {
				sub(/^linux-(image|binary)-/, "", name)
				sub(/-unsigned$/, "", name)
				print name
			}
			name = ""
		}' | sort -rVu
}

# kernel_modules RELEASE DIR: puts the kernel's modules below DIR. False when no
# package has any.
kernel_modules() {
	for package in $(kernel_modules_packages "$1"); do
		if ! kernel_has "$package" || ! debian_download "$package" "$apt_state/archives"; then continue; fi
		mkdir -p "$2"
		dpkg-deb -x "$apt_state/archives/$package.deb" "$2"
		rm -f "$apt_state/archives/$package.deb"
		if [ -n "$(find "$2" -name '*.ko*' | head -n 1)" ]; then return; fi
	done
	return 1
}

# kernel_modules_packages RELEASE: the packages that may hold the modules. To 6.18 they
# are in the image's package, from 6.19 on in their own, which the archive keeps less long.
kernel_modules_packages() { printf '%s\n' "linux-modules-$1" "linux-image-$1" "linux-image-$1-unsigned"; }

# kernel_packages RELEASE: the packages that may hold the kernel, the likeliest first.
kernel_packages() { printf '%s\n' "linux-binary-$1" "linux-image-$1" "linux-image-$1-unsigned"; }

# kernel_version PACKAGE...: the version of those that the index has and that hold files.
# False when there is none.
kernel_version() {
	apt-cache -c "$apt_conf" show --no-all-versions "$@" 2>/dev/null |
		awk '/^Version:/ { version = $2 } /^Size:/ && $2 > 100000 { print version; found = 1; exit } END { exit !found }'
}

# kernel_has PACKAGE: true when the index has it, and it holds files.
kernel_has() { kernel_version "$1" >/dev/null; }

# kernel_fetch RELEASE DIR: puts DIR/vmlinuz-RELEASE and, where the archive has it,
# DIR/config-RELEASE. False when no package has the kernel, or it did not arrive.
kernel_fetch() {
	for package in $(kernel_packages "$1"); do
		if kernel_has "$package" && kernel_unpack "$package" "$1"; then
			if [ ! -e "$apt_state/root/config-$1" ] && kernel_has "linux-base-$1"; then
				kernel_unpack "linux-base-$1" "$1" || say "$1 stays without its configuration"
			fi
			[ -e "$apt_state/root/vmlinuz-$1" ] || continue
			mkdir -p "$2"
			mv "$apt_state/root/"*"-$1" "$2/"
			return
		fi
	done
	return 1
}

# kernel_debuginfo RELEASE DIR: puts DIR/vmlinux-RELEASE, with its debugging information.
# The modules' own, most of the package, stays packed.
kernel_debuginfo() {
	package=linux-image-$1-dbg
	if ! kernel_has "$package" || ! debian_download "$package" "$apt_state/archives"; then return 1; fi
	rm -rf "$apt_state/unpacked"
	mkdir -p "$apt_state/unpacked" "$2"
	say "unpacking vmlinux of $1"
	dpkg-deb --fsys-tarfile "$apt_state/archives/$package.deb" | (cd "$apt_state/unpacked" && tar -xf - --wildcards \
		'./usr/lib/debug/boot/vmlinux-*' './usr/lib/debug/lib/modules/*/vmlinux' 2>/dev/null) || :
	rm -f "$apt_state/archives/$package.deb"
	for f in "$apt_state/unpacked/usr/lib/debug/boot/vmlinux-$1" "$apt_state/unpacked/usr/lib/debug/lib/modules/$1/vmlinux"; do
		if [ -f "$f" ] && [ ! -L "$f" ]; then mv "$f" "$2/vmlinux-$1"; fi
	done
	rm -rf "$apt_state/unpacked"
	[ -f "$2/vmlinux-$1" ]
}

# kernel_unpack PACKAGE RELEASE: into the state's folder root, under the names
# that /boot uses. The modules, nine tenths of a package, stay packed.
kernel_unpack() {
	rm -rf "$apt_state/unpacked"
	mkdir -p "$apt_state/unpacked" "$apt_state/root"
	debian_download "$1" "$apt_state/archives" || return 1
	say "unpacking vmlinuz and config of $2"
	# tar says that a pattern was not found; one form of each is there.
	dpkg-deb --fsys-tarfile "$apt_state/archives/$1.deb" | (cd "$apt_state/unpacked" && tar -xf - --wildcards \
		'./boot/vmlinuz-*' './boot/config-*' './usr/lib/modules/*/vmlinuz' './usr/lib/modules/*/config' 2>/dev/null) || :
	rm -f "$apt_state/archives/$1.deb"
	for kind in vmlinuz config; do
		for f in "$apt_state/unpacked/boot/$kind-$2" "$apt_state/unpacked/usr/lib/modules/$2/$kind"; do
			if [ -f "$f" ]; then mv "$f" "$apt_state/root/$kind-$2"; fi
		done
	done
	rm -rf "$apt_state/unpacked"
}

# offer ITEMS: with LIST=1, prints the items of a comparison, one a line, and ends the script. An item is the environment for a
# run of the script on this item alone: NAME=VALUE, several with a tab between them. internal/tools/shards decides which items belong
# to SHARD=I/N, and runs the script for each; make calls it.
offer() {
	if [ -n "${LIST:-}" ]; then
		printf '%s\n' "$1"
		exit
	fi
	if [ -n "${SHARD:-}" ]; then
		say "SHARD goes with make: make $(basename "$0" .sh) SHARD=$SHARD"
		exit 2
	fi
}

# kernels_asked "SUITE...": the kernels that the caller's KERNEL=FILE names, or RELEASES, or else SUITES (by default the given ones)
# and FLAVOURS, as items, one a line.
kernels_asked() {
	if [ -n "${KERNEL:-}" ]; then
		printf 'KERNEL=%s\n' "$KERNEL"
	elif [ -n "${RELEASES:-}" ]; then
		for chosen in $RELEASES; do printf 'RELEASES=%s\n' "$chosen"; done
	else
		for chosen in ${SUITES:-$1}; do
			for flavour in ${FLAVOURS:-cloud-amd64}; do printf 'SUITES=%s\tFLAVOURS=%s\n' "$chosen" "$flavour"; done
		done
	fi
}

# kernels_chosen "SUITE...": the paths of the images of kernels_asked, one a line. 1 when one cannot be had, 2 when KERNEL is no
# file; the reason is printed.
kernels_chosen() {
	if [ -n "${KERNEL:-}" ]; then
		if [ ! -f "$KERNEL" ] || [ ! -r "$KERNEL" ]; then
			say "KERNEL=$KERNEL cannot be read"
			return 2
		fi
		printf '%s\n' "$KERNEL"
		return
	fi
	kernels_asked "$1" | sed 's/RELEASES=/RELEASE=/; s/SUITES=/RELEASE= SUITE=/; s/FLAVOURS=/FLAVOUR=/' | while read -r chosen; do
		# shellcheck disable=SC2086 # words of a release, a suite and a flavour
		env $chosen "$scripts/kernel.sh" </dev/null || exit 1
	done
}

# choose_kernels "SUITE...": has those in $kernels, or ends the script: with 2 when KERNEL is no file, with what the
# script's own cannot says when one cannot be had; with LIST=1 as offer does.
choose_kernels() {
	offer "$(kernels_asked "$1")"
	kernels=$(kernels_chosen "$1") || {
		[ $? != 2 ] || exit 2
		cannot "a kernel cannot be had (see above)"
	}
}
