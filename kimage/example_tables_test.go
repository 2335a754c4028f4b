package kimage_test

import (
	"fmt"
	"log"

	"kprobelab/kimage"
)

// A module is loaded into module space, and its symbols are found by name.
func ExampleOptions_modules() {
	img, err := kimage.Open("../testdata/guest.elf", &kimage.Options{Modules: []string{"../testdata/demo.ko"}})
	if err != nil {
		log.Fatal(err)
	}
	s := img.Lookup("demo:demo_nk")[0]
	_, refused := img.Blacklisted(s.Addr)
	fmt.Println(img.Modules(), s.Name, s.Module, "blacklisted:", refused)
	// Output: [demo] demo_nk demo blacklisted: true
}

// The processor that the boot-time text is made for has a name and features.
func ExampleCPUModels() {
	fmt.Println(kimage.CPUModels())
	_, err := kimage.Open("../testdata/guest.elf", &kimage.Options{CPU: "z80"})
	fmt.Println(err)
	// Output:
	// [Broadwell Cascadelake-Server ClearwaterForest DiamondRapids EPYC EPYC-Genoa EPYC-Milan EPYC-Rome EPYC-Turin GraniteRapids Haswell Icelake-Server Nehalem SierraForest Skylake-Client kvm64 qemu64]
	// CPU model "z80" is not known; there are Broadwell, Cascadelake-Server, ClearwaterForest, DiamondRapids, EPYC, EPYC-Genoa, EPYC-Milan, EPYC-Rome, EPYC-Turin, GraniteRapids, Haswell, Icelake-Server, Nehalem, SierraForest, Skylake-Client, kvm64, qemu64, host, and a file in the form of /proc/cpuinfo
}
