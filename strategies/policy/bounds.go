package policy

import (
	"math"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Never is a size above which no session is.
const Never chat.Tokens = 1 << 40

// Bounds are compared by the database to find out whether a session may be due: each is necessary
// for one or more triggers.
type Bounds struct {
	Tokens chat.Tokens // the context is above; Never does not count
	Counts
}

// Counts are the bounds beside that of the size. Those that are 0 do not count.
type Counts struct {
	NewTokens   chat.Tokens // since the last run, at least
	NewMessages int64       // since the last run, at least
	NewTurns    int64       // since the last run, at least
	Messages    int64       // in the view, at least
	Signals     int         // one of these Signals was reported
	// Idle is in seconds, since the last message, with a context above IdleTokens. So are Age,
	// since the session began, and SinceRun, since a run changed the view: once they are
	// reached, IdleTokens counts as Bounds.Tokens does.
	Idle       int64
	IdleTokens chat.Tokens
	Age        int64
	SinceRun   int64
}

// DueAbove returns the size above which a session is due that is so old, and whose view
// changed so long ago.
func (b Bounds) DueAbove(age, sinceRun time.Duration) chat.Tokens {
	reached := func(limit int64, d time.Duration) bool { return limit > 0 && d.Seconds() >= float64(limit) }
	if reached(b.Age, age) || reached(b.SinceRun, sinceRun) {
		return min(b.Tokens, b.IdleTokens)
	}
	return b.Tokens
}

// Wait returns in how many seconds the next time comes that a trigger waits for, if nothing is
// written; 0 for none.
func Wait(triggers []CompiledTrigger, l Limits, f Facts) (seconds float64) {
	for _, t := range triggers {
		for _, a := range l.alternatives(t.program.Node(), false) {
			wait := max(a.idle-f.Idle.Seconds(), a.age-f.Age.Seconds(), a.sinceRun-f.SinceRun.Seconds())
			if wait > 0 && (seconds == 0 || wait < seconds) {
				seconds = min(wait, float64(Never))
			}
		}
	}
	return seconds
}

// Bounds returns the bounds for sessions with a model.
func (p Policy) Bounds(model string, table WindowFunc) Bounds {
	return p.bounds(p.windowLimits(model, table))
}

func (p Policy) bounds(l Limits) Bounds {
	if len(p.Triggers) == 0 {
		return Bounds{Tokens: l.Start}
	}
	out := Bounds{Tokens: Never}
	for _, t := range p.Compiled() {
		out.addTrigger(t, l, t.target(l))
	}
	return out
}

// bounds returns the bounds of one trigger, as addTrigger does.
func (t CompiledTrigger) bounds(l Limits, target chat.Tokens) (b Bounds, want string) {
	b.Tokens = Never
	return b, b.addTrigger(t, l, target)
}

// addTrigger adds the bounds of a trigger whose runs shrink sessions to target. For a condition
// without bounds it returns a description of valid conditions.
func (b *Bounds) addTrigger(t CompiledTrigger, l Limits, target chat.Tokens) (want string) {
	alternatives := l.alternatives(t.program.Node(), false)
	switch {
	case len(alternatives) == 0:
		return "a condition that can be true"
	case len(alternatives) > maxAlternatives:
		return "a condition with fewer alternatives"
	}
	for _, a := range alternatives {
		if !b.add(a, target) {
			return "in each alternative of || something that the database compares: tokens, used, headroom, messages, turns, " +
				"tokens_since_run, messages_since_run, turns_since_run, tool_rounds, tool_output, idle, age, time_since_run above a limit, " +
				"or closed, child_closed, overflow, needs_follow_up, has_pending_input"
		}
	}
	return ""
}

// add adds the most selective necessary condition of an alternative: time, an event, a size that
// runs leave, counters that runs reset, and then the others.
func (b *Bounds) add(a necessary, target chat.Tokens) bool {
	least := func(have *int64, n float64) {
		if n := int64(math.Min(n, 1<<40)); *have == 0 || n < *have {
			*have = n
		}
	}
	switch {
	case a.idle+a.age+a.sinceRun > 0: // which no write makes true; of several, Wait finds the others
		least((*int64)(&b.IdleTokens), max(a.tokens, float64(target)))
		switch {
		case a.idle > 0:
			least(&b.Idle, a.idle)
		case a.sinceRun > 0:
			least(&b.SinceRun, a.sinceRun)
		default:
			least(&b.Age, a.age)
		}
	case a.signals&events != 0:
		b.Signals |= int(a.signals & events)
	case a.tokens > float64(target):
		b.Tokens = min(b.Tokens, chat.Tokens(math.Min(a.tokens, float64(Never))))
	case a.newTurns > 0:
		least(&b.NewTurns, a.newTurns)
	case a.newMessages > 0:
		least(&b.NewMessages, a.newMessages)
	case a.newTokens > 0:
		least((*int64)(&b.NewTokens), a.newTokens)
	case a.messages > 0:
		least(&b.Messages, a.messages)
	case a.signals != 0:
		b.Signals |= int(a.signals)
	case a.tokens > 0:
		b.Tokens = min(b.Tokens, chat.Tokens(a.tokens))
	default:
		return false
	}
	return true
}

// necessary are conditions without which an alternative cannot be true: lower limits, above
// which tokens must be and which the others must reach, and a signal.
type necessary struct {
	tokens, newTokens, newMessages, newTurns, messages float64
	idle, age, sinceRun                                float64
	signals                                            Signals
}

func (n necessary) and(o necessary) necessary {
	n.tokens, n.newTokens, n.newMessages = max(n.tokens, o.tokens), max(n.newTokens, o.newTokens), max(n.newMessages, o.newMessages)
	n.newTurns, n.messages = max(n.newTurns, o.newTurns), max(n.messages, o.messages)
	n.idle, n.age, n.sinceRun = max(n.idle, o.idle), max(n.age, o.age), max(n.sinceRun, o.sinceRun)
	if n.signals&events == 0 && o.signals != 0 {
		n.signals = o.signals // one of them suffices
	}
	return n
}

// maxAlternatives bounds the alternatives of a condition.
const maxAlternatives = 64

// signals are the words of Signals.
var signals = map[string]Signals{
	"closed": Closed, "overflow": Overflow, "needs_follow_up": NeedsFollowUp, "has_pending_input": HasPendingInput, "child_closed": ChildClosed,
}

// alternatives returns the alternatives of a condition, or of its negation: one of them must be
// true. Without any, it never is.
func (l Limits) alternatives(node ast.Node, not bool) []necessary {
	switch n := node.(type) {
	case *ast.BoolNode:
		if n.Value == not {
			return nil
		}
	case *ast.IdentifierNode:
		if !not {
			return []necessary{{signals: signals[n.Value]}}
		}
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			return l.alternatives(n.Node, !not)
		}
	case *ast.BinaryNode:
		switch op := n.Operator; op {
		case "&&", "and", "||", "or":
			left, right := l.alternatives(n.Left, not), l.alternatives(n.Right, not)
			if (op == "||" || op == "or") != not {
				return append(left, right...)
			}
			var out []necessary
			for _, a := range left {
				for _, b := range right {
					if out = append(out, a.and(b)); len(out) > maxAlternatives {
						return out
					}
				}
			}
			return out
		default:
			return []necessary{l.comparison(n, not)}
		}
	}
	return []necessary{{}}
}

// comparison returns the necessary conditions of a comparison of a word with a constant.
func (l Limits) comparison(n *ast.BinaryNode, not bool) (out necessary) {
	op, word := n.Operator, n.Left
	limit, ok := l.constant(n.Right)
	if !ok {
		op, word = mirrored[op], n.Right
		limit, ok = l.constant(n.Left)
	}
	if not {
		op = negated[op]
	}
	name, isWord := word.(*ast.IdentifierNode)
	if !ok || !isWord {
		return out
	}
	at := math.Ceil(limit) // the least whole number that fits
	switch op {
	case ">":
		at = math.Floor(limit) + 1
	case ">=", "==":
	case "<", "<=": // only of words that get less as the context grows
		if name.Value == "headroom" {
			out.tokens = lowerLimit(float64(l.Window)-limit, op == "<")
		}
		return out
	default:
		return out
	}
	switch name.Value {
	case "tokens":
		out.tokens = lowerLimit(limit, op == ">")
	case "used":
		out.tokens = lowerLimit(limit*float64(l.Window), op == ">")
	case "messages", "turns":
		out.messages = at
	case "tokens_since_run", "tool_output":
		out.newTokens = at
	case "messages_since_run":
		out.newMessages = at
	case "turns_since_run":
		out.newTurns = at
	case "idle":
		out.idle = at
	case "age":
		out.age = at
	case "time_since_run":
		out.sinceRun = at
	case "tool_rounds":
		out.newMessages = at // each has a message with calls
	}
	return out
}

// lowerLimit returns the size above which a context is at least limit, or more than it.
func lowerLimit(limit float64, more bool) float64 {
	const imprecise = 1e-6 // of products such as 0.7 × 10
	if more {
		return math.Floor(limit + imprecise)
	}
	return math.Ceil(limit-imprecise) - 1
}

var (
	mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
	negated  = map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}
)

// constant returns the value of an expression that has the same one for all sessions with a
// model.
func (l Limits) constant(node ast.Node) (float64, bool) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.IdentifierNode:
		switch n.Value {
		case "window":
			return float64(l.Window), true
		case "start":
			return float64(l.Start), true
		case "minute", "hour", "day":
			return units[n.Value].Seconds(), true
		}
	case *ast.UnaryNode:
		v, ok := l.constant(n.Node)
		if n.Operator == "-" {
			v = -v
		}
		return v, ok && (n.Operator == "-" || n.Operator == "+")
	case *ast.BinaryNode:
		a, aok := l.constant(n.Left)
		b, bok := l.constant(n.Right)
		switch {
		case !aok || !bok:
		case n.Operator == "+":
			return a + b, true
		case n.Operator == "-":
			return a - b, true
		case n.Operator == "*":
			return a * b, true
		case n.Operator == "/" && b != 0:
			return a / b, true
		}
	}
	return 0, false
}
