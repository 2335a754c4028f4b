package main

// place is where a script runs, what integers there are to read, and statements of its own.
type place struct {
	point string
	known []integer
	own   []string
}

var places = []place{{point: "BEGIN"}}
