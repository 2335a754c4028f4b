package kimage

// EachKernel is for tests of the package's users.
var EachKernel = eachKernel
