package chat_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestReasoningIsSignedIfItHoldsASignatureOrEncryptedData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message string
		signed  bool
		rest    string
	}{
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQ="},{"type":"text","text":"ok"}]}`, true, `{"role":"assistant","content":[{"type":"text","text":"ok"}]}`},
		{`{"role":"assistant","content":[{"type":"redacted_thinking","data":"EqQ="}]}`, true, `{"role":"assistant","content":null}`},
		{`{"role":"assistant","content":[{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"type":"output_text","text":"ok"}]}`, true, `{"role":"assistant","content":[{"type":"output_text","text":"ok"}]}`},
		{`{"role":"assistant","content":[{"type":"reasoning","text":"hm","providerOptions":{"anthropic":{"signature" : "EqQ="}}}]}`, true, `{"role":"assistant","content":null}`},
		{`{"role":"assistant","content":"ok","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"EqQ="}],"x":1}`, true, `{"role":"assistant","content":"ok","x":1}`},
		{`{"role":"assistant","content":"ok","reasoning_details":[{"type":"reasoning.encrypted","data":"EqQ="}]}`, true, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":"ok","reasoning_content":"hm","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"EqQ="}]}`, true, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":"ok","codex_reasoning_items":[{"type":"reasoning","encrypted_content":"gAAA"}]}`, true, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":"ok","encrypted_content":"gAAA","thinking":"hm"}`, true, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":"ok","redacted_thinking":"EqQ="}`, true, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":"ok","reasoning_opaque":"EqQ=","reasoning_text":"hm"}`, true, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":"ok","thinking":"hm"}`, false, `{"role":"assistant","content":"ok"}`},
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"ok"}]}`, false, `{"role":"assistant","content":[{"type":"text","text":"ok"}]}`},
		{`{"role":"assistant","content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"\"data\":\"x\""}],"encrypted_content":null}]}`, false, `{"role":"assistant","content":null}`},
		{`{"role":"assistant","content":"ok","reasoning_content":"\"signature\":\"x\""}`, false, `{"role":"assistant","content":"ok"}`},
	} {
		var m chat.Message
		if err := json.Unmarshal([]byte(c.message), &m); err != nil {
			t.Fatal(err)
		}
		meta := m.Meta(1)
		if !meta.Has(chat.HasReasoning) || meta.Signed() != c.signed {
			t.Errorf("%s: flags %b, want signed %t", c.message, meta.Flags, c.signed)
		}
		rest := m.WithoutReasoning()
		if got := string(rest.AppendJSON(nil)); got != c.rest {
			t.Errorf("%s without reasoning is %s, want %s", c.message, got, c.rest)
		}
		if again := string(m.AppendJSON(nil)); again != c.message {
			t.Errorf("WithoutReasoning changed its message to %s", again)
		}
	}
}

func TestReasoningOfAStoredMessageWithoutTheFlagCountsAsSigned(t *testing.T) {
	t.Parallel()
	if old := (chat.Meta{Role: chat.RoleAssistant, Flags: chat.HasText | chat.HasReasoning}); !old.Signed() {
		t.Error("reasoning of which nothing is known counts as plain")
	}
}

// source returns the metadata of a source; signed ones have reasoning.
func source(seq chat.Seq, role chat.Role, calls int, signed bool) chat.Meta {
	m := chat.Meta{Seq: seq, Position: seq, Kind: chat.KindSource, Role: role, Flags: chat.HasText, Calls: calls}
	if signed {
		m.Flags |= chat.HasReasoning
	}
	return m
}

func TestOnlyAnOpenToolLoopHoldsTheViewBeforeItsReasoning(t *testing.T) {
	t.Parallel()
	u, a, x, r := chat.RoleUser, chat.RoleAssistant, chat.RoleTool, true
	for name, c := range map[string]struct {
		view []chat.Meta
		want chat.Seq
	}{
		"answered":            {[]chat.Meta{source(1, u, 0, false), source(2, a, 1, r), source(3, x, 0, false), source(4, a, 0, r)}, 0},
		"call waits":          {[]chat.Meta{source(1, u, 0, false), source(2, a, 1, r)}, 2},
		"results unread":      {[]chat.Meta{source(1, u, 0, false), source(2, a, 1, r), source(3, x, 0, false), source(4, a, 1, false), source(5, x, 0, false)}, 2},
		"not signed":          {[]chat.Meta{source(1, u, 0, false), source(2, a, 1, false), source(3, x, 0, false)}, 0},
		"signed before":       {[]chat.Meta{source(1, a, 0, r), source(2, u, 0, false), source(3, a, 1, false), source(4, x, 0, false)}, 0},
		"ended by the user":   {[]chat.Meta{source(1, u, 0, false), source(2, a, 1, r), source(3, x, 0, false), source(4, u, 0, false)}, 0},
		"without a user":      {[]chat.Meta{source(1, a, 1, r), source(2, x, 0, false)}, 1},
		"results and no call": {[]chat.Meta{source(1, u, 0, false), source(2, x, 0, false)}, 0},
	} {
		if got := chat.OpenReasoning(c.view); got != c.want {
			t.Errorf("%s: open up to %d, want %d", name, got, c.want)
		}
	}
}

func TestStaleReasoningIsAllBehindTheChangeInFewRanges(t *testing.T) {
	t.Parallel()
	view := []chat.Meta{
		source(2, chat.RoleAssistant, 0, true), source(3, chat.RoleUser, 0, false), source(4, chat.RoleAssistant, 0, true),
		source(6, chat.RoleAssistant, 0, true), source(9, chat.RoleAssistant, 0, true),
	}
	view[3].Position = 1 // a rewritten message 1
	want := chat.Ranges{{Lo: 4, Hi: 5}, {Lo: 9, Hi: 10}}
	if diff := cmp.Diff(want, chat.StaleReasoning(view, 3)); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
}

func TestCheckReasoningFindsReasoningOfAnotherView(t *testing.T) {
	t.Parallel()
	a, u := chat.RoleAssistant, chat.RoleUser
	log := []chat.Meta{source(1, u, 0, false), source(2, a, 0, true), source(3, u, 0, false), source(4, a, 0, true), source(5, u, 0, false), source(6, a, 0, true)}
	all := chat.Ranges{{Lo: 1, Hi: chat.Open}}
	without := chat.Ranges{{Lo: 2, Hi: chat.Open}} // message 1 went when there were four
	begin, after := chat.Past{Live: all}, chat.Past{Since: 4, Live: without, Out: chat.Ranges{{Lo: 2, Hi: 5}}}
	for name, c := range map[string]struct {
		now  chat.Past
		past []chat.Past
		want []chat.Seq
	}{
		"nothing changed":      {begin, []chat.Past{begin}, nil},
		"dropped what existed": {after, []chat.Past{begin, after}, nil},
		"dropped nothing":      {chat.Past{Live: without}, []chat.Past{begin, after}, []chat.Seq{2, 4, 6}},
		"dropped too little":   {chat.Past{Live: without, Out: chat.Ranges{{Lo: 2, Hi: 3}}}, []chat.Past{begin, after}, []chat.Seq{4, 6}},
		"undone":               {chat.Past{Live: all, Out: chat.Ranges{{Lo: 5, Hi: 7}}}, []chat.Past{begin, after}, nil},
		"undone, kept":         {begin, []chat.Past{begin, after}, []chat.Seq{6}},
	} {
		var got []chat.Seq
		for _, v := range chat.CheckReasoning(log, c.now, c.past) {
			if got = append(got, v.Seq); v.Code != chat.ViolationStaleReasoning {
				t.Errorf("%s: %s", name, v)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A message that the application placed elsewhere counts as a summary in many ways.
func TestNothingIsLeftOfAMovedMessageThatHoldsReasoningAlone(t *testing.T) {
	t.Parallel()
	m := chat.Meta{Seq: 9, Position: 3, Kind: chat.KindSummary, Role: chat.RoleAssistant, Flags: chat.HasReasoning | chat.Moved, Tokens: 10, ReasoningTokens: 8}
	if rest, ok := m.WithoutReasoning(); ok {
		t.Errorf("%+v is left", rest)
	}
	if m.ReasoningOnly() {
		t.Error("it can belong to a call")
	}
}
