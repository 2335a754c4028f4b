package run

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/script"
)

// Script is a plan for a script: it is attached, calls are made or a program is run while its probes are hit, and it ends.
type Script struct {
	// Calls are made in order, and then Command is run on a booted kernel. Without both, Wait passes at most.
	Calls   []string
	Command string
	Wait    time.Duration
	// Budget bounds the instructions of a call and of the program.
	Budget uint64
	// AnyCode lets the program end as it likes; without it, another code than 0 is an error.
	AnyCode bool
	// Output gets what the script prints, Stdout and Stderr what the program does.
	Output         *script.Output
	Stdout, Stderr io.Writer
}

// Scripted is the end of a script.
type Scripted struct {
	Counts []script.Counts
	// Code is the exit code that the script has chosen.
	Code int
	// ProgramCode is the exit code of Command.
	ProgramCode int
}

// Run runs the script, on a machine only where it needs one. The script's end is there beside an error that came after its
// beginning; else it is nil.
func (p *Script) Run(img *kimage.Image, s *script.Script) (*Scripted, error) {
	if p.Wait <= 0 {
		return nil, misused("--for: %s is no time that can pass", p.Wait)
	}
	if p.Command == "" && len(p.Calls) == 0 && !s.Waits() {
		r, err := s.Start(nil, p.Output)
		if err != nil {
			return nil, refused(err)
		}
		r.Wait(p.Wait)
		return EndScript(r)
	}
	if p.Command != "" && img.Core() == nil {
		return nil, unusable(fmt.Errorf("%s: -c needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name()))
	}
	return p.onMachine(img, s)
}

func (p *Script) onMachine(img *kimage.Image, s *script.Script) (*Scripted, error) {
	var calls []*session.Call
	for _, text := range p.Calls {
		c, err := session.BindCall(img, text)
		if syntax := (*callsyntax.Error)(nil); errors.As(err, &syntax) {
			return nil, fmt.Errorf("--call: %w", err)
		}
		if err != nil {
			return nil, misused("--call: %w", err)
		}
		calls = append(calls, c)
	}
	var command *mailbox.Command
	if p.Command != "" {
		c, err := mailbox.Program(mailbox.Exec, p.Command, nil)
		if err != nil {
			return nil, misused("-c: %w", err)
		}
		command = &c
	}
	lab, err := kprobelab.New(img, &kprobelab.Options{Budget: p.Budget, Optimize: true})
	if err != nil {
		return nil, MachineError(img, err)
	}
	defer lab.Close()
	lab.FollowPools()
	l := session.New(lab)
	if err := l.Prepare(calls); err != nil {
		return nil, refused(OneLine(err))
	}
	r, err := s.Start(lab, p.Output)
	if err != nil {
		return nil, refused(err)
	}
	done := &Scripted{}
	var failed error
	if !r.Ended() {
		failed = p.happen(l, r, calls, command, done)
	}
	done, err = endScript(r, done)
	return done, errors.Join(err, failed)
}

// happen makes the calls and runs the program; without either, time passes.
func (p *Script) happen(l *session.Session, r *script.Run, calls []*session.Call, command *mailbox.Command, done *Scripted) error {
	for _, c := range calls {
		if _, err := l.Make(c); err != nil {
			return refused(fmt.Errorf("%s: %w", c.Name, OneLine(err)))
		}
	}
	if command == nil {
		if len(calls) == 0 {
			r.Wait(p.Wait)
		}
		return nil
	}
	k, err := l.Booted()
	if err == nil {
		done.ProgramCode, err = k.Exec(&booted.Program{Args: command.Args, Env: command.Env, Stdin: command.Input, Stdout: p.Stdout, Stderr: p.Stderr})
	}
	switch {
	case err != nil:
		return programError(l.Image.Name(), command.Args[0], err)
	case done.ProgramCode != 0 && !p.AnyCode:
		p.Output.Log(fmt.Sprintf("WARNING: Child process exited with status %d", done.ProgramCode))
		return refused(fmt.Errorf("%s ended with exit code %d", strings.TrimSpace(command.Args[0]), done.ProgramCode))
	}
	return nil
}

// EndScript ends a script that runs, and says how.
func EndScript(r *script.Run) (*Scripted, error) { return endScript(r, &Scripted{}) }

// endScript runs the end probes.
func endScript(r *script.Run, done *Scripted) (*Scripted, error) {
	err := r.Close()
	done.Counts = r.Counts()
	if err != nil {
		return done, refused(err)
	}
	done.Code = r.Code()
	return done, nil
}
