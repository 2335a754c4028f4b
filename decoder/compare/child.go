package compare

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"kprobelab/decoder"
)

// Child is a decoder in a process of its own that speaks the line protocol:
// an instruction's bytes in hex a line in; "LENGTH CLASS [TARGET] [; TEXT]" a line out.
type Child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	buf  []byte
	log  *lastLine
	// tried: its lines were counted once.
	tried bool
}

// StartChild starts a program that speaks the line protocol.
func StartChild(name, program string, args ...string) (*Child, error) {
	c := &Child{name: name, cmd: exec.Command(program, args...), log: &lastLine{}}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stderr = c.log
	c.in, c.out = in, bufio.NewReaderSize(out, 1<<16)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// lastLine keeps the beginning of a child's error output.
type lastLine struct{ text []byte }

func (l *lastLine) Write(b []byte) (int, error) {
	if len(l.text) < 200 {
		l.text = append(l.text, b[:min(len(b), 200)]...)
	}
	return len(b), nil
}

// Name is the name it was started under.
func (c *Child) Name() string { return c.name }

// Close ends the process by ending its input. The error reports a process that wrote more lines
// than it had questions: then its answers belong to other questions.
func (c *Child) Close() error {
	c.in.Close()
	timer := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	err := c.quiet()
	if line, _ := c.out.ReadSlice('\n'); err == nil && len(line) > 0 {
		err = c.tooMuch(line)
	}
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait() // how it ends is its own affair
	return err
}

// patience is the longest time for which a child may be silent.
var patience = 20 * time.Second

// Ask writes all questions while it reads the answers, so that neither side waits for the other.
func (c *Child) Ask(questions [][]byte, answers []Answer) error {
	if !c.tried {
		c.tried = true
		if err := c.trial(questions); err != nil {
			return err
		}
	}
	c.buf = c.buf[:0]
	for _, q := range questions {
		c.buf = appendHex(c.buf, q)
	}
	var silent atomic.Bool
	timer := time.AfterFunc(patience, func() {
		silent.Store(true)
		_ = c.cmd.Process.Kill() // reading fails then
	})
	defer timer.Stop()
	written := make(chan error, 1)
	go func() {
		_, err := c.in.Write(c.buf)
		written <- err
	}()
	for n := range questions {
		line, err := c.out.ReadSlice('\n')
		if err != nil {
			// Not before the process has gone is its last word complete.
			c.in.Close()
			c.cmd.Wait()
			<-written
			if silent.Load() {
				return fmt.Errorf("%s has been silent for %v after %d of %d answers: does it flush what it writes?", c.name, patience, n, len(questions))
			}
			return fmt.Errorf("%s ended after %d of %d answers: %w %s", c.name, n, len(questions), err, bytes.TrimSpace(c.log.text))
		}
		if answers[n], err = parseAnswer(line); err != nil {
			return fmt.Errorf("%s answered %q: %w", c.name, strings.TrimSpace(string(line)), err)
		}
	}
	if err := <-written; err != nil {
		return err
	}
	return c.quiet()
}

// quiet returns an error if a child has written more lines than it had questions.
func (c *Child) quiet() error {
	if c.out.Buffered() == 0 {
		return nil
	}
	more, _ := c.out.Peek(c.out.Buffered())
	return c.tooMuch(more)
}

func (c *Child) tooMuch(text []byte) error {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return fmt.Errorf("%s wrote more lines than it was asked questions, the next is %q: one line is an answer", c.name, line)
}

// trialQuestions is the number of questions of a trial, if there are so many.
const trialQuestions = 64

// trial asks a separate process, and counts its lines until it ends: with two lines for a question,
// the second would be taken for the next question's answer. Ask finds all other errors.
func (c *Child) trial(questions [][]byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	once := exec.CommandContext(ctx, c.cmd.Path, c.cmd.Args[1:]...)
	questions = questions[:min(trialQuestions, len(questions))]
	var in []byte
	for _, q := range questions {
		in = appendHex(in, q)
	}
	once.Stdin = bytes.NewReader(in)
	out, err := once.StdoutPipe()
	if err != nil {
		return err
	}
	if err := once.Start(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	defer func() { cancel(); _ = once.Wait() }()
	r := bufio.NewReader(out)
	for range questions {
		if _, err := r.ReadSlice('\n'); err != nil {
			return nil
		}
	}
	if more, _ := r.ReadSlice('\n'); len(more) > 0 {
		return c.tooMuch(more)
	}
	return nil
}

func appendHex(b, q []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range q {
		b = append(b, digits[c>>4], digits[c&15])
	}
	return append(b, '\n')
}

// indirect is the class of a decoder that does not tell calls from jumps.
const indirect = decoder.Class(255)

var errAnswer = fmt.Errorf("want \"LENGTH CLASS [TARGET] [; TEXT]\", a length of 0 to 15 and a class that docs/decoder.md lists")

// parseAnswer reads a line of a decoder. Only the length is needed.
func parseAnswer(line []byte) (a Answer, err error) {
	at := 0
	for at < len(line) && line[at] >= '0' && line[at] <= '9' && at < 3 {
		a.Length = a.Length*10 + int(line[at]-'0')
		at++
	}
	if at == 0 || a.Length > decoder.MaxInsnSize {
		return a, errAnswer
	}
	// Nearly all answers are one of these two, which need no conversion.
	switch rest := line[at:]; string(rest) {
	case " none\n":
		a.Class = &classes[decoder.ClassNone]
		return a, nil
	case " -\n", "\n":
		return a, nil
	}
	rest, text, _ := strings.Cut(string(line[at:]), ";")
	a.Text = strings.TrimSpace(text)
	f := strings.Fields(rest)
	if len(f) > 2 {
		return a, errAnswer
	}
	if len(f) > 0 && f[0] != "?" && f[0] != "-" {
		class, ok := decoder.ParseClass(f[0])
		if f[0] == "indirect" {
			class, ok = indirect, true
		}
		if !ok {
			return a, errAnswer
		}
		a.Class = &classes[class]
	}
	if len(f) == 2 {
		a.HasTarget = true
		a.Target, err = strconv.ParseInt(f[1], 10, 64)
	}
	return a, err
}
