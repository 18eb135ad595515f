package plan_test

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// A message that the application moved between a call and its reasoning is ordered like a
// summary. The reasoning stays with a pinned call, since the guard would restore it.
func TestReasoningIsPinnedWithItsCall(t *testing.T) {
	t.Parallel()
	entry := func(m chat.Meta, pinned bool) plan.Entry {
		return plan.Entry{Meta: m, Included: true, Pinned: pinned}
	}
	thought := entry(chat.Meta{Kind: chat.KindSource, Role: chat.RoleAssistant, Flags: chat.HasReasoning}, false)
	moved := entry(chat.Meta{Kind: chat.KindSummary, Role: chat.RoleUser, Flags: chat.HasText | chat.Moved}, false)
	said := entry(chat.Meta{Kind: chat.KindSource, Role: chat.RoleUser, Flags: chat.HasText}, false)
	call := entry(chat.Meta{Kind: chat.KindSource, Role: chat.RoleAssistant, Calls: 1}, false)
	result := func(pinned bool) plan.Entry {
		return entry(chat.Meta{Kind: chat.KindSource, Role: chat.RoleTool, Flags: chat.HasText | chat.Paired}, pinned)
	}
	for name, c := range map[string]struct {
		entries []plan.Entry
		want    bool
	}{
		"behind a moved message":  {[]plan.Entry{thought, moved, call, result(true)}, true},
		"two of them":             {[]plan.Entry{thought, thought, moved, call, result(true)}, true},
		"of a call not pinned":    {[]plan.Entry{thought, moved, call, result(false)}, false},
		"before another question": {[]plan.Entry{thought, said, call, result(true)}, false},
		"of no call":              {[]plan.Entry{thought, moved}, false},
	} {
		if got := (&plan.Transcript{Entries: c.entries}).GroupPinned(0); got != c.want {
			t.Errorf("%s: pinned %v", name, got)
		}
	}
}
