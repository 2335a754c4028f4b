package qemu

import (
	"bufio"
	"encoding/json"
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
func dialMonitor(path string) (*monitor, error) {
	conn, err := dial(path)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, in: bufio.NewScanner(conn)}
	if !m.in.Scan() { // the greeting
		return nil, fmt.Errorf("QEMU's monitor does not greet: %w", m.in.Err())
	}
	return m, m.do("qmp_capabilities", nil)
}

// dial connects to a socket that appears soon.
func dial(path string) (conn net.Conn, err error) {
	for range 100 {
		if conn, err = net.Dial("unix", path); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return conn, err
}

// do runs a command and waits for its end.
func (m *monitor) do(command string, arguments map[string]any) error {
	return m.ask(command, arguments, nil)
}

// ask runs a command and reads what it returns into result, unless that is nil.
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
	return fmt.Errorf("QEMU's monitor is gone: %w", m.in.Err())
}
