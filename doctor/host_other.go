//go:build !linux

package doctor

import "errors"

var hostNexts []class

// errLinux is the reason why things of Linux are not here.
var errLinux = errors.New("that is for Linux")

func (f *Facts) lookAtHost() {
	f.Static = true
	f.KVMErr, f.MountErr, f.NamespaceErr = errLinux, errLinux, errLinux
}

func freeSpace(string) uint64 { return 0 }
