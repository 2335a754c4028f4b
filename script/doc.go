// Package script runs scripts of SystemTap and of bpftrace on a Lab: their probes are kprobes and kretprobes of this
// project, their timers tick in virtual time, and what they print goes to a writer.
//
// Stap and Bpftrace read a script for an image; Start attaches its probes to a machine that runs the image; whatever
// happens there then hits them; Close takes them away, runs the script's end, and says how it ended.
//
//	s, err := script.Bpftrace(img, "kprobe:vfs_read { @[comm] = count(); }", nil)
//	...
//	run, err := s.Start(lab, &script.Output{Out: os.Stdout})
//	...
//	kernel, err := lab.Booted()
//	code, err := kernel.Exec(&booted.Program{Args: []string{"/bin/true"}, Stdout: os.Stdout})
//	...
//	err = run.Close()
//
// A script has the verdicts and messages of stap 4.8 and bpftrace 0.23.2; docs/stap.md and docs/bpftrace.md list what is
// not there.
//
// It must not know flags, terminals or exit codes.
package script
