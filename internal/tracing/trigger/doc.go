// Package trigger is the kernel's event triggers: commands in an event's
// trigger file that run when the event is hit, and may switch tracing or
// another event on or off.
//
// It must not know how an event is armed, how records are written, or who
// reads the file: it acts on a Tracer and on Events, which the caller has.
//
// A command is
//
//	[!] (traceon | traceoff) [:COUNT] [if FILTER]
//	[!] (stacktrace | snapshot) [:COUNT] [if FILTER]
//	[!] (enable_event | disable_event) :GROUP:EVENT [:COUNT] [if FILTER]
//
// The hist commands fail with EINVAL, as in a kernel that is built without them.
//
// Quirks of the kernel that are kept: traceon and traceoff are of one type, so an event has at most
// one of them, and removing either removes the other. The same holds for enable_event and
// disable_event with the same target. Removing a trigger that does not exist succeeds.
package trigger
