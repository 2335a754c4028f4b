#!/bin/sh
# measured.sh: passes on the output of benchmarks (go test -v -bench), and names those that measured
# nothing, with the reason of each: go test calls a benchmark that is skipped a pass. Fails if one
# failed, or if nothing was measured.
awk '
	/^=== / || /^Benchmark[^ \t]*$/ { next }
	/ ns\/op/ { measured++ }
	/^(FAIL|--- FAIL)/ { failed = 1 }
	/^ *--- SKIP: / { sub(/.*--- SKIP: /, ""); skipped[++n] = $1 ": " reason; next }
	/^ +[a-z_0-9]+\.go:[0-9]+: / { reason = $0; sub(/^ +[^ ]+ /, "", reason); if (reason ~ /^(no|there) /) next }
	{ print }
	END {
		for (i = 1; i <= n; i++)
			print "not measured: " skipped[i] > "/dev/stderr"
		if (!failed && !measured)
			print "nothing was measured" > "/dev/stderr"
		exit failed || !measured
	}'
