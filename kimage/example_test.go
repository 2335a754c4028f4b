package kimage

import "fmt"

// A stripped bzImage still answers as its kernel's kallsyms would: its
// symbols are in compressed tables inside.
func ExampleFromBytes() {
	kernel := testKernel(kallsymsLayouts[4])
	img, err := FromBytes("vmlinuz", testBzImage(kernel, len(kernel)), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	read := img.Lookup("vfs_read")[0]
	fmt.Printf("%s at %v, %d bytes, in text: %v\n", read.Name, read.Addr, read.Size, img.InText(read.Addr))
	s, _ := img.SymbolAt(read.Addr + 5)
	fmt.Printf("%v is %s+%#x\n", read.Addr+5, s.Name, uint64(read.Addr+5-s.Addr))
	for _, f := range img.Facts()[:3] {
		fmt.Printf("%s = %s (%s)\n", f.Name, f.Value, f.Evidence)
	}
	// Output:
	// vfs_read at 0xffffffff81000010, 48 bytes, in text: true
	// 0xffffffff81000015 is vfs_read+0x5
	// symbols = 312 (the image's kallsyms tables in .rodata)
	// release = 6.1.0-test (linux_banner)
	// compiler = gcc-12 (Debian 12.2.0) 12.2.0, GNU ld 2.40 (linux_banner)
}
