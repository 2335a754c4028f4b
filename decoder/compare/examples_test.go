package compare

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamplesOfTheProtocol: the small decoders of examples/ speak the protocol, and
// their fault is found.
func TestExamplesOfTheProtocol(t *testing.T) {
	for _, tt := range []struct {
		file    string
		compile []string // the program's path follows
		run     []string
	}{
		{"three.c", []string{"gcc", "-O1", "-o"}, nil},
		{"three.py", nil, []string{"python3"}},
		{"three.js", nil, []string{"node"}},
		{"three.rs", []string{"rustc", "-o"}, nil},
	} {
		t.Run(tt.file, func(t *testing.T) {
			source, err := filepath.Abs("examples/" + tt.file)
			require.NoError(t, err)
			command := append(tt.run, source)
			if tt.compile != nil {
				command = []string{filepath.Join(t.TempDir(), "three")}
				compile := append(append([]string{}, tt.compile...), command[0], source)
				if _, err := exec.LookPath(compile[0]); err != nil {
					t.Skipf("there is no %s here", compile[0])
				}
				out, err := exec.Command(compile[0], compile[1:]...).CombinedOutput()
				require.NoError(t, err, "%s", out)
			} else if _, err := exec.LookPath(command[0]); err != nil {
				t.Skipf("there is no %s here", command[0])
			}
			d, err := StartChild(tt.file, command[0], command[1:]...)
			require.NoError(t, err)
			defer d.Close()
			c := &Comparison{}
			for _, q := range [][]byte{{0x90}, {0xC3}, {0xEB, 0x05}, {0xEB, 0xFE}} {
				require.NoError(t, Walk([]Decoder{d}, q, 0, c, map[string]bool{}, nil))
			}
			list := c.Differences()
			require.Len(t, list, 1)
			require.Equal(t, "primary eb jmp", list[0].Opcode)
			require.Equal(t, "target", list[0].What)
			require.Equal(t, 3, c.Tally(tt.file).Same)
		})
	}
}

// TestDegenerateDecoders: a decoder that decodes nothing, or everything, or at random, is
// called that.
func TestDegenerateDecoders(t *testing.T) {
	all := FromFunc("all", func([]byte) Answer { return Answer{Length: 1} })
	nothing := FromFunc("nothing", func([]byte) Answer { return Answer{} })
	n := 0
	random := FromFunc("random", func([]byte) Answer { n++; return Answer{Length: n * 7919 % 16} })
	c := &Comparison{}
	require.NoError(t, fuzzed([]Decoder{all, nothing}, 1, 5000, c, none))
	require.Regexp(t, `^all accepts all 5000 questions, \d+ of them no instructions$`, c.Tally("all").Useless("all"))
	require.Regexp(t, `^nothing refuses all 5000 questions, \d+ of them instructions$`, c.Tally("nothing").Useless("nothing"))
	require.Equal(t, c.Accepted, c.Tally("nothing").Refused)
	require.Equal(t, 5000-c.Accepted, c.Tally("all").Accepted)
	require.ErrorIs(t, fuzzed([]Decoder{random}, 1, 5000, &Comparison{}, none), ErrUnsteady)
}

// TestOursIsTheSuspect: if three decoders agree against ours, the report says so, whatever each of
// them answers.
func TestOursIsTheSuspect(t *testing.T) {
	wrong := func(b []byte) Answer {
		var a [1]Answer
		Ours([][]byte{b}, a[:])
		if b[0] == 0x06 {
			return Answer{Length: 1}
		}
		return a[0]
	}
	list := []Decoder{FromFunc("a", wrong), FromFunc("b", wrong), FromFunc("c", wrong)}
	c := &Comparison{}
	require.NoError(t, Walk(list, []byte{0x06, 0x90}, 0, c, map[string]bool{}, nil))
	var suspects []*Difference
	for _, d := range c.Differences() {
		if d.Decoder == Suspect {
			suspects = append(suspects, d)
		}
	}
	require.Len(t, suspects, 1)
	require.Equal(t, "accepted", suspects[0].What)
	require.Equal(t, []byte{0x06}, suspects[0].Bytes())
	c = &Comparison{}
	require.NoError(t, Walk(list[:2], []byte{0x06, 0x90}, 0, c, map[string]bool{}, nil))
	for _, d := range c.Differences() {
		require.NotEqual(t, Suspect, d.Decoder)
	}
}

// TestRefusalIsADifference: a refusal that nothing explains is a difference, in code as
// in generated encodings; a stranger's has no cause.
func TestRefusalIsADifference(t *testing.T) {
	imul := FromFunc("x86asm", func(b []byte) Answer { // a name is no cause
		if b[0] == 0x0F && b[1] == 0xAF {
			return Answer{}
		}
		var a [1]Answer
		Ours([][]byte{b}, a[:])
		return a[0]
	})
	c := &Comparison{}
	require.NoError(t, Walk([]Decoder{imul}, []byte{0x0F, 0xAF, 0xC0, 0x90}, 0, c, map[string]bool{}, nil))
	list := c.Differences()
	require.Len(t, list, 1)
	require.Equal(t, "refused", list[0].What)
	require.Empty(t, list[0].Cause)
	require.Equal(t, 1, c.Tally("x86asm").Refused)
}

// TestKnownByItsAnswers: a version is known by its answers: the same one under another name
// has the same causes, and another one under its name has none.
func TestKnownByItsAnswers(t *testing.T) {
	renamed := FromFunc("mine", func(b []byte) Answer { return askX86asm(b, false) })
	k, err := Recognize(renamed)
	require.NoError(t, err)
	require.NotNil(t, k)
	require.Equal(t, "x86asm", k.Name)
	k, err = Recognize(FromFunc("x86asm", func([]byte) Answer { return Answer{} }))
	require.NoError(t, err)
	require.Nil(t, k)
}

// TestEveryFormComesUp: fuzz makes every name and form of the rows.
func TestEveryFormComesUp(t *testing.T) {
	cover, err := Fuzz(nil, 7, 3*len(allForms()), &Comparison{}, none)
	require.NoError(t, err)
	m := cover.Missing()
	require.Empty(t, m.NoName)
	require.Empty(t, m.NoForm)
	require.Greater(t, m.Names, 1500)
	require.Greater(t, m.Forms, 3900)
	cover, err = Fuzz(nil, 7, 1000, &Comparison{}, none)
	require.NoError(t, err)
	require.NotEmpty(t, cover.Missing().NoName)
	require.Contains(t, cover.Missing().String(), "\nnames not made: ")
}

// TestNormalForm: texts of one instruction by several decoders are one text.
func TestNormalForm(t *testing.T) {
	for want, texts := range map[string][]string{
		"mov 16(rax,rcx,4),ebx":     {"mov 0x10(%rax,%rcx,4),%ebx", "movl 16(%rax,%rcx,4), %ebx", "mov ebx, dword ptr [rax+rcx*4+10h]", "mov    ebx, DWORD PTR [rax+rcx*4+0x10]"},
		"imul rcx,rax":              {"imul %rcx,%rax", "imulq %rcx, %rax", "imul rax, rcx"},
		"je ":                       {"je 0x10", "jz 0x10", "je,pt 0x10"},
		"add -1,eax":                {"add $0xffffffff,%eax", "addl $-1, %eax", "add eax, -1", "add eax, 0xff"},
		"movzx al,eax":              {"movzbl %al,%eax", "movzx eax, al"},
		"mov gs:40,rax":             {"mov %gs:0x28,%rax", "mov rax, qword ptr gs:[0x28]"},
		"inc (rax)":                 {"lock incl (%rax)", "lock inc dword ptr [rax]"},
		"vaddps xmm1,xmm2,xmm3{k1}": {"vaddps %xmm1,%xmm2,%xmm3{%k1}", "vaddps xmm3{k1}, xmm2, xmm1"},
		"lea -8(rip),rdi":           {"lea -0x8(%rip),%rdi", "lea rdi, [rip-8]"},
		"nop ":                      {"nop"},
		"stos ":                     {"stos %al,%es:(%rdi)", "stosb %al, %es:(%rdi)", "stosb"},
		"in dx,eax":                 {"in (%dx),%eax", "inl %dx, %eax", "in eax, dx"},
		"cmovne (rax),eax":          {"cmovne (%rax),%eax", "cmovnel (%rax), %eax", "cmovnz eax, [rax]"},
		"xchg eax,ecx":              {"xchg %eax,%ecx", "xchgl %ecx, %eax"},
		"xlat ":                     {"xlat %ds:(%rbx)", "xlatb"},
		"add -2147483648(edi),eax":  {"addr32 add 0x80000000(%edi),%eax", "add -0x80000000(%edi),%eax"},
		"ccmps{of,cf} bl,al":        {"ccmps {dfv=of, cf} %bl,%al", "ccmps {dfv=of,cf} %bl, %al"},
		"add ebx,eax":               {"{nf} add %ebx,%eax", "{rex2 0x8} add %ebx,%eax", "{nf} addl %ebx, %eax"},
	} {
		for _, text := range texts {
			name, operands := Normal(text)
			require.Equal(t, want, name+" "+operands, text)
		}
	}
	require.Equal(t, "mnemonic", whatTextDiffers("mov %eax,%ebx", "xchg %eax,%ebx"))
	require.Equal(t, "operands", whatTextDiffers("mov %eax,%ebx", "mov %ebx,%eax"))
}

// TestKernelAsOpponent: the kernel's decoder differs in meaning where its quirk is, and
// not where it only knows fewer classes.
func TestKernelAsOpponent(t *testing.T) {
	k, err := NewKernel("6.1")
	require.NoError(t, err)
	_, err = NewKernel("9.9")
	require.ErrorContains(t, err, `there is no kernel "9.9"`)
	c := &Comparison{}
	code := []byte{0xC5, 0xF8, 0x77, 0x0F, 0x05, 0xE8, 0, 0, 0, 0, 0xC3}
	require.NoError(t, Walk([]Decoder{k}, code, 0, c, map[string]bool{}, nil))
	list := c.Differences()
	require.Len(t, list, 2)
	require.Equal(t, "vex0f 77 vzeroupper", list[0].Opcode)
	require.Equal(t, "class", list[0].What)
	require.Empty(t, list[0].Cause)
	require.Equal(t, "kernel-classes", list[1].Cause)
}
