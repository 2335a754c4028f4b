package session

import (
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/show"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// Call is a call as written, bound to an image: the function exists, its prototype fits
// if the image has it (BTF), and every symbol has an address.
type Call struct {
	callsyntax.Call
	// Symbol is the function, of a call that is no system call.
	Symbol kimage.Symbol
	// Proto is its prototype, valid where HasProto.
	Proto    btf.Proto
	HasProto bool
	// System is the system call, empty for a function of the kernel.
	System string
	// Refs are the addresses of the arguments that are symbols, by position.
	Refs map[int]x86.Addr
}

// BindCall reads exactly one call and binds it to the image. An error is a
// *callsyntax.Error with the place in the text.
func BindCall(img *kimage.Image, text string) (*Call, error) {
	c, err := callsyntax.ParseCall(text)
	if err != nil {
		return nil, err
	}
	return bind(img, text, c)
}

// BindTask reads a sequence of calls and binds each.
func BindTask(img *kimage.Image, text string) ([]*Call, error) {
	calls, err := callsyntax.Parse(text)
	if err != nil {
		return nil, err
	}
	bound := make([]*Call, len(calls))
	for i, c := range calls {
		if bound[i], err = bind(img, text, c); err != nil {
			return nil, err
		}
	}
	return bound, nil
}

func bind(img *kimage.Image, text string, call callsyntax.Call) (*Call, error) {
	c := &Call{Call: call, Refs: map[int]x86.Addr{}}
	bad := func(col int, format string, args ...any) error {
		return &callsyntax.Error{Text: text, Col: col, Msg: fmt.Sprintf(format, args...)}
	}
	found := img.Lookup(call.Name)
	name, system := strings.CutPrefix(call.Name, systemPrefix)
	if _, known := img.SystemCall(name); len(found) == 0 && (known || system) {
		return c, c.system(img, name, bad)
	}
	if len(found) == 0 {
		return nil, bad(call.Col, "there is no function %s in %s", call.Name, img.Name())
	}
	c.Symbol = found[0]
	if !img.InText(c.Symbol.Addr) {
		if _, init := img.InInit(c.Symbol.Addr); !init {
			return nil, bad(call.Col, "%s is data, not a function", call.Name)
		}
		return nil, bad(call.Col, "%s is init text, which is gone after boot", call.Name)
	}
	if n := len(call.Args); n > bounded.CallArguments {
		return nil, bad(call.Args[bounded.CallArguments].Column(), "a call has at most %d arguments, not %d", bounded.CallArguments, n)
	}
	if err := c.resolve(img, bad); err != nil {
		return nil, err
	}
	if c.Proto, c.HasProto = img.Proto(c.Symbol.Name); c.HasProto {
		return c, c.fits(bad)
	}
	return c, nil
}

// systemPrefix stands before the name of a system call if a function has the same name.
const systemPrefix = "sys:"

// maxSystemArgs is the most arguments that a system call can have.
const maxSystemArgs = 6

// system binds the call of a system call.
func (c *Call) system(img *kimage.Image, name string, bad func(int, string, ...any) error) error {
	c.System = name
	if img.Core() == nil {
		return bad(c.Col, "%s is a system call: it needs the memory dump of a booted kernel (kprobelab boot)", name)
	}
	if _, known := img.SystemCall(name); !known {
		return bad(c.Col, "there is no system call %s in %s", name, img.Name())
	}
	if n := len(c.Args); n > maxSystemArgs {
		return bad(c.Args[maxSystemArgs].Column(), "a system call has at most %d arguments, not %d", maxSystemArgs, n)
	}
	return c.resolve(img, bad)
}

// resolve finds the symbols among the arguments.
func (c *Call) resolve(img *kimage.Image, bad func(int, string, ...any) error) error {
	for i, a := range c.Args {
		if ref, ok := a.(callsyntax.SymbolRef); ok {
			at := img.Lookup(ref.Name)
			if len(at) == 0 {
				return bad(a.Column(), "there is no symbol %s in %s", ref.Name, img.Name())
			}
			c.Refs[i] = at[0].Addr.Add(int64(ref.Off))
		}
	}
	return nil
}

// fits checks the arguments against the prototype.
func (c *Call) fits(bad func(int, string, ...any) error) error {
	if err := c.Proto.Takes(len(c.Args)); err != nil {
		return bad(c.Col, "%v", err)
	}
	for i, p := range c.Proto.Params {
		if err := fit(c.Args[i], p, bad); err != nil {
			return err
		}
	}
	return nil
}

// fit checks one argument against its parameter: an integer has to fit in its
// width, and a buffer's address only fits where 8 bytes do.
func fit(a callsyntax.Arg, p btf.Param, bad func(int, string, ...any) error) error {
	if n, ok := a.(callsyntax.Int); ok {
		if !n.Fits(p.Size) {
			return bad(a.Column(), "%s does not fit in %s, which has %d bits", n, p, 8*p.Size)
		}
		return nil
	}
	if p.Size > 0 && p.Size < 8 {
		return bad(a.Column(), "%s is an integer of %d bits, not an address", p, 8*p.Size)
	}
	return nil
}

// Returns is the type of the call's result.
func (c *Call) Returns() show.Type {
	if c.System != "" {
		return show.Type{Kind: show.Signed, Size: 8}
	}
	if !c.HasProto {
		return show.Type{}
	}
	r := c.Proto.Ret
	t := show.Type{Kind: show.Unsigned, Size: r.Size}
	switch {
	case r.Type == "void":
		t.Kind = show.Void
	case r.Pointer:
		t.Kind = show.Pointer
	case r.Type == "bool" || r.Type == "_Bool":
		t.Kind = show.Bool
	case r.Signed:
		t.Kind = show.Signed
	}
	return t
}
