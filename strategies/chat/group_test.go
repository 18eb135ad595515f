package chat_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// metasOf decodes a message from every byte: its kind, and whether it is a summary.
func metasOf(data []byte) []chat.Meta {
	out := make([]chat.Meta, len(data))
	for i, b := range data {
		m := chat.Meta{Seq: chat.Seq(i + 1), Position: chat.Seq(i + 1), Kind: chat.KindSource}
		switch b & 15 {
		case 0:
			m.Role = chat.RoleSystem
		case 1, 2:
			m.Role = chat.RoleUser
		case 3:
			m.Role = chat.RoleDeveloper
		case 4, 5, 6:
			m.Role, m.Flags = chat.RoleAssistant, chat.HasReasoning
		case 7, 8:
			m.Role, m.Calls = chat.RoleAssistant, int(b>>6)+1
		case 9:
			m.Role, m.Calls, m.Flags = chat.RoleAssistant, 1, chat.HasReasoning|chat.HasText
		case 10, 11, 12:
			m.Role = chat.RoleTool
		case 13:
			m.Role, m.Calls = "critic", 1 // no call: only an assistant makes one
		case 14:
			m.Role, m.Calls, m.Flags = chat.RoleAssistant, 1, chat.Parallel
		default:
			m.Role, m.Flags = chat.RoleAssistant, chat.HasText
		}
		if b&0x30 == 0x30 {
			m.Kind = chat.KindSummary
		}
		out[i] = m
	}
	return out
}

func TestGroups(t *testing.T) {
	t.Parallel()
	const (
		sys, user, think, call, thinkCall, result, text = 0, 1, 4, 7, 9, 10, 15
		other, parallel, summary                        = 13, 14, 0x30
	)
	g := func(k chat.GroupKind, start, end int, reasoning ...bool) chat.Group {
		return chat.Group{Kind: k, Start: start, End: end, HasReasoning: len(reasoning) > 0, Call: -1}
	}
	calls := func(call int, g chat.Group) chat.Group {
		g.Call, g.Calls = call, 1
		return g
	}
	tests := map[string]struct {
		in   []byte
		want []chat.Group
	}{
		"nothing": {nil, []chat.Group{}},
		"a call takes reasoning before it, behind it, and its results": {
			[]byte{sys, user, think, think, call, think, result, result, text},
			[]chat.Group{g("system", 0, 1), g("user", 1, 2), calls(4, g("tool_call", 2, 8, true)), g("assistant_text", 8, 9)},
		},
		"reasoning that leads to no call is alone, message by message": {
			[]byte{think, think, user, think},
			[]chat.Group{
				g("assistant_text", 0, 1, true), g("assistant_text", 1, 2, true), g("user", 2, 3), g("assistant_text", 3, 4, true),
			},
		},
		"reasoning between two calls is the earlier one's": {
			[]byte{call, think, call, result},
			[]chat.Group{calls(0, g("tool_call", 0, 2, true)), calls(2, g("tool_call", 2, 4))},
		},
		"parallel calls are one group": {
			[]byte{call, think, parallel, parallel, result, parallel},
			[]chat.Group{{Kind: "tool_call", End: 5, HasReasoning: true, Calls: 3}, calls(5, g("tool_call", 5, 6))},
		},
		"reasoning behind results starts the next group": {
			[]byte{thinkCall, result, think, call},
			[]chat.Group{calls(0, g("tool_call", 0, 2, true)), calls(3, g("tool_call", 2, 4, true))},
		},
		"results without a call are a group": {
			[]byte{result, result, user, call, user, result},
			[]chat.Group{g("tool_call", 0, 2), g("user", 2, 3), calls(3, g("tool_call", 3, 4)), g("user", 4, 5), g("tool_call", 5, 6)},
		},
		"unknown roles are text, and call nothing": {
			[]byte{other, result}, []chat.Group{g("assistant_text", 0, 1), g("tool_call", 1, 2)},
		},
		"a summary of reasoning belongs to no call": {
			[]byte{think | summary, call}, []chat.Group{g("assistant_text", 0, 1, true), calls(1, g("tool_call", 1, 2))},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, chat.Groups(metasOf(tt.in))); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// BenchmarkGroupsGrowth groups every pattern of one and of two kinds of messages, again
// and again, and a run of reasoning, over which a lookahead would be quadratic.
func BenchmarkGroupsGrowth(b *testing.B) {
	kinds := []byte{0x00, 0x01, 0x04, 0x07, 0x09, 0x0a, 0x0d, 0x0f, 0x34, 0x47}
	patterns := map[string][]byte{
		"a call and thoughts": {0x04, 0x04, 0x07}, "thoughts between": {0x07, 0x04, 0x0a}, "a run of reasoning": append(slices.Repeat([]byte{0x04}, 39_999), 0x01),
	}
	for _, x := range kinds {
		for _, y := range kinds {
			patterns[fmt.Sprintf("%02x%02x", x, y)] = []byte{x, y}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		b.Run(name, func(b *testing.B) {
			growth.Report(b, 2_000, 20, func(n int) func() {
				ms := metasOf(slices.Repeat(patterns[name], n/len(patterns[name])+1)[:n])
				return func() { chat.Groups(ms) }
			})
		})
	}
}
