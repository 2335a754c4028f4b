package ctype

import "kprobelab/internal/bounded"

// walk bounds how deep a type is followed, and how many of its parts are visited.
type walk struct{ depth, parts, most int }

// search bounds a search through a type, writing its text.
func search() *walk  { return &walk{most: bounded.TypeParts} }
func writing() *walk { return &walk{most: bounded.TypeText} }

// enter begins with a part, one level deeper. It reports whether the bounds allow that; only then leave ends it.
func (w *walk) enter() bool {
	if w.parts++; w.depth >= bounded.TypeDepth || w.parts > w.most {
		return false
	}
	w.depth++
	return true
}

func (w *walk) leave() { w.depth-- }

// full reports whether no more parts are visited.
func (w *walk) full() bool { return w.parts >= w.most }

// Member finds a member by its name, also in members without a name. No structure is searched twice: if the name is in it, it
// was found the first time.
func (t *Type) Member(name string) (Member, bool) {
	if name == "" {
		return Member{}, false
	}
	return t.member(name, search(), map[*Type]bool{})
}

func (t *Type) member(name string, w *walk, searched map[*Type]bool) (Member, bool) {
	if searched[t] || !w.enter() {
		return Member{}, false
	}
	defer w.leave()
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
