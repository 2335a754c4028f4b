package attach

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A function of stap's library has locals of its own: a script's global of the same name keeps its value.
func TestLibraryLocalsAreNotTheScriptsGlobals(t *testing.T) {
	out := ran(t, `global now = "n", passed = "p", n = "x", i probe begin { i[1] = 2; qsq_start("q"); println(qsq_utilization("q", 1) + 0) }
		probe error { println(now, passed, n, i[1]) }`)
	assert.Contains(t, out, "npx2\n")
}

// Numbers without a name, names without a number, and numbers beyond an integer have an answer.
func TestLibraryTablesBeyondTheirEnds(t *testing.T) {
	for script, want := range map[string]string{
		`println(sock_fam_num2str(2), " ", sock_fam_num2str(-1), " ", sock_fam_num2str(21), " ", sock_fam_num2str(1 << 62))`:           "INET UNDEF UNDEF UNDEF",
		`println(sock_fam_str2num("INET6"), " ", sock_fam_str2num("no"), " ", sock_type_str2num(""))`:                                  "10 -1 -1",
		`println(tcp_sockstate_str(10), " ", tcp_sockstate_str(0), " ", rlimit_from_str("RLIMIT_NOFILE"), rlimit_from_str("NOFILE"))`:  "TCP_LISTEN UNDEF 7-1",
		`println(sigset_mask_str(0x4001), "|", sigset_mask_str(0))`:                                                                    "1,15|",
		`println(fp_to_long(fp_div(long_to_fp(7), long_to_fp(2)), 0, 0), " ", fp_to_long(fp_div(long_to_fp(1), long_to_fp(0)), 1, 0))`: "4 9223372036854775807",
		`println(fp_to_long(long_to_fp(1), 9, 0))`:                                                                                     "there is no rounding 9",
		`println(big_endian4(1), " ", ntohll(1), " ", little_endian2(-1))`:                                                             "16777216 72057594037927936 65535",
		`println(WEXITSTATUS(0x300), WIFEXITED(9), WTERMSIG(9), " ", cputime_to_string(61001000000), " ", tz_ctime(0))`:                "309 1m1.001s Thu Jan  1 00:00:00 1970 UTC",
	} {
		assert.Contains(t, ran(t, "probe begin { "+script+" }"), want, script)
	}
}

// Output that is held back comes whole, in its order, once; what is discarded does not come.
func TestHeldOutputComesOnce(t *testing.T) {
	assert.Equal(t, "ab.", ran(t, `probe begin { x = speculation() y = speculation()
		speculate(x, "a") speculate(y, "no") speculate(x, "b") discard(y) commit(x) commit(x) commit(y) print(".") }`))
}

// A stopwatch that stands keeps its time; one that is read before it is started has none.
func TestStopwatchStandsStill(t *testing.T) {
	assert.Equal(t, "0 10 10 25", ran(t, `probe begin { print((read_stopwatch_ms("w") + 500) / 1000) start_stopwatch("w") }
		probe timer.s(10) { if (n++ == 0) { stop_stopwatch("w") print(" ", (read_stopwatch_ms("w") + 500) / 1000) } if (n == 2) { print(" ", (read_stopwatch_ms("w") + 500) / 1000) start_stopwatch("w") } }
		probe timer.s(35) { print(" ", (read_stopwatch_ms("w") + 500) / 1000) exit() }
		global n`))
}
