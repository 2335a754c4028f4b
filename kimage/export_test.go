package kimage

// What tests of the package's users need of its own tests.
var (
	EachKernel = eachKernel
	KernelFile = kernelFile
)
