package report

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// ExampleName is the symbol of NewExample's code.
const ExampleName = "example"

// ExampleBase is the address of an example's code: that of a kernel's text.
const ExampleBase x86.Addr = 0xffffffff81000000

// NewExample makes a Scan of one function with the given code: it has no patch sites,
// no exception table, no blacklist.
func NewExample(code []byte, c *profile.Config) *Scan {
	return NewExampleOn(defaultProcessor(), code, c)
}

// NewExampleOn is NewExample on that processor.
func NewExampleOn(on kimage.Processor, code []byte, c *profile.Config) *Scan {
	v := example{code, on}
	return &Scan{
		Image: ExampleName, View: v, Profile: c, Symbols: []kimage.Symbol{v.symbol()},
		SlotAddr: x86.Addr(c.ModuleBase),
	}
}

// ErrBytes is a text that is no sequence of bytes.
var ErrBytes = errors.New("not a sequence of bytes in hexadecimal")

// ParseBytes reads bytes in hexadecimal, as people write them: with blanks, commas, 0x or \\x between them.
func ParseBytes(text string) ([]byte, error) {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", ",", "", "\\x", "", "0x", "", "\t", "", "\n", "").Replace(text))
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("%q is %w", text, ErrBytes)
	}
	return b, nil
}

// InFunction is the point of a function that a text means: SYM[+OFF], or an offset alone; "" is its entry.
func InFunction(name, text string) string {
	switch {
	case text == "":
		return name
	case strings.HasPrefix(text, "+"):
		return name + text
	case text[0] >= '0' && text[0] <= '9':
		return name + "+" + text
	}
	return text
}

// defaultProcessor is kimage's.
var defaultProcessor = sync.OnceValue(func() kimage.Processor {
	p, err := kimage.NamedProcessor(kimage.DefaultCPU)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return p
})

// example is the View of such a function.
type example struct {
	code []byte
	on   kimage.Processor
}

var _ kimage.View = example{}

func (v example) symbol() kimage.Symbol {
	return kimage.Symbol{Name: ExampleName, Addr: ExampleBase, Size: uint64(len(v.code)), Type: 't'}
}

func (v example) InText(a x86.Addr) bool {
	return a.In(ExampleBase, ExampleBase.Add(int64(len(v.code))))
}

func (v example) CodeAt(a x86.Addr, b []byte) int {
	if !v.InText(a) {
		return 0
	}
	return copy(b, v.code[a.Sub(ExampleBase):])
}

func (v example) SymbolAt(a x86.Addr) (kimage.Symbol, bool) { return v.symbol(), v.InText(a) }

func (v example) Lookup(name string) []kimage.Symbol {
	if name == ExampleName {
		return []kimage.Symbol{v.symbol()}
	}
	return nil
}

func (v example) InEntryText(x86.Addr) bool                { return false }
func (v example) InInit(x86.Addr) (string, bool)           { return "", false }
func (v example) Blacklisted(x86.Addr) (x86.Range, bool)   { return x86.Range{}, false }
func (v example) ExceptionEntry(x86.Addr) (x86.Addr, bool) { return 0, false }
func (v example) BugEntry(x86.Addr) bool                   { return false }
func (v example) CFITrap(x86.Addr) bool                    { return false }
func (v example) IndirectThunks() x86.Range                { return x86.Range{} }
func (v example) Reader() decoder.Reader                   { return decoder.X86asm{} }
func (v example) Processor() kimage.Processor              { return v.on }
func (v example) SiteAt(kimage.SiteKind, x86.Addr) (kimage.Site, bool) {
	return kimage.Site{}, false
}
func (v example) SiteIn(kimage.SiteKind, x86.Range) (kimage.Site, bool) {
	return kimage.Site{}, false
}
