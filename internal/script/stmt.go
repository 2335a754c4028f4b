package script

// Stmt is a statement: one of the types of this file.
type Stmt interface{ stmt() }

type (
	// Block is statements in sequence.
	Block []Stmt
	// Do evaluates an expression and forgets its value.
	Do struct{ X Expr }
	// If executes one of two; Else may be nil.
	If struct {
		Cond       Expr
		Then, Else Stmt
	}
	// Loop executes Body while Cond, and Post after each time; Init, Cond and Post may be nil.
	Loop struct {
		Init, Cond, Post Expr
		Body             Stmt
		Near             string
	}
	// Foreach executes Body for the elements of an array, with their keys in Keys and their value
	// in Value, if it is not nil.
	Foreach struct {
		Array *Array
		Keys  []Expr // Local or Global; nil for a part that is not stored
		Value Expr
		// Only selects elements by their keys; nil selects all, and so does a nil key.
		Only []Expr
		// Sort is the key to sort by, from 1 on; 0 is the value, -1 leaves the order in which the
		// elements came.
		Sort       int
		By         Extractor
		Descending bool
		Limit      Expr
		Body       Stmt
		Near       string
	}
	// Buckets executes Body for each bucket of an aggregate's histogram.
	Buckets struct {
		Of    Expr
		Key   Expr
		Value Expr
		Limit Expr
		Body  Stmt
		Near  string
	}
	// Break and Continue belong to the innermost loop; Return ends a function; Next ends the
	// handler, Skip a function in favour of the next one of its name.
	Break    struct{}
	Continue struct{}
	Return   struct{ X Expr }
	Next     struct{}
	Skip     struct{ Near string }
	// Try executes Body, and Catch where it fails, with the error's text in To (nil: nowhere).
	Try struct {
		Body, Catch Stmt
		To          Expr
	}
	// Fail is an error of the script's own.
	Fail struct {
		X    Expr
		Near string
	}
	// Delete sets a variable back (Global, Local), or removes elements (Elem; a nil key stands
	// for any).
	Delete struct{ X Expr }
	// Clear removes all elements.
	Clear struct{ Array *Array }
	// Accumulate adds a value to an aggregate. At is the moment of a Series' value, in nanoseconds since 1970; it is nil for all
	// other aggregates.
	Accumulate struct {
		To   Expr
		X    Expr
		At   Expr
		Near string
	}
	// Printf prints as Format says.
	Printf struct {
		Format []Piece
		Args   []Expr
		// As turns the line into the text that is printed; nil prints the line.
		As   func(dst, line []byte) []byte
		Near string
	}
	// PrintHistogram prints an aggregate's histogram.
	PrintHistogram struct {
		Of   Expr
		Near string
	}
	// Save stores a value for the return of the call that is entered (Saved).
	Save struct {
		N int
		X Expr
	}
)

func (Block) stmt()          {}
func (Do) stmt()             {}
func (If) stmt()             {}
func (Loop) stmt()           {}
func (Foreach) stmt()        {}
func (Buckets) stmt()        {}
func (Break) stmt()          {}
func (Continue) stmt()       {}
func (Return) stmt()         {}
func (Next) stmt()           {}
func (Skip) stmt()           {}
func (Try) stmt()            {}
func (Fail) stmt()           {}
func (Delete) stmt()         {}
func (Clear) stmt()          {}
func (Accumulate) stmt()     {}
func (Printf) stmt()         {}
func (PrintHistogram) stmt() {}
func (Save) stmt()           {}
