package ctype

import "kprobelab/internal/bounded"

// Walk bounds how deep a type is followed, and how many of its parts are visited.
type Walk struct{ depth, parts, most int }

// Search is a walk that searches a type.
func Search() *Walk { return &Walk{most: bounded.TypeParts} }

// Writing is a walk that writes a type's name.
func Writing() *Walk { return &Walk{most: bounded.TypeText} }

// Printing is a walk that prints a value with its parts.
func Printing() *Walk { return &Walk{most: bounded.ValueParts} }

// Enter begins with a part, one level deeper. It reports whether the bounds allow that; only then Leave ends it.
func (w *Walk) Enter() bool {
	if w.parts++; w.depth >= bounded.TypeDepth || w.parts > w.most {
		return false
	}
	w.depth++
	return true
}

// Leave ends a part.
func (w *Walk) Leave() { w.depth-- }

// Skip counts a part that is not entered.
func (w *Walk) Skip() { w.parts++ }

// Full reports whether no more parts are visited.
func (w *Walk) Full() bool { return w.parts >= w.most }

// Member finds a member by its name, also in members without a name. No structure is searched twice: if the name is in it, it
// was found the first time.
func (t *Type) Member(name string) (Member, bool) {
	if name == "" {
		return Member{}, false
	}
	return t.member(name, Search(), map[*Type]bool{})
}

func (t *Type) member(name string, w *Walk, searched map[*Type]bool) (Member, bool) {
	if searched[t] || !w.Enter() {
		return Member{}, false
	}
	defer w.Leave()
	searched[t] = true
	for _, m := range t.Members() {
		if m.Name == name {
			return m, true
		}
		if m.Name != "" || m.Type == nil {
			continue
		}
		if in, ok := m.Type.Real().member(name, w, searched); ok {
			in.Offset += m.Offset
			return in, true
		}
	}
	return Member{}, false
}
