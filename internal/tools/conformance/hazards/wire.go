package hazards

// What the guest and the host say to each other.
const (
	// Ready is the first frame: the machine can be saved. It has the names of the
	// workloads that write the same each time; only these are run from then on.
	Ready = "ready"
	// Discover asks for Hits: a line for each workload and event that it hits in each of
	// two runs, with how often at least. Idle is the workload that does nothing.
	Discover = "discover"
	Hits     = "hits"
	Idle     = "idle"
	// Try asks to run a workload with a definition, of the event Event. The answers are
	// Ran and, when the probe is off again, Alive; both have a Tried.
	Try   = "try"
	Event = "h"
	Ran   = "ran"
	Alive = "alive"
	// Load asks to load the module with some parameters, to be idle for a while and to
	// run the workload that does nothing. The answers are as to Try.
	Load = "load"
	// Faulty is the workload that makes the kernel catch a fault which is neither a page
	// fault nor a general protection fault.
	Faulty = "x87"
	// NotEnded is the status of a workload that does not end.
	NotEnded = "not ended"
)

// Tried is the result of running a workload before, with and after a probe.
type Tried struct {
	// Refused says why there is no probe.
	Refused string
	// Before, With and After are the workload's output without the probe, with it,
	// and after its removal. StatusBefore, Status and StatusAfter are the exits.
	Before, With, After               string
	StatusBefore, Status, StatusAfter string
	// Hits is the number of the probe's hits.
	Hits int
	// Log has the kernel's messages while the probe was on.
	Log string
}
