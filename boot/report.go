package boot

import (
	"encoding/json"
	"io"
)

// Report describes a boot and the work done on the kernel, as an object of JSON. Times are seconds.
type Report struct {
	Image       string         `json:"image"`
	Kernel      string         `json:"kernel"`
	QEMU        string         `json:"qemu"`
	CommandLine string         `json:"command_line"`
	CPU         string         `json:"cpu"`
	CPUs        int            `json:"cpus"`
	KASLR       *int64         `json:"kaslr_offset,omitempty"`
	Boot        float64        `json:"boot_seconds"`
	Output      string         `json:"output,omitempty"`
	Format      string         `json:"format,omitempty"`
	Memory      int64          `json:"memory_bytes,omitempty"`
	Bytes       int64          `json:"bytes,omitempty"`
	Save        float64        `json:"save_seconds,omitempty"`
	Exec        *ProgramReport `json:"exec,omitempty"`
	Trace       string         `json:"trace,omitempty"`
}

// ProgramReport is a program that was run to its end. Its output is the caller's to fill in.
type ProgramReport struct {
	Args   []string `json:"args"`
	Code   int      `json:"exit_code"`
	Signal int      `json:"signal,omitempty"`
	Stdout string   `json:"stdout"`
	Stderr string   `json:"stderr"`
}

// Report is the report of a plan that was run. qemu is the version of QEMU.
func (p *Plan) Report(d *Done, qemu string) *Report {
	r := &Report{
		Image: p.Kernel.Name, Kernel: p.Kernel.Release, QEMU: qemu, CommandLine: p.CommandLine(), CPU: p.CPU, CPUs: p.CPUs,
		Boot: d.Boot.Seconds(), Trace: d.Trace,
	}
	if p.KASLR {
		r.KASLR = &d.Slide
	}
	if d.Saved != nil {
		r.Output, r.Format, r.Memory, r.Bytes, r.Save = p.Dump.File, string(p.Dump.Format), d.Saved.Memory, d.Saved.Bytes, d.Save.Seconds()
	}
	if d.Exit != nil {
		r.Exec = &ProgramReport{Args: p.Exec.Args, Code: d.Exit.Code, Signal: d.Exit.Signal}
	}
	return r
}

// WriteJSON writes one JSON object.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
