package text

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// automaton tells whether an expression matches in a text, in one step for each character. Its states are made when a
// text first leads to them. It is safe for concurrent use.
type automaton struct {
	ascii  [utf8.RuneSelf]uint8 // the class of each character of ASCII
	bounds []rune               // the characters from which on the class is another one, in order
	of     []uint8              // their classes
	end    uint8                // the class of the end of a text
	start  *state

	mu      sync.Mutex // of what makes states
	prog    *syntax.Prog
	asserts syntax.EmptyOp // what the expression asserts of places in a text
	classes []rune         // a character of each class, -1 for the end
	states  map[string]*state
	visited []int // by place: the number of the last walk that came by
	walk    int
}

// state is where in an expression one may be behind a part of a text.
type state struct {
	places []uint32
	before rune                    // stands for the characters before of which the same can be asserted
	next   []atomic.Pointer[state] // by class
}

// matched is the state behind a match, failed that which no match follows.
var matched, failed = &state{}, &state{}

const (
	// maxStates is the number of states of an automaton, maxCells that of the entries in the tables of all, of
	// eight bytes. Texts that lead to more are left to package regexp.
	maxStates  = 3000
	maxCells   = 2 << 20
	maxClasses = 255
)

// cells is the number of entries in the tables of all automata.
var cells atomic.Int64

// newAutomaton returns the automaton of a valid expression, nil if it tells too many characters apart or there is no room
// for its first state.
func newAutomaton(expr string) *automaton {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil
	}
	a := &automaton{prog: prog, states: map[string]*state{}, visited: make([]int, len(prog.Inst))}
	if !a.classify() {
		return nil
	}
	s := &state{before: -1}
	a.walk++
	if a.start = matched; !a.follow(s, uint32(prog.Start), syntax.EmptyBeginText|syntax.EmptyBeginLine) { //nolint:gosec // an index
		a.start = a.intern(s)
	}
	if a.start == nil {
		return nil
	}
	return a
}

// classify divides the characters into classes between which the expression makes no difference, and reports whether
// these are few.
func (a *automaton) classify() bool {
	sets := map[string]*syntax.Inst{}
	bounds := []rune{0, utf8.RuneSelf, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for i := range a.prog.Inst {
		switch in := &a.prog.Inst[i]; in.Op { //nolint:exhaustive // the others read no character
		case syntax.InstEmptyWidth:
			a.asserts |= syntax.EmptyOp(in.Arg)
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			key := binary.AppendUvarint(nil, uint64(in.Arg))
			for _, r := range in.Rune {
				key = binary.AppendVarint(key, int64(r))
			}
			if sets[string(key)] != nil {
				continue
			}
			sets[string(key)] = in
			if len(in.Rune) == 1 {
				bounds = append(bounds, in.Rune[0], in.Rune[0]+1)
				for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
					bounds = append(bounds, r, r+1)
				}
				continue
			}
			for k := 0; k < len(in.Rune); k += 2 {
				bounds = append(bounds, in.Rune[k], in.Rune[k+1]+1)
			}
		}
	}
	slices.Sort(bounds)
	a.bounds = slices.Compact(bounds)
	order := make([]*syntax.Inst, 0, len(sets))
	for _, in := range sets {
		order = append(order, in)
	}
	known := map[string]uint8{}
	for _, r := range a.bounds {
		key := []byte(string(a.context(r)))
		for _, in := range order {
			key = append(key, '0')
			if in.MatchRune(r) {
				key[len(key)-1] = '1'
			}
		}
		class, ok := known[string(key)]
		if !ok {
			if len(a.classes) == maxClasses {
				return false
			}
			class = uint8(len(a.classes)) //nolint:gosec // below maxClasses
			known[string(key)] = class
			a.classes = append(a.classes, r)
		}
		a.of = append(a.of, class)
	}
	for c := range a.ascii {
		a.ascii[c] = a.class(rune(c))
	}
	a.end = uint8(len(a.classes)) //nolint:gosec // at most maxClasses
	a.classes = append(a.classes, -1)
	return true
}

// class returns the class of a character.
func (a *automaton) class(r rune) uint8 {
	i, ok := slices.BinarySearch(a.bounds, r)
	if !ok {
		i--
	}
	return a.of[i]
}

// context returns a character of which the expression asserts the same as of r.
func (a *automaton) context(r rune) rune {
	switch {
	case r == '\n' && a.asserts&(syntax.EmptyBeginLine|syntax.EmptyEndLine) != 0:
		return r
	case syntax.IsWordChar(r) && a.asserts&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0:
		return 'a'
	}
	return ' '
}

// match reports whether the expression matches in s, and whether that is known.
func (a *automaton) match(s string) (matches, known bool) {
	at := a.start
	for i := 0; i <= len(s); {
		class := a.end
		if i == len(s) {
			i++
		} else if c := s[i]; c < utf8.RuneSelf {
			class = a.ascii[c]
			i++
		} else {
			r, size := utf8.DecodeRuneInString(s[i:])
			class = a.class(r)
			i += size
		}
		if int(class) >= len(at.next) {
			break
		}
		next := at.next[class].Load()
		if next == nil {
			if next = a.step(at, class); next == nil {
				return false, false
			}
		}
		at = next
	}
	return at == matched, true
}

// step makes the state after s and a character of a class, nil if there are too many.
func (a *automaton) step(s *state, class uint8) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.after(s, a.classes[class])
	if next != nil {
		s.next[class].Store(next)
	}
	return next
}

func (a *automaton) after(s *state, r rune) *state {
	var here state
	a.walk++
	holds := syntax.EmptyOpContext(s.before, r)
	for _, p := range s.places {
		if a.follow(&here, p, holds) {
			return matched
		}
	}
	if r < 0 {
		return failed
	}
	next := &state{before: a.context(r)}
	a.walk++
	for _, p := range here.places {
		if in := &a.prog.Inst[p]; in.Op != syntax.InstEmptyWidth && in.MatchRune(r) && a.follow(next, in.Out, 0) {
			return matched
		}
	}
	if a.follow(next, uint32(a.prog.Start), 0); len(next.places) == 0 { //nolint:gosec // an index
		return failed
	}
	return a.intern(next)
}

// follow adds the places to s that p leads to without a character, where the given assertions hold, and reports whether
// the expression ends there. Others that may hold there are places of their own.
func (a *automaton) follow(s *state, p uint32, holds syntax.EmptyOp) bool {
	if a.visited[p] == a.walk {
		return false
	}
	a.visited[p] = a.walk
	in := &a.prog.Inst[p]
	switch in.Op {
	case syntax.InstMatch:
		return true
	case syntax.InstAlt, syntax.InstAltMatch:
		return a.follow(s, in.Out, holds) || a.follow(s, in.Arg, holds)
	case syntax.InstCapture, syntax.InstNop:
		return a.follow(s, in.Out, holds)
	case syntax.InstEmptyWidth:
		switch asserted := syntax.EmptyOp(in.Arg); {
		case asserted&^holds == 0:
			return a.follow(s, in.Out, holds)
		case asserted&syntax.EmptyBeginText == 0:
			s.places = append(s.places, p)
		}
	case syntax.InstFail:
	default:
		s.places = append(s.places, p)
	}
	return false
}

// intern returns the state that is as s, which may be s, nil if there are too many.
func (a *automaton) intern(s *state) *state {
	slices.Sort(s.places)
	key := []byte(string(s.before))
	for _, p := range s.places {
		key = binary.AppendUvarint(key, uint64(p))
	}
	known := a.states[string(key)]
	if known == nil && len(a.states) < maxStates && cells.Add(int64(len(a.classes))) <= maxCells {
		known = s
		s.places, s.next = slices.Clip(s.places), make([]atomic.Pointer[state], len(a.classes))
		a.states[string(key)] = s
	}
	return known
}
