#!/bin/sh
# bench-docs.sh KPROBELAB: measures, and writes the figures into docs/measured/cost.md,
# after the line that begins with "<!-- measured", and the plot beside it.
set -eu

kprobelab=$1
page=docs/measured/cost.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

"$kprobelab" bench --plot "$work/cost.svg" >"$work/paths"
"$kprobelab" bench --path k,b,o,ro,next-door --others 1 --others 10 --others 100000 >"$work/others"

{
	sed '/^<!-- measured/q' "$page"
	printf '\n%s\n\n' "Measured by $("$kprobelab" version | sed 's/.*, //') on $(nproc) CPUs of this kind: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)."
	sed '/./s/^/    /' "$work/paths"
	printf '\n![where the time goes](cost.svg)\n\nWith other probes planted:\n\n'
	sed '/./s/^/    /' "$work/others"
} >"$work/page"
mv "$work/page" "$page"
mv "$work/cost.svg" docs/measured/cost.svg
echo "wrote $page and docs/measured/cost.svg"
