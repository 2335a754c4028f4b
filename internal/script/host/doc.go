// Package host is what script languages and what runs them share: the probes of a script, what
// resolves them, and what a handler can ask of the machine that was hit.
//
// It must not know a language's syntax, how a probe is planted, or an engine.
package host
