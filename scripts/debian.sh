# Debian packages for an ordinary user: sourced by deps.sh and kernel.sh.
#
# apt's own download does the work (signatures, proxies, retries), with a
# private state, so that nothing of the system is read but its sources and its
# keys, and nothing is written outside the project's folder.
# shellcheck shell=sh

: "${scripts:?the folder of this file, set by whoever sources it}"

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# need COMMAND PACKAGE: names what is missing and how to get it.
need() {
	command -v "$1" >/dev/null 2>&1 && return
	die "$1 is missing; as root: apt-get install $2 (or your system's package of that name)"
}

# debian_codename: the system's own suite, or bookworm on a system that is not Debian.
debian_codename() (
	ID='' VERSION_CODENAME=''
	# shellcheck disable=SC1091
	[ -r /etc/os-release ] && . /etc/os-release
	if [ "$ID" = debian ]; then
		printf '%s\n' "${VERSION_CODENAME:-sid}"
	else
		echo bookworm
	fi
)

# debian_entries: "rank URI suite key options" for each entry of Debian's main
# archive in the system's apt sources, in both formats that apt reads. Other
# vendors like to name their suites after Debian's, so an entry counts only
# with Debian's key, or with an address that ends in /debian or /debian-security.
debian_entries() {
	LIST='' PARTS=''
	eval "$(apt-config shell LIST Dir::Etc::sourcelist/f PARTS Dir::Etc::sourceparts/d)"
	{
		for f in "$LIST" "$PARTS"/*.list; do
			if [ -r "$f" ]; then awk -f "$scripts/sources-list.awk" "$f"; fi
		done
		for f in "${LIST%.list}.sources" "$PARTS"/*.sources; do
			if [ -r "$f" ]; then awk -f "$scripts/sources-deb822.awk" "$f"; fi
		done
	} | awk -F '\t' '
		$1 ~ /^cdrom:/ { next }
		$2 !~ /^(oldoldstable|oldstable|stable|testing|unstable|sid|bullseye|bookworm|trixie|forky|duke)(-updates|-security|\/updates)?$/ { next }
		{
			official = $3 ~ /debian-archive/
			named = $1 ~ /\/debian(-security)?\/?$/
			if ($3 != "-" && !official && !named) next
			print (official ? 1 : named ? 2 : 3) "\t" $0
		}' | sort -s -n -k1,1
}

# debian_key KEY: the entry's own Signed-By, else Debian's keyring.
debian_key() {
	if [ "$1" != - ]; then
		printf '%s\n' "$1"
		return
	fi
	for k in /usr/share/keyrings/debian-archive-keyring.pgp /usr/share/keyrings/debian-archive-keyring.gpg; do
		if [ -r "$k" ]; then
			printf '%s\n' "$k"
			return
		fi
	done
	die "Debian's archive keys are missing; as root: apt-get install debian-archive-keyring"
}

# debian_sources "SUITE..." [main]: the lines of a sources.list for these suites
# and, but for "main", their security updates, on the mirror that the system
# itself uses. KPROBELAB_MIRROR overrides it, for a system that is not Debian.
debian_sources() {
	entries=$(debian_entries)
	if [ -n "${KPROBELAB_MIRROR:-}" ]; then
		main=$(printf '0\t%s\t%s\t-\t-' "$KPROBELAB_MIRROR" "$1")
		security=
	else
		main=$(printf '%s\n' "$entries" | awk -F '\t' '$3 !~ /-updates$|-security$|\/updates$/ && !n++')
		security=$(printf '%s\n' "$entries" | awk -F '\t' '$3 ~ /-security$|\/updates$/ && !n++')
	fi
	if [ -z "$main" ]; then
		die "apt's sources name no Debian mirror; set KPROBELAB_MIRROR=http://…/debian"
	fi
	for of in $1; do
		case $of in
		*-security)
			if [ -z "$security" ]; then die "apt's sources name no mirror of $of"; fi
			printf '%s\n' "$security" | debian_line "$of"
			continue
			;;
		esac
		printf '%s\n' "$main" | debian_line "$of"
		case $of-${2:-} in *-main | sid-* | unstable-* | testing-* | experimental-* | *-backports-* | *-updates-*) continue ;; esac
		if [ -n "$security" ]; then
			printf '%s\n' "$security" | debian_line "$of-security"
		fi
	done
}

# debian_line SUITE: an entry on stdin as a line that fetches the package index alone.
debian_line() {
	IFS='	' read -r _ uri _ key options || :
	key=$(debian_key "$key") || exit 1
	if [ "$options" = - ]; then options=; fi
	printf 'deb [arch=amd64 target=Packages lang=none pdiffs=no signed-by=%s%s] %s %s main\n' \
		"$key" "${options:+ $options}" "$uri" "$1"
}

# plain PATH: true where the kernel's own makefiles and scripts can work: they take
# no path with a blank or a colon.
plain() { case $1 in *[[:space:]:]*) return 1 ;; esac; }

# lock FILE: waits until no other script has it, and keeps it until this one ends.
# Two that fetch the same at once would delete each other's state. What this script
# has locked already stays so. Without flock (util-linux), nothing is locked.
lock() {
	if [ "${locked:-}" = "$1" ]; then return; fi
	locked=$1
	command -v flock >/dev/null 2>&1 || return 0
	mkdir -p "${1%/*}"
	exec 9>"$1"
	flock -n 9 || {
		say "waiting for another script that fetches the same"
		flock 9
	}
}

# debian_open STATE "SUITE..." [main]: makes the private apt state and fetches the index.
# Afterwards, $apt_conf is apt's configuration file for it.
debian_open() {
	need apt-get apt
	need dpkg-deb dpkg
	apt_state=$1
	rm -rf "$apt_state"
	mkdir -p "$apt_state/lists/partial" "$apt_state/archives/partial"
	: >"$apt_state/status"
	debian_sources "$2" "${3:-}" >"$apt_state/sources.list"
	apt_conf=$apt_state/apt.conf
	# Read after the system's own configuration, so proxies stay in force.
	# The hooks are cleared because an image made for containers has one that
	# empties the system's package cache after each update. It also has no cache of
	# the index, without which each question reads all of it: 5 s in place of 0.8 s.
	cat >"$apt_conf" <<-END
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		Dir::State "$apt_state";
		Dir::State::status "$apt_state/status";
		Dir::State::Lists "$apt_state/lists";
		Dir::Cache "$apt_state";
		Dir::Cache::archives "$apt_state/archives";
		Dir::Cache::pkgcache "pkgcache.bin";
		Dir::Etc::sourcelist "$apt_state/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		APT::Sandbox::User "";
		APT::Update::Error-Mode "any";
		Acquire::Retries "2";
		Acquire::http::Timeout "20";
		Acquire::https::Timeout "20";
	END
	say "fetching the package index of $2 from $(awk '{ for (i = 1; i < NF; i++) if ($i ~ /\]$/) { print $(i+1); exit } }' "$apt_state/sources.list")"
	apt-get -c "$apt_conf" update >&2 ||
		die "no package index of $2: is there a network, and does the mirror carry that suite? (apt's message is above; KPROBELAB_MIRROR=URL picks another mirror)"
}

# debian_download PACKAGE DIR: the package's newest version, as DIR/PACKAGE.deb.
debian_download() {
	mkdir -p "$2"
	say "fetching the package $1"
	(cd "$2" && rm -f "$1"_*.deb && apt-get -c "$apt_conf" download "$1" >&2) || return 1
	mv "$2/$1"_*.deb "$2/$1.deb"
}
