package scripts

import "strings"

// causes are the reasons for which a tool refuses a script that this project accepts: a part of
// the tool's message, a part of the script ("" for any), and why.
var causes = []struct{ message, script, cause string }{
	{"unable to infer statistic parameters", "", "an aggregate that gets no value is empty here"},
	{"not available for your kernel version", "", "the kernel that bpftrace runs on lacks it"},
}

func causeOf(text, script string) string {
	for _, c := range causes {
		if strings.Contains(text, c.message) && strings.Contains(script, c.script) {
			return c.cause
		}
	}
	return ""
}
