package registers

import "kprobelab/x86"

// Kernel holds the properties of a kernel that the rules depend on.
type Kernel struct {
	// CPUs is the number of possible CPUs (nr_cpu_ids); Offline lists the CPUs that are offline.
	CPUs    int
	Offline []int
	// UserEnd is the end of user addresses; 0 means x86.UserEnd.
	UserEnd x86.Addr
	// Entry is the memory of the kernel's entry code: no register may watch it.
	Entry []x86.Range
	// Blacklisted reports whether kprobes are refused at an address; nil means nowhere.
	Blacklisted func(x86.Addr) bool
	// Ranges is true if lengths above 8 are possible (X86_FEATURE_BPEXT of AMD).
	Ranges bool
	// Paranoid is kernel.perf_event_paranoid.
	Paranoid int
	// Restricted: a Paranoid of 3 or more denies perf_event_open to all but root (Debian's patch,
	// CONFIG_SECURITY_PERF_EVENTS_RESTRICT).
	Restricted bool
}

func (k *Kernel) userEnd() x86.Addr {
	if k.UserEnd == 0 {
		return x86.UserEnd
	}
	return k.UserEnd
}

// entry reports whether a byte from first to last is the ways' into the kernel.
func (k *Kernel) entry(first, last x86.Addr) bool {
	for _, r := range k.Entry {
		if last >= r.Start && first < r.End {
			return true
		}
	}
	return false
}

func (k *Kernel) online(cpu int) bool {
	for _, n := range k.Offline {
		if n == cpu {
			return false
		}
	}
	return true
}
