//go:build unicorn && cgo && linux && amd64

package levels

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/internal/tools/conformance/asked"
	"kprobelab/internal/tools/conformance/asked/booted"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage/evidence"
	"kprobelab/profile"
)

// options are the command line.
type options struct {
	booted.Asker
	keep   string
	differ bool
}

// Run runs the verb levels.
func Run(args []string) error {
	f := flag.NewFlagSet("levels", flag.ExitOnError)
	var o options
	f.StringVar(&o.QEMU, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	f.StringVar(&o.Init, "init", "", "the init program (asked/guest)")
	f.StringVar(&o.keep, "keep", "", "a folder that keeps what kernels answered; what is there is not asked again")
	f.BoolVar(&o.differ, "differ", false, "print the uses of files that are answered otherwise here, too")
	f.DurationVar(&o.Limit, "limit", 5*time.Minute, "how long a kernel may run")
	if err := f.Parse(args); err != nil {
		return err
	}
	var failed error
	for _, kernel := range f.Args() {
		if err := o.one(kernel); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", kernel, err)
			failed = verb.ErrNotRun
		}
	}
	return failed
}

// one prints what one kernel has.
func (o *options) one(kernel string) error {
	img, err := kprobelab.OpenImage(kernel, nil)
	if err != nil {
		return err
	}
	release := img.Fact("release").Value
	version, ok := img.Version()
	if !ok {
		return errors.New("the image does not say which release it is")
	}
	for _, f := range img.Behaviour() {
		if f.From != evidence.Dated && f.From != evidence.Asked {
			fmt.Println(f.Name, how(f.From), version, profile.WriteValue(f.Value))
		}
	}
	if o.Init == "" {
		return nil
	}
	ops := questions()
	theirs, err := o.answers(kernel, release, ops)
	if err != nil {
		return err
	}
	rules := *img.Profile()
	d := &decider{img, ops, theirs}
	found, err := d.settle(&rules)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(found))
	for n := range found {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Println(n, "booted", version, found[n])
	}
	if !o.differ {
		return nil
	}
	ours, err := d.emulate(&rules, "Tracing.ErrorLog", rules.Field("Tracing.ErrorLog"))
	if err != nil {
		return err
	}
	for _, diff := range asked.Compare(ops, theirs, ours) {
		fmt.Printf("# %s %s\n", release, strings.ReplaceAll(diff.String(), "\n", "\n#   "))
	}
	return nil
}

// how is the word for what decided a field of an image.
func how(from evidence.Source) string {
	if from == evidence.Measured {
		return "asked"
	}
	return string(from)
}

// answers returns the answers of a kernel, or the kept answers that it gave before.
func (o *options) answers(kernel, release string, ops []asked.Op) (answers []asked.Answer, err error) {
	kept := o.keep + "/" + release + ".json"
	if o.keep != "" {
		if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &answers) == nil && len(answers) == len(ops) {
			return answers, nil
		}
	}
	if answers, err = o.Ask(kernel, ops); err != nil || o.keep == "" {
		return answers, err
	}
	data, err := json.Marshal(answers)
	if err != nil {
		return nil, err
	}
	return answers, os.WriteFile(kept, data, 0o644)
}
