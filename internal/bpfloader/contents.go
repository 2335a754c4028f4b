//go:build linux

package main

import (
	"bytes"
	"errors"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
)

// contents reads a map. ok is false for maps without entries of one's own: buffers, programs, sockets, constants.
func (l *loader) contents(name string, m *ebpf.Map) (c *answer.Contents, ok bool) {
	spec := l.spec.Maps[name]
	c = &answer.Contents{Map: name, Type: snake(m.Type().String())}
	if strings.HasPrefix(name, ".rodata") || name == ".kconfig" {
		return nil, false
	}
	switch m.Type() {
	case ebpf.Hash, ebpf.Array, ebpf.LRUHash, ebpf.LPMTrie, ebpf.StackTrace:
		l.entries(c, spec, m, 1)
	case ebpf.PerCPUHash, ebpf.PerCPUArray, ebpf.LRUCPUHash:
		n, err := ebpf.PossibleCPU()
		if err != nil {
			c.Error = err.Error()
			return c, true
		}
		l.entries(c, spec, m, n)
	case ebpf.Queue, ebpf.Stack:
		for {
			var value []byte
			if err := m.LookupAndDelete(nil, &value); err != nil {
				if !errors.Is(err, ebpf.ErrKeyNotExist) {
					c.Error = err.Error()
				}
				return c, true
			}
			if len(c.Entries) == bounded.BPFEntries {
				c.More++
				continue
			}
			c.Entries = append(c.Entries, answer.Entry{Value: decode(spec.Value, value)})
		}
	default:
		return nil, false
	}
	return c, true
}

// entries reads the entries of a map with a value for each of some processors.
func (l *loader) entries(c *answer.Contents, spec *ebpf.MapSpec, m *ebpf.Map, processors int) {
	array := m.Type() == ebpf.Array || m.Type() == ebpf.PerCPUArray
	var before any
	for n := range uint64(m.MaxEntries()) + 1 { // a map that changes meanwhile may begin again
		if array && n == bounded.BPFEntries {
			c.More = int(uint64(m.MaxEntries()) - n)
			return
		}
		key, err := m.NextKeyBytes(before)
		if err != nil {
			c.Error = err.Error()
			return
		}
		if key == nil {
			return
		}
		before = key
		value, err := m.LookupBytes(key)
		switch {
		case err != nil:
			c.Error = err.Error()
			return
		case value == nil: // gone meanwhile
			continue
		case array && len(bytes.Trim(value, "\x00")) == 0:
			c.Zero++
			continue
		case len(c.Entries) == bounded.BPFEntries:
			c.More++
			continue
		}
		c.Entries = append(c.Entries, entry(spec, key, value, processors))
	}
}

func entry(spec *ebpf.MapSpec, key, value []byte, processors int) answer.Entry {
	e := answer.Entry{Key: decode(keyType(spec), key)}
	if _, ok := spec.Value.(*btf.Datasec); ok {
		e.Key = nil
	}
	if processors == 1 {
		e.Value = decode(spec.Value, value)
		return e
	}
	size := len(value) / processors
	for i := range processors {
		e.Values = append(e.Values, decode(spec.Value, value[i*size:i*size+min(size, int(spec.ValueSize))]))
	}
	return e
}

// keyType is the type of a map's key; a number where an array's definition does not say it.
func keyType(spec *ebpf.MapSpec) btf.Type {
	if spec.Key == nil && spec.KeySize == 4 && (spec.Type == ebpf.Array || spec.Type == ebpf.PerCPUArray || spec.Type == ebpf.StackTrace) {
		return &btf.Int{Name: "unsigned int", Size: 4}
	}
	return spec.Key
}
