//go:build linux && (!cgo || !amd64)

package main

import "errors"

func child(string, uint64) error { return errors.New("built without the engine") }
