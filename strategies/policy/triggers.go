package policy

import (
	"errors"
	"fmt"
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

// Signals are the reports of applications about a session.
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

// Facts are the values that triggers compare, of one session at one moment.
type Facts struct {
	Tokens, Window, Start chat.Tokens
	Messages, Turns       int64
	Added

	TurnCompleted bool
	Signals       Signals
	// Idle is the time since the last message, Age since the session began, and SinceRun since
	// a run changed the view or, without one, since the session began.
	Idle, Age, SinceRun time.Duration
}

// Added counts what was appended since a run changed the view.
type Added struct {
	NewTokens, ToolOutput             chat.Tokens
	NewMessages, NewTurns, ToolRounds int64
}

// units are the units of times in conditions.
var units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": day}

// Word is a word of the vocabulary of triggers.
type Word struct {
	Name, Doc string
	// value returns a float64, a bool, or a time.Duration, which conditions compare in seconds.
	value func(f *Facts) any
}

// Bool reports whether the word is true or false; others are numbers.
func (w Word) Bool() bool {
	_, ok := w.value(&Facts{}).(bool)
	return ok
}

// Vocabulary returns the words that conditions may use.
func Vocabulary() []Word {
	signal := func(name, doc string, s Signals) Word {
		return Word{name, doc, func(f *Facts) any { return f.Signals&s != 0 }}
	}
	unit := func(name string) Word {
		return Word{name, "unit of times", func(*Facts) any { return units[name].Seconds() }}
	}
	return []Word{
		{"tokens", "size of the context, in tokens", func(f *Facts) any { return float64(f.Tokens) }},
		{"window", "context window of the model, in tokens", func(f *Facts) any { return float64(f.Window) }},
		{"start", "start of the policy for the model, in tokens", func(f *Facts) any { return float64(f.Start) }},
		{"used", "share of the window that the context takes", func(f *Facts) any { return float64(f.Tokens) / float64(f.Window) }},
		{"headroom", "tokens that are left in the window", func(f *Facts) any { return float64(f.Window - f.Tokens) }},
		{"messages", "messages in the view", func(f *Facts) any { return float64(f.Messages) }},
		{"turns", "messages of the user in the view", func(f *Facts) any { return float64(f.Turns) }},
		{"tokens_since_run", "tokens appended since a run changed the view", func(f *Facts) any { return float64(f.NewTokens) }},
		{"messages_since_run", "messages appended since then", func(f *Facts) any { return float64(f.NewMessages) }},
		{"turns_since_run", "messages of the user appended since then", func(f *Facts) any { return float64(f.NewTurns) }},
		{"tool_rounds", "messages with tool calls appended since then", func(f *Facts) any { return float64(f.ToolRounds) }},
		{"tool_output", "tokens of the largest tool result since then", func(f *Facts) any { return float64(f.ToolOutput) }},
		{"idle", "time since the last message: idle >= 1 * day", func(f *Facts) any { return f.Idle }},
		{"age", "time since the session began", func(f *Facts) any { return f.Age }},
		{"time_since_run", "time since a run changed the view, else the age", func(f *Facts) any { return f.SinceRun }},
		unit("minute"),
		unit("hour"),
		unit("day"),
		{"turn_completed", "the agent has answered, and no tool is at work", func(f *Facts) any { return f.TurnCompleted }},
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
		v := w.value(f)
		if d, ok := v.(time.Duration); ok {
			v = d.Seconds()
		}
		out[w.Name] = v
	}
	return out
}

const (
	// maxNodes and maxText bound a condition, and maxTriggers their number: evaluating all
	// takes some microseconds.
	maxNodes    = 200
	maxText     = 2000
	maxTriggers = 20
	// memory bounds the memory of evaluating a condition, which allocates nothing.
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
	// Unoptimized, the program has the nodes of the text, which are checked.
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

// words collects the words of a condition and rejects all other syntax.
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

// bareTimes finds a word for a time that is compared with a number alone.
type bareTimes struct{ word string }

// Visit implements ast.Visitor.
func (b *bareTimes) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, n.Operator) {
		return
	}
	for _, side := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		names := wordsIn(side[0])
		number, isInteger := side[1].(*ast.IntegerNode)
		zero := isInteger && number.Value == 0
		if zero || len(wordsIn(side[1])) > 0 || names["minute"] || names["hour"] || names["day"] {
			continue
		}
		for _, w := range Vocabulary() {
			if _, isTime := w.value(&Facts{}).(time.Duration); isTime && names[w.Name] {
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
		switch v := w.value(f).(type) {
		case time.Duration:
			out = append(out, w.Name+" "+Text(v.Truncate(time.Second)))
		case bool:
			out = append(out, fmt.Sprintf("%s %t", w.Name, v))
		case float64:
			if w.Name == "used" {
				out = append(out, fmt.Sprintf("used %.2f", v))
			} else if units[w.Name] == 0 {
				out = append(out, w.Name+" "+chat.Thousands(chat.Tokens(v)))
			}
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
		bare := &bareTimes{}
		node := c.program.Node()
		ast.Walk(&node, bare)
		fs.Check(bare.word == "", "when", quote(string(t.When)), "a unit with the time that %[1]s is compared with: %[1]s > 5 * minute, hour or day", bare.word)
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

// Facts returns the facts that all sessions with a model share.
func (p Policy) Facts(model string, table WindowFunc) Facts {
	l := p.windowLimits(model, table)
	return Facts{Window: l.Window, Start: l.Start}
}

// AfterRun returns the facts once a run has left so many tokens, messages and turns in the
// view.
func (f Facts) AfterRun(tokens chat.Tokens, messages, turns int64) Facts {
	f.Tokens, f.Messages, f.Turns = tokens, messages, turns
	f.Added, f.SinceRun = Added{}, 0
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
