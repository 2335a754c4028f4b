//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"kprobelab/bpf/contract"
)

// errContract: a contract does not go with the object.
var errContract = errors.New("the contract")

// complete does to an object what the contract says.
func (l *loader) complete(c *contract.Contract) error {
	for _, name := range slices.Sorted(maps.Keys(c.Maps)) {
		if err := l.completeMap(name, c.Maps[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Constants)) {
		v := l.spec.Variables[name]
		if v == nil {
			return fmt.Errorf("%w: the object has no variable %s", errContract, name)
		}
		if v.Type == nil {
			return fmt.Errorf("%w: the object has no type of the variable %s", errContract, name)
		}
		data := l.section(v)
		if data == nil {
			return fmt.Errorf("%w: the variable %s has no bytes", errContract, name)
		}
		if err := encode(data, v.Type.Type, c.Constants[name]); err != nil {
			return fmt.Errorf("%w: %s: %w", errContract, name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Programs)) {
		p := l.spec.Programs[name]
		if p == nil {
			return fmt.Errorf("%w: the object has no program %s", errContract, name)
		}
		if err := l.completeProgram(p, c.Programs[name]); err != nil {
			return err
		}
	}
	l.contract = *c
	return nil
}

// section is the variable's part of its section's bytes; nil if it has none.
func (l *loader) section(v *ebpf.VariableSpec) []byte {
	m := l.spec.Maps[v.SectionName]
	if m == nil || len(m.Contents) != 1 {
		return nil
	}
	data, ok := m.Contents[0].Value.([]byte)
	if !ok || uint64(v.Offset)+uint64(v.Size()) > uint64(len(data)) {
		return nil
	}
	return data[v.Offset : v.Offset+v.Size()]
}

func (l *loader) completeMap(name string, c contract.Map) error {
	m := l.spec.Maps[name]
	if m == nil {
		return fmt.Errorf("%w: the object has no map %s", errContract, name)
	}
	if c.Entries != 0 {
		m.MaxEntries = c.Entries
	}
	if c.Key != 0 && c.Key != m.KeySize {
		m.KeySize, m.Key = c.Key, nil // as libbpf does: the type does not fit
	}
	if c.Value != 0 && c.Value != m.ValueSize {
		m.ValueSize, m.Value = c.Value, nil
	}
	if c.Record != "" && l.record(c.Record) == nil {
		return fmt.Errorf("%w: %s: the object has no type %s", errContract, name, c.Record)
	}
	if c.Inner == nil {
		return nil
	}
	if m.Type != ebpf.ArrayOfMaps && m.Type != ebpf.HashOfMaps {
		return fmt.Errorf("%w: %s is no map of maps", errContract, name)
	}
	if c.Inner.Map != "" {
		inner := l.spec.Maps[c.Inner.Map]
		if inner == nil {
			return fmt.Errorf("%w: the object has no map %s", errContract, c.Inner.Map)
		}
		m.InnerMap = inner.Copy()
		m.InnerMap.Contents, m.InnerMap.Pinning = nil, ebpf.PinNone
		return nil
	}
	kind, ok := mapTypes()[c.Inner.Type]
	if !ok {
		return fmt.Errorf("%w: %s: the inner map's type %q is none, as hash, array, lru_hash", errContract, name, c.Inner.Type)
	}
	m.InnerMap = &ebpf.MapSpec{Type: kind, KeySize: c.Inner.Key, ValueSize: c.Inner.Value, MaxEntries: c.Inner.Entries}
	return nil
}

// mapTypes are the types of maps by their names in small letters.
func mapTypes() map[string]ebpf.MapType {
	all := map[string]ebpf.MapType{}
	for t := ebpf.Hash; t <= ebpf.Arena; t++ {
		all[snake(t.String())] = t
	}
	return all
}

// snake writes a name of the library as the kernel does: LRUCPUHash is lru_percpu_hash.
func snake(name string) string {
	switch name {
	case "LRUHash", "LRUCPUHash", "PerCPUHash", "PerCPUArray", "LPMTrie", "PerfEventArray":
		return map[string]string{
			"LRUHash": "lru_hash", "LRUCPUHash": "lru_percpu_hash", "PerCPUHash": "percpu_hash", "PerCPUArray": "percpu_array", "LPMTrie": "lpm_trie",
			"PerfEventArray": "perf_event_array",
		}[name]
	}
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' && name[i-1] >= 'a' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// record is the object's type of a name: a structure, a union, or a typedef.
func (l *loader) record(name string) btf.Type {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "struct "), "union ")
	types, err := l.spec.Types.AnyTypesByName(name)
	if err != nil {
		return nil
	}
	for _, t := range types {
		if _, err := btf.Sizeof(t); err == nil {
			return t
		}
	}
	return nil
}

func (l *loader) completeProgram(p *ebpf.ProgramSpec, c contract.Program) error {
	if c.Of != "" {
		if l.spec.Programs[c.Of] == nil {
			return fmt.Errorf("%w: the object has no program %s", errContract, c.Of)
		}
		if p.Name == c.Of {
			return fmt.Errorf("%w: the program %s cannot be attached to itself", errContract, c.Of)
		}
	}
	for _, name := range c.Flags {
		flag, ok := contract.Flags[name]
		if !ok {
			return fmt.Errorf("%w: %s: the flag %q is none, as test_state_freq", errContract, p.Name, name)
		}
		p.Flags |= flag
	}
	if c.Attach == "" {
		return nil
	}
	kind, _, _ := strings.Cut(p.SectionName, "/")
	p.SectionName = kind + "/" + c.Attach
	switch p.Type {
	case ebpf.Tracing, ebpf.LSM, ebpf.Extension:
		p.AttachTo = c.Attach
	}
	return nil
}

// optional reports whether a tool goes on without a program.
func (l *loader) optional(p *ebpf.ProgramSpec) bool {
	c := l.contract.Programs[p.Name]
	if c.Load != nil && *c.Load {
		return c.Optional
	}
	return c.Optional || strings.HasPrefix(p.SectionName, "?")
}

// skipped reports whether the contract says that a program is not loaded.
func (l *loader) skipped(p *ebpf.ProgramSpec) bool {
	c := l.contract.Programs[p.Name]
	return c.Load != nil && !*c.Load
}
