package kprobelab

import "kprobelab/internal/own"

// measure asks an image's own functions about its behaviour.
var measure = own.Measured
