package report

import (
	"encoding/json"
	"fmt"
	"io"

	"kprobelab/decoder"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Uprobe says how an instruction of a program runs under a uprobe.
type Uprobe struct {
	Image   string `json:"image"`
	Profile string `json:"profile"`
	Addr    Addr   `json:"address"`
	Symbol  string `json:"symbol,omitempty"`
	Offset  uint64 `json:"offset"`
	// Bytes is the instruction as the kernel reads it, Text what the processor reads.
	Bytes Bytes  `json:"bytes"`
	Text  string `json:"text"`
	// Inside is the address and the text of an instruction, if the place is in its middle. It is ""
	// if an instruction begins at the place, or if this is not known.
	Inside string `json:"inside,omitempty"`
	// Errno is the name of the error, "" if the probe is accepted; then the other fields are set.
	Errno string `json:"errno,omitempty"`
	Why   string `json:"why,omitempty"`
	// How is "stepped", "emulated as a branch" or "emulated as a push".
	How   string `json:"how,omitempty"`
	Means string `json:"means,omitempty"`
	// Copy is the code in the XOL area, for instructions that are stepped.
	Copy Bytes `json:"copy,omitempty"`
	// After lists the corrections after a step.
	After []string `json:"after,omitempty"`
	// Optimizable: the nop can become a call of the uprobe's trampoline.
	Optimizable bool `json:"optimizable"`
	// Hazard is a fault that can happen although the probe is accepted; HazardMeans
	// says it in a sentence.
	Hazard      string `json:"hazard,omitempty"`
	HazardMeans string `json:"hazard_means,omitempty"`
}

// uprobeErrors say why the kernel refuses.
var uprobeErrors = map[string]string{
	"ENOTSUPP": "its opcode or a prefix is one that the kernel does not probe in programs",
	"ENOEXEC":  "the kernel's decoder does not know it",
	"ENOSYS":   "this kernel has no uprobes",
}

var uprobeMeans = map[uprobes.Way]string{
	uprobes.Stepped: "a copy runs in the XOL area, and a trap after it returns",
	uprobes.Branch:  "the kernel does what the jump, call or nop would",
	uprobes.Push:    "the kernel pushes the register",
}

// uprobeAfter are the fixups in words, in order.
var uprobeAfter = []struct {
	fixup uprobes.Fixups
	words string
}{
	{uprobes.FixIP, "ip, which is past the copy, is moved past the original"},
	{uprobes.FixCall, "so is the return address that the call pushed"},
	{uprobes.FixFlags, "the trap flag stays as the instruction leaves it"},
	{uprobes.FixSI, "rsi, which the copy has in place of rip, gets its value back"},
	{uprobes.FixDI, "rdi, which the copy has in place of rip, gets its value back"},
	{uprobes.FixBX, "rbx, which the copy has in place of rip, gets its value back"},
}

// ExplainUprobe explains one point, SYM[+OFF] or ADDR[+OFF], of a program's code. The error
// describes a fault in the text or the place.
func (s *Scan) ExplainUprobe(point string) (*Uprobe, error) {
	r, err := s.parse(point)
	if err != nil {
		return nil, err
	}
	at := r.Addr
	if r.Symbol != "" {
		found := s.View.Lookup(r.Symbol)
		switch {
		case len(found) == 0:
			return nil, fmt.Errorf("there is no symbol %s", r.Symbol)
		case len(found) > 1:
			return nil, fmt.Errorf("there are %d symbols %s; give the address", len(found), r.Symbol)
		}
		at = found[0].Addr
	}
	at = at.Add(int64(r.Offset))
	var code [uprobes.InsnSize]byte
	n := s.View.CodeAt(at, code[:])
	if n == 0 {
		return nil, fmt.Errorf("there is no code at %s", at)
	}
	u := &Uprobe{Image: s.Image, Profile: s.Profile.Name, Addr: known(at)}
	if sym, ok := s.View.SymbolAt(at); ok {
		u.Symbol, u.Offset = sym.Name, uint64(at.Sub(sym.Addr))
	}
	a := uprobes.Analyze(code[:n], at, s.Profile)
	if u.Inside = s.inside(at); u.Inside != "" && a.Errno == 0 {
		a.Hazard = uprobes.InsideInstruction
	}
	u.fill(a, code[:n], at)
	return u, nil
}

// inside describes the instruction that an address is in the middle of, "" if it is in none.
func (s *Scan) inside(at x86.Addr) string {
	start, size := at, uint64(0)
	sym, ok := s.View.SymbolAt(at)
	if ok {
		start, size = sym.Addr, sym.Size
	} else if s.Function == nil {
		return ""
	} else if start, ok = s.Function(at); !ok {
		return ""
	}
	if size == 0 {
		size = uint64(at.Sub(start)) + uprobes.InsnSize
	}
	code := make([]byte, min(size, uprobes.MaxFunction))
	code = code[:s.View.CodeAt(start, code)]
	begin, length, inside := uprobes.Inside(code, int(at.Sub(start)))
	if !inside {
		return ""
	}
	name := start.Add(int64(begin)).String()
	if ok && sym.Name != "" {
		name = fmt.Sprintf("%s+%#x", sym.Name, begin)
	}
	return fmt.Sprintf("%s: %s", name, decoder.Text(code[begin:begin+length], start.Add(int64(begin))))
}

func (u *Uprobe) fill(a uprobes.Analysis, code []byte, at x86.Addr) {
	u.Bytes = Bytes(code[:max(min(a.Length, len(code)), 1)])
	u.Text = decoder.Text(code, at)
	if a.Errno != 0 {
		u.Errno = a.Errno.Name()
		u.Why = uprobeErrors[u.Errno]
		return
	}
	u.How, u.Means = a.Way.String(), uprobeMeans[a.Way]
	u.Optimizable = a.Optimizable
	u.Hazard, u.HazardMeans = string(a.Hazard), a.Hazard.Means()
	if a.Way != uprobes.Stepped {
		return
	}
	u.Copy = Bytes(a.Copy[:a.Length])
	for _, f := range uprobeAfter {
		if a.Fixups&f.fixup != 0 {
			u.After = append(u.After, f.words)
		}
	}
}

// WriteJSON writes one JSON object.
func (u *Uprobe) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(u)
}

// WriteText writes it for people.
func (u *Uprobe) WriteText(w io.Writer, s Style) error {
	name := u.Addr.String()
	if u.Symbol != "" {
		name = fmt.Sprintf("%s+%#x (%s)", u.Symbol, u.Offset, u.Addr)
	}
	b := &lineWriter{w: w}
	b.line("%s", s.bold(name))
	b.line("  %x  %s", string(u.Bytes), u.Text)
	b.line("")
	b.line("%s", s.bold("uprobe"))
	if u.Inside != "" {
		b.line("  %s", s.red("no instruction begins here: it is in the middle of "+u.Inside))
	}
	if u.Errno != "" {
		b.line("  %s: %s", s.red(u.Errno), u.Why)
		return b.err
	}
	b.line("  accepted, %s: %s", u.How, u.Means)
	if u.Copy != "" {
		b.line("  copy: %x", string(u.Copy))
	}
	for _, after := range u.After {
		b.line("  after: %s", after)
	}
	if u.Copy != "" && len(u.After) == 0 {
		b.line("  after: nothing is put right, for the instruction sets ip itself")
	}
	if u.Optimizable {
		b.line("  optimizable: the nop can become a call of the trampoline, and then takes no trap")
	}
	if u.Hazard != "" {
		b.line("")
		b.line("%s", s.bold("what goes wrong"))
		b.line("  %s: %s", s.red(u.Hazard), u.HazardMeans)
		if u.Inside == "" {
			b.line("  [arch/x86/kernel/uprobes.c, arch_uprobe_analyze_insn]")
		}
	}
	return b.err
}

// lineWriter writes lines, and keeps the first error.
type lineWriter struct {
	w   io.Writer
	err error
}

func (b *lineWriter) line(format string, args ...any) {
	if b.err == nil {
		_, b.err = fmt.Fprintf(b.w, format+"\n", args...)
	}
}
