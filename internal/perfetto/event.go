package perfetto

// Kind says what an event does on its track.
type Kind int

// The kinds.
const (
	// Instant is a point in time.
	Instant Kind = iota
	// Begin starts a slice, End ends the innermost one of its name.
	Begin
	End
)

var kindNames = [...]string{"instant", "begin", "end"}

// String is the kind's word in JSON.
func (k Kind) String() string { return kindNames[k] }

// Arg is one named value of an event.
type Arg struct {
	Name string
	// Value is an int64, a uint64, a Pointer, a string, a bool, or a list of
	// those as []any. Anything else is written as fmt prints it.
	Value any
}

// Pointer is a value that is an address: shown in hexadecimal.
type Pointer uint64

// Event is one thing that happened.
type Event struct {
	// Time in nanoseconds since boot.
	Time uint64
	Kind Kind
	// OnCPU puts it on the track of the CPU, instead of the task's.
	OnCPU bool
	CPU   int
	// PID and Comm are the task's number and name; Process is the number of its process, 0 for the one
	// that all tracks belong to, ProcessName its name.
	PID         int
	Comm        string
	Process     int
	ProcessName string
	// Category is the event's group, Name its name.
	Category, Name string
	Args           []Arg
	// Flows lists the numbers of the flows that pass through the event, EndFlows the numbers of the flows that
	// end at it.
	Flows, EndFlows []uint64
}

// Span is a time on a CPU, in nanoseconds.
type Span struct {
	CPU        int
	Start, End uint64
}

// Poke are the events of a change of text: the CPU that changed it, and each
// CPU that then dropped its stale instructions. id numbers the poke, from 1;
// the flows from the poke to the syncs get numbers of their own from it.
func Poke(id uint64, poke Span, syncs []Span, args ...Arg) []Event {
	const name, sync, category = "text_poke", "sync_core", "text"
	flow := func(i int) uint64 { return id<<16 | uint64(i+1) }
	begin := Event{Time: poke.Start, Kind: Begin, OnCPU: true, CPU: poke.CPU, Category: category, Name: name, Args: args}
	for i := range syncs {
		begin.Flows = append(begin.Flows, flow(i))
	}
	list := []Event{begin}
	inside, after := []Event{}, []Event{}
	for i, s := range syncs {
		pair := []Event{
			{Time: s.Start, Kind: Begin, OnCPU: true, CPU: s.CPU, Category: category, Name: sync, EndFlows: []uint64{flow(i)}},
			{Time: s.End, Kind: End, OnCPU: true, CPU: s.CPU, Category: category, Name: sync},
		}
		if s.Start <= poke.End {
			inside = append(inside, pair...)
		} else {
			after = append(after, pair...)
		}
	}
	list = append(list, inside...)
	list = append(list, Event{Time: poke.End, Kind: End, OnCPU: true, CPU: poke.CPU, Category: category, Name: name})
	return append(list, after...)
}
