package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/shard"
)

// stub compares five kernels: of each it prints a line, of bad it ends with 1, of lost with 77.
const stub = `#!/bin/sh
if [ -n "$LIST" ]; then printf 'KERNEL=a b\nSUITES=x\tFLAVOURS=y\nKERNEL=%s\nKERNEL=d\nKERNEL=e\n' "${THIRD:-c}"; exit; fi
[ -z "$SHARD" ] || exit 3
echo "asked $KERNEL$SUITES $FLAVOURS"
echo "progress" >&2
case $KERNEL in bad) exit 1 ;; lost) exit 77 ;; wrong) exit 2 ;; dies) kill -9 $$ ;; esac
`

func comparing(t *testing.T, environ ...string) (c *comparison, out, errs *bytes.Buffer) {
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no sh here")
	}
	name := filepath.Join(t.TempDir(), "stub.sh")
	require.NoError(t, os.WriteFile(name, []byte(stub), 0o700))
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return &comparison{target: "conformance-stub", program: []string{name}, environ: append(os.Environ(), environ...), out: out, err: errs}, out, errs
}

// Rule: the shards' outputs together are those of one run, in its order, with the code of all.
func TestShardsOfAComparisonAreOneRun(t *testing.T) {
	for third, want := range map[string]int{"c": 0, "bad": 1, "lost": shard.NotHad} {
		for n := 1; n <= 6; n++ {
			var names []string
			for i := 1; i <= n; i++ {
				c, out, errs := comparing(t, "THIRD="+third, "SHARD=9/9")
				code, err := c.run(context.Background(), fmt.Sprintf("%d/%d", i, n), `s -j2 -- N=5 POINTS=a\ b SHARD=9/9 X=$$1`)
				require.NoError(t, err, errs.String())
				if third == "lost" && (3-i)%n == 0 {
					require.Equal(t, shard.NotHad, code)
				} else {
					require.Zero(t, code)
				}
				require.Contains(t, errs.String(), fmt.Sprintf("shard %d/%d", i, n))
				names = append(names, filepath.Join(t.TempDir(), fmt.Sprint(i)))
				require.NoError(t, os.WriteFile(names[i-1], out.Bytes(), 0o600))
			}
			r, err := shard.Open("other version", names)
			require.NoError(t, err)
			var text bytes.Buffer
			code, err := shard.MergeJobs(&text, r)
			require.NoError(t, err)
			require.Equal(t, want, code)
			require.Equal(t, "asked a b \nasked x y\nasked "+third+" \nasked d \nasked e \n", text.String())
			r.Close()
			if n > 1 {
				_, err = shard.Open("", names[1:])
				require.ErrorContains(t, err, fmt.Sprintf("shard 1/%d is missing; run again: make conformance-stub N=5 'POINTS=a b' 'X=$1' SHARD=1/%d", n, n))
			}
		}
	}
}

// Rule: a comparison that dies, or that is used wrongly, leaves an output that is not whole.
func TestComparisonsThatDie(t *testing.T) {
	for third, says := range map[string]string{"dies": "killed", "wrong": "KERNEL=wrong ended with 2"} {
		c, out, _ := comparing(t, "THIRD="+third)
		code, err := c.run(context.Background(), "1/2", "")
		require.ErrorContains(t, err, says)
		require.Equal(t, 2, code)
		name := filepath.Join(t.TempDir(), "1")
		require.NoError(t, os.WriteFile(name, out.Bytes(), 0o600))
		_, err = shard.Open("", []string{name})
		require.ErrorContains(t, err, "ends after 1 of 3 results")
		require.ErrorContains(t, err, "run again: make conformance-stub SHARD=1/2; make conformance-stub SHARD=2/2")
	}
	c, out, _ := comparing(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err := c.run(ctx, "1/2", "")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, out.String())
	for _, text := range []string{"0/3", "4/3", "x", ""} {
		code, err := c.run(context.Background(), text, "")
		require.EqualError(t, err, "SHARD="+text+" is no shard: I/N is wanted, such as 2/3 for the second of three")
		require.Equal(t, 2, code)
	}
}

func TestSharesOfLines(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, share(strings.NewReader("a\nb\nc\nd\ne\n"), &out, "2/3"))
	require.Equal(t, "b\ne\n", out.String())
	require.ErrorContains(t, share(strings.NewReader(""), &out, "4/3"), "is no shard")
}
