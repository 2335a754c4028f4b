package stap

import (
	"sync"

	"kprobelab/internal/script"
)

// shared are the macros of the library.
var shared = sync.OnceValue(func() map[string]*macro {
	_, p := parse(&file{name: "library", text: libraryMacros + prometheusMacros() + "global __library_macros\n", library: true}, &Options{}, nil)
	if p.problems != nil {
		panic("BUG: " + p.problems.Text())
	}
	return p.macros
})

// Parse reads a script and returns it as -p1 prints it. The error is of type Problems.
func Parse(name, text string, o *Options) (string, error) {
	s, p := parse(newFile(name, text), o, shared())
	if p.problems != nil {
		return "", p.problems
	}
	return s.dump(name), nil
}

// Script is a script after its analysis, ready to run.
type Script struct {
	Program *script.Program
	Probes  []*Probe
	a       *analysis
}

// Analyze reads a script and resolves its probes on a kernel, which may be nil. The error is of
// type Problems.
func Analyze(name, text string, o *Options, k *Kernel) (*Script, error) {
	user, p := parse(newFile(name, text), o, shared())
	if p.problems != nil {
		return nil, p.problems
	}
	a := &analysis{o: o, k: k, user: user, lib: libraryParsed()}
	steps := []func(){a.collect, a.embedded, a.derive, a.some, a.prune, a.names, a.simplify, a.infer, a.typed, a.keepers, a.printGlobals, a.generate}
	for _, step := range steps {
		a.whole(step)
		if len(a.problems) > 0 {
			return nil, a.problems
		}
	}
	return &Script{Program: a.program, Probes: a.points, a: a}, nil
}

func (a *analysis) embedded() {
	for _, e := range a.user.embedded {
		a.fail(e, "embedded C is not compiled here")
	}
}

func (a *analysis) some() {
	if len(a.points) == 0 {
		a.noProbes()
	}
}

func (a *analysis) noProbes() {
	a.note(&Problem{Kind: semanticError, Message: "no probes found"})
}

// keepers adds the probes of the library whose code names a global that is read.
func (a *analysis) keepers() {
	for _, p := range a.lib.probes {
		needed := false
		walk(p.body, func(x expr) {
			switch x := x.(type) {
			case *index:
				needed = needed || a.globals[x.name] != nil && a.globals[x.name].read
			case *symbol:
				needed = needed || a.globals[x.name] != nil && a.globals[x.name].read
			}
		})
		if needed {
			for _, pt := range p.points {
				a.attempt(pt, func() { a.point(p, pt, chain{written: pt.String(), library: true}, 0) })
			}
		}
	}
	a.infer()
}
