package tracing

import (
	"kprobelab/internal/tracing/event"
)

// ownGroup is the group of the records that no event writes: the function tracer's, stacks and
// texts. Its events cannot be enabled, and no list names them. A reader of trace_pipe_raw needs
// their formats to parse these records, and trace-cmd 3.1.6 requires the folder.
const ownGroup = "ftrace"

// ownFormats are the formats of the records that this program writes (kernel/trace/trace_entries.h;
// a kernel has formats for its other tracers too).
func (t *Tracing) ownFormats() []*event.Format {
	ip := event.Field{Name: "ip", Type: "unsigned long", Offset: offMarkIP, Size: 8}
	return []*event.Format{
		{Name: "function", ID: functionID, Print: `" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip`, Fields: []event.Field{
			ip, {Name: "parent_ip", Type: "unsigned long", Offset: offParent, Size: 8},
		}},
		{Name: "kernel_stack", ID: stackID, Print: stackPrint, Fields: []event.Field{
			{Name: "size", Type: "int", Offset: offEntries, Size: 4, Signed: true},
			{Name: "caller", Type: "unsigned long[8]", Offset: offCallers, Size: 64},
		}},
		{Name: "print", ID: printID, Print: `"%ps: %s", (void *)REC->ip, REC->buf`, Fields: []event.Field{
			ip, {Name: "buf", Type: "char[]", Offset: offMarkText, Signed: t.signedChar()},
		}},
	}
}

const stackPrint = `"\t=> %ps\n\t=> %ps\n\t=> %ps\n" "\t=> %ps\n\t=> %ps\n\t=> %ps\n" "\t=> %ps\n\t=> %ps\n", ` +
	`(void *)REC->caller[0], (void *)REC->caller[1], (void *)REC->caller[2], (void *)REC->caller[3], ` +
	`(void *)REC->caller[4], (void *)REC->caller[5], (void *)REC->caller[6], (void *)REC->caller[7]`

// ownNodes are the folders of these events. The function tracer's alone is there for
// perf, and so has a number to be opened by.
func (t *Tracing) ownNodes() (list []*node) {
	for _, f := range t.ownFormats() {
		f.Common = event.Common()
		list = append(list, folder(f.Name, func() []*node {
			nodes := []*node{text("format", f.String)}
			if f.ID == functionID {
				nodes = append(nodes, text("id", func() string { return itoa(f.ID) + "\n" }))
			}
			return nodes
		}))
	}
	return list
}
