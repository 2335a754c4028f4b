# A browser of a Debian package, as an ordinary user, unpacked under .cache/tools.
# Sourced after conformance-tools.sh by chromium.sh and firefox.sh.
# shellcheck shell=sh

: "${tools:?the folder of the tools, set by conformance-tools.sh}"

# browser NAME PACKAGE PROGRAM: prints the command that starts PROGRAM of the package. A browser
# starts itself again, so that no loader may stand before it. The C library is the
# system's, which the package was made for.
browser() {
	tool "$1" "$(debian_codename)" "$2" || return 1
	dir=$tools/$1
	lib=$dir/usr/lib/x86_64-linux-gnu
	mkdir -p "$dir-lib" "$dir-fonts"
	for so in "$lib"/*.so* "$lib"/pulseaudio/*.so* "$dir"/lib/x86_64-linux-gnu/*.so*; do
		case ${so##*/} in
		libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | ld-linux* | libanl* | libnss_[cdfh]* | libmvec* | libthread_db* | libutil* | libBrokenLocale* | libnsl* | libc_malloc_debug* | libmemusage* | libpcprofile*) continue ;;
		esac
		[ -e "$so" ] && ln -sf "$so" "$dir-lib/${so##*/}"
	done
	cat >"$dir-fonts/fonts.conf" <<-END
		<?xml version="1.0"?>
		<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
		<fontconfig><dir>$dir/usr/share/fonts</dir><dir>/usr/share/fonts</dir><cachedir>$dir-fonts</cachedir></fontconfig>
	END
	printf '#!/bin/sh\nexport LD_LIBRARY_PATH="%s" FONTCONFIG_FILE="%s"\nexec "%s" "$@"\n' \
		"$dir-lib" "$dir-fonts/fonts.conf" "$dir$3" >"$dir.sh.$$"
	chmod +x "$dir.sh.$$"
	mv "$dir.sh.$$" "$dir.sh"
	printf '%s\n' "$dir.sh"
}
