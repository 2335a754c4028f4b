//go:build unicorn && cgo && linux && amd64

package engine

import "kprobelab/emu"

func init() {
	all = append([]Engine{{"unicorn", emu.New, emu.CPUModels, emu.Engine}}, all...)
}
