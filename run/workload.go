package run

import (
	"maps"
	"slices"
	"strings"
)

// workloads are lines for the guest's shell, by name. They need busybox only, print nothing, and leave nothing.
var workloads = map[string]string{
	"files": `cat /etc/hostname >/dev/null; ls /none 2>/dev/null; mkdir -p /tmp/w; for i in 0 1 2 3 4; do echo $i >/tmp/w/f$i; cat /tmp/w/f$i >/dev/null; done
mv /tmp/w/f0 /tmp/w/g; sync; rm -r /tmp/w`,
	"processes": `for i in 1 2 3; do /bin/busybox true; done; (exit 3); echo | cat >/dev/null; (sleep 0.01 & wait)`,
	"signals":   `sleep 5 & sleep 0.1; kill $!; wait $! 2>/dev/null`,
	"mounts":    `mkdir -p /mnt; mount -t tmpfs none /mnt; umount /mnt`,
	"sockets":   `(nc -l -p 4000 >/dev/null & sleep 0.1; nc 127.0.0.1 4000 </etc/hostname >/dev/null; wait); ping -c 1 127.0.0.1 >/dev/null`,
	"memory":    `dd if=/dev/zero of=/dev/null bs=4M count=2 2>/dev/null; dd if=/dev/zero of=/dev/shm/w bs=1M count=4 2>/dev/null; rm /dev/shm/w`,
}

// WorkloadNames lists the workloads that have names.
func WorkloadNames() []string { return slices.Sorted(maps.Keys(workloads)) }

// Workload returns the line of the guest's shell for a value of --workload: names with commas between them, which are
// done one after the other, or the line itself.
func Workload(text string) string {
	var lines []string
	for _, name := range strings.Split(text, ",") {
		line, known := workloads[strings.TrimSpace(name)]
		if !known {
			return text
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, "true"), "\n")
}
