//go:build !linux || !amd64

// Command guest is the first process of a kernel whose hazards are tried, on Linux only.
package main

func main() {}
