package kprobestest_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kprobes"
	"kprobelab/kprobestest"
	"kprobelab/x86"
)

// loaderProgram builds the loader of the guest.
func loaderProgram(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "loader")
	cmd := exec.Command("go", "build", "-o", file, "kprobelab/internal/bpfloader")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// oneProgram is an object with one program, which returns 0, or ends with a register that it has not set.
func oneProgram(name string, good bool) []byte {
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0}
	if !good {
		code[0], code[1] = 0xbf, 0x20 // r0 = r2
	}
	names := []byte("\x00" + name + "\x00kprobe/vfs_read\x00license\x00.symtab\x00.strtab\x00")
	at := func(text string) uint32 { return uint32(bytes.Index(names, []byte("\x00"+text+"\x00")) + 1) }
	var symbols, body, headers bytes.Buffer
	put := func(to *bytes.Buffer, v any) { _ = binary.Write(to, binary.LittleEndian, v) }
	put(&symbols, []elf.Sym64{{}, {Name: at(name), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1, Size: 16}})
	put(&headers, elf.Section64{})
	for i, data := range [][]byte{code, []byte("GPL\x00\x00\x00\x00\x00"), symbols.Bytes(), names} {
		h := elf.Section64{Off: uint64(64 + body.Len()), Size: uint64(len(data)), Addralign: 8, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC)}
		switch i {
		case 0:
			h.Name, h.Flags = at("kprobe/vfs_read"), uint64(elf.SHF_ALLOC|elf.SHF_EXECINSTR)
		case 1:
			h.Name, h.Size = at("license"), 4
		case 2:
			h.Name, h.Type, h.Flags, h.Link, h.Info, h.Entsize = at(".symtab"), uint32(elf.SHT_SYMTAB), 0, 4, 1, 24
		case 3:
			h.Name, h.Type, h.Flags, h.Addralign = at(".strtab"), uint32(elf.SHT_STRTAB), 0, 1
		}
		put(&headers, h)
		body.Write(data)
	}
	for body.Len()%8 != 0 {
		body.WriteByte(0)
	}
	head := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_BPF), Version: 1, Shoff: uint64(64 + body.Len()), Ehsize: 64, Shentsize: 64, Shnum: 5, Shstrndx: 4}
	copy(head.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1})
	var out bytes.Buffer
	put(&out, head)
	out.Write(body.Bytes())
	out.Write(headers.Bytes())
	return out.Bytes()
}

// TestBPFInATest: the kernel's verifier answers, a probe of the test sees it at work, and the next test has a fresh kernel; a static
// program of the host runs there, too.
func TestBPFInATest(t *testing.T) {
	image, loader := runs.File(t, "6.1"), loaderProgram(t)
	code, err := os.ReadFile(loader)
	require.NoError(t, err)
	for _, good := range []bool{true, false} {
		t.Run(fmt.Sprint(good), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tool.bpf.o")
			require.NoError(t, os.WriteFile(file, oneProgram("reads", good), 0o600))
			m := kprobestest.New(t, &kprobestest.Options{Image: image, Budget: bpf.Budget})
			verified := 0
			m.Kprobe("bpf_check", func(*kprobes.Kprobe, *x86.PtRegs) int { verified++; return 0 }, nil)
			list := m.LoadBPF(file, &bpf.Options{Loader: code})
			require.Len(t, list, 1)
			require.Equal(t, "reads", list[0].Name)
			require.Equal(t, good, list[0].Loads, "%+v", list[0])
			require.Equal(t, good, list[0].Attaches != nil && *list[0].Attaches)
			require.Positive(t, verified)
			if good {
				output, code := m.ExecHost(loader, "one", "two")
				require.Equal(t, 2, code)
				require.Contains(t, output, "one OBJECT is wanted")
			}
		})
	}
}

// A test of a BPF object: the verifier of a booted kernel, and a probe beside it.
func ExampleMachine_LoadBPF() {
	test := func(t testing.TB) {
		m := kprobestest.New(t, &kprobestest.Options{Image: "6.1.core", Budget: bpf.Budget})
		attached := 0
		m.Kprobe("perf_event_attach_bpf_prog", func(*kprobes.Kprobe, *x86.PtRegs) int { attached++; return 0 }, nil)
		for _, p := range m.LoadBPF("tool.bpf.o", nil) {
			if p.Bad() {
				t.Errorf("%s: %s", p.Name, p.Why())
			}
		}
	}
	_ = test // in a test of yours: func TestTool(t *testing.T)
}
