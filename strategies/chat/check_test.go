package chat_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// parseView reads a view, one word a message: a letter for its kind, digits for
// its position, then marks.
//
//	s u a  system, user, assistant text
//	r      reasoning only
//	c      call message, "*n" for n calls (1 by default), "t" for one with text
//	d      the same, Parallel
//	x      a message with a role that no provider takes
//	p o    paired result, unpaired result
//	S T    summary by the assistant, by the user
//	A      replacement by the assistant
func parseView(t interface{ Fatalf(string, ...any) }, words string) []chat.Meta {
	var out []chat.Meta
	for i, w := range strings.Fields(words) {
		m := chat.Meta{Seq: chat.Seq(i + 100), Kind: chat.KindSource, Role: chat.RoleAssistant, Flags: chat.HasText}
		var pos int
		if _, err := fmt.Sscanf(w[1:], "%d", &pos); err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		m.Position = chat.Seq(pos)
		switch w[0] {
		case 's':
			m.Role = chat.RoleSystem
		case 'u':
			m.Role = chat.RoleUser
		case 'r':
			m.Flags = chat.HasReasoning
		case 'x':
			m.Role = "ai"
		case 'c', 'd':
			m.Calls = 1
			if !strings.HasSuffix(w, "t") {
				m.Flags = 0
			}
			if m.Flags &^= chat.Parallel; w[0] == 'd' {
				m.Flags |= chat.Parallel
			}
			if _, n, many := strings.Cut(w, "*"); many {
				m.Calls = int(n[0] - '0')
			}
		case 'p':
			m.Role, m.Flags = chat.RoleTool, chat.HasText|chat.Paired
		case 'o':
			m.Role = chat.RoleTool
		case 'S', 'T':
			m.Kind = chat.KindSummary
			if w[0] == 'T' {
				m.Role = chat.RoleUser
			}
		case 'A':
			m.Kind = chat.KindReplacement
		}
		out = append(out, m)
	}
	return out
}

func TestCheckAndRepair(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		view    string
		faults  []string // code@index
		repairs []string // action@index, >position where it moves
	}{
		"an empty view":                        {view: ""},
		"a conversation with tools":            {view: "s1 u2 r3 c4*2 r5 p6 p7 a8 u9"},
		"a summary behind the system messages": {view: "s1 s2 S3 u9 c10 p11"},
		"a system message in mid-conversation": {view: "u1 s2 u3 S3 s4"},
		"a call that is open":                  {view: "u1 r2 c3*2 r4 p5"},
		"parallel calls":                       {view: "u1 c2 d3*2 p4 p5 p6 a7"},
		"parallel calls with reasoning":        {view: "u1 r2 c3 r4 d5 r6 p7 p8 u9"},
		"parallel calls that are open":         {view: "u1 c2 d3 r4 d5 p6"},
		"a parallel call whose batch is gone":  {view: "u1 d3 p5 u6"},
		"a call that an answer of the agent follows": {
			"u1 c2*2 p3 a5", []string{"unanswered_call@1"}, []string{"keep_answered@1"},
		},
		"a call that another one follows": {
			"u1 c2 c3", []string{"unanswered_call@1"}, []string{"exclude@1"},
		},
		"a call that a system message follows": {
			"u1 c2 s3", []string{"unanswered_call@1"}, []string{"exclude@1"},
		},
		"a call that a summary follows": {
			"u1 c2 S4", []string{"unanswered_call@1"}, []string{"exclude@1"},
		},
		"parallel calls, partly answered": {
			"u1 c2 d3*2 p4 a5", []string{"unanswered_call@1", "unanswered_call@2"}, []string{"keep_answered@1", "keep_answered@2"},
		},
		"abandoned parallel calls, one with text": {
			"u1 r2 c3 r4 d5t u6", []string{"unanswered_call@2", "unanswered_call@4"}, []string{"exclude@2", "drop_calls@4"},
		},
		"a call behind results is not parallel": {
			"u1 c2*2 p3 d4 p5", []string{"unanswered_call@1"}, []string{"keep_answered@1"},
		},
		"a summary between parallel calls": {
			"u1 c2 S3 d3 p4 p5", []string{"summary_splits_group@2", "split_group@3"}, []string{"move@2>5"},
		},
		"an orphan behind an open call": {
			"u1 r2 c3 o4", []string{"orphan_result@3"}, []string{"textify@3>1"},
		},
		"a foreign role": {"u1 x2 c3 p4", []string{"foreign_role@1"}, []string{"exclude@1"}},
		"a foreign role behind a call": {
			"u1 c2 x3 p4", []string{"unanswered_call@1", "foreign_role@2", "orphan_result@3"}, []string{"exclude@1", "exclude@2", "textify@3"},
		},
		"a gap in a group that fits":     {view: "u1 c2*2 p3 p6 u7"},
		"a result at the start":          {"p1 u2", []string{"orphan_result@0"}, []string{"textify@0"}},
		"a result that never had a call": {"u1 o2 a3", []string{"orphan_result@1"}, []string{"textify@1"}},
		"a result too many": {
			"u1 c2 p3 p5 u6", []string{"orphan_result@3"}, []string{"textify@3"},
		},
		"a result behind a user message": {
			"c2 u3 p6", []string{"unanswered_call@0", "orphan_result@2"}, []string{"exclude@0", "textify@2"},
		},
		"an orphan inside a group moves behind it": {
			"u1 c2*2 p3 o4 p5 u6", []string{"orphan_result@3"}, []string{"textify@3>5"},
		},
		"an orphan before the results of its group": {
			"u1 c2 o3 p4", []string{"orphan_result@2"}, []string{"textify@2>4"},
		},
		"reasoning behind a result starts something new": {
			"c1*2 p2 r3 p4 u5", []string{"unanswered_call@0", "orphan_result@3"}, []string{"keep_answered@0", "textify@3"},
		},
		"an abandoned call that says nothing goes with its reasoning": {
			"u1 r2 c3 r4 u5", []string{"unanswered_call@2"}, []string{"exclude@1", "exclude@2", "exclude@3"},
		},
		"an abandoned call with text": {
			"u1 r2 c3t a4 u5", []string{"unanswered_call@2"}, []string{"drop_calls@2"},
		},
		"an abandoned call, partly answered": {
			"u1 c2*3 p3 p4 u5", []string{"unanswered_call@1"}, []string{"keep_answered@1"},
		},
		"abandoned by a user message far behind": {
			"c1 a2 c3 p4 u5", []string{"unanswered_call@0"}, []string{"exclude@0"},
		},
		"a summary between a call and its result": {
			"u1 c2 S3 p3 u4", []string{"summary_splits_group@2", "split_group@3"}, []string{"move@2>3"},
		},
		"a summary by the user between results": {
			"u1 c2*2 p3 T4 p4", []string{"summary_splits_group@3", "split_group@4"}, []string{"move@3>4"},
		},
		"a summary between reasoning and its call": {
			"u1 r2 S3 r3 c4 p5", []string{"split_group@1", "summary_splits_group@2"}, []string{"move@2>1"},
		},
		"a summary between a call and reasoning": {
			"u1 c2 S3 r3", []string{"summary_splits_group@2", "split_group@3"}, []string{"move@2>1"},
		},
		"reasoning whose call may have gone": {view: "u1 r2 S3 c4 p5"},
		"a summary in the place of the call": {
			"u1 c2 p3 S4 p5", []string{"orphan_result@4"}, []string{"textify@4"},
		},
		"a summary in the place of the rest of a group and the next call": {
			"u1 c2 S3 p9 u10", []string{"unanswered_call@1", "orphan_result@3"}, []string{"exclude@1", "textify@3"},
		},
		"results behind an orphan that a summary cut off": {
			"u1 c2*2 S3 o9 p10", []string{"unanswered_call@1", "orphan_result@3", "orphan_result@4"}, []string{"exclude@1", "textify@3", "textify@4"},
		},
		"a summary before the system messages": {
			"S1 s1 s2 u3", []string{"before_system@0"}, []string{"move@0>2"},
		},
		"a summary between system messages": {
			"s1 S2 s2 u3", []string{"before_system@1"}, []string{"move@1>2"},
		},
		"a replacement behind its group": {view: "u1 c2 p3 A3 u5"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view := parseView(t, tt.view)
			var faults, repairs []string
			for _, f := range chat.Check(view) {
				if f.Seq != view[f.Index].Seq {
					t.Errorf("%v has the seq of another message", f)
				}
				faults = append(faults, fmt.Sprintf("%s@%d", f.Code, f.Index))
			}
			for _, d := range chat.Repair(view) {
				repair := fmt.Sprintf("%s@%d", d.Action, d.Index)
				if d.Action == chat.RepairMove || d.Position != view[d.Index].Position {
					repair += fmt.Sprintf(">%d", d.Position)
				}
				repairs = append(repairs, repair)
			}
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.repairs, repairs); diff != "" {
				t.Errorf("repairs (-want +got):\n%s", diff)
			}
			if left := chat.Check(repairView(view)); len(left) > 0 {
				t.Errorf("left after the repair: %v", left)
			}
		})
	}
}

// repairView applies the repair of a view to it.
func repairView(view []chat.Meta) []chat.Meta {
	repairs := chat.Repair(view)
	gone := map[int]bool{}
	var out []chat.Meta
	next := chat.Seq(1)
	for _, m := range view {
		next = max(next, m.Seq+1)
	}
	for _, d := range repairs {
		gone[d.Index] = true
		if d.Action != chat.RepairExclude {
			if m := d.Meta(view[d.Index], next); m.Seq > 0 {
				out = append(out, m)
				next++
			}
		}
	}
	for i, m := range view {
		if !gone[i] {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, chat.Compare)
	return out
}

// message draws a message of any kind; ids repeat and are missing.
var messages = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chat.Message {
	id := rapid.SampledFrom([]string{"", "a", "b", "c"})
	content := rapid.SampledFrom([]chat.Content{
		{Null: true}, {Text: "text"}, {Text: " "}, {Parts: []chat.Part{{Type: "image_url"}, {Type: "text", Text: "x"}}},
	}).Draw(t, "content")
	m := chat.Message{Content: content}
	switch rapid.SampledFrom([]string{"system", "user", "text", "reasoning", "call", "call", "tool", "tool", "tool", "developer"}).Draw(t, "what") {
	case "system":
		m.Role = chat.RoleSystem
	case "developer":
		m.Role = chat.RoleDeveloper
	case "user":
		m.Role = chat.RoleUser
	case "text":
		m.Role = chat.RoleAssistant
	case "reasoning":
		m.Role, m.Reasoning, m.Content = chat.RoleAssistant, "hm", chat.Content{Null: true}
	case "call":
		m.Role = chat.RoleAssistant
		for _, id := range rapid.SliceOfN(id, 1, 3).Draw(t, "calls") {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Name: "f"})
		}
	case "tool":
		m.Role, m.ToolCallID = chat.RoleTool, id.Draw(t, "answers")
	}
	return m
}), 0, 30)

func TestRepairLeavesNoFault(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := messages.Draw(t, "messages")
		repaired := chat.Repaired(ms)
		if left := chat.Check(chat.Describe(repaired)); len(left) > 0 {
			t.Fatalf("left after the repair: %v", left)
		}
		if again := chat.Repaired(repaired); len(repaired) > 0 && &again[0] != &repaired[0] {
			t.Fatal("a repaired history was repaired again")
		}
		// Nothing that was said is lost, and no call has turned up.
		was, is, calls := words(ms)
		if was2, is2, calls2 := words(repaired); was2 != was || is2 < is || calls2 > calls {
			t.Fatalf("users %d, texts %d, calls %d became %d, %d, %d", was, is, calls, was2, is2, calls2)
		}
	})
}

func words(ms []chat.Message) (users, texts, calls int) {
	for _, m := range ms {
		if m.Role == chat.RoleUser {
			users++
		}
		if m.Flags()&chat.HasText != 0 {
			texts++
		}
		calls += len(m.ToolCalls)
	}
	return users, texts, calls
}

// anyView draws a view as runs leave it and worse: anything may be excluded or replaced, and any
// summary may stand anywhere.
var anyView = rapid.Custom(func(t *rapid.T) []chat.Meta {
	log := chat.Describe(messages.Draw(t, "messages"))
	next := chat.Seq(len(log) + 1)
	var view []chat.Meta
	for _, m := range log {
		switch rapid.IntRange(0, 9).Draw(t, "fate") {
		case 0, 1:
		case 2:
			m.Seq, m.Kind = next, chat.KindReplacement
			next++
			fallthrough
		default:
			view = append(view, m)
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "summaries") {
		m := chat.Meta{
			Seq: next, Position: chat.Seq(rapid.IntRange(0, len(log)+1).Draw(t, "at")),
			Kind:  rapid.SampledFrom([]chat.Kind{chat.KindSummary, chat.KindReplacement}).Draw(t, "kind"),
			Role:  rapid.SampledFrom([]chat.Role{chat.RoleUser, chat.RoleAssistant, chat.RoleSystem}).Draw(t, "role"),
			Flags: chat.HasText,
		}
		if m.Role == chat.RoleSystem {
			m.Kind = chat.KindSummary // a replacement of a system message stands where its original stood
		}
		view = append(view, m)
		next++
	}
	slices.SortFunc(view, chat.Compare)
	return view
})

func TestRepairOfAnyView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		view := anyView.Draw(t, "view")
		repaired := repairView(view)
		if left := chat.Check(repaired); len(left) > 0 {
			t.Fatalf("view %v\nrepairs %v\nleft %v", view, chat.Repair(view), left)
		}
		// A valid view is made of whole groups: every result has a call.
		for _, g := range chat.Groups(repaired) {
			if g.Kind == chat.GroupToolCall && repaired[g.Start].Role == chat.RoleTool {
				t.Fatalf("a group of results alone at %d", g.Start)
			}
		}
	})
}

// TestPlainViewsHaveNoViolations compares the short path of Check with the full scan, on any view
// and on whole groups, which are plain.
func TestPlainViewsHaveNoViolations(t *testing.T) {
	t.Parallel()
	groups := rapid.SliceOfN(rapid.SampledFrom([]string{"u", "a", "r", "c p", "c*2 p p", "c d p p", "r c*3 p p p"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		words := strings.Fields("s s u " + strings.Join(groups.Draw(t, "groups"), " "))
		for i, w := range words {
			words[i] = fmt.Sprint(w[:1], i+1, w[1:])
		}
		whole := parseView(t, strings.Join(words, " "))
		if !chat.Plain(whole) {
			t.Fatalf("a view of whole groups is not plain: %v", words)
		}
		for _, view := range [][]chat.Meta{whole, anyView.Draw(t, "view")} {
			if chat.Plain(view) && len(chat.Scan(view)) > 0 {
				t.Fatalf("%v in %+v", chat.Scan(view), view)
			}
		}
	})
}

func TestRepairStepApply(t *testing.T) {
	t.Parallel()
	call := func(ids ...string) chat.Message {
		m := chat.Message{ID: "m", Role: chat.RoleAssistant, Content: chat.TextContent("let me see")}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Name: "f"})
		}
		return m
	}
	result := func(name string, c chat.Content) chat.Message {
		return chat.Message{ID: "m", Role: chat.RoleTool, ToolCallID: "a", Name: name, Content: c, SourceID: "s"}
	}
	text := func(s string) chat.Message {
		return chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(s), SourceID: "s"}
	}
	plain := call()
	plain.ID = ""
	kept := call("a", "b")
	kept.ID = ""
	image := chat.Part{Type: "image_url", Raw: json.RawMessage(`{}`)}
	tests := map[string]struct {
		action   chat.RepairAction
		in, want chat.Message
		answered []string
	}{
		"a result": {
			action: chat.RepairTextify, in: result("grep", chat.TextContent("3 hits")),
			want: text("[Result of tool grep whose call is missing]\n3 hits"),
		},
		"an empty result without a name": {
			action: chat.RepairTextify, in: result("", chat.Content{Null: true}),
			want: text("[Result of a tool whose call is missing]\n"),
		},
		"a result in parts": {
			action: chat.RepairTextify,
			in:     result("shot", chat.Content{Parts: []chat.Part{{Type: "text", Text: "here"}, image, image}}),
			want:   text("[Result of tool shot whose call is missing]\nhere\n[2 media parts not shown]"),
		},
		"calls without results": {action: chat.RepairDropCalls, in: call("a"), want: plain},
		"calls of one id, one answered": {
			action: chat.RepairKeepAnswered, in: call("a", "b", "a", "c"), answered: []string{"b", "a"}, want: kept,
		},
		"excluded": {action: chat.RepairExclude, in: call("a")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := chat.RepairStep{Action: tt.action}.Apply(tt.in, tt.answered)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("replacement (-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkCheckGrowth(b *testing.B) {
	for _, pattern := range []string{"o1", "p1", "r1", "c1*9", "S1", "A1 o1", "r1 S1", "c1*9 p1 S1"} {
		b.Run(pattern, func(b *testing.B) {
			unit := parseView(b, pattern)
			growth.Report(b, 2_000, 20, func(n int) func() {
				view := slices.Repeat(unit, n/len(unit))
				for i := range view {
					view[i].Seq, view[i].Position = chat.Seq(i+1), chat.Seq(i+1)
				}
				return func() { chat.Check(repairView(view)) }
			})
		})
	}
}
