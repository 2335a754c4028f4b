package bpf

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"kprobelab/booted"
	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
)

// ready matches the loader's line when all programs are attached.
var ready = regexp.MustCompile(`^{"ready":true}$`)

// runs attaches all programs that the kernel takes, and runs the workload. A program of a section with ? is not loaded, as by
// libbpf, unless the contract says so.
func runs(k *booted.Kernel, got *answer.Object, o *Options) error {
	if o.Workload == "" {
		return nil
	}
	got.Run = &answer.Run{Command: cmp.Or(o.Command, o.Workload)}
	var names []string
	for _, p := range got.Programs {
		wanted := !strings.HasPrefix(p.Section, "?")
		if o.Contract != nil && o.Contract.Programs[p.Name].Load != nil {
			wanted = *o.Contract.Programs[p.Name].Load
		}
		if wanted && p.Loads && (p.Attaches == nil || *p.Attaches) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		got.Run.Error = "this kernel takes none of the programs"
		return nil
	}
	var out, said, wrote bytes.Buffer
	workload := &printing{to: &wrote}
	watch, err := o.Asked.Start(k)
	if err != nil {
		return err
	}
	result, err := k.Run(context.Background(), &booted.Session{
		Program:   booted.Program{Args: arguments(o, "-run", strings.Join(names, ",")), Stdout: &limited{&out}, Stderr: &limited{&said}},
		Workloads: []*booted.Program{{Args: []string{"/bin/sh", "-c", o.Workload}, Stdout: workload, Stderr: workload}},
		Ready:     ready,
	})
	if watch != nil {
		if l := watch.End(); o.Ledger != nil {
			o.Ledger(l)
		}
	}
	if err != nil {
		return err
	}
	told(got.Run, &out)
	got.Run.Output, got.Run.Exit = wrote.String(), result.Workloads[0].Code
	switch {
	case got.Run.Error != "":
	case result.Unstarted[0] != nil:
		got.Run.Error = "the workload did not start: " + result.Unstarted[0].Error()
	case result.NeverReady || result.Code != 0:
		got.Run.Error = fmt.Sprintf("%s: exit code %d: %s", ErrAnswer, result.Code, lastLine(said.String()))
	case result.Killed:
		got.Run.Error = ErrAnswer.Error() + ": it was killed"
	}
	return nil
}

// told reads what the loader has written of a run.
func told(run *answer.Run, from io.Reader) {
	for d := json.NewDecoder(from); ; {
		var line answer.Line
		err := d.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			run.Error = fmt.Sprintf("%s: %s", ErrAnswer, err)
			return
		case line.Error != "":
			run.Error = line.Error
		case line.Event != nil:
			run.Events = append(run.Events, *line.Event)
		case line.Contents != nil:
			run.Maps = append(run.Maps, *line.Contents)
		case line.Run != nil:
			run.Attached, run.Dropped, run.Error = line.Run.Attached, line.Run.Dropped, line.Run.Error
		}
	}
}

// printing keeps the beginning of a workload's output.
type printing struct{ to *bytes.Buffer }

func (p *printing) Write(b []byte) (int, error) {
	p.to.Write(b[:min(len(b), max(0, bounded.BPFOutput-p.to.Len()))])
	return len(b), nil
}

// writeRun writes a run for a person.
func writeRun(b *strings.Builder, kernel string, r *answer.Run) {
	fmt.Fprintf(b, "\n%s: %s: exit code %d, with %s\n", printable.Name(kernel), printable.Name(r.Command), r.Exit, printable.Name(cmp.Or(strings.Join(r.Attached, ", "), "nothing attached")))
	if r.Error != "" {
		fmt.Fprintf(b, "  %s\n", printable.Name(r.Error))
	}
	for line := range strings.Lines(r.Output) {
		fmt.Fprintf(b, "  | %s\n", printable.Name(strings.TrimRight(line, "\n")))
	}
	for _, e := range r.Events {
		switch {
		case e.Lost > 0:
			fmt.Fprintf(b, "  %s: %d records lost\n", printable.Name(e.Map), e.Lost)
		case e.Map != "":
			fmt.Fprintf(b, "  %s: %s\n", printable.Name(e.Map), printable.Name(string(e.Value)))
		default:
			fmt.Fprintf(b, "  printk: %s\n", printable.Name(e.Printed))
		}
	}
	if r.Dropped > 0 {
		fmt.Fprintf(b, "  %d more records were not kept\n", r.Dropped)
	}
	for _, m := range r.Maps {
		writeMap(b, &m)
	}
}

// lost writes the ledger of a run, and costs above the limit.
func (c *Column) lost(b *strings.Builder) {
	if c.Losses != nil {
		fmt.Fprintf(b, "\n%s: what became of each call\n", printable.Name(c.Kernel))
		_ = c.Losses.Write(b)
	}
	if c.Costs != "" {
		fmt.Fprintf(b, "\n%s: %s\n", printable.Name(c.Kernel), printable.Name(c.Costs))
	}
}

// writeMap writes the entries of a map.
func writeMap(b *strings.Builder, m *answer.Contents) {
	name := printable.Name(m.Map)
	switch {
	case m.Error != "":
		fmt.Fprintf(b, "  %s: %s\n", name, printable.Name(m.Error))
	case len(m.Entries) == 0:
		fmt.Fprintf(b, "  %s is empty\n", name)
	}
	for _, e := range m.Entries {
		key, value := "", string(e.Value)
		if e.Key != nil {
			key = "[" + string(e.Key) + "]"
		}
		if e.Values != nil {
			value = string(bytes.Join(raws(e.Values), []byte(" | ")))
		}
		fmt.Fprintf(b, "  %s%s = %s\n", name, printable.Name(key), printable.Name(value))
	}
	if m.More > 0 {
		fmt.Fprintf(b, "  %s has %d more\n", name, m.More)
	}
}

func raws(list []json.RawMessage) (out [][]byte) {
	for _, v := range list {
		out = append(out, v)
	}
	return out
}
