package main

import "strings"

// causes are the reasons for which stap refuses a script that this project accepts: a part of
// stap's message, and why.
var causes = []struct{ message, cause string }{}

func causeOf(text string) string {
	for _, c := range causes {
		if strings.Contains(text, c.message) {
			return c.cause
		}
	}
	return ""
}
