package asked

import (
	"context"
	"os"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// Op is one use of a file.
type Op struct {
	Do Do
	// File is its path in the tracing directory, Text what is written.
	File, Text string
}

// Do is the use that an Op makes of its file.
type Do string

// The uses: open with truncation or for appending, then one write system call
// unless the text is empty; or read the whole file.
const (
	Write  Do = "write"
	Append Do = "append"
	Read   Do = "read"
)

// Flags returns the flags with which os.OpenFile opens the file.
func (o *Op) Flags() int {
	switch o.Do {
	case Write:
		return os.O_WRONLY | os.O_TRUNC
	case Append:
		return os.O_WRONLY | os.O_APPEND
	}
	return os.O_RDONLY
}

// Answer is the result of an Op. Errno is 0 if the Op succeeded.
type Answer struct {
	Errno int
	// Text is the content that a Read has read.
	Text string
}

// Run does the ops one after the other in a tree, and returns an Answer for each.
func Run(t tracing.Tree, ops []Op) []Answer {
	list := make([]Answer, len(ops))
	for i := range ops {
		text, err := run(t, &ops[i])
		list[i] = Answer{int(errno.Of(err)), text}
	}
	return list
}

func run(t tracing.Tree, o *Op) (text string, err error) {
	h, err := t.OpenFile(o.File, o.Flags())
	if err != nil {
		return "", err
	}
	switch {
	case o.Do == Read:
		text, err = readAll(h)
	case o.Text != "":
		_, err = h.WriteAt([]byte(o.Text), 0)
	}
	if e := h.Close(); err == nil {
		err = e
	}
	return text, err
}

func readAll(h tracing.Handle) (string, error) {
	var all []byte
	buf := make([]byte, 1<<16)
	for {
		n, err := h.ReadAt(context.Background(), buf, int64(len(all)))
		all = append(all, buf[:n]...)
		if n == 0 || err != nil {
			return string(all), err
		}
	}
}

// OpsFile is the path of the guest's file with its ops, a JSON list of Op. AnswersFrame
// names the frame in which the guest sends its list of Answer.
const (
	OpsFile      = "/ops.json"
	AnswersFrame = "answers"
)
