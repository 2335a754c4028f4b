package bpftrace

import (
	"encoding/binary"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// perCPU checks percpu_kaddr("NAME"[, CPU]).
func (c *checker) perCPU(n *node) *Type {
	if c.count(n, 1, 2) {
		c.arg(n, 0, String, true)
		if len(n.kids) == 2 {
			c.arg(n, 1, Integer, false)
		}
		known, name := false, c.literalText(n.kids[0])
		if c.k != nil && c.k.Source != nil {
			_, err := c.k.Source.GlobalType(name)
			known = err == nil
		}
		if !known {
			c.error(n.at, "Could not resolve variable \"%s\" from BTF", name)
		}
	}
	return withSpace(uint64T, script.KernelSpace)
}

// perCPU makes the address of a CPU's copy of a variable: the running CPU's, or that of a CPU by its
// number, 0 if there is no such CPU (bpf_this_cpu_ptr, bpf_per_cpu_ptr).
func (g *generator) perCPU(n *node) script.Expr {
	symbol := func(name string) (addr uint64) {
		if g.c.k != nil && g.c.k.Symbol != nil {
			addr, _ = g.c.k.Symbol(name)
		}
		return addr
	}
	at, offsets, count := symbol(n.kids[0].text), symbol("__per_cpu_offset"), symbol("nr_cpu_ids")
	if offsets == 0 {
		g.fail(n.at, "percpu_kaddr(): this image has no areas of CPUs")
	}
	of := func(s host.System, cpu uint64) int64 {
		var b [8]byte
		if count != 0 && script.KernelSpace.Read(s, count, b[:4]) && cpu >= uint64(binary.LittleEndian.Uint32(b[:])) || cpu >= maxCPU {
			return 0
		}
		if !script.KernelSpace.Read(s, offsets+8*cpu, b[:]) {
			return 0
		}
		return int64(at + binary.LittleEndian.Uint64(b[:]))
	}
	if len(n.kids) == 1 {
		return call(number("percpu_kaddr", nil, func(t *script.Thread, _ *script.Args) int64 {
			s := system(t)
			return of(s, uint64(s.CPU()))
		}))
	}
	return call(number("percpu_kaddr", ints[:1], func(t *script.Thread, a *script.Args) int64 {
		return of(system(t), uint64(a.Int[0]))
	}), g.num(n.kids[1]))
}

// maxCPU is more than any kernel has (NR_CPUS).
const maxCPU = 8192
