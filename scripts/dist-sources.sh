#!/bin/sh
# dist-sources.sh ARCHIVES FOLDER: fetches the source of each file that dist archives has listed (name, source, version), in exactly that
# version. Debian's source packages are checked by the checksums of its index and kept in .cache/dist/sources; a Go module, which has a
# slash in its name, is the file that go mod verify has checked. What is missing at the end is printed, a source a line, and the exit code
# is then 1.
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
	debian_open "$root/.cache/dist/apt" "$(debian_codename)"
	sed -i 's/^deb \[arch=amd64 target=Packages/deb-src [target=Sources/' "$root/.cache/dist/apt/sources.list"
	apt-get -c "$apt_conf" update >&2 || die "no index of source packages (apt's message is above)"
	opened=yes
}

missing=
for w in $wanted; do
	name=${w%%=*} version=${w#*=}
	case $name in
	*/*)
		zip=$(cd "$root" && GOFLAGS='' go mod download -json "$name" | sed -n 's/^\t"Zip": "\(.*\)",$/\1/p')
		[ "${zip%/"$version".zip}" != "$zip" ] || die "go.mod has another version of $name than $version"
		mkdir -p "$out/${name##*/}"
		cp "$zip" "$out/${name##*/}/${name##*/}@$version.zip"
		chmod 644 "$out/${name##*/}"/*
		say "sources of $name $version"
		continue
		;;
	esac
	if [ ! -e "$keep/$w/complete" ]; then
		open
		rm -rf "${keep:?}/$w"
		mkdir -p "$keep/$w"
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
