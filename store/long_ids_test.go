package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Ids and names that no index holds are refused in words by everything that would store them, and nothing is stored.
func TestLongIDsAndNamesAreRefusedInWords(t *testing.T) {
	s := fresh(t)
	most, long := strings.Repeat("i", 1024), strings.Repeat("é", 513)
	add(t, s, Key{Tenant: most, Session: most}, user(most, "x")) // both fit into a row of an index
	add(t, s, Key{Session: "s"}, user("u", "x"))
	calls := int64(1)
	for what, err := range map[string]error{
		"the id of the session is too long":                     appended(s, Key{Session: long}, "", user("", "x")),
		"the tenant is too long":                                appended(s, Key{Tenant: long, Session: "s"}, "", user("", "x")),
		"the model is too long":                                 appended(s, Key{Session: "s"}, strings.Repeat("m", 201), user("", "x")),
		"append to session s: the id of message 0 is too long":  appended(s, Key{Session: "s"}, "", user(long, "x")),
		"append to session s: the id of message 1 is too long":  appended(s, Key{Session: "s"}, "", user("a", "x"), user(long, "y")),
		"append to session s: the id of message 0 is too long:": appendedOnce(s, Key{Session: "s"}, long),
		"the id of the new session is too long":                 second(s.Fork(t.Context(), Key{Session: "s"}, long, "")),
		"the key of a label is too long":                        s.SetLabels(t.Context(), Key{Session: "s"}, map[string]string{long: "x"}),
		"the model is too long: ":                               s.SetModel(t.Context(), Key{Session: "s"}, strings.Repeat("m", 201)),
		"the id of the session is too long: ":                   s.SetParent(t.Context(), Key{Session: long}, "s"),
		"the tenant is too long: ":                              s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: long}, "", ""),
		"the tenant is too long: 1026 bytes, at most 1024":      s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: long, CallsPerHour: &calls}),
	} {
		if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), what) || !strings.Contains(fmt.Sprint(err), "bytes, at most ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, 2, one[int](t, s, `SELECT count(*) FROM compactor.message_log`), "messages")
}

// Errors of the schema's functions name the operation once, also with a tenant in the name of the session, and no code of the database.
func TestErrorsOfFunctionsNameTheOperationOnce(t *testing.T) {
	s := fresh(t)
	k := Key{Tenant: "acme", Session: "s"}
	add(t, s, k, user("u", "x"))
	_, usage := s.ReportCache(t.Context(), k, Usage{PromptTokens: 1, CachedTokens: new(chat.Tokens(7))})
	for want, err := range map[string]error{
		"append to session s: message u is there already with other content":             appended(s, k, "", user("u", "y")),
		"a text is not valid UTF-8 or has a NUL character":                               s.SetModel(t.Context(), k, "a\x00"),
		"cached_tokens and written_tokens must be 0 to the 1 of the prompt, not 7 and 0": usage,
	} {
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Count(text, "append to session") > 1 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func appended(s *Store, k Key, model string, msgs ...NewMessage) error {
	_, _, err := s.Append(context.Background(), k, model, msgs)
	return err
}

func appendedOnce(s *Store, k Key, key string) error {
	_, _, err := s.AppendOnce(context.Background(), k, "", key, []NewMessage{user("", "x")})
	return err
}
