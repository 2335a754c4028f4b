package definition_test

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/tracing/definition"
)

// fakeKernel knows a handful of symbols. fn and twice are functions, mod is a
// loaded module with modfn in it.
type fakeKernel struct{}

func (fakeKernel) Entry(symbol string, offset int64) error {
	switch strings.TrimPrefix(symbol, "mod:") {
	case "fn", "twice", "modfn":
		if offset != 0 {
			return errno.EINVAL
		}
		return nil
	}
	return errno.ENOENT
}

func (fakeKernel) Count(symbol string) (int, bool) {
	module, name, in := strings.Cut(symbol, ":")
	if in && module != "mod" {
		return 0, false
	}
	if in {
		symbol = name
	}
	return map[string]int{"fn": 1, "twice": 2, "modfn": 1}[symbol], true
}

func (fakeKernel) Proto(symbol string) (definition.Proto, bool) {
	if symbol != "fn" {
		return definition.Proto{}, false
	}
	return definition.Proto{
		Params: []definition.Param{{Name: "file", Size: 8, Pointer: true}, {Name: "n", Size: 4, Signed: true, Integer: true}},
	}, true
}
