package bpftrace

import (
	_ "embed" // prelude.bt
	"sync"
)

//go:embed prelude.bt
var preludeText string

// prelude returns the macros that every script of 0.27 has.
var prelude = sync.OnceValue(func() []*macro {
	t, problems := parse(newFile("prelude", preludeText+"begin { }"), nil, Language27)
	if len(problems.list) > 0 {
		panic("BUG: " + problems.Text())
	}
	for _, m := range t.macros {
		m.shared = true
	}
	return t.macros
})
