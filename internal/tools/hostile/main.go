//go:build linux

// Command hostile attacks a kprobelab program as a hostile user would: with damaged
// images, modules, configurations, live texts, symbol lists, lists of the
// processor's features, archives, kept answers, and files that change while they are
// read; with odd guest code, in an image's own functions too; with random command
// lines; with operations on a mount; with programs that use the packages from several
// goroutines, forget machines, close them inside of handlers, and call the machine's own code with
// garbage; with programs that make random system calls, and with damaged dumps of every form; with programs that are root on
// a booted kernel, and attack the host from there. It prints
// how many of each it tried, the most memory that one took and the longest, and fails
// where one harmed the host: a crash, an exit code that is not documented, an error
// without a sentence, a control character on the terminal, too much time or memory.
//
// It must not know how the program works, only how it is called, and the form of its
// archives.
//
//	hostile [-seed N] [-for TIME] [-only TEXT] [-case N] bin/kprobelab [IMAGE...]
//
// The seed and its number decide a case, but for files that change and mounts,
// where the host's scheduler has a part. A finding's files are kept, with the
// command line.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

type options struct {
	seed   uint64
	length time.Duration
	only   string
	one    int
	limit  time.Duration
	memory int64
	child  string
}

// patience is the real time after which a case is killed. It is longer than the limit, for
// a busy host gives the case only a part of a processor.
func (o *options) patience() time.Duration { return 5 * o.limit }

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "what decides every case")
	flag.DurationVar(&o.length, "for", 10*time.Minute, "how long to go on")
	flag.StringVar(&o.only, "only", "", "only cases of kinds with this `TEXT` in their names")
	flag.IntVar(&o.one, "case", -1, "only the case of this `NUMBER`, and keep its files")
	flag.DurationVar(&o.limit, "limit", 2*time.Minute, "the most processor time that a case may take; in time, it may take five times as long")
	flag.Int64Var(&o.memory, "memory", 2<<30, "the most `BYTES` that a case may take")
	flag.StringVar(&o.child, "child", "", "do what a program does that uses the packages in this `WAY`; inside of this one")
	flag.Parse()
	if o.child != "" {
		if err := child(o.child, o.seed); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(64) // no exit code of kprobelab's
		}
		return
	}
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "hostile: which program? hostile bin/kprobelab")
		os.Exit(2)
	}
	n, err := attack(&o, flag.Arg(0), flag.Args()[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
	if n > 0 {
		os.Exit(1)
	}
}

// attack runs cases until the time is up, and returns the number of findings.
func attack(o *options, program string, images []string) (int, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return 0, err
	}
	a := &attacker{o: o, program: program, dir: dir, tally: newTally()}
	if a.root, err = os.Getwd(); err != nil {
		return 0, err
	}
	if err := a.prepare(images); err != nil {
		return 0, err
	}
	fmt.Printf("seed %d, for %s, in %s\n", o.seed, o.length, dir)
	a.all()
	a.tally.print(os.Stdout)
	if a.tally.findings == 0 && o.one < 0 {
		return 0, os.RemoveAll(dir)
	}
	return a.tally.findings, nil
}

type attacker struct {
	o       *options
	program string
	dir     string
	// root is the project's folder.
	root  string
	seeds seeds
	kinds []kind
	tally *tally
}

// all lets as many workers as there are processors take the cases' numbers.
func (a *attacker) all() {
	end := time.Now().Add(a.o.length)
	if a.o.one >= 0 {
		a.one(a.o.one)
		return
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	number := 0
	for range runtime.NumCPU() {
		wg.Go(func() {
			for time.Now().Before(end) {
				mu.Lock()
				n := number
				number++
				mu.Unlock()
				a.one(n)
			}
		})
	}
	wg.Wait()
}

// one runs the case of that number in a folder of its own.
func (a *attacker) one(n int) {
	rng := rand.New(rand.NewPCG(a.o.seed, uint64(n)))
	k := a.pick(rng)
	if k == nil {
		return
	}
	dir := filepath.Join(a.dir, fmt.Sprint(n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		a.tally.found(n, k.name, err.Error())
		return
	}
	c := &tryOut{attacker: a, rng: rng, dir: dir, kind: k.name, number: n}
	k.run(c)
	if !c.bad && a.o.one < 0 {
		_ = os.RemoveAll(dir)
	}
}

// pick draws a kind, each as often as its weight says.
func (a *attacker) pick(rng *rand.Rand) *kind {
	total := 0
	for _, k := range a.kinds {
		total += k.weight
	}
	at := rng.IntN(total)
	for i := range a.kinds {
		if at -= a.kinds[i].weight; at < 0 {
			if !strings.Contains(a.kinds[i].name, a.o.only) {
				return nil
			}
			return &a.kinds[i]
		}
	}
	return nil
}
