package bpf

import (
	"bytes"
	"context"
	"debug/elf"
	"strings"

	"kprobelab/booted"
	"kprobelab/bpf/answer"
	"kprobelab/internal/printable"
)

// modulesOf are the modules that a kind of section wants where the kernel does not have them built in. A kernel calls modprobe for
// them, and a guest has none.
var modulesOf = map[string][]string{
	"tc": {"sch_ingress", "cls_bpf"}, "classifier": {"sch_ingress", "cls_bpf"}, "action": {"sch_ingress", "cls_bpf", "act_bpf"},
}

// kindOf is the first word of a section's name.
func kindOf(section string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(section, "?"), "/")
	return kind
}

// missing are modules that could not be had, with the reason, by the kind of section that wants them.
type missing map[string]error

// modprobe loads the modules that an object's sections want.
func modprobe(k *booted.Kernel, object []byte, o *Options) missing {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || o.ModuleFiles == nil {
		return nil // the loader says what is wrong with a damaged object
	}
	defer f.Close()
	absent, asked := missing{}, map[string]bool{}
	for _, s := range f.Sections {
		kind := kindOf(s.Name)
		names := modulesOf[kind]
		if names == nil || asked[kind] {
			continue
		}
		asked[kind] = true
		absent[kind] = o.ModuleFiles(context.Background(), k.Release(), names, func(name string, code []byte) error {
			return k.Modprobe(context.Background(), name, code, "")
		})
	}
	return absent
}

// add puts the reasons beside the answers about programs that were not attached for want of a module.
func (m missing) add(programs []answer.Program) {
	for i := range programs {
		p := &programs[i]
		if err := m[kindOf(p.Section)]; err != nil && p.Loads && p.Attaches == nil {
			p.AttachError += ": " + printable.Name(firstLine(err.Error()))
		}
	}
}
