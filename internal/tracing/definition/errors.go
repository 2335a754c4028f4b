package definition

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/profile"
)

// ID names a message of error_log, as the kernel's source does without its
// prefix TP_ERR_.
type ID int

// The messages.
const (
	// NotLogged is a refusal that error_log does not record.
	NotLogged ID = iota
	// NotAProbe is a line that kprobes leave to other kinds of events.
	NotAProbe
	MaxactNoKprobe
	BadMaxact
	MaxactTooBig
	BadProbeAddr
	NonUniqSymbol
	BadRetprobe
	BadAddrSuffix
	NoGroupName
	GroupTooLong
	BadGroupName
	NoEventName
	EventTooLong
	BadEventName
	EventExist
	RetvalOnProbe
	BadStackNum
	BadArgNum
	BadVar
	BadRegName
	BadMemAddr
	BadImm
	ImmstrNoClose
	FileOnKprobe
	TooManyOps
	DerefNeedBrace
	BadDerefOffs
	DerefOpenBrace
	CommCantDeref
	BadFetchArg
	ArrayNoClose
	BadArraySuffix
	BadArrayNum
	ArrayTooBig
	BadType
	BadString
	BadSymstring
	BadBitfield
	ArgNameTooLong
	NoArgName
	BadArgName
	UsedArgName
	ArgTooLong
	NoArgBody
	BadInsnBndry
	FailRegProbe
	DiffProbeType
	DiffArgType
	SameProbe
	EventTooBig
	NoRetval
	NosupBTFArg
	NoBTFArg
	NoBTFEntry
	NofentryArgs
	DoubleArgs
	Args2Long
	NoPtrStrct
	NosupDatArg
	BadHyphen
	NoBTFField
	BadBTFTid
	BadType4Str
	NeedStringType
	TooManyArgs
	TooManyNested
	TypecastBadArrow
	TypecastNotAligned
	TypecastReqField
	TypecastNotEvent
	TypecastSymOffset
	FileNotFound
	NoRegularFile
	RefcntOpenBrace
	BadRefcntSuffix
	BadRefcnt
	BadUprobeOffs
	SymOnUprobe
	numIDs
)

// texts are the kernel's words (docs/spec 9.8, "TP_ERR" in trace_probe.h).
var texts = [numIDs]string{
	MaxactNoKprobe: "Maxactive is not for kprobe",
	BadMaxact:      "Invalid maxactive number",
	MaxactTooBig:   "Maxactive is too big",
	BadProbeAddr:   "Invalid probed address or symbol",
	NonUniqSymbol:  "The symbol is not unique",
	BadRetprobe:    "Retprobe address must be an function entry",
	BadAddrSuffix:  "Invalid probed address suffix",
	NoGroupName:    "Group name is not specified",
	GroupTooLong:   "Group name is too long",
	BadGroupName:   "Group name must follow the same rules as C identifiers",
	NoEventName:    "Event name is not specified",
	EventTooLong:   "Event name is too long",
	BadEventName:   "Event name must follow the same rules as C identifiers",
	EventExist:     "Given group/event name is already used by another event",
	RetvalOnProbe:  "$retval is not available on probe",
	BadStackNum:    "Invalid stack number",
	BadArgNum:      "Invalid argument number",
	BadVar:         "Invalid $-variable specified",
	BadRegName:     "Invalid register name",
	BadMemAddr:     "Invalid memory address",
	BadImm:         "Invalid immediate value",
	ImmstrNoClose:  "String is not closed with '\"'",
	FileOnKprobe:   "File offset is not available with kprobe",
	TooManyOps:     "Dereference is too much nested",
	DerefNeedBrace: "Dereference needs a brace",
	BadDerefOffs:   "Invalid dereference offset",
	DerefOpenBrace: "Dereference brace is not closed",
	CommCantDeref:  "$comm can not be dereferenced",
	BadFetchArg:    "Invalid fetch argument",
	ArrayNoClose:   "Array is not closed",
	BadArraySuffix: "Array has wrong suffix",
	BadArrayNum:    "Invalid array size",
	ArrayTooBig:    "Array number is too big",
	BadType:        "Unknown type is specified",
	BadString:      "String accepts only memory argument",
	BadSymstring:   "Symbol String doesn't accept data/userdata",
	BadBitfield:    "Invalid bitfield",
	ArgNameTooLong: "Argument name is too long",
	NoArgName:      "Argument name is not specified",
	BadArgName:     "Argument name must follow the same rules as C identifiers",
	UsedArgName:    "This argument name is already used",
	ArgTooLong:     "Argument expression is too long",
	NoArgBody:      "No argument expression",
	BadInsnBndry:   "Probe point is not an instruction boundary",
	FailRegProbe:   "Failed to register probe event",
	DiffProbeType:  "Probe type is different from existing probe",
	DiffArgType:    "Argument type or name is different from existing probe",
	SameProbe:      "There is already the exact same probe event",
	EventTooBig:    "Event too big (too many fields?)",
	NoRetval:       "This function returns 'void' type",
	NosupBTFArg:    "BTF is not available or not supported",
	NoBTFArg:       "This variable is not found at this probe point",
	NoBTFEntry:     "No BTF entry for this probe point",
	NofentryArgs:   "$arg* can be used only on function entry or exit",
	DoubleArgs:     "$arg* can be used only once in the parameters",
	Args2Long:      "$arg* failed because the argument list is too long",
	NoPtrStrct:     "This is not a pointer to union/structure.",
	NosupDatArg:    "Non pointer structure/union argument is not supported.",
	BadHyphen:      "Failed to parse single hyphen. Forgot '>'?",
	NoBTFField:     "This field is not found.",
	BadBTFTid:      "Failed to get BTF type info.",
	BadType4Str:    "This type does not fit for string.",
	NeedStringType: "$comm and immediate-string only accepts string type",
	TooManyArgs:    "Too many arguments are specified",

	TooManyNested:      "Too many nested typecasts/dereferences",
	TypecastBadArrow:   "Typecast field option does not support -> operator",
	TypecastNotAligned: "Typecast field option is not byte-aligned",
	TypecastReqField:   "Typecast requires a field access",
	TypecastNotEvent:   "Typecasts are only for eprobe fields",
	TypecastSymOffset:  "@SYM+/-OFFSET with typecast needs parentheses",

	FileNotFound:    "Failed to find the given file",
	NoRegularFile:   "Not a regular file",
	RefcntOpenBrace: "Reference counter brace is not closed",
	BadRefcntSuffix: "Reference counter has wrong suffix",
	BadRefcnt:       "Invalid reference counter offset",
	BadUprobeOffs:   "Invalid uprobe offset",
	SymOnUprobe:     "Symbol is not available with uprobe",
}

// Text is the message in the words of a release; empty for NotLogged.
func (id ID) Text(c *profile.Tracing) string {
	switch {
	case id == BadVar && c.Misspelled:
		return "Invalid $-valiable specified"
	case id == MaxactNoKprobe && c.BTFArgs:
		return "Maxactive is only for function exit"
	case id == NofentryArgs && !c.ExitArgs:
		return "$arg* can be used only on function entry"
	case id == FileOnKprobe && c.Typecasts:
		return "File offset is not available for kernel probes"
	}
	return texts[id]
}

// Error is a refused definition.
type Error struct {
	ID ID
	// Errno is the errno of the write that defined the event.
	Errno errno.Errno
	// Line is the definition, for error_log.
	Line Line
	// Column is the caret's column, counted from 0 in the words joined by
	// single spaces; it may be one more than their length.
	Column int
	// Earlier is the error that the same write put into error_log before this
	// one; nil means none.
	Earlier *Error
	// Cause is the error of planting the probe; nil if the definition itself is
	// refused.
	Cause error
}

// Error is one line.
func (e *Error) Error() string {
	if e.ID == NotLogged || e.ID == NotAProbe {
		return fmt.Sprintf("%s: %v", e.Command(), e.Errno)
	}
	why := e.Cause
	if why == nil {
		why = e.Errno
	}
	return fmt.Sprintf("%s (column %d): %s: %v", e.Command(), e.Column, texts[e.ID], why)
}

// Unwrap gives the errno, and the cause.
func (e *Error) Unwrap() []error { return []error{e.Errno, e.Cause} }

// Command is the definition as error_log prints it.
func (e *Error) Command() string { return e.Line.Command() }

// Refuse makes an Error whose caret stands at an offset in a word. Where the
// word does not exist the caret stands past the end of the command.
func (l Line) Refuse(word, offset int, id ID, no errno.Errno) *Error {
	e := &Error{ID: id, Errno: no, Line: l}
	for i, w := range l.Words {
		if i == word {
			e.Column += offset
			return e
		}
		e.Column += len(w) + 1
	}
	return e
}

// fault is a refusal inside one word: the parser of a word does not see the
// other words.
type fault struct {
	id     ID
	errno  errno.Errno
	offset int
}

func (f *fault) Error() string { return texts[f.id] }

// bad refuses with EINVAL, as most do.
func bad(offset int, id ID) *fault { return &fault{id, errno.EINVAL, offset} }

// badNumber refuses with the errno of the number's reader.
func badNumber(offset int, id ID, err error) *fault { return &fault{id, errno.Of(err), offset} }
