package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/definition/ofimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// Definitions for kprobe_events: the whole line is read as the kernel reads it,
// names, pool and arguments included, and then the probe is planted.

// defined returns kprobe_events' answer to the probe's own line (docs/spec 9.2 and 9.5). direct
// is the answer to registering the probe at its place. waits: the kernel keeps the definition
// although there is nothing to probe yet: its module may come, or code at its address.
func (k *checker) defined(p *Probe, direct error) (err error, waits bool) {
	c := k.Profile()
	if !c.Tracing.Exists {
		return k.noEvents(ViaEvents), false
	}
	d, err := definition.Parse(p.line, k.definitions(), &c.Tracing)
	if err != nil {
		return k.refusedDefinition(p, err), false
	}
	if err = k.planted(d, direct); errno.Of(err) != errno.ENOENT {
		return err, false
	}
	module, _, in := strings.Cut(d.Symbol, ":")
	return err, d.Symbol == "" || in && !k.loaded(module)
}

// planted returns the answer to planting the probe of a definition.
func (k *checker) planted(d *definition.Definition, direct error) error {
	at := d.Addr
	if found := k.Lookup(d.Symbol); d.Symbol != "" && len(found) > 0 {
		at = found[0].Addr.Add(int64(d.Offset))
	}
	if k.notrace(at) {
		return refusal(errno.EINVAL, rule.Notrace)
	}
	if missing := k.missingSymbol(d); missing != "" && !k.Profile().Tracing.UnknownSymbolZero {
		return &probepoint.Refusal{Errno: errno.ENOENT, Rule: rule.Definition, Why: "an argument names the symbol " + missing + ", which is not there"}
	}
	return k.boundary(direct)
}

func (k *checker) loaded(module string) bool { return slices.Contains(k.Modules(), module) }

func (k *checker) definitions() definition.Kernel {
	return &ofimage.Kernel{View: k, Profile: k.Profile(), Types: k.Types, Loaded: k.loaded}
}

// missingSymbol is the first symbol in an argument (@SYM) that is not there.
func (k *checker) missingSymbol(d *definition.Definition) string {
	for i := range d.Args {
		for _, op := range d.Args[i].Code {
			if op.Code != definition.OpSymbol {
				continue
			}
			if name, _, err := definition.SymbolOffset(op.Data); err == nil && len(k.Lookup(name)) == 0 {
				return name
			}
		}
	}
	return ""
}

// refusedDefinition names the rule of a refused definition. The rules of the place are
// those of any probe.
func (k *checker) refusedDefinition(p *Probe, err error) error {
	var e *definition.Error
	if !errors.As(err, &e) {
		return err
	}
	_, name, _ := p.symbol()
	switch {
	case e.ID == definition.NonUniqSymbol:
		return refusal(e.Errno, rule.NotUnique)
	case e.ID == definition.BadRetprobe:
		return refusal(e.Errno, rule.NotEntry)
	case e.ID == definition.BadProbeAddr && len(k.Lookup(name)) == 0:
		return refusal(e.Errno, rule.UnknownSymbol)
	}
	r := probepoint.RefuseAs(e.Errno, rule.Definition, 0, "")
	if text := e.ID.Text(&k.Profile().Tracing); text != "" {
		r.Why = fmt.Sprintf("column %d: %s", e.Column+1, text)
	}
	return r
}
