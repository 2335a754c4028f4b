package kimage

// Fact is something inferred about the kernel.
type Fact struct {
	// Name is the profile's field or the configuration option it decides.
	Name string
	// Value is what was decided.
	Value string
	// Evidence says from what, in a few words.
	Evidence string
}
