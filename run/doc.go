// Package run plants probes, makes calls, executes programs, and takes the probes away, in the order that a plan
// says. All that happens is an Event, which a Sink gets while it happens.
//
// A Kernel plan is for an image or the dump of a booted kernel, a Program plan for a program without a kernel. Text,
// JSON and Perfetto are sinks that print; Tee gives events to several sinks, Capped bounds what one gets.
//
// It must not know flags, terminals and exit codes: a program of somebody's own does with it what the command does.
package run
