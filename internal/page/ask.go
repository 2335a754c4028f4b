package page

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/assemble"
	"kprobelab/internal/bounded"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

const (
	// MaxImage is the largest image that the page takes, in bytes.
	MaxImage = bounded.PageImage
	// MaxCode is the most bytes of a function that are explained.
	MaxCode = bounded.PageCode
	// maxFound is the most functions that a search lists.
	maxFound = 200
)

// opened is an image, with the rules for its answers.
type opened struct {
	name    string
	bytes   []byte
	release string
	img     *kimage.Image
	scan    *report.Scan
	// functions are the image's, in the order of a search.
	functions []kimage.Symbol
}

// codeQuestion is a function of bytes, as explain --hex takes it.
type codeQuestion struct {
	Hex string `json:"hex"`
	// Asm is the function's assembly, in place of Hex.
	Asm     string `json:"asm"`
	Release string `json:"release"`
	// Lay requests the bytes and instructions alone. The answers then come by "answers".
	Lay bool `json:"lay"`
}

// Function is a function with an answer for each of its bytes.
type Function struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Size    uint64 `json:"size"`
	Profile string `json:"profile"`
	About   string `json:"about"`
	// Standing says how far the profile can be trusted, "" for bytes without a kernel.
	Standing string `json:"standing"`
	CPU      string `json:"cpu"`
	// Bytes are at most MaxCode.
	Bytes []Byte `json:"bytes"`
}

// Byte is the kernel's answer to a probe at one byte. The probe names the byte's address.
type Byte struct {
	Offset int    `json:"offset"`
	Value  string `json:"value"`
	// Text is the instruction that begins here, Length its size in bytes; both are empty for a
	// byte inside an instruction.
	Text   string `json:"text,omitempty"`
	Length int    `json:"length,omitempty"`
	// Errno is register_kprobe's result, 0 or a negative number; Name is the errno's name.
	Errno int    `json:"errno"`
	Name  string `json:"errno_name,omitempty"`
	Rule  string `json:"rule,omitempty"`
	Why   string `json:"why,omitempty"`
	// Kind is the answer in a word: "refused", "ftrace", "optimized", "accepted"; "inside" for a byte
	// inside an instruction, "" for an instruction without an answer yet.
	Kind string `json:"kind"`
	// How says how the probe runs while there is no jump.
	How       string   `json:"how,omitempty"`
	Optimized bool     `json:"optimized"`
	Reasons   []Reason `json:"reasons"`
	Hazards   []string `json:"hazards,omitempty"`
	// To is the offset in the function to which the instruction jumps, nil if it jumps to none.
	To *int `json:"to,omitempty"`
}

// Reason is a rule that keeps the probe from becoming a jump.
type Reason struct {
	ID string `json:"id"`
	// At is the offset of the byte that breaks the rule.
	At       int    `json:"at"`
	Sentence string `json:"sentence"`
	Stops    bool   `json:"stops"`
	// Why is the rule in words, for any place.
	Why string `json:"why"`
}

// rules returns the profile of a name, the default for "".
func rules(name string) (*profile.Config, error) {
	if name == "" {
		name = profile.Default
	}
	c, ok := profile.Named(name)
	if !ok {
		return nil, fmt.Errorf("there is no release %q here; there are %s", name, strings.Join(profile.All(), ", "))
	}
	return c, nil
}

// example is the scan of a function of bytes.
func (q *codeQuestion) example() (*report.Scan, error) {
	c, err := rules(q.Release)
	if err != nil {
		return nil, err
	}
	code, err := q.bytes()
	if err != nil {
		return nil, err
	}
	return report.NewExample(code, c), nil
}

// bytes returns the bytes of the function.
func (q *codeQuestion) bytes() ([]byte, error) {
	if q.Asm == "" {
		return readHex(q.Hex)
	}
	code, err := assemble.Code(q.Asm, report.ExampleBase)
	switch {
	case err != nil:
		return nil, err
	case len(code) == 0:
		return nil, errors.New("there is no instruction: write one a line, such as push %rbp")
	}
	return code, tooMuch(code)
}

// tooMuch complains about more code than is explained.
func tooMuch(code []byte) error {
	if len(code) > MaxCode {
		return fmt.Errorf("%d bytes are too many: at most %d are explained", len(code), MaxCode)
	}
	return nil
}

var hexMarks = strings.NewReplacer(" ", "", ",", "", `\x`, "", "0x", "", "\t", "", "\n", "", "\r", "")

// readHex reads bytes as people write them.
func readHex(text string) ([]byte, error) {
	digits := hexMarks.Replace(text)
	code, err := hex.DecodeString(digits)
	var bad hex.InvalidByteError
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%q is no hexadecimal digit", rune(bad))
	case err != nil:
		return nil, errors.New("the last byte has one digit: bytes are two hexadecimal digits each")
	case len(code) == 0:
		return nil, errors.New("there are no bytes: write some, such as 55 48 89 e5 5d c3")
	}
	return code, tooMuch(code)
}

func (p *Page) code(q codeQuestion, _ []byte) (*Function, error) {
	s, err := q.example()
	if err != nil {
		return nil, err
	}
	f := newFunction(s, s.Symbols[0], q.Lay)
	for i := range f.Bytes { // the code has no name: an offset says where a jump leads
		f.Bytes[i].Text = strings.ReplaceAll(within(f.Bytes[i].Text, s.Symbols[0]), f.Name+"+", "+")
	}
	return f, nil
}

// asmQuestion is assembly in Intel's syntax.
type asmQuestion struct {
	Asm string `json:"asm"`
}

// Asm is assembly in GNU syntax.
type Asm struct {
	Asm string `json:"asm"`
}

func gnu(_ *Page, q asmQuestion, _ []byte) (*Asm, error) { return &Asm{assemble.FromIntel(q.Asm)}, nil }

// newFunction reads a function's instructions and, unless they are laid out only, computes the answer
// for each byte.
func newFunction(s *report.Scan, sym kimage.Symbol, lay bool) *Function {
	f := &Function{
		Name: sym.Name, Address: sym.Addr.String(), Size: sym.Size,
		Profile: s.Profile.Name, About: s.Profile.Describes, Standing: s.Standing, CPU: s.CPU,
	}
	code := make([]byte, min(sym.Size, MaxCode))
	code = code[:s.View.CodeAt(sym.Addr, code)]
	points, kinds := s.Points(sym), make([]string, len(code))
	for i := range code {
		b := Byte{Offset: i, Reasons: []Reason{}}
		if !lay {
			b = newByte(i, sym.Addr, points.At(i))
		}
		kinds[i], b.Kind, b.Value = b.Kind, "inside", fmt.Sprintf("%02x", code[i])
		f.Bytes = append(f.Bytes, b)
	}
	for step := range kimage.NewWalker(s.View, &s.Profile.Decoder).Function(sym) {
		i := int(step.Addr.Sub(sym.Addr))
		if step.Err != nil || i >= len(code) {
			continue
		}
		b, text := &f.Bytes[i], code[i:min(i+step.Insn.Length, len(code))]
		b.Text, b.Length, b.Kind = decoder.Text(text, step.Addr), len(text), kinds[i]
		if to, ok := step.Jump(); ok && to >= sym.Addr && uint64(to.Sub(sym.Addr)) < uint64(len(code)) {
			n := int(to.Sub(sym.Addr))
			b.To = &n
		}
	}
	return f
}

func newByte(off int, start x86.Addr, e *report.Explanation) Byte {
	b := Byte{
		Offset: off, Errno: e.Errno, Rule: e.RegisterReason.String(), Why: e.RegisterWhy,
		How: e.How, Optimized: e.Optimized, Reasons: []Reason{}, Kind: kindOf(e),
	}
	if e.Errno != 0 {
		b.Name = errno.Errno(-e.Errno).Name()
	}
	for _, r := range e.Reasons {
		at := off
		if r.Addr.Known {
			at = int(r.Addr.Sub(start))
		}
		b.Reasons = append(b.Reasons, Reason{ID: r.ID.String(), At: at, Sentence: r.Sentence, Stops: r.Stops, Why: r.ID.Why()})
	}
	for _, h := range e.Hazards {
		b.Hazards = append(b.Hazards, h.Sentence)
	}
	return b
}

// kindOf is the answer to a probe in a word.
func kindOf(e *report.Explanation) string {
	switch {
	case e.Errno != 0:
		return "refused"
	case e.Ftrace:
		return "ftrace"
	case e.Optimized:
		return "optimized"
	}
	return "accepted"
}

// optimizations say for each kind whether a jump takes the place of the int3.
var optimizations = map[string]string{
	"refused":   "A refused probe is never optimized. Below stands what else would be in the way.",
	"ftrace":    "No int3, so nothing to optimize: the function tracer's no-operation becomes a call of its trampoline, which calls the probe. debugfs lists it as [FTRACE].",
	"optimized": "Optimization: yes. A jump to the detour buffer takes the place of the int3, once the optimizer's worker has come: some jiffies after the registration. Until then each hit is a trap.",
	"accepted":  "Optimization: no. The probe keeps its int3.",
}

// openQuestion opens an image; without a file, the one that is open, by other rules,
// and without that, the guest kernel.
type openQuestion struct {
	Name    string `json:"name"`
	Release string `json:"release"`
}

// Opened describes the opened image.
type Opened struct {
	Image     *report.Image `json:"image"`
	Functions int           `json:"functions"`
	// Build is the image's build id, "" if it has none.
	Build string `json:"build"`
}

// identity names the image that an answer has to be about, by name and build id; an empty name is
// whichever is open.
type identity struct {
	Image string `json:"image"`
	Build string `json:"build"`
}

// check complains if another image is open, or none.
func (i identity) check(o *opened) error {
	switch {
	case i.Image == "":
		return nil
	case o == nil || o.name != i.Image:
		return fmt.Errorf("the image %s is not open here; drop its file on the page", i.Image)
	case i.Build != "" && i.Build != o.img.BuildID():
		return fmt.Errorf("the image %s that is open here is another one: its build id is %s, not %s; drop the right file on the page", i.Image, o.img.BuildID(), i.Build)
	}
	return nil
}

func (p *Page) open(q openQuestion, file []byte) (*Opened, error) {
	o := opened{name: q.Name, bytes: file, release: q.Release}
	switch {
	case len(file) > MaxImage:
		return nil, fmt.Errorf("%s has %d MB; the page takes images of at most %d MB", q.Name, len(file)>>20, MaxImage>>20)
	case file == nil && q.Name == "":
		o.name, o.bytes = kprobelab.GuestKernel, kprobelab.GuestELF()
	case file == nil && p.image != nil && p.image.name == q.Name:
		o.bytes = p.image.bytes
	case file == nil:
		return nil, fmt.Errorf("the image %s is not open here; drop its file on the page", q.Name)
	}
	if isDump(o.bytes) {
		return nil, fmt.Errorf("%s is the memory of a booted kernel, which this page does not run; it plays a film of a run on it, which the command line makes: kprobelab run %s --kprobe vfs_read --call 'read(0, buf[16], 16)' --film run.film; drop that file here", o.name, o.name)
	}
	var options kimage.Options
	if q.Release != "" {
		c, err := rules(q.Release)
		if err != nil {
			return nil, err
		}
		options.Profile = c
	}
	img, err := kprobelab.ImageOf(o.name, o.bytes, &options)
	if err != nil {
		return nil, err
	}
	if len(img.Symbols()) == 0 {
		return nil, fmt.Errorf("%s has no symbols, so no function in it can be found", o.name)
	}
	o.img, o.scan = img, report.NewScan(img)
	if o.functions, err = o.scan.Functions(); err != nil {
		return nil, err
	}
	p.image = &o
	return &Opened{Image: report.DescribeImage(img), Functions: len(o.functions), Build: img.BuildID()}, nil
}

// isDump: the file is a memory dump, an ELF core or one of makedumpfile.
func isDump(b []byte) bool {
	const elfTypeAt, elfCore = 16, 4
	return bytes.HasPrefix(b, []byte("KDUMP")) || bytes.HasPrefix(b, []byte("makedumpfile")) ||
		len(b) > elfTypeAt+1 && bytes.HasPrefix(b, []byte("\x7fELF")) && b[elfTypeAt] == elfCore && b[elfTypeAt+1] == 0
}

// atImage returns the open image, the guest kernel if none is open.
func (p *Page) atImage() (*opened, error) {
	if p.image == nil {
		if _, err := p.open(openQuestion{}, nil); err != nil {
			return nil, err
		}
	}
	return p.image, nil
}

// Found is a function that a search has found.
type Found struct {
	Name string `json:"name"`
	Size uint64 `json:"size"`
}

// Search is the beginning of a search's list.
type Search struct {
	Total int     `json:"total"`
	Found []Found `json:"found"`
	// Function and Offset are the place that the text means, if it is one: a name, an alias,
	// SYMBOL+OFFSET, an address.
	Function string `json:"function,omitempty"`
	Offset   int    `json:"offset"`
}

type searchQuestion struct {
	Text string `json:"text"`
}

// search lists the functions with a text in their names; names that begin with it come first.
func (p *Page) search(q searchQuestion, _ []byte) (*Search, error) {
	o, err := p.atImage()
	if err != nil {
		return nil, err
	}
	s := &Search{Found: []Found{}}
	if _, err := o.function(q.Text); err == nil {
		s.Function = q.Text // a name may have a plus and blanks in it
	} else {
		q.Text = strings.TrimSpace(q.Text)
		s.Function, s.Offset = o.place(strings.Join(strings.Fields(q.Text), ""))
	}
	var inside []Found
	for _, sym := range o.functions {
		f := Found{sym.Name, sym.Size}
		switch {
		case strings.HasPrefix(sym.Name, q.Text):
			s.Found = append(s.Found, f)
		case strings.Contains(sym.Name, q.Text):
			inside = append(inside, f)
		}
	}
	s.Found = append(s.Found, inside...)
	s.Total = len(s.Found)
	s.Found = s.Found[:min(len(s.Found), maxFound)]
	return s, nil
}

// place reads a text as a place in a function; the name is empty if it is none.
func (o *opened) place(text string) (name string, offset int) {
	name, off, more := strings.Cut(text, "+")
	if m := addressPattern.FindStringSubmatch(text); m != nil {
		a, _ := strconv.ParseUint(m[2], 16, 64) // the pattern has 16 digits
		if sym, ok := o.scan.View.SymbolAt(x86.Addr(a)); ok && o.scan.View.InText(x86.Addr(a)) {
			return sym.Name, int(x86.Addr(a).Sub(sym.Addr))
		}
		return "", 0
	}
	sym, err := o.function(name)
	if err != nil {
		return "", 0
	}
	if !more {
		return name, 0
	}
	if n, ok := offsetOf(off); ok && n < sym.Size {
		return name, int(n)
	}
	return "", 0
}

type functionQuestion struct {
	identity
	Name string `json:"name"`
	// Lay requests the bytes and instructions alone.
	Lay bool `json:"lay"`
}

func (p *Page) function(q functionQuestion, _ []byte) (*Function, error) {
	if err := q.check(p.image); err != nil {
		return nil, err
	}
	o, err := p.atImage()
	if err != nil {
		return nil, err
	}
	sym, err := o.function(q.Name)
	if err != nil {
		return nil, err
	}
	f := newFunction(o.scan, sym, q.Lay)
	for i := range f.Bytes {
		f.Bytes[i].Text = within(f.Bytes[i].Text, sym)
	}
	return f, nil
}

// within names the addresses of a function in an instruction's text.
func within(text string, sym kimage.Symbol) string {
	return kernelAddress.ReplaceAllStringFunc(text, func(a string) string {
		v, _ := strconv.ParseUint(a[2:], 16, 64) // the pattern has 16 digits
		if n := x86.Addr(v).Sub(sym.Addr); n >= 0 && uint64(n) < sym.Size {
			return fmt.Sprintf("%s+%#x", sym.Name, n)
		}
		return a
	})
}

// function returns the image's function of a name.
func (o *opened) function(name string) (kimage.Symbol, error) {
	for _, sym := range o.scan.View.Lookup(name) {
		if covering, ok := o.scan.View.SymbolAt(sym.Addr); ok && o.scan.View.InText(sym.Addr) {
			covering.Name = name
			return covering, nil
		}
	}
	return kimage.Symbol{}, fmt.Errorf("%s has no function %q", o.name, name)
}

// explainQuestion is one byte of a function of the image or, with code, of that code.
type explainQuestion struct {
	codeQuestion
	identity
	Name   string `json:"name"`
	Offset int    `json:"offset"`
}

// Explained is all about one byte, and the same as the command line prints it.
type Explained struct {
	*report.Explanation
	Text string `json:"text"`
	// Optimization says in a sentence whether a jump takes the place of the int3.
	Optimization string `json:"optimization"`
	// Inside says in which instruction the byte is, "" if one begins there.
	Inside string `json:"inside,omitempty"`
	// Watch is a machine with this probe, nil if none can be made.
	Watch *Scenario `json:"watch,omitempty"`
}

func (p *Page) explain(q explainQuestion, _ []byte) (*Explained, error) {
	s, sym, err := p.about(&q)
	if err != nil {
		return nil, err
	}
	if q.Offset < 0 || uint64(q.Offset) >= sym.Size {
		return nil, fmt.Errorf("%s has %d bytes, and none at %+d", sym.Name, sym.Size, q.Offset)
	}
	e, err := s.Explain(fmt.Sprintf("%#x", uint64(sym.Addr.Add(int64(q.Offset)))))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	plain := func(s string) string { return s }
	if err := e.WriteText(&text, report.Style{Bold: plain, Red: plain, Cyan: plain}); err != nil {
		return nil, err
	}
	if q.Name == "" && slices.ContainsFunc(e.Reasons, func(r report.ExplainReason) bool { return r.ID == rule.CopyUnreadable }) {
		e.Notes = append(e.Notes, "COPY_UNREADABLE is there because nothing follows the bytes that you have written. In a kernel, more code follows.")
	}
	inside := ""
	for step := range kimage.NewWalker(s.View, &s.Profile.Decoder).Function(sym) {
		if i := int(step.Addr.Sub(sym.Addr)); step.Err == nil && i < q.Offset && i+step.Insn.Length > q.Offset {
			code := make([]byte, step.Insn.Length)
			inside = fmt.Sprintf("This byte is inside of %s at +%d.", decoder.Text(code[:s.View.CodeAt(step.Addr, code)], step.Addr), i)
		}
	}
	x := &Explained{Explanation: e, Text: text.String(), Optimization: optimizations[kindOf(e)], Inside: inside}
	if q.Name != "" && e.Errno == 0 {
		x.Watch = p.image.watches(sym.Name, q.Offset)
	}
	return x, nil
}

// about is the function of the question.
func (p *Page) about(q *explainQuestion) (*report.Scan, kimage.Symbol, error) {
	if q.Name == "" {
		s, err := q.example()
		if err != nil {
			return nil, kimage.Symbol{}, err
		}
		return s, s.Symbols[0], nil
	}
	if err := q.check(p.image); err != nil {
		return nil, kimage.Symbol{}, err
	}
	o, err := p.atImage()
	if err != nil {
		return nil, kimage.Symbol{}, err
	}
	sym, err := o.function(q.Name)
	return o.scan, sym, err
}

// MarshalJSON writes the Explanation, with the text.
func (e *Explained) MarshalJSON() ([]byte, error) {
	type plain report.Explanation
	return json.Marshal(struct {
		*plain
		Text         string    `json:"text"`
		Optimization string    `json:"optimization"`
		Inside       string    `json:"inside,omitempty"`
		Watch        *Scenario `json:"watch,omitempty"`
	}{(*plain)(e.Explanation), e.Text, e.Optimization, e.Inside, e.Watch})
}
