package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Trigger makes sessions due.
type Trigger struct {
	Name string `yaml:"name" json:"name"`
	// When is the condition.
	When When `yaml:"when" json:"when"`
	// Target replaces the policy's target, as a fraction of the window; 0 keeps it.
	Target float64 `yaml:"target" json:"target,omitempty"`
}

// When is a condition over the vocabulary, such as "used > 0.75 && turn_completed". It has
// comparisons, arithmetic, &&, || and not, and neither functions nor loops.
type When string

// Signals are what applications report of a session.
type Signals int

// The signals. Those of events hold until a run has seen them, the others until the
// application reports otherwise.
const (
	Closed Signals = 1 << iota
	Overflow
	NeedsFollowUp
	HasPendingInput
	ChildClosed // of a child, to its parent

	events = Closed | Overflow | ChildClosed
)

// Facts are what triggers look at, of one session at one moment.
type Facts struct {
	Tokens, Window, Start, NewTokens, ToolOutput chat.Tokens

	Messages, Turns, NewMessages, NewTurns, ToolRounds int64

	TurnCompleted bool
	Signals       Signals
	// Idle is the time since the last message, Age since the session began, and SinceRun since
	// a run changed the view or, without one, since the session began.
	Idle, Age, SinceRun time.Duration
}

// units are the words for times, in which conditions give them.
var units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": day}

// Word is a word of the vocabulary of triggers.
type Word struct {
	Name string
	// Bool reports that it is true or false; others are numbers.
	Bool bool
	Doc  string

	number func(f *Facts) float64
	time   func(f *Facts) time.Duration // of which number is the seconds
	truth  func(f *Facts) bool
}

// Vocabulary returns the words that conditions may use.
func Vocabulary() []Word {
	number := func(name, doc string, of func(f *Facts) float64) Word { return Word{Name: name, Doc: doc, number: of} }
	duration := func(name, doc string, of func(f *Facts) time.Duration) Word {
		return Word{Name: name, Doc: doc, time: of, number: func(f *Facts) float64 { return of(f).Seconds() }}
	}
	truth := func(name, doc string, of func(f *Facts) bool) Word {
		return Word{Name: name, Bool: true, Doc: doc, truth: of}
	}
	signal := func(name, doc string, s Signals) Word {
		return truth(name, doc, func(f *Facts) bool { return f.Signals&s != 0 })
	}
	return []Word{
		number("tokens", "size of the context, in tokens", func(f *Facts) float64 { return float64(f.Tokens) }),
		number("window", "context window of the model, in tokens", func(f *Facts) float64 { return float64(f.Window) }),
		number("start", "start of the policy for the model, in tokens", func(f *Facts) float64 { return float64(f.Start) }),
		number("used", "share of the window that the context takes", func(f *Facts) float64 { return float64(f.Tokens) / float64(f.Window) }),
		number("headroom", "tokens that are left in the window", func(f *Facts) float64 { return float64(f.Window - f.Tokens) }),
		number("messages", "messages in the view", func(f *Facts) float64 { return float64(f.Messages) }),
		number("turns", "messages of the user in the view", func(f *Facts) float64 { return float64(f.Turns) }),
		number("tokens_since_run", "tokens appended since a run changed the view", func(f *Facts) float64 { return float64(f.NewTokens) }),
		number("messages_since_run", "messages appended since then", func(f *Facts) float64 { return float64(f.NewMessages) }),
		number("turns_since_run", "messages of the user appended since then", func(f *Facts) float64 { return float64(f.NewTurns) }),
		number("tool_rounds", "messages with tool calls appended since then", func(f *Facts) float64 { return float64(f.ToolRounds) }),
		number("tool_output", "tokens of the largest tool result since then", func(f *Facts) float64 { return float64(f.ToolOutput) }),
		duration("idle", "time since the last message: idle >= 1 * day", func(f *Facts) time.Duration { return f.Idle }),
		duration("age", "time since the session began", func(f *Facts) time.Duration { return f.Age }),
		duration("time_since_run", "time since a run changed the view, else the age", func(f *Facts) time.Duration { return f.SinceRun }),
		number("minute", "unit of times", func(*Facts) float64 { return units["minute"].Seconds() }),
		number("hour", "unit of times", func(*Facts) float64 { return units["hour"].Seconds() }),
		number("day", "unit of times", func(*Facts) float64 { return units["day"].Seconds() }),
		truth("turn_completed", "the agent has answered, and no tool is at work", func(f *Facts) bool { return f.TurnCompleted }),
		signal("closed", "was reported as closed since the last run", Closed),
		signal("child_closed", "a child of it was, since then", ChildClosed),
		signal("overflow", "a prompt was reported not to fit since then", Overflow),
		signal("needs_follow_up", "is reported to go on by itself", NeedsFollowUp),
		signal("has_pending_input", "is reported to have input that waits", HasPendingInput),
	}
}

// Examples returns triggers that say in the vocabulary when people want runs.
func Examples() []Trigger {
	return []Trigger{
		{Name: "three quarters full, between turns", When: "used > 0.75 && turn_completed"},
		{Name: "message appended", When: "messages_since_run > 0"},
		{Name: "tool output appended", When: "tool_output > 0"},
		{Name: "large tool output appended", When: "tool_output > 8000"},
		{Name: "turn completed", When: "turns_since_run > 0 && turn_completed"},
		{Name: "every 5 tool rounds", When: "tool_rounds >= 5"},
		{Name: "every 6 hours", When: "time_since_run >= 6 * hour"},
		{Name: "idle for a day", When: "idle >= 1 * day"},
		{Name: "a week old", When: "age >= 7 * day"},
		{Name: "conversation closed", When: "closed"},
		{Name: "child conversation closed", When: "child_closed"},
		{Name: "prompt did not fit", When: "overflow"},
		{Name: "agent goes on by itself", When: "needs_follow_up && !has_pending_input"},
	}
}

// vars returns the values of the vocabulary.
func (f *Facts) vars() map[string]any {
	out := map[string]any{}
	for _, w := range Vocabulary() {
		if w.Bool {
			out[w.Name] = w.truth(f)
		} else {
			out[w.Name] = w.number(f)
		}
	}
	return out
}

const (
	// maxNodes and maxText bound a condition, and maxTriggers their number: evaluating all
	// takes some microseconds.
	maxNodes    = 200
	maxText     = 2000
	maxTriggers = 20
	// memory bounds what evaluating a condition may allocate; it allocates nothing.
	memory = 1000
)

// CompiledTrigger is a trigger that can be evaluated. Safe for concurrent use.
type CompiledTrigger struct {
	Trigger
	// Words are those that the condition uses, in the order of the vocabulary.
	Words   []Word
	program *vm.Program
}

// compile checks a condition and compiles it.
func (t Trigger) compile() (c CompiledTrigger, err error) {
	c.Trigger = t
	if len(t.When) > maxText {
		return c, fmt.Errorf("at most %d characters", maxText)
	}
	// Unoptimized, the program has the nodes of the text, which is what is checked.
	c.program, err = expr.Compile(string(t.When), expr.Env((&Facts{Window: 1}).vars()), expr.AsBool(), expr.DisableAllBuiltins(),
		expr.MaxNodes(maxNodes), expr.Optimize(false))
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n") // without the excerpt in lines of their own
		return c, fmt.Errorf("a condition over the words of `compactor policy vocabulary` (%s)", first)
	}
	node := c.program.Node()
	used := &words{names: map[string]bool{}}
	if ast.Walk(&node, used); used.err != nil {
		return c, used.err
	}
	c.Words = slices.DeleteFunc(Vocabulary(), func(w Word) bool { return !used.names[w.Name] })
	return c, nil
}

// words collects the words of a condition and finds what it must not have.
type words struct {
	names map[string]bool
	err   error
}

var operators = []string{"&&", "||", "and", "or", "!", "not", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/"}

// Visit implements ast.Visitor.
func (w *words) Visit(node *ast.Node) {
	ok := true
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		w.names[n.Value] = true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
	case *ast.UnaryNode:
		ok = slices.Contains(operators, n.Operator)
	case *ast.BinaryNode:
		ok = slices.Contains(operators, n.Operator)
	default:
		ok = false
	}
	if !ok {
		w.err = errors.New("words, numbers, comparisons, + - * /, && || and not, and nothing else")
	}
}

// ValidateUnits returns an error for each condition that compares a time with a bare number: "idle > 5"
// leaves open 5 of what. Validate takes it, as seconds, for policies that were stored before.
func (p Policy) ValidateUnits() error {
	var fs FieldErrors
	for i, t := range p.Triggers {
		if c, err := t.compile(); err == nil {
			node := c.program.Node()
			bare := &bareTimes{}
			ast.Walk(&node, bare)
			fs.Check(bare.word == "", fmt.Sprintf("triggers[%d].when", i), quote(string(t.When)), "a unit with the time that %s is compared with: %s > 5 * minute, hour or day", bare.word, bare.word)
		}
	}
	return fs.Join()
}

// bareTimes finds a word for a time that is compared with a number alone.
type bareTimes struct{ word string }

// Visit implements ast.Visitor.
func (b *bareTimes) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, n.Operator) {
		return
	}
	for _, side := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		of, with := wordsIn(side[0]), wordsIn(side[1])
		zero := false
		if v, ok := side[1].(*ast.IntegerNode); ok {
			zero = v.Value == 0
		}
		if len(with) > 0 || zero || slices.ContainsFunc(slices.Sorted(maps.Keys(of)), func(name string) bool { return units[name] > 0 }) {
			continue
		}
		for _, w := range Vocabulary() {
			if w.time != nil && of[w.Name] {
				b.word = w.Name
			}
		}
	}
}

func wordsIn(node ast.Node) map[string]bool {
	w := &words{names: map[string]bool{}}
	ast.Walk(&node, w)
	return w.names
}

// Holds reports whether the condition is true.
func (t CompiledTrigger) Holds(f *Facts) bool {
	machine := vm.VM{MemoryBudget: memory}
	out, err := machine.Run(t.program, f.vars())
	holds, ok := out.(bool)
	return err == nil && ok && holds
}

// Values returns the values of the words that the condition uses, as "used 0.62".
func (t CompiledTrigger) Values(f *Facts) []string {
	var out []string
	for _, w := range t.Words {
		switch {
		case units[w.Name] > 0:
		case w.time != nil:
			out = append(out, w.Name+" "+Text(w.time(f).Truncate(time.Second)))
		case w.Bool:
			out = append(out, fmt.Sprintf("%s %t", w.Name, w.truth(f)))
		case w.Name == "used":
			out = append(out, fmt.Sprintf("%s %.2f", w.Name, w.number(f)))
		default:
			out = append(out, w.Name+" "+chat.Thousands(chat.Tokens(w.number(f))))
		}
	}
	return out
}

// target returns the size to which the trigger's runs shrink a session.
func (t Trigger) target(l Limits) chat.Tokens {
	if t.Target > 0 {
		return fraction(l.Window, t.Target)
	}
	return l.Target
}

// WithTarget returns the limits of a run that the trigger makes.
func (l Limits) WithTarget(t Trigger) Limits {
	l.Target = t.target(l)
	return l.ordered()
}

// Compiled returns the triggers of the policy, nil for none: then sessions are due above
// its start. An invalid one is left out.
func (p Policy) Compiled() (out []CompiledTrigger) {
	for _, t := range p.Triggers {
		if c, err := t.compile(); err == nil {
			out = append(out, c)
		}
	}
	return out
}

func (p Policy) validateTriggers(fs *FieldErrors) {
	fs.Check(len(p.Triggers) <= maxTriggers, "triggers", len(p.Triggers), "at most %d", maxTriggers)
	names := map[string]bool{}
	for i, t := range p.Triggers {
		fs.Prefix = fmt.Sprintf("triggers[%d].", i)
		fs.Check(t.Name != "" && len(t.Name) <= 63 && !names[t.Name], "name", quote(t.Name), "a name of its own, of at most 63 characters")
		names[t.Name] = true
		fs.Check(t.Target >= 0 && t.Target < 1, "target", t.Target, "a fraction of the window, less than 1; 0 for that of the policy")
		c, err := t.compile()
		if err != nil {
			fs.Check(false, "when", quote(string(t.When)), "%v", err)
			continue
		}
		l := p.windowLimits("", func(string) (int, bool) { return int(FallbackWindow), true })
		target := t.target(l)
		b, why := c.bounds(l, target)
		fs.Check(why == "", "when", quote(string(t.When)), "%s", why)
		fs.Check(why != "" || b.Tokens == Never || b.Tokens > target, "when", quote(string(t.When)),
			"a size above the target: of a window of %s tokens, %s would make a session due that is to shrink to %s",
			chat.Thousands(l.Window), chat.Thousands(b.Tokens), chat.Thousands(target))
	}
	fs.Prefix = ""
}

// NamesStart reports whether a condition compares something with the start.
func (p Policy) NamesStart() bool {
	return slices.ContainsFunc(p.Compiled(), func(t CompiledTrigger) bool {
		return slices.ContainsFunc(t.Words, func(w Word) bool { return w.Name == "start" })
	})
}

// Facts returns what all sessions with a model have in common.
func (p Policy) Facts(model string, table WindowFunc) Facts {
	l := p.windowLimits(model, table)
	return Facts{Window: l.Window, Start: l.Start}
}

// AfterRun returns the facts once a run has left so many tokens, messages and turns in the
// view.
func (f Facts) AfterRun(tokens chat.Tokens, messages, turns int64) Facts {
	f.Tokens, f.Messages, f.Turns = tokens, messages, turns
	f.NewTokens, f.NewMessages, f.NewTurns, f.ToolRounds, f.ToolOutput, f.SinceRun = 0, 0, 0, 0, 0, 0
	f.Signals &^= events
	return f
}

// Fired returns the first of triggers that holds.
func Fired(triggers []CompiledTrigger, f Facts) (t CompiledTrigger, ok bool) {
	i := slices.IndexFunc(triggers, func(t CompiledTrigger) bool { return t.Holds(&f) })
	if i < 0 {
		return t, false
	}
	return triggers[i], true
}
