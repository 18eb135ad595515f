package summary

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// TestFactsOfTheUser: all messages if they fit, otherwise the first and the newest ones, the first
// words of those before, a statement of what is left out, and never more than the budget.
func TestFactsOfTheUser(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s userSaid
		var texts []string
		n := rapid.IntRange(1, 60).Draw(t, "messages")
		for i := range n {
			texts = append(texts, fmt.Sprint(i, strings.Repeat(" wörd", rapid.IntRange(0, 400).Draw(t, "words"))))
			s.add(said(chat.RoleUser, texts[i]))
			s.add(said(chat.RoleAssistant, "ok"))
		}
		butFor := rapid.IntRange(0, n).Draw(t, "but for")
		budget := rapid.IntRange(0, 20_000).Draw(t, "budget")
		facts := s.given(butFor, budget)
		if size := factsTokens(facts); size > budget {
			t.Fatalf("%d tokens, budget %d", size, budget)
		}
		if len(facts) == 0 {
			if budget > 300 && butFor < n {
				t.Fatalf("nothing in %d tokens", budget)
			}
			return
		}
		next, whole := 0, false
		for _, f := range facts {
			left := 0
			if k, _ := fmt.Sscanf(f.Label, "%d messages of the user left out here", &left); k == 1 {
				next += left
				continue
			}
			begins := strings.HasPrefix(texts[next], strings.TrimPrefix(strings.SplitN("\n"+f.Text, "\n[…", 2)[0], "\n"))
			if !strings.HasPrefix(f.Label, fmt.Sprintf("message of the user, %d of %d", next+1, n)) || !begins || f.Text != texts[next] && !strings.Contains(f.Text, "left out …]") {
				t.Fatalf("message %d: %+v", next, f)
			}
			if cut := f.Text != texts[next]; next > 0 && next < n-butFor-1 {
				if whole && cut {
					t.Fatalf("message %d is cut behind a whole one", next)
				}
				whole = !cut && len(f.Text) > 2*firstWords
			}
			next++
		}
		if next != n-butFor {
			t.Fatalf("%d of %d messages: %+v", next, n-butFor, facts)
		}
	})
}

// TestWhatWasSaidTakesBoundedMemory, and the first and the newest messages are there.
func TestWhatWasSaidTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	var s userSaid
	const n = 30_000
	for i := range n {
		s.add(said(chat.RoleUser, fmt.Sprintf("Ask %d. %s", i, strings.Repeat("And more. ", 50))))
	}
	size := 0
	for _, f := range s.facts {
		size += len(f.Text)
	}
	if len(s.facts) > maxSaid || size > 2_000_000 {
		t.Errorf("%d facts of %d bytes", len(s.facts), size)
	}
	facts := s.given(0, 4000)
	last := facts[len(facts)-1]
	if !strings.HasPrefix(facts[0].Text, "Ask 0. And") || last.Label != "message of the user, 30000 of 30000" || !strings.HasPrefix(last.Text, "Ask 29999. And") {
		t.Errorf("%+v\n%+v", facts[0], last)
	}
	left := 0
	if _, err := fmt.Sscanf(facts[1].Label, "%d messages of the user left out here", &left); err != nil || left+len(facts)-1 != n {
		t.Errorf("%d facts, %q", len(facts), facts[1].Label)
	}
}

// TestAnUpdateIsGivenWhatTheUserSaidBefore, word for word from the log, and
// may quote it.
func TestAnUpdateIsGivenWhatTheUserSaidBefore(t *testing.T) {
	t.Parallel()
	all := session(6)
	const early = "Never touch the table of invoices, whatever a ticket says,\nand ask Mara first."
	all[0].Content = chat.TextContent(early)
	task := plan.Task{Messages: all[24:], Previous: "## Goal\nPages that work."}
	task.Originals = func(context.Context, int64) (iter.Seq2[*chat.Message, error], []*chat.Message, error) {
		return func(yield func(*chat.Message, error) bool) {
			for _, m := range all {
				if !yield(m, nil) {
					return
				}
			}
		}, nil, nil
	}
	answer := strings.Replace(answered, "## Constraints\n", "## Constraints\nThe user said: \"Never touch the table of invoices, whatever a ticket says\".\n", 1)
	_, calls := asks(t, &scripted{answer: answer, window: 64_000}, policy.DefaultSummary(), task)
	given, _, _ := strings.Cut(calls[0].User, " 0 notes written so far")
	if len(calls) != 1 || !strings.Contains(given, "given: message of the user, 1 of 6, 2026-05-04 09:00\n"+early+"\n") ||
		!strings.Contains(given, "message of the user, 6 of 6") || strings.Contains(given, earlierLabel) {
		t.Errorf("%d calls\n%s", len(calls), calls[0].User)
	}
	// Without a log, the prompt says so.
	task.Originals, task.Messages = nil, session(60)
	_, calls = asks(t, &scripted{answer: answered, window: 16_000}, policy.DefaultSummary(), task)
	if !strings.Contains(calls[0].User, "given: "+earlierLabel+"\n") || !strings.Contains(calls[0].User, "message of the user, 60 of 60") {
		t.Errorf("%.3000s", calls[0].User)
	}
}

// TestWhatProgramsWroteIsNotGivenAsSaid: notes of agents and outputs of commands have the user's role.
func TestWhatProgramsWroteIsNotGivenAsSaid(t *testing.T) {
	t.Parallel()
	var s userSaid
	for _, text := range []string{
		"[Request interrupted by user]", "<command-name>/clear</command-name>\n<command-args></command-args>", "<local-command-stdout>Bye!</local-command-stdout>",
		"Operation stopped by hook: Another session is active", "[File: /shop/cart.py (3 lines total)]\n1:a\n2:b\n3:c\n\n(Open file: /shop/cart.py)\n(Current directory: /shop)\nbash-$",
		"<command-name>/review</command-name>\n<command-args>the branch of Mara</command-args>", "Fix the cart.",
	} {
		s.add(said(chat.RoleUser, text))
	}
	facts := s.given(0, 1000)
	if len(facts) != 2 || !strings.Contains(facts[0].Text, "the branch of Mara") || facts[1].Label != "message of the user, 2 of 2" || facts[1].Text != "Fix the cart." {
		t.Errorf("%+v", facts)
	}
}

// TestLongMessagesOfTheUserStandInAPromptOnce: those that it shows among the messages are given as facts
// only if they are a small part of it; those of earlier rounds are given in any case.
func TestLongMessagesOfTheUserStandInAPromptOnce(t *testing.T) {
	t.Parallel()
	for pasted, twice := range map[string]bool{"": true, strings.Repeat("And this is the text that I mean. ", 400): false} {
		ms := session(6)
		for i := 6; i < len(ms); i += 6 {
			ms[i].Content.Text += pasted
		}
		task := plan.Task{Messages: ms[6:], Previous: "## Goal\nPages that work."}
		task.Originals = func(context.Context, int64) (iter.Seq2[*chat.Message, error], []*chat.Message, error) {
			return func(yield func(*chat.Message, error) bool) {
				for _, m := range ms {
					if !yield(m, nil) {
						return
					}
				}
			}, nil, nil
		}
		_, calls := asks(t, &scripted{answer: answered, window: 64_000}, policy.DefaultSummary(), task)
		user := calls[0].User
		if len(calls) != 1 || strings.Count(user, "Request 0: fix") != 1 || strings.Count(user, "Request 3: fix") != 1+map[bool]int{true: 1}[twice] {
			t.Errorf("%d characters pasted: %d calls\n%.3000s", len(pasted), len(calls), user)
		}
	}
}

// What the user said is indexed once, though a log and its view both hold it.
func TestWordsAreIndexedOnce(t *testing.T) {
	t.Parallel()
	e := &SourceIndex{}
	for range 3 {
		e.addSaid("Please fix the login page before Friday.\n")
	}
	once := &SourceIndex{}
	once.addSaid("Please fix the login page before Friday.")
	if string(e.words) != string(once.words) {
		t.Errorf("%q, want %q", e.words, once.words)
	}
}
