package retention

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Baseline describes a policy to compare others with. Keep returns the messages that it
// keeps within a budget of tokens, measured by size, and does not change its argument.
type Baseline struct {
	Name, Doc string
	Keep      func(pre []chat.Message, budget float64, size Sizer) []chat.Message
}

// Baselines returns all baselines but Random. A provider may reject the messages that they keep.
func Baselines() []Baseline {
	return []Baseline{
		{"drop_oldest", "the newest messages that fit", dropOldest},
		{"head20+tail", "a fifth of the budget for the oldest messages, the rest for the newest", headTail},
		{"user+tail", "half of the budget for messages of the user, the newest first, the rest for the newest messages", userTail},
		{"drop_tool_results", "the oldest tool results become a marker, until the rest fits", stubs(0)},
		{"stub200", "the oldest tool results become one line of 200 characters, until the rest fits", stubs(200)},
		{"id_list", "a bare list of the newest identifiers: no compaction, it shows how the measure can be gamed", idList},
	}
}

// split separates system messages from the rest.
func split(ms []chat.Message) (systems, rest []chat.Message) {
	for i := range ms {
		if system(&ms[i]) {
			systems = append(systems, ms[i])
		} else {
			rest = append(rest, ms[i])
		}
	}
	return systems, rest
}

// tail returns the index of the oldest message of the longest tail within the budget.
func tail(ms []chat.Message, budget float64, size Sizer) int {
	i := len(ms)
	for sum := 0.0; i > 0; i-- {
		t := size.Message(&ms[i-1])
		if sum+t > budget {
			break
		}
		sum += t
	}
	return i
}

// withoutOrphans returns the messages without tool results that have no preceding call.
func withoutOrphans(ms []chat.Message) []chat.Message {
	ids := map[string]bool{}
	var out []chat.Message
	for i := range ms {
		for _, c := range ms[i].ToolCalls {
			ids[c.ID] = true
		}
		if m := &ms[i]; m.Role != chat.RoleTool || m.ToolCallID == "" || ids[m.ToolCallID] {
			out = append(out, *m)
		}
	}
	return out
}

func dropOldest(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	systems, rest := split(pre)
	return append(systems, withoutOrphans(rest[tail(rest, budget, size):])...)
}

func headTail(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	systems, rest := split(pre)
	var head []chat.Message
	sum := 0.0
	for i := range rest {
		t := size.Message(&rest[i])
		if sum+t > 0.2*budget {
			break
		}
		head = append(head, rest[i])
		sum += t
	}
	rest = rest[len(head):]
	return append(systems, withoutOrphans(append(head, rest[tail(rest, budget-sum, size):]...))...)
}

func userTail(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	systems, rest := split(pre)
	keep := make([]bool, len(rest))
	sum := 0.0
	for i, m := range slices.Backward(rest) {
		if t := size.Message(&m); m.Role == chat.RoleUser && sum+t <= budget/2 {
			keep[i] = true
			sum += t
		}
	}
	for i, m := range slices.Backward(rest) {
		if keep[i] {
			continue
		}
		t := size.Message(&m)
		if sum+t > budget {
			break
		}
		keep[i] = true
		sum += t
	}
	return append(systems, withoutOrphans(selected(rest, keep))...)
}

// Random returns the baseline that keeps messages at random, the same ones for a session of
// that name each time. It keeps results without their calls: of most calls, only one of the
// two messages is drawn.
func Random(session string) Baseline {
	return Baseline{"random", "messages at random until the budget is full, in their order", func(pre []chat.Message, budget float64, size Sizer) []chat.Message {
		systems, rest := split(pre)
		keep := make([]bool, len(rest))
		sum := 0.0
		r := rand.New(rand.NewPCG(uint64(idOf(session)), 0)) //nolint:gosec // reproducible
		for _, i := range r.Perm(len(rest)) {
			if t := size.Message(&rest[i]); sum+t <= budget {
				keep[i] = true
				sum += t
			}
		}
		return append(systems, selected(rest, keep)...)
	}}
}

// selected returns the messages to keep.
func selected(ms []chat.Message, keep []bool) []chat.Message {
	var out []chat.Message
	for i := range ms {
		if keep[i] {
			out = append(out, ms[i])
		}
	}
	return out
}

// stubs returns a baseline that cuts the oldest tool results to keep characters.
func stubs(keep int) func(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	return func(pre []chat.Message, budget float64, size Sizer) []chat.Message {
		out := append([]chat.Message(nil), pre...)
		total := size.Total(out)
		for i := range out {
			if total <= budget {
				break
			}
			if out[i].Role != chat.RoleTool {
				continue
			}
			text := out[i].Content.String()
			n := utf8.RuneCountInString(text)
			stub := "[tool result removed]"
			if keep > 0 {
				stub = strings.ReplaceAll(head(text, keep), "\n", " ") + fmt.Sprintf(" ...[%d chars removed]", max(0, n-keep))
			}
			if utf8.RuneCountInString(stub) < n {
				total -= size.Message(&out[i])
				out[i].Content = chat.TextContent(stub)
				total += size.Message(&out[i])
			}
		}
		if total <= budget {
			return out
		}
		return dropOldest(out, budget, size)
	}
}

// head returns the first n characters of s.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func idList(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	systems, _ := split(pre)
	seen := map[string]bool{}
	var list []string
	sum, full := size.Message(&chat.Message{}), false
	for i := len(pre) - 1; i >= 0 && !full; i-- {
		for _, id := range ids(Text(&pre[i])) {
			if seen[id] {
				continue
			}
			n := size.Text(id + " ")
			if full = sum+n > budget; full {
				break
			}
			seen[id] = true
			list = append(list, id)
			sum += n
		}
	}
	return append(systems, chat.Message{Role: chat.RoleUser, Content: chat.TextContent(strings.Join(list, " "))})
}
