package doctor_test

import (
	"context"
	"errors"
	"fmt"

	"kprobelab/doctor"
	"kprobelab/kernels"
)

// A program asks what this machine can do before it begins.
func Example() {
	r := doctor.Look(context.Background(), doctor.Options{Offline: true}).Report()
	for _, a := range r.Abilities {
		if a.Name == "probe functions and programs" {
			fmt.Println(a.Name, a.Can, a.Lacks)
		}
	}
	// Output:
	// probe functions and programs true []
}

// Facts of another machine are judged alike.
func ExampleFacts_Report() {
	f := &doctor.Facts{System: "linux", Arch: "amd64", Static: true, Engine: "Go", CPUs: 2, Memory: 8 << 30, QEMUErr: errors.New("no QEMU")}
	for _, a := range f.Report().Abilities {
		if a.Name == "run programs on booted kernels" {
			fmt.Println(a.Can, a.Lacks)
		}
	}
	// Output:
	// false [qemu]
}

// An error of a first run has a next command.
func ExampleNext() {
	fmt.Println(doctor.Next(fmt.Errorf("6.12: %w", kernels.ErrOffline)))
	// Output:
	// leave out --offline, or kprobelab kernels import FILE
}
