package boot

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
)

// tracefs is the mount point that init uses.
const tracefs = "/sys/kernel/tracing/"

// bufferKB is the size of each CPU's trace buffer: the usual one would lose the beginning
// of a long trace.
const bufferKB = 8192

// ErrDefinition is a definition that the kernel refused.
var ErrDefinition = errors.New("the kernel refuses the definition")

// ErrTraceWrite is a text that a file of tracing did not take.
var ErrTraceWrite = errors.New("the kernel refuses the text")

// failed is the error of a command that could not be done, nil when it was.
func failed(o *mailbox.Outcome, err error) error {
	if err == nil && o.Errno != 0 {
		err = o.Errno
	}
	return err
}

func nothing(int, []byte) error { return nil }

// Write writes a text to the end of a file of the guest.
func (g *Guest) Write(path, text string) error {
	return failed(g.Do(mailbox.Command{Kind: mailbox.Write, Args: []string{path}, Input: []byte(text)}, nothing))
}

// Read reads a file of the guest.
func (g *Guest) Read(path string) (string, error) {
	var b content
	if err := failed(g.Do(mailbox.Command{Kind: mailbox.Read, Args: []string{path}}, b.add)); err != nil {
		return "", fmt.Errorf("%s of the guest: %w", path, err)
	}
	return b.String(), nil
}

// content is a file of the guest, which comes in pieces.
type content struct{ strings.Builder }

func (c *content) add(_ int, piece []byte) error {
	if c.Len()+len(piece) > bounded.GuestFile {
		return fmt.Errorf("it has more than %d MiB", bounded.GuestFile>>20)
	}
	c.Write(piece)
	return nil
}

// TraceWrite is a text to write to a file of tracing, by its path there.
type TraceWrite struct{ File, Text string }

// Trace writes definitions to kprobe_events, one a line, then the other texts, and
// enables all events.
func (g *Guest) Trace(definitions string, others []TraceWrite) error {
	if err := g.Write(tracefs+"buffer_size_kb", fmt.Sprint(bufferKB)); err != nil {
		return fmt.Errorf("the guest's tracing files: %w", err)
	}
	for i, line := range strings.Split(definitions, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		err := g.Write(tracefs+"kprobe_events", line+"\n")
		var no errno.Errno
		if errors.As(err, &no) {
			return fmt.Errorf("line %d, %s: %w: %w", i+1, line, ErrDefinition, no)
		}
		if err != nil {
			return err
		}
	}
	for _, w := range others {
		err := g.Write(tracefs+w.File, w.Text+"\n")
		var no errno.Errno
		if errors.As(err, &no) {
			return fmt.Errorf("%s=%s: %w: %w", w.File, w.Text, ErrTraceWrite, no)
		}
		if err != nil {
			return err
		}
	}
	return g.enable()
}

// enable enables all events that kprobe_events lists, as "p:group/name ...".
func (g *Guest) enable() error {
	list, err := g.Read(tracefs + "kprobe_events")
	if err != nil {
		return err
	}
	var events []string
	for line := range strings.Lines(list) {
		if _, rest, ok := strings.Cut(line, ":"); ok {
			events = append(events, strings.Fields(rest)[0])
		}
	}
	for _, e := range slices.Compact(events) {
		if err := g.Write(tracefs+"events/"+e+"/enable", "1"); err != nil {
			return fmt.Errorf("%s cannot be enabled: %w", e, err)
		}
	}
	return nil
}

// Traced stops tracing, and returns the file trace.
func (g *Guest) Traced() (string, error) {
	if err := g.Write(tracefs+"tracing_on", "0"); err != nil {
		return "", err
	}
	return g.Read(tracefs + "trace")
}
