package retention

import (
	"fmt"
	"iter"
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

// selection selects messages within a budget.
type selection struct {
	ms   []chat.Message
	size Sizer
	keep []bool
	sum  float64 // tokens selected
}

// with selects the messages with these indexes, in this order, that fit into the budget beside those
// selected before. If upTo, the first one that does not fit ends it.
func (s *selection) with(indexes iter.Seq[int], budget float64, upTo bool) {
	for i := range indexes {
		t := s.size.Message(&s.ms[i])
		switch {
		case s.keep[i]:
		case s.sum+t <= budget:
			s.keep[i] = true
			s.sum += t
		case upTo:
			return
		}
	}
}

// oldest and newest yield the indexes of the messages from that end.
func (s *selection) oldest(yield func(int) bool) {
	for i := 0; i < len(s.ms) && yield(i); i++ {
	}
}

func (s *selection) newest(yield func(int) bool) {
	for i := len(s.ms) - 1; i >= 0 && yield(i); i-- {
	}
}

// selected returns the system messages and those that choose selects of the others.
func selected(pre []chat.Message, size Sizer, choose func(*selection)) (systems, rest []chat.Message) {
	s := selection{size: size}
	for i := range pre {
		if system(&pre[i]) {
			systems = append(systems, pre[i])
		} else {
			s.ms = append(s.ms, pre[i])
		}
	}
	s.keep = make([]bool, len(s.ms))
	choose(&s)
	for i := range s.ms {
		if s.keep[i] {
			rest = append(rest, s.ms[i])
		}
	}
	return systems, rest
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
	systems, rest := selected(pre, size, func(s *selection) { s.with(s.newest, budget, true) })
	return append(systems, withoutOrphans(rest)...)
}

func headTail(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	systems, rest := selected(pre, size, func(s *selection) {
		s.with(s.oldest, 0.2*budget, true)
		s.with(s.newest, budget, true)
	})
	return append(systems, withoutOrphans(rest)...)
}

func userTail(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	systems, rest := selected(pre, size, func(s *selection) {
		users := func(yield func(int) bool) {
			s.newest(func(i int) bool { return s.ms[i].Role != chat.RoleUser || yield(i) })
		}
		s.with(users, budget/2, false)
		s.with(s.newest, budget, true)
	})
	return append(systems, withoutOrphans(rest)...)
}

// Random returns the baseline that keeps messages at random, the same ones for a session of
// that name each time. It keeps results without their calls: of most calls, only one of the
// two messages is drawn.
func Random(session string) Baseline {
	return Baseline{"random", "messages at random until the budget is full, in their order", func(pre []chat.Message, budget float64, size Sizer) []chat.Message {
		r := rand.New(rand.NewPCG(uint64(idOf(session)), 0)) //nolint:gosec // reproducible
		systems, rest := selected(pre, size, func(s *selection) { s.with(slices.Values(r.Perm(len(s.ms))), budget, false) })
		return append(systems, rest...)
	}}
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
	systems, _ := selected(pre, size, func(*selection) {})
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
