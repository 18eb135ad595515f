package summary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
)

func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"ok, go on": true, "sounds good": true, "👍": true, "yes, go ahead with that": true, "continue where you left off": true, "lgtm, ship it": true,
		"да, продолжай": true, "好的，继续": true, "let's do it": true,
		"": false, "paint the door": false, "ok, but paint the door first": false, "好的，先写测试": false,
		"no": true, "3": true, "c please": true, "the third one": true, "let's take option 2": true, "I agree": true, "I don't mind": true, "please go on with the plan": true, "nein": true,
		"lgtm, ship that": true, "great work so far, continue": true, "[Request interrupted by user for tool use]": true, "<task-notification>\n<task-id>k2</task-id>\n</task-notification>": true,
		"OBSERVATION:\n3 doors": true, "Observation: the door is stuck. Please mend it.": false, "I get this now, mend it:\nroot@house:~#": false, "3 doors\n(Current directory: /house)\nbash-$": true, "paint 3 doors": false, "no, paint the door": false, "2 coats, please": false, "send the plan to Ann": false,
	} {
		if got := acknowledges(said); got != want {
			t.Errorf("%q: %t", said, got)
		}
	}
}

func TestInsertRequest(t *testing.T) {
	t.Parallel()
	answer := "## Active task\nWhat the model remembers.\n\n## Goal\nA green build.\n\n## Last user message\nmade up\n\n## State\nred\n\n## active Task:\nagain"
	got := InsertRequest(answer, "Fix it.\r\n## Goal\nnot a heading")
	want := `## Active task
(verbatim, from the messages themselves)

> Fix it.
> ## Goal
> not a heading

## Goal
A green build.

## State
red`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plain := InsertRequest("All is well.", "is it?")
	if want := "All is well.\n\n## Active task\n" + verbatimNote + "\n\n> is it?"; plain != want {
		t.Errorf("%q", plain)
	}
	if same := InsertRequest("## Active task\nas it was", ""); same != "## Active task\nas it was" {
		t.Errorf("without a request: %q", same)
	}
	secret := made("gh"+"p_", 30)
	masked, _ := redact.Redact(strings.Repeat("ä", 12000) + secret + strings.Repeat("ö", 12000))
	long := InsertRequest("x", masked)
	if strings.Contains(long, secret) || !strings.Contains(long, "characters left out") || strings.Count(long, "ä") != 2666 || strings.Count(long, "ö") != 1334 {
		t.Errorf("%q", long)
	}
}

func TestInsertRequestIsIdempotent(t *testing.T) {
	t.Parallel()
	bits := rapid.SliceOfN(rapid.SampledFrom([]string{"## Active task\n", "## Goal\n", "## Pinned\n", "**Last user message**\n", "text", "\n", "\n\n", "> q\n", "```\n", "é", "\r"}), 0, 10)
	rapid.Check(t, func(t *rapid.T) {
		request := strings.Join(bits.Draw(t, "request"), "")
		once := InsertRequest(strings.Join(bits.Draw(t, "answer"), ""), request)
		if twice := InsertRequest(once, request); twice != once {
			t.Fatalf("%q and then\n%q", once, twice)
		}
	})
}

// TestAcknowledgementsAreNoTask: the model's active task stays if the newest message of the
// user only agrees.
func TestAcknowledgementsAreNoTask(t *testing.T) {
	t.Parallel()
	for message, task := range map[string]bool{
		"ok, go on": false, "Yes, please continue.": false, "LGTM": false, "ok": false, "no": false, "4": false, "<task-notification><task-id>k2</task-id></task-notification>": false,
		"ok, fix the tests": true, "go on with the login page": true, "do it and go on and do it and go on": true, "?": true,
	} {
		m, err := New(Options{}).newInput(t.Context(), plan.Task{Messages: []*chat.Message{said(chat.RoleUser, ask), said(chat.RoleAssistant, long), said(chat.RoleUser, message)}})
		if err != nil {
			t.Fatal(err)
		}
		if (m.request != "") != task {
			t.Errorf("%q: request %q", message, m.request)
		}
	}
}
