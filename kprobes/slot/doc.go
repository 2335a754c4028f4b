// Package slot puts one instruction out of line: it copies it, moves its
// RIP-relative displacement, decides whether a jump back may follow the copy
// (boosting), and which instructions are emulated instead of stepped, and how.
//
// It must not know its callers: no probes, no CPUs, no handlers. It reads code through a
// kimage.View and the guest's stack through a small Memory.
//
// It follows arch/x86/kernel/kprobes/core.c (__copy_instruction, can_boost, prepare_singlestep,
// prepare_emulation), in the release that a profile.Config describes.
package slot
