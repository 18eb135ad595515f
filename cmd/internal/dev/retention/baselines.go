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
		{"head20+tail", "a fifth of the budget for the oldest messages, the rest for the newest", paired(pass{0.2, oldest, false}, pass{1, newest, false})},
		{"user+tail", "half of the budget for messages of the user, the newest first, the rest for the newest messages", paired(pass{0.5, users, true}, pass{1, newest, false})},
		{"drop_tool_results", "the oldest tool results become a marker, until the rest fits", stubs(0)},
		{"stub200", "the oldest tool results become one line of 200 characters, until the rest fits", stubs(200)},
		{"id_list", "a bare list of the newest identifiers: no compaction, it shows how the measure can be gamed", idList},
	}
}

// Random returns the baseline that keeps messages at random, the same ones for a session of
// that name each time. It keeps results without their calls: of most calls, only one of the
// two messages is drawn.
func Random(session string) Baseline {
	return Baseline{"random", "messages at random until the budget is full, in their order", func(pre []chat.Message, budget float64, size Sizer) []chat.Message {
		r := rand.New(rand.NewPCG(uint64(idOf(session)), 0)) //nolint:gosec // reproducible
		drawn := func(pre []chat.Message) []int {
			all := oldest(pre)
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return all
		}
		return selected(pre, budget, size, pass{1, drawn, true})
	}}
}

// pass selects messages until those selected fill a share of the budget.
type pass struct {
	share float64
	// order returns the indexes of messages in the order of selection.
	order func(pre []chat.Message) []int
	// skip reports that the pass goes on after a message that does not fit.
	skip bool
}

// Orders of a pass. None has system messages, which are always selected.
func oldest(pre []chat.Message) (all []int) {
	for i := range pre {
		if !system(&pre[i]) {
			all = append(all, i)
		}
	}
	return all
}

func newest(pre []chat.Message) []int {
	all := oldest(pre)
	slices.Reverse(all)
	return all
}

func users(pre []chat.Message) []int {
	return slices.DeleteFunc(newest(pre), func(i int) bool { return pre[i].Role != chat.RoleUser })
}

// selected returns the system messages and those that the passes select.
func selected(pre []chat.Message, budget float64, size Sizer, passes ...pass) (out []chat.Message) {
	keep, sum := make([]bool, len(pre)), 0.0
	for _, p := range passes {
		for _, i := range p.order(pre) {
			t := size.Message(&pre[i])
			if !keep[i] && sum+t <= p.share*budget {
				keep[i], sum = true, sum+t
			} else if !keep[i] && !p.skip {
				break
			}
		}
	}
	for i := range pre {
		if keep[i] || system(&pre[i]) {
			out = append(out, pre[i])
		}
	}
	return out
}

// paired returns what the passes select, without tool results that have no preceding call.
func paired(passes ...pass) func(pre []chat.Message, budget float64, size Sizer) []chat.Message {
	return func(pre []chat.Message, budget float64, size Sizer) (out []chat.Message) {
		calls := map[string]bool{}
		for _, m := range selected(pre, budget, size, passes...) {
			for _, c := range m.ToolCalls {
				calls[c.ID] = true
			}
			if m.Role != chat.RoleTool || m.ToolCallID == "" || calls[m.ToolCallID] {
				out = append(out, m)
			}
		}
		return out
	}
}

var dropOldest = paired(pass{1, newest, false})

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
	var all, list []string
	for _, m := range slices.Backward(pre) {
		all = append(all, ids(Text(&m))...)
	}
	sum := size.Message(&chat.Message{})
	for _, id := range distinct(all) {
		if sum += size.Text(id + " "); sum > budget {
			break
		}
		list = append(list, id)
	}
	return append(selected(pre, 0, size), chat.Message{Role: chat.RoleUser, Content: chat.TextContent(strings.Join(list, " "))})
}
