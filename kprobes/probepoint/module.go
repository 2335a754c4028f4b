package probepoint

import "kprobelab/kimage"

// ModuleState is a module's stage between its load and its removal (enum module_state).
type ModuleState int

// The states that registration distinguishes.
const (
	// ModuleLive: it is loaded and has run its init function.
	ModuleLive ModuleState = iota
	// ModuleComing: it is loaded and its init text is there to be run.
	ModuleComing
	// ModuleGoing: it is being unloaded, and no reference can be taken.
	ModuleGoing
	// ModuleUnformed: its text is about to be freed, and belongs to no module any more.
	ModuleUnformed
)

// Modules is a View that knows the modules' states. In another View all modules are live.
type Modules interface {
	kimage.View
	// ModuleState is the state of the module of that name.
	ModuleState(name string) ModuleState
}

func stateOf(v kimage.View, module string) ModuleState {
	if m, ok := v.(Modules); ok {
		return m.ModuleState(module)
	}
	return ModuleLive
}
