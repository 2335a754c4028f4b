//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"kprobelab/internal/tinyprogram"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// randomNumbers are the numbers that bounds are made of.
var randomNumbers = []uint64{
	0, 1, 2, 3, 4, 7, 8, 9, 10, 12, 16, 17, 31, 32, 63, 64, 65, 100, 101, 127, 128, 200, 255, 256, 1024, 4095, 4096, 4097, 65536, 1 << 20, 1 << 26, 1 << 28,
	1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1<<47 - 4096, 1 << 47, 1<<63 - 1, 1 << 63, 1<<64 - 100, 1<<64 - 4096, 1<<64 - 1,
	0x402000, 0x402800, 0x401000, 0x7fffffdf0000, 0xffffffff81000000, 0xffff888000000000, 0x100000000000,
	0x22, 0x32, 0x21, 0x4022, 0x10f00, 0x3d0f00, 0x11, 0x4111, 0102, 02000, 0200000,
}

// programCode makes n system calls with such numbers again and again.
func programCode(rng *rand.Rand, n int) []byte {
	var b []byte
	mov := func(reg byte, v uint64) { // of rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 and so on
		rex := byte(0x48) | reg>>3
		b = binary.LittleEndian.AppendUint64(append(b, rex, 0xb8|reg&7), v)
	}
	number := func() uint64 {
		v := randomNumbers[rng.IntN(len(randomNumbers))]
		if rng.IntN(4) == 0 {
			v += uint64(rng.IntN(33)) - 16
		}
		return v
	}
	mov(15, uint64(1+rng.IntN(3000)))
	top := len(b)
	for range n {
		for _, reg := range []byte{7, 6, 2, 10, 8, 9} {
			if rng.IntN(5) > 0 {
				mov(reg, number())
			}
		}
		nr := uint64(rng.IntN(340))
		if rng.IntN(3) > 0 { // the ones that note something
			often := []uint64{0, 1, 2, 3, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 22, 24, 25, 28, 33, 35, 39, 40, 56, 57, 58, 59, 61, 62, 72, 77, 80, 82, 83, 87, 131, 200, 202, 213, 217, 232, 233, 257, 270, 271, 281, 284, 291, 293, 318, 435, 436}
			nr = often[rng.IntN(len(often))]
		}
		mov(0, nr)
		b = append(b, 0x0f, 0x05)
		if rng.IntN(8) == 0 { // what it returned is an argument of the next ones
			b = append(b, 0x48, 0x89, 0xc7) // mov %rax,%rdi
		}
	}
	b = append(b, 0x49, 0xff, 0xcf, 0x0f, 0x85) // dec %r15; jne
	b = binary.LittleEndian.AppendUint32(b, uint32(top-len(b)-4))
	mov(0, 231)
	return append(b, 0x31, 0xff, 0x0f, 0x05) // xor %edi,%edi; syscall
}

// systemCalls runs a program without a kernel that makes random system calls.
func systemCalls(c *tryOut) {
	b, err := tinyprogram.Build([]byte("/tmp/x\x00../..\x00/proc/self/maps\x00/dev/fd/0\x00"), tinyprogram.Function{Name: "_start", Text: "ud2"})
	if err != nil {
		c.found("", err.Error())
		return
	}
	code := programCode(c.rng, 1+c.rng.IntN(45))
	if c.rng.IntN(4) == 0 { // some of its bytes are others
		for range 1 + c.rng.IntN(4) {
			code[c.rng.IntN(len(code))] = byte(c.rng.Uint32())
		}
	}
	copy(b[tinyprogram.Offset(0):], code)
	c.guest = true
	engine := []string{"unicorn", "interp"}[c.rng.IntN(2)]
	args := []string{"uprobe", "--timeout", "15s", "--max-output", "100000", "--budget", "50000000", "--engine", engine, "--seed", fmt.Sprint(c.rng.IntN(100))}
	if c.rng.IntN(3) == 0 {
		args = append(args, "-e", "p:u/x "+c.dir+"/program:0x1000")
	}
	c.run(nil, append(args, c.file("program", b))...)
}

// dumpForms make a dump of another form.
var dumpForms = map[string]func([]byte) []byte{
	"elf": func(b []byte) []byte { return b },
	"gzip": func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b) // to memory
		_ = z.Close()
		return out.Bytes()
	},
	"flattened": func(b []byte) []byte {
		out := make([]byte, 4096)
		copy(out, "makedumpfile\x00")
		for at := 0; at < len(b); at += 3000 {
			piece := b[at:min(at+3000, len(b))]
			out = binary.BigEndian.AppendUint64(out, uint64(at))
			out = append(binary.BigEndian.AppendUint64(out, uint64(len(piece))), piece...)
		}
		return append(out, bytes.Repeat([]byte{0xff}, 16)...)
	},
}

// smallDump is a dump of some processors and some pages, as ELF or compressed page by page.
func smallDump(rng *rand.Rand) []byte {
	img := &vmcore.Image{VMCoreInfo: []byte("OSRELEASE=6.1.0\nPAGESIZE=4096\nSYMBOL(swapper_pg_dir)=ffffffff82a10000\nNUMBER(phys_base)=0\nKERNELOFFSET=0\n")}
	for i := range 1 + rng.IntN(4) {
		img.CPUs = append(img.CPUs, vmcore.CPU{
			Regs:    x86.PtRegs{IP: 0xffffffff81000000 + uint64(i), SP: 0xffffc90000000000, CS: 0x10, SS: 0x18, Flags: 2},
			Control: &vmcore.Control{CR0: 0x80050033, CR3: 0x1000, CR4: 0x6f0},
		})
	}
	pages := make([]byte, (4+rng.IntN(40))*4096)
	for i := range pages {
		if i/4096%3 != 0 {
			pages[i] = byte(rng.Uint32())
		}
	}
	img.Memory = []vmcore.Memory{{Placed: vmcore.Placed{Range: vmcore.Range{Phys: 0x10000, Size: uint64(len(pages))}, Virt: 0xffff888000010000}, Data: bytes.NewReader(pages)}}
	var out bytes.Buffer
	switch rng.IntN(3) {
	case 0:
		_ = vmcore.WriteZstd(&out, img) // to memory
	case 1:
		return kdump(pages, rng)
	default:
		_ = vmcore.Write(&out, img)
	}
	return out.Bytes()
}

// kdump is memory from frame 0 on in the kdump-compressed form, its pages as they are (makedumpfile's diskdump_mod.h).
func kdump(pages []byte, rng *rand.Rand) []byte {
	const block = 4096
	le := binary.LittleEndian
	n := len(pages) / block
	b := make([]byte, 5*block) // two headers, two bitmaps of a block, room
	copy(b, "KDUMP   ")
	le.PutUint32(b[8:], 6)
	copy(b[272:], "x86_64")
	le.PutUint32(b[428:], block)
	le.PutUint32(b[432:], 1)
	le.PutUint32(b[436:], 2)
	le.PutUint32(b[440:], uint32(n))
	le.PutUint64(b[block+96:], uint64(n))
	at := uint64(4*block + 24*n)
	b = b[:4*block]
	for i := range n {
		b[2*block+i/8] |= 1 << (i % 8)
		b[3*block+i/8] |= 1 << (i % 8)
	}
	for i := range n {
		flags := []uint32{0, 0, 0, 1, 2, 4, 32}[rng.IntN(7)]
		b = le.AppendUint64(b, at+uint64(i)*block)
		b = le.AppendUint32(b, block)
		b = le.AppendUint32(b, flags)
		b = le.AppendUint64(b, 0)
	}
	return append(b, pages...)
}

// damagedDump asks about a dump of any form, damaged before it is packed and after.
func damagedDump(c *tryOut) {
	b := smallDump(c.rng)
	if c.rng.IntN(3) > 0 {
		b = mutate(c.rng, b)
	}
	names := []string{"elf", "elf", "gzip", "flattened"}
	for range 1 + c.rng.IntN(2) {
		b = dumpForms[names[c.rng.IntN(len(names))]](b)
	}
	if c.rng.IntN(3) == 0 {
		b = mutate(c.rng, b)
	}
	file := c.file("dump", b)
	all := [][]string{{"info", file}, {"info", "--json", file}, {"run", "--timeout", "20s", "--call", "gcd(1, 2)", file}, {"exec", "--timeout", "20s", "--kernel", file, "/bin/x"}, {"scan", file}}
	c.run(nil, all[c.rng.IntN(len(all))]...)
}
