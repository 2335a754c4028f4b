// Package booted asks a booted kernel the questions of asked: it starts QEMU with the guest's init, and reads the
// answers.
//
// It must not know what the questions are.
package booted

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/tools/conformance/asked"
	"kprobelab/kimage"
)

// Asker boots a kernel.
type Asker struct {
	// QEMU is the program that starts QEMU, Init the file of the init program (asked/guest).
	QEMU, Init string
	// Limit is the longest that a kernel may run.
	Limit time.Duration
}

// Ask boots a kernel's image, and returns an answer for each question.
func (a *Asker) Ask(kernel string, ops []asked.Op) (answers []asked.Answer, err error) {
	init, err := os.ReadFile(a.Init)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	m := &qemu.Machine{
		QEMU: a.QEMU, Kernel: kernel, CPU: kimage.DefaultCPU, CPUs: 2, Init: init, Limit: a.Limit,
		Files: map[string][]byte{asked.OpsFile: list},
	}
	err = m.Boot(func(r *qemu.Running) error {
		name, data, err := r.Frame()
		switch {
		case err != nil:
			return err
		case name == frame.Failed:
			return errors.New("init: " + string(data))
		}
		return json.Unmarshal(data, &answers)
	})
	if err == nil && len(answers) != len(ops) {
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(ops))
	}
	return answers, err
}
