package extract

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What the assistant regrets is the call that failed, or that it names, and never one whose result says that
// it was done.
func TestARegretIsOfTheCallThatFailed(t *testing.T) {
	t.Parallel()
	const undone = "(did not work, said the assistant)"
	both := calls("", "1", "move_lamp", "lamp", "L-7", "room", "hall")
	both.ToolCalls = append(both.ToolCalls, chat.ToolCall{ID: "2", Name: "send_note", Arguments: `{"to":"ida","text":"lamp 7"}`})
	for name, test := range map[string]struct {
		first, second, said string
		want                []string
	}{
		"another failed":    {`{"error":"no such lamp"}`, `{"note":"N-41"}`, "Sorry, I could not do it.", []string{"N-41"}},
		"it says sent":      {`{"lamp":"L-7"}`, `{"status":"sent","note":"N-41"}`, "Unfortunately that did not work.", []string{"N-41"}},
		"it says true":      {`{"lamp":"L-7"}`, `{"delivered":true,"note":"N-41"}`, "Unfortunately that did not work.", []string{"N-41"}},
		"the other's name":  {`{"lamp":"L-8"}`, `{"note":"N-41"}`, "Sorry, the lamp was not possible to move.", []string{"N-41", "move_lamp " + undone, "L-8"}},
		"its own":           {`{"lamp":"L-7"}`, `{"note":"N-41"}`, "Sorry, the note did not go out, it is not possible.", []string{"send_note " + undone, "N-41"}},
		"not by its result": {`{"lamp":"L-7"}`, `{"note":"N-41"}`, "Sorry, it was not possible.", []string{"send_note " + undone, "N-41"}},
	} {
		text := digestOf(Options{}, user("Move lamp 7 to the hall and tell Ida of it, please."), both,
			result("1", test.first), result("2", test.second), assistant(test.said), user("What did you tell her then?")).Text(600)
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		if strings.Count(text, undone) != strings.Count(strings.Join(test.want, " "), undone) {
			t.Errorf("%s: judged wrongly\n%s", name, text)
		}
	}
}
