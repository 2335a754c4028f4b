// Package mailbox encodes the messages between a host and the init of a kernel
// that kprobelab boot has booted. The host writes commands into init's memory while
// init is stopped in a call; init reports the results by calls.
// testdata/init/mailbox.h is init's side, and describes the protocol.
//
// It must not know how a host reads or writes a guest's memory, or stops it.
package mailbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"kprobelab/errno"
	"kprobelab/x86"
)

// Addr is the mailbox's address in init's memory (mailbox.h, MAILBOX_ADDR).
const Addr x86.Addr = 0x6b700000

// The mailbox's size and the fields of its header (mailbox.h, MAILBOX_*).
const (
	Size    = 0x40000
	Magic   = 0x786f626c69616d6b
	Version = 1

	dataAt  = 0x1000
	maxArgs = 2048

	atMagic     = 0x00
	atVersion   = 0x08
	atCommand   = 0x0c
	atCall      = 0x10
	atArgc      = 0x18
	atEnvc      = 0x1c
	atInput     = 0x20
	atInputSize = 0x24
	headerSize  = 0x28
)

// Kind is the kind of a command.
type Kind uint32

// The commands (mailbox.h, Commands).
const (
	// Exec runs a program to its end: Args, Env, Dir; Input is its standard input.
	Exec Kind = 1
	// Spawn starts a program and leaves it running.
	Spawn Kind = 2
	// Insmod loads the module of the file Args[0] with the parameters Args[1].
	Insmod Kind = 3
	// Write writes Input to the end of the file Args[0], with one write(2).
	Write Kind = 4
	// Read returns what the file Args[0] has, as output.
	Read Kind = 5
)

// Command is a command of the host to init.
type Command struct {
	Kind      Kind
	Args, Env []string
	Dir       string
	Input     []byte
}

// ErrCommand is a command that does not fit into the mailbox, or that no kernel could run.
var ErrCommand = errors.New("it cannot be run")

// Piece is memory of the guest to be written.
type Piece struct {
	At    x86.Addr
	Bytes []byte
}

// Pieces returns the bytes that the host writes into the mailbox while init is stopped in
// its call. When the call returns, init reads the command there.
func (c Command) Pieces() ([]Piece, error) {
	var data []byte
	for _, s := range append(append(append([]string{}, c.Args...), c.Env...), c.Dir) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("%w: %.40q has a NUL in it", ErrCommand, s)
		}
		data = append(append(data, s...), 0)
	}
	input := len(data)
	data = append(data, c.Input...)
	switch {
	case len(c.Args) == 0:
		return nil, fmt.Errorf("%w: no program or file is named", ErrCommand)
	case len(c.Args)+len(c.Env) > maxArgs:
		return nil, fmt.Errorf("%w: %d arguments and strings of environment; %d are possible", ErrCommand, len(c.Args)+len(c.Env), maxArgs)
	case len(data) > Size-dataAt:
		return nil, fmt.Errorf("%w: arguments and input have %d bytes; %d are possible", ErrCommand, len(data), Size-dataAt)
	}
	put := func(v int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
	return []Piece{
		{Addr + dataAt, data},
		{Addr + atArgc, put(len(c.Args))},
		{Addr + atEnvc, put(len(c.Env))},
		{Addr + atInput, put(input)},
		{Addr + atInputSize, put(len(c.Input))},
		{Addr + atCommand, put(int(c.Kind))},
	}, nil
}

// HeaderSize is the number of bytes at the mailbox's begin that Site reads.
const HeaderSize = headerSize

// ErrNone is memory that has no mailbox, or one of another version.
var ErrNone = errors.New("no init of kprobelab boot is there")

// Site finds the syscall instruction of init's calls from the mailbox's first bytes.
func Site(header []byte) (x86.Addr, error) {
	if len(header) < headerSize || binary.LittleEndian.Uint64(header[atMagic:]) != Magic {
		return 0, ErrNone
	}
	if v := binary.LittleEndian.Uint32(header[atVersion:]); v != Version {
		return 0, fmt.Errorf("%w: its mailbox has version %d, this program's is %d", ErrNone, v, Version)
	}
	return x86.Addr(binary.LittleEndian.Uint64(header[atCall:])), nil
}

// Op is the kind of a call that init makes to the host.
type Op uint32

// The calls (mailbox.h, Calls).
const (
	Ready Op = 0
	Out   Op = 1
	Exit  Op = 2
)

const callBase = 0x6b700000

// IsCall says whether a system call's number is one of init's calls, and which.
func IsCall(rax uint64) (Op, bool) {
	op := Op(uint32(rax) &^ callBase)
	return op, uint32(rax)&0xffff0000 == callBase && op <= Exit
}

// Outcome is the end of a command: an errno or an exit status.
type Outcome struct {
	// Errno says why the command could not be done; 0 when it was.
	Errno errno.Errno
	// Status is a program's, as wait4(2) has it.
	Status uint32
}

// Code is a program's exit code as a shell has it: 128 and the signal for one that a
// signal has ended.
func (o Outcome) Code() int {
	if s := o.Signal(); s != 0 {
		return 128 + s
	}
	return int(o.Status >> 8 & 0xff)
}

// Signal is the signal that has ended a program, or 0.
func (o Outcome) Signal() int { return int(o.Status & 0x7f) }

// Guest reads the memory of the current task.
type Guest interface {
	ReadUser(at x86.Addr, p []byte) error
}

// maxOut bounds one piece of output.
const maxOut = 4096

// ErrCall is a call that is not init's.
var ErrCall = errors.New("not a call of init")

// To takes the output of a program to two writers; nil throws it away.
func To(stdout, stderr io.Writer) func(fd int, b []byte) error {
	return func(fd int, b []byte) error {
		w := stdout
		if fd == 2 {
			w = stderr
		}
		if w == nil {
			return nil
		}
		_, err := w.Write(b)
		return err
	}
}

// Take takes one call of init: output goes to out, with 1 or 2 of stdout and stderr. It
// returns the outcome with the last call of a command.
func Take(op Op, rdi, rsi, rdx uint64, g Guest, out func(fd int, b []byte) error) (*Outcome, error) {
	switch op {
	case Ready:
		if rdi != Version {
			return nil, fmt.Errorf("%w: init has version %d, this program %d", ErrCall, rdi, Version)
		}
		return nil, nil
	case Out:
		if (rdi != 1 && rdi != 2) || rdx > maxOut {
			return nil, fmt.Errorf("%w: output of %d bytes to %d", ErrCall, rdx, rdi)
		}
		if rsi >= uint64(x86.UserEnd) || rsi+rdx > uint64(x86.UserEnd) {
			return nil, fmt.Errorf("%w: output from %#x, which is not a program's", ErrCall, rsi)
		}
		b := make([]byte, rdx)
		if err := g.ReadUser(x86.Addr(rsi), b); err != nil {
			return nil, err
		}
		return nil, out(int(rdi), b)
	case Exit:
		return &Outcome{Status: uint32(rdi), Errno: errno.Errno(rsi)}, nil
	}
	return nil, fmt.Errorf("%w: %d", ErrCall, op)
}

// StopCall is the system call by which init asks for work.
const StopCall = "getppid"
