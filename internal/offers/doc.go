// Package offers completes the words of the command line with what the program has: kernels, symbols, profiles, scenarios.
//
// It must not know a shell, nor which commands there are.
package offers
