#!/bin/sh
# Prints the command that starts a Chromium without windows: $KPROBELAB_CHROMIUM, the
# system's, else that of Debian's package, which is unpacked under .cache/tools with
# all that it depends on (no root needed).
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
root=${scripts%/*}
. "$scripts/debian.sh"
. "$scripts/conformance-tools.sh"

if [ -n "${KPROBELAB_CHROMIUM:-}" ]; then
	printf '%s\n' "$KPROBELAB_CHROMIUM"
	exit
fi
for found in chromium-headless-shell chromium google-chrome; do
	if command -v "$found"; then exit; fi
done
tool chromium "$(debian_codename)" chromium-headless-shell || die "Chromium cannot be had (see above)"

# It starts itself again, so that no loader may stand before it. The C library is the
# system's, which the package was made for.
dir=$tools/chromium
lib=$dir/usr/lib/x86_64-linux-gnu
mkdir -p "$tools/chromium-lib"
for so in "$lib"/*.so* "$lib"/pulseaudio/*.so* "$dir"/lib/x86_64-linux-gnu/*.so*; do
	case ${so##*/} in
	libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | ld-linux* | libanl* | libnss_[cdfh]* | libmvec* | libthread_db* | libutil* | libBrokenLocale* | libnsl* | libc_malloc_debug* | libmemusage* | libpcprofile*) continue ;;
	esac
	[ -e "$so" ] && ln -sf "$so" "$tools/chromium-lib/${so##*/}"
done
mkdir -p "$tools/chromium-fonts"
cat >"$tools/chromium-fonts/fonts.conf" <<-END
	<?xml version="1.0"?>
	<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
	<fontconfig><dir>$dir/usr/share/fonts</dir><dir>/usr/share/fonts</dir><cachedir>$tools/chromium-fonts</cachedir></fontconfig>
END
printf '#!/bin/sh\nexport LD_LIBRARY_PATH="%s" FONTCONFIG_FILE="%s"\nexec "%s" "$@"\n' \
	"$tools/chromium-lib" "$tools/chromium-fonts/fonts.conf" "$dir/usr/lib/chromium/chromium-headless-shell" >"$tools/chromium.sh"
chmod +x "$tools/chromium.sh"
printf '%s\n' "$tools/chromium.sh"
