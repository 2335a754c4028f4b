//go:build unicorn && cgo && linux && amd64

package machine_test

import (
	"kprobelab/emu"
)

func init() { engines = append([]opener{{"unicorn", emu.New, emu.CPUModels}}, engines...) }
