# ready: waits until the tool, which compiles first, has printed its first line (the lists bcc.sh and bpftrace.sh).
# shellcheck shell=sh disable=SC2154 # all.sh sets bb and tool
patience=60
attached() { [ -s /tmp/out ]; }
ready() {
	i=0
	while ! attached && kill -0 $tool && [ $i -lt 900 ]; do
		$bb sleep 1
		i=$((i + 1))
	done
	$bb sleep 2
}
