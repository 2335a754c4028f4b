package own

import (
	"fmt"
	"strings"
	"time"

	"kprobelab/internal/engine"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// budget is the number of instructions that one question may take. The longest honest answers
// are of functions of 64 kB that are decoded from their start, twice: about ten million.
const budget = 20_000_000

// Kernel is an image that answers questions. It is for one goroutine at a time;
// several of one image may be asked in parallel. Close frees it.
type Kernel struct {
	img     *kimage.Image
	m       *machine.Machine
	timeout time.Duration
	clean   *machine.Snapshot
	fns     map[string]x86.Addr // 0 for missing functions

	insn, code *machine.Buf
	// uprobe and mm are buffers for AnalyzeUprobe, nil before its first call.
	uprobe, mm *machine.Buf
	form       boostForm
	layout     *insnLayout

	// aided is the same image with stand-ins, nil until it is needed.
	aided *aided
	// booted holds the buffers for questions to a booted kernel, nil before the first;
	// bootErr says why none can be asked.
	booted  *booted
	bootErr error
}

// Open puts the image on a machine of its own. A question ends after the timeout;
// 0 means that only its budget ends it. It fails as machine.New does.
func Open(img *kimage.Image, timeout time.Duration) (*Kernel, error) {
	if img.Core() != nil {
		return openFor(img, searchBudget, timeout)
	}
	return openFor(img, budget, timeout)
}

// openFor is Open with another budget of instructions for a question.
func openFor(img *kimage.Image, budget uint64, timeout time.Duration) (*Kernel, error) {
	m, err := engine.ForImage("", img, machine.Options{Budget: budget, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	k := &Kernel{img: img, m: m, timeout: timeout, fns: map[string]x86.Addr{}}
	if err := k.prepare(); err != nil {
		m.Close()
		return nil, err
	}
	return k, nil
}

func (k *Kernel) prepare() (err error) {
	if k.insn, err = k.m.NewBuf(insnSize); err != nil {
		return err
	}
	if k.code, err = k.m.NewBuf(maxInsn); err != nil {
		return err
	}
	if k.img.Core() == nil {
		k.setState(systemRunning)
	}
	k.clean, err = k.m.Snapshot()
	return err
}

// Close frees the machine.
func (k *Kernel) Close() {
	if k.aided != nil {
		k.aided.Close()
	}
	k.m.Close()
}

// Image is the image that is asked.
func (k *Kernel) Image() *kimage.Image { return k.img }

// Has reports whether the image has the function, so that it can be asked.
func (k *Kernel) Has(name string) bool { return k.function(name) != 0 }

// Call calls a function of the image with plain words and returns its rax. A
// function that does not return is an ErrNoAnswer, and whatever it wrote is
// undone.
func (k *Kernel) Call(name string, args ...uint64) (uint64, error) {
	at := k.function(name)
	if at == 0 {
		return 0, fmt.Errorf("%s: %w", name, ErrNotThere)
	}
	v, err := k.m.CallAddr(at, args...)
	if err != nil {
		err = fmt.Errorf("%s: %w: %w", name, ErrNoAnswer, err)
		if undo := k.Undo(); undo != nil {
			return 0, undo
		}
	}
	return v, err
}

// Undo takes back everything that was written to the image's memory since it was
// opened.
func (k *Kernel) Undo() error { return k.m.Restore(k.clean) }

// truth is Call for a function that returns 0 or 1, as an int or a bool: of a
// bool only the lowest byte is defined.
func (k *Kernel) truth(name string, args ...uint64) (bool, error) {
	v, err := k.Call(name, args...)
	if err == nil && v&0xff > 1 {
		err = fmt.Errorf("%s returned %#x, neither 0 nor 1: %w", name, v, ErrNonsense)
	}
	return v&0xff == 1, err
}

// function returns the address of a function, 0 if the image has none or several of the name.
func (k *Kernel) function(name string) x86.Addr {
	at, known := k.fns[name]
	if !known {
		at = k.find(name)
		k.fns[name] = at
	}
	return at
}

func (k *Kernel) find(name string) x86.Addr {
	if list := k.img.Lookup(name); len(list) > 0 {
		return only(list)
	}
	var copies []kimage.Symbol
	for _, s := range k.img.Symbols() {
		if suffix, ok := strings.CutPrefix(s.Name, name+"."); ok && isWhole(suffix) {
			copies = append(copies, s)
		}
	}
	return only(copies)
}

// isWhole tells suffixes of a renamed function from suffixes of a function's parts.
func isWhole(suffix string) bool {
	return strings.HasPrefix(suffix, "isra.") || strings.HasPrefix(suffix, "constprop.") || strings.HasPrefix(suffix, "llvm.")
}

func only(list []kimage.Symbol) x86.Addr {
	if len(list) != 1 {
		return 0
	}
	return list[0].Addr
}
