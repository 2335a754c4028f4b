#!/bin/sh
# dist-sources.sh ARCHIVES FOLDER: fetches the source package of each file that dist archives has listed (name, source package,
# version), in exactly that version, and checks by the checksums of Debian's index. They are kept in .cache/dist/sources.
# SOURCES=FOLDER has files of packages that the mirror lacks; apt takes those whose checksums are right. What is missing at the end is
# printed, a package a line, and the exit code is then 1.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
list=$1 out=$2
keep=$root/.cache/dist/sources
mkdir -p "$keep" "$out"
wanted=$(awk -F '\t' '{ print $2 "=" $3 }' "$list" | sort -u)

opened=
# open: apt's state with the indexes of sources; an old security update may be in the one or the other.
open() {
	if [ -n "$opened" ]; then return; fi
	debian_open "$root/.cache/dist/apt" "$(debian_codename) trixie"
	sed -i 's/^deb \[arch=amd64 target=Packages/deb-src [target=Sources/' "$root/.cache/dist/apt/sources.list"
	apt-get -c "$apt_conf" update >&2 || die "no index of source packages (apt's message is above)"
	opened=yes
}

missing=
for w in $wanted; do
	name=${w%%=*} version=${w#*=}
	if [ ! -e "$keep/$w/complete" ]; then
		open
		rm -rf "${keep:?}/$w"
		mkdir -p "$keep/$w"
		case ${SOURCES:-yes} in yes | no) ;; *) cp "$SOURCES/$name"_* "$keep/$w/" 2>/dev/null || : ;; esac
		if ! (cd "$keep/$w" && apt-get -c "$apt_conf" source --download-only "$w" >&2); then
			say "the source package $name $version did not arrive (apt's message is above)"
			missing=yes
			printf '%s %s\n' "$name" "$version"
			continue
		fi
		: >"$keep/$w/complete"
	fi
	mkdir -p "$out/$name"
	find "$keep/$w" -type f ! -name complete -exec cp -p {} "$out/$name/" \;
	say "sources of $name $version"
done
[ -z "$missing" ]
