// Package contract defines the values that the machine and its engines exchange besides their interfaces: why a run ends,
// what a CPU does after a call of the machine, the memory that both count in, and the ports of hypercalls.
//
// It must not know a machine or an engine.
package contract

import (
	"sync/atomic"

	"kprobelab/x86"
)

// The ports of the machine's hypercalls. Guest code makes one by writing to its port (out %al,
// $port). They are the ports of emu/ports.h, which describes them.
const (
	PortCallout = 0xe0
	PortYield   = 0xe1
	PortSleep   = 0xe2
	PortExit    = 0xe3
	PortConsole = 0xe4
	PortClock   = 0xe5
	PortTask    = 0xe6
	PortCPU     = 0xe7
	PortReturn  = 0xe8
)

// State is the registers of a task, for the CPU's Save and Load.
type State interface{}

// Exit describes the end of a run.
type Exit struct {
	Why Reason
	// IP is the address at which the CPU continues.
	IP x86.Addr
	// Arg is the virtual nanoseconds of Slept.
	Arg uint64
	// Err is the error of Failed.
	Err error
}

// Reason is the reason why a run ended.
type Reason uint8

// The reasons.
const (
	// Returned: the function that the host called has.
	Returned Reason = iota
	// TimeUp: the instruction count has reached the argument of Aim, or Shared.StopAt is 0. The
	// block at IP has not run.
	TimeUp
	// Yielded, Slept, Exited: the guest made that hypercall (emu/ports.h).
	Yielded
	Slept
	Exited
	// Again: the run goes on at IP, the engine had to pause.
	Again
	// Faulted: an exception, which is for Fault.
	Faulted
	// Halted: hlt.
	Halted
	// Failed: the engine gives up, and says why.
	Failed
)

// HostAnswer is the CPU's next action after a call of its Host.
type HostAnswer int

// The answers.
const (
	// Resume: the CPU goes on with the registers as they are now.
	Resume HostAnswer = iota
	// NotMine: no receiver takes the trap; it is a fault.
	NotMine
	// Stop: the run is over.
	Stop
)

// Answer holds the place to resume from at the next int3, which the host has set beforehand. An
// engine in C declares the same struct.
type Answer struct {
	// State is NoAnswer, Given, or Met once the CPU has executed the int3.
	State int32
	_     int32
	// The int3 at At continues at To, with Flags set in addition.
	At, To x86.Addr
	Flags  uint64
}

// The states of an Answer.
const (
	NoAnswer = iota
	Given
	Met
)

// Shared holds the counters that engine and machine share. An engine in C declares the same struct.
type Shared struct {
	// Instrs counts instructions; a block's instructions are added when the block begins. The virtual
	// clock is Instrs + Extra nanoseconds.
	Instrs, Extra uint64
	// The run stops before the count StopAt, and fails at the count Budget.
	StopAt atomic.Uint64
	Budget uint64
	// Work is the host's time besides instructions, converted to instructions that would take as
	// long. A run stops once it is more than Allowance. It counts neither for the virtual clock nor
	// for the budget.
	Work, Allowance uint64
	// Crossings counts the calls that CPUs made of their Host.
	Crossings uint64
	// OuterEnd is the return address of a function that the host called. InnerEnd is the same for a
	// run inside a call of the Host: the run ends there.
	OuterEnd, InnerEnd x86.Addr
	// Expired is 1 once the run's time is up.
	Expired atomic.Uint32
	// Task is the number of the running task.
	Task int32
	// Begun is Instrs before the running block's instructions were added, on an engine that runs whole blocks.
	Begun uint64
}

// Now is the virtual clock, in nanoseconds since boot.
func (s *Shared) Now() uint64 { return s.Instrs + s.Extra }

// FaultCost is the cost in the budget of a fault that the guest survives: the number of
// instructions that run in the host's time for it. Without it, an exception table that leads back
// to the fault would run for ever, because an instruction that faults at its fetch does not count.
const FaultCost = 500

// PayFault takes FaultCost from the budget.
func (s *Shared) PayFault() {
	s.Budget -= min(FaultCost, s.Budget)
	s.Work += FaultCost
}

// MaxDepth is the most runs that can nest inside calls of the Host. (Unicorn documents 64, and
// crashes in the 64th.)
const MaxDepth = 63

// The host's time besides instructions, converted to instructions that would take as long.
const (
	WorkBlock = 1000 // to prepare a block of code
	WorkByte  = 100  // and for each byte of it
	WorkTrap  = 150
)
