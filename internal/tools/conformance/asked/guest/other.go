//go:build !(linux && amd64)

package main

import "log"

func main() {
	log.Fatal("this is the first process of a Linux kernel on x86-64, and runs nowhere else")
}
