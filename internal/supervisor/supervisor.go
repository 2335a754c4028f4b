// Package supervisor encodes the messages between a host and the supervisor, a program of ours on a booted kernel. The
// supervisor starts other programs, hands over their output, and asks the host for the next action.
// testdata/init/supervise.h is the supervisor's side, and describes the protocol.
//
// It must not know how a host reads or writes a guest's memory, nor what is to be done.
package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Numbers of the protocol (supervise.h, SUPERVISE_*).
const (
	Version = 2
	// Programs is the number of programs that can run at once. Program 0 gets the input.
	Programs = 8
	// JobSize and InputSize are the sizes of the supervisor's buffers, PieceSize is the most of one piece of output.
	JobSize   = 0x40000
	InputSize = 0x10000
	PieceSize = 4096
	// MaxStrings bounds the arguments of a program and its environment's strings, counted together.
	MaxStrings = 4096

	// Limits is the number of resources that can be limited (getrlimit(2), RLIMIT_*).
	Limits = 16

	atArgc    = 0x00
	atEnvc    = 0x04
	atRights  = 0x08
	atUser    = 0x0c
	atGroup   = 0x10
	atLimited = 0x14
	atCaps    = 0x18
	atLimits  = 0x40
	atStrings = 0x140

	hasUser = 1
	hasCaps = 2

	callBase = 0x6b700000
)

// Op is the kind of a call that the supervisor makes to the host.
type Op uint32

// The calls (supervise.h, Calls).
const (
	Begin Op = 0x10
	Ask   Op = 0x11
	Out   Op = 0x12
	Ended Op = 0x13
)

// IsCall says whether a system call's number is one of the supervisor's calls, and which.
func IsCall(rax uint64) (Op, bool) {
	op := Op(uint32(rax) &^ callBase)
	return op, uint32(rax)&0xffff0000 == callBase && op >= Begin && op <= Ended
}

// Action is the host's order to the supervisor, in the answer to a call.
type Action uint8

// The actions (supervise.h, Actions).
const (
	Wait   Action = 0
	Start  Action = 1
	Signal Action = 2
	Input  Action = 3
	Close  Action = 4
	End    Action = 5
)

// Forever is the time of a Wait that only an event ends.
const Forever = 1<<32 - 1

// Answer is the answer to Ask: an action, the number of a program, and a number as the action has it.
func Answer(a Action, program int, number uint32) uint64 {
	return uint64(a) | uint64(program&0xff)<<8 | uint64(number)<<32
}

// Stream takes the first argument of Out apart: the program's number, and 1 or 2 of stdout and stderr.
func Stream(rdi uint64) (program, fd int, ok bool) {
	program, fd = int(rdi&0xff), int(rdi>>8&0xff)
	return program, fd, rdi>>16 == 0 && program < Programs && (fd == 1 || fd == 2)
}

// ErrJob is a program whose arguments do not fit, or that no kernel could run.
var ErrJob = errors.New("it cannot be run")

// Rights are a program's user, capabilities and limits. The zero value leaves all as the supervisor has it: root, all
// capabilities, init's limits.
type Rights struct {
	// User, if not nil, is the user and the one group.
	User *User
	// Capabilities, if not nil, are a bit for each capability that the program has, and that it can get.
	Capabilities *uint64
	// Limits are by the numbers of the resources.
	Limits map[int]Limit
}

// User is a user with a group.
type User struct{ ID, Group uint32 }

// Limit is the soft and the hard limit of a resource.
type Limit struct{ Soft, Hard uint64 }

func (r *Rights) encode(b []byte) {
	has, limited := uint32(0), uint32(0)
	if r.User != nil {
		has |= hasUser
		binary.LittleEndian.PutUint32(b[atUser:], r.User.ID)
		binary.LittleEndian.PutUint32(b[atGroup:], r.User.Group)
	}
	if r.Capabilities != nil {
		has |= hasCaps
		binary.LittleEndian.PutUint64(b[atCaps:], *r.Capabilities)
	}
	for resource, l := range r.Limits {
		limited |= 1 << resource
		binary.LittleEndian.PutUint64(b[atLimits+16*resource:], l.Soft)
		binary.LittleEndian.PutUint64(b[atLimits+16*resource+8:], l.Hard)
	}
	binary.LittleEndian.PutUint32(b[atRights:], has)
	binary.LittleEndian.PutUint32(b[atLimited:], limited)
}

// Job encodes a program's arguments, environment, folder and rights for the supervisor's job buffer. The error wraps ErrJob.
func Job(args, env []string, dir string, rights *Rights) ([]byte, error) {
	b := make([]byte, atStrings)
	rights.encode(b)
	binary.LittleEndian.PutUint32(b[atArgc:], uint32(len(args)))
	binary.LittleEndian.PutUint32(b[atEnvc:], uint32(len(env)))
	switch n := len(args) + len(env); {
	case len(args) == 0:
		return nil, fmt.Errorf("%w: no program is named", ErrJob)
	case n > MaxStrings:
		return nil, fmt.Errorf("%w: %d arguments and strings of environment; %d are possible", ErrJob, n, MaxStrings)
	}
	for _, s := range append(append(append([]string{}, args...), env...), dir) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("%w: %.40q has a NUL in it", ErrJob, s)
		}
		if b = append(append(b, s...), 0); len(b) > JobSize {
			return nil, fmt.Errorf("%w: arguments and environment have more than %d bytes", ErrJob, JobSize-atStrings)
		}
	}
	return b, nil
}
