package summary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/redact"
)

func TestAssemble(t *testing.T) {
	t.Parallel()
	answer := "## Active task\nWhat the model remembers.\n\n## Goal\nA green build.\n\n## Last user message\nmade up\n\n## State\nred\n\n## active Task:\nagain"
	got := Assemble(answer, Facts{Ask: "Fix it.\n## Goal\nnot a heading", LastUser: "and quickly", Pins: []string{"Never push.", "Ask first.\r\nAlways."}})
	want := `## Active task
(verbatim, from the messages themselves)

> Fix it.
> ## Goal
> not a heading

## Goal
A green build.

## State
red

## Last user message
(verbatim, from the messages themselves)

> and quickly

## Pinned
(verbatim, from the messages themselves)

> Never push.

> Ask first.
> Always.`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	plain := Assemble("All is well.", Facts{LastUser: "is it?"})
	if want := "All is well.\n\n## Active task\n" + verbatimNote + "\n\n> is it?"; plain != want {
		t.Errorf("%q", plain)
	}
	if same := Assemble("## Active task\nas it was", Facts{}); same != "## Active task\nas it was" {
		t.Errorf("without facts: %q", same)
	}
	secret := made("gh"+"p_", 30)
	masked, _ := redact.Redact(strings.Repeat("ä", 3000) + secret + strings.Repeat("ö", 3000))
	long := Assemble("x", Facts{LastUser: masked, Limit: 1000})
	if strings.Contains(long, secret) || !strings.Contains(long, "characters left out") || strings.Count(long, "ä") != 666 || strings.Count(long, "ö") != 334 {
		t.Errorf("%q", long)
	}
}

func TestAssembleTwice(t *testing.T) {
	t.Parallel()
	bits := rapid.SliceOfN(rapid.SampledFrom([]string{"## Active task\n", "## Goal\n", "## Pinned\n", "**Last user message**\n", "text", "\n", "\n\n", "> q\n", "```\n", "é", "\r"}), 0, 10)
	rapid.Check(t, func(t *rapid.T) {
		f := Facts{Ask: strings.Join(bits.Draw(t, "ask"), ""), LastUser: strings.Join(bits.Draw(t, "last"), ""), Limit: 40}
		if rapid.Bool().Draw(t, "pinned") {
			f.Pins = []string{strings.Join(bits.Draw(t, "pin"), ""), "a pin"}
		}
		once := Assemble(strings.Join(bits.Draw(t, "answer"), ""), f)
		if twice := Assemble(once, f); twice != once {
			t.Fatalf("%q and then\n%q", once, twice)
		}
	})
}
