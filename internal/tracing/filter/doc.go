// Package filter is the kernel's event filters: the text of an event's filter
// file (and of "if ..." in a trigger), compiled against the event's fields and
// matched against its records.
//
// It must not know where records come from, what an event is enabled by, or
// how files are read: it has a text, fields and bytes.
//
// The language, its errors and their positions are those of
// kernel/trace/trace_events_filter.c in 6.1:
//
//	filter = term { "||" term }        term = factor { "&&" factor }
//	factor = { "!" } ( "(" filter ")" | predicate )
//	predicate = field ( "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" ) number
//	          | field ( "==" | "!=" | "~" ) quoted string or glob
//
// Quirks of the kernel that are kept: unbalanced parentheses and quotes fail
// with the number of the case taken for an errno (EPERM, ENOENT, ESRCH); an
// operator at the end of the text is ignored, unless it is an "&&" after an
// "||"; a glob with a star in front compares against the 15th byte of a task's
// name; a field that is an array of numbers never matches.
package filter
