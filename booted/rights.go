package booted

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/supervisor"
)

// Rights are a program's user, capabilities and limits. The zero value is root, with all capabilities and init's limits.
type Rights struct{ of supervisor.Rights }

// ErrRights is a text that names no user, capability or limit.
var ErrRights = errors.New("it is unknown")

// users lists the users of the guest's /etc/passwd (Prepare).
var users = map[string]supervisor.User{"root": {}, "nobody": {ID: 65534, Group: 65534}}

// SetUser reads UID[:GID], or root or nobody. Without a GID the group has the user's number. The program has no other
// groups and, unless it is root or gets some, no capabilities.
func (r *Rights) SetUser(text string) error {
	user, group, given := strings.Cut(text, ":")
	u, known := users[user]
	if !known {
		id, err := strconv.ParseUint(user, 10, 32)
		if err != nil || id == 1<<32-1 {
			return fmt.Errorf("%q: %w: want UID[:GID], numbers up to 4294967294, or root or nobody", text, ErrRights)
		}
		u = supervisor.User{ID: uint32(id), Group: uint32(id)}
	}
	if given {
		id, err := strconv.ParseUint(group, 10, 32)
		if err != nil || id == 1<<32-1 {
			return fmt.Errorf("%q: %w: want UID[:GID], numbers up to 4294967294, or root or nobody", text, ErrRights)
		}
		u.Group = uint32(id)
	}
	r.of.User = &u
	return nil
}

// capabilities are the names of capabilities(7), in the order of their numbers.
var capabilities = []string{
	"chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "linux_immutable",
	"net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot",
	"sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease",
	"audit_write", "audit_control", "setfcap", "mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read",
	"perfmon", "bpf", "checkpoint_restore",
}

// AddCapabilities reads names of capabilities(7) with commas between them, with or without CAP_ and in any case; all and
// none are names, too. The first call takes all other capabilities from the program.
func (r *Rights) AddCapabilities(text string) error {
	set := uint64(0)
	if r.of.Capabilities != nil {
		set = *r.of.Capabilities
	}
	for _, word := range strings.Split(text, ",") {
		name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(word)), "cap_")
		n := slices.Index(capabilities, name)
		switch {
		case n >= 0:
			set |= 1 << n
		case name == "all":
			set |= 1<<len(capabilities) - 1
		case name != "none":
			return fmt.Errorf("%q: %w: want names of capabilities(7), as bpf,perfmon", word, ErrRights)
		}
	}
	r.of.Capabilities = &set
	return nil
}

// limits are the resources of getrlimit(2), in the order of their numbers, with the names that prlimit(1) and docker have.
var limits = [supervisor.Limits]string{
	"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime",
}

// unlimited is RLIM_INFINITY.
const unlimited = 1<<64 - 1

// SetLimit reads NAME=SOFT[:HARD]: numbers with K, M or G after them, or unlimited. Without HARD both are SOFT.
func (r *Rights) SetLimit(text string) error {
	name, values, ok := strings.Cut(text, "=")
	resource := slices.Index(limits[:], name)
	if !ok || resource < 0 {
		return fmt.Errorf("%q: %w: want NAME=SOFT[:HARD], as memlock=64K; NAME is one of %s", text, ErrRights, strings.Join(slices.Sorted(slices.Values(limits[:])), ", "))
	}
	first, second, two := strings.Cut(values, ":")
	if !two {
		second = first
	}
	soft, one := parseLimit(first)
	hard, other := parseLimit(second)
	switch {
	case !one || !other:
		return fmt.Errorf("%q: %w: want NAME=SOFT[:HARD], numbers with K, M or G after them, or unlimited", text, ErrRights)
	case soft > hard:
		return fmt.Errorf("%q: %w: the soft limit is above the hard one", text, ErrRights)
	}
	all := maps.Clone(r.of.Limits)
	if all == nil {
		all = map[int]supervisor.Limit{}
	}
	all[resource] = supervisor.Limit{Soft: soft, Hard: hard}
	r.of.Limits = all
	return nil
}

// parseLimit reads a limit.
func parseLimit(text string) (uint64, bool) {
	if text == "unlimited" || text == "infinity" || text == "-1" {
		return unlimited, true
	}
	shift := 0
	for i, unit := range "KMG" {
		if rest, ok := strings.CutSuffix(text, string(unit)); ok {
			text, shift = rest, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n << shift, err == nil && n <= (unlimited-1)>>shift
}

// User returns the program's user and group, and whether they are not root's.
func (r *Rights) User() (user, group uint32, other bool) {
	if r.of.User == nil {
		return 0, 0, false
	}
	return r.of.User.ID, r.of.User.Group, *r.of.User != supervisor.User{}
}
