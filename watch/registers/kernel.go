package registers

import "kprobelab/x86"

// Kernel is what the rules depend on.
type Kernel struct {
	// CPUs is how many there may be (nr_cpu_ids), Offline which of them are not there.
	CPUs    int
	Offline []int
	// UserEnd is the first address that is not a program's; 0 is x86.UserEnd.
	UserEnd x86.Addr
	// Entry is memory that the ways into the kernel use: no register may be on it.
	Entry []x86.Range
	// Blacklisted is whether kprobes are refused at an address; nil: nowhere.
	Blacklisted func(x86.Addr) bool
	// Ranges is whether lengths above 8 are possible (X86_FEATURE_BPEXT of AMD's).
	Ranges bool
	// Paranoid is kernel.perf_event_paranoid.
	Paranoid int
	// Restricted is whether 3 and more of it keep all but root from perf_event_open (Debian's patch,
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
