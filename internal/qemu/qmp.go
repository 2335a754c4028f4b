package qemu

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// monitor is a connection to QEMU's monitor (QMP).
type monitor struct {
	conn net.Conn
	in   *bufio.Scanner
}

// dialMonitor connects to the monitor's socket, which appears soon after QEMU
// has begun.
func dialMonitor(path string, ended <-chan struct{}) (*monitor, error) {
	conn, err := dial(path, ended)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, in: bufio.NewScanner(conn)}
	if !m.in.Scan() { // the greeting
		return nil, m.gone()
	}
	return m, m.do("qmp_capabilities", nil)
}

// ErrGone: QEMU has ended. It may have said why on its console.
var ErrGone = errors.New("QEMU has ended")

// dial connects to a socket that appears soon, unless QEMU ends.
func dial(path string, ended <-chan struct{}) (conn net.Conn, err error) {
	short, done := shortSocket(path)
	defer done()
	for range 600 {
		if conn, err = net.Dial("unix", short); err == nil {
			return conn, nil
		}
		select {
		case <-ended:
			return nil, ErrGone
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil, err
}

// do runs a command and waits for its end.
func (m *monitor) do(command string, arguments map[string]any) error {
	return m.ask(command, arguments, nil)
}

// ask runs a command and reads its result into result, unless that is nil.
func (m *monitor) ask(command string, arguments map[string]any, result any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		return err
	}
	for m.in.Scan() {
		var answer struct {
			Return json.RawMessage `json:"return"`
			Error  *struct{ Desc string }
			Event  string
		}
		if err := json.Unmarshal(m.in.Bytes(), &answer); err != nil {
			return err
		}
		switch {
		case answer.Event != "":
		case answer.Error != nil:
			return fmt.Errorf("QEMU's monitor, %s: %s", command, answer.Error.Desc)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(answer.Return, result)
		}
	}
	return m.gone()
}

func (m *monitor) gone() error {
	return errors.Join(ErrGone, m.in.Err())
}
