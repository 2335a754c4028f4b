package event

import "kprobelab/profile"

// reschedChars are the second flag of a line by the record's flags, with and without a
// lazy reschedule (trace_print_lat_fmt).
var reschedChars = map[byte]byte{
	0:                                    '.',
	FlagNeedResched:                      'n',
	FlagPreemptResched:                   'p',
	FlagNeedResched | FlagPreemptResched: 'N',
	FlagLazyResched:                      'l',
	FlagLazyResched | FlagPreemptResched: 'L',
	FlagLazyResched | FlagNeedResched:    'b',
	FlagLazyResched | FlagNeedResched | FlagPreemptResched: 'B',
}

// ReschedChar returns the character in a line for the flags that ask its task to give up its CPU.
func ReschedChar(c *profile.Tracing, flags byte) byte {
	mask := byte(FlagNeedResched | FlagPreemptResched)
	if c.LazyResched {
		mask |= FlagLazyResched
	}
	return reschedChars[flags&mask]
}
