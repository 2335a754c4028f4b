package kprobestest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobestest"
)

func TestScriptsInATest(t *testing.T) {
	scripts := map[string]func(m *kprobestest.Machine, out *bytes.Buffer){
		"bpftrace": func(m *kprobestest.Machine, out *bytes.Buffer) {
			m.Bpftrace(`kprobe:gcd { printf("gcd %d\n", arg0); }`, out)
		},
		"stap": func(m *kprobestest.Machine, out *bytes.Buffer) {
			m.Stap(`probe kprobe.function("gcd") { printf("gcd %d\n", int_arg(1)) }`, out)
		},
	}
	for language, run := range scripts {
		t.Run(language, func(t *testing.T) {
			var out bytes.Buffer
			r := &recorder{}
			require.Empty(t, r.run(func(tb testing.TB) {
				m := kprobestest.New(tb, nil)
				run(m, &out)
				m.Call("gcd", 12, 18)
			}), "the leak check finds no probe of the script")
			require.Equal(t, "gcd 12\n", out.String()[:len("gcd 12\n")])
		})
	}
}

func TestScriptsThatFailATest(t *testing.T) {
	for _, c := range []struct {
		name, says string
		run        func(m *kprobestest.Machine)
	}{
		{"not accepted", "Unknown function: nothing", func(m *kprobestest.Machine) { m.Bpftrace(`BEGIN { @x = nothing(1); }`, nil) }},
		{"stap refuses it", "Pass 1: parse failed.", func(m *kprobestest.Machine) { m.Stap(`probe`, nil) }},
		{"nothing to probe", "no probe to attach", func(m *kprobestest.Machine) { m.Bpftrace(`kprobe:no_such* { }`, nil) }},
		{"ends with an error", "Pass 5: run failed.", func(m *kprobestest.Machine) {
			m.Stap(`probe kprobe.function("gcd") { error("enough") }`, nil)
			m.Call("gcd", 12, 18)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{}
			said := r.run(func(tb testing.TB) { c.run(kprobestest.New(tb, nil)) })
			require.Contains(t, strings.Join(said, "\n"), c.says)
		})
	}
}
