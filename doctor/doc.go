// Package doctor says what this machine can do: Look collects facts, Facts.Report judges them, and Next names the command
// that helps after an error of a first run.
//
// It must not know command lines, colours and exit codes.
package doctor
