package extract

import (
	"fmt"
	"strings"
	"testing"
)

// What changes something is told as done, by its name, its method, its command or what its result says.
func TestWhatActsIsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, key, value, result string
		acts                     bool
	}{
		{"find_and_close_door", "door", "D-7", `{"door":"D-7"}`, true},
		{"cancel_visit_query", "visit", "V-7", "fine", true},
		{"mcp__list-server__checkout", "cart", "C-7", `{"total":"7"}`, true},
		{"lamp_service", "room", "hall", `{"status":"confirmed","lamp":"L-7"}`, true},
		{"lamp_service", "room", "hall", `{"paid":true,"lamp":"L-7"}`, true},
		{"dim", "room", "hall", `{"ok":true}`, true},
		{"lamp_service", "room", "hall", `{"status":"ok","lamp":"L-7"}`, false},
		{"get_lamp", "room", "hall", `{"status":"paid","lamp":"L-7"}`, false},
		{"refund_status", "order", "O-7", `{"status":"paid"}`, false},
		{"call_service", "method", "PATCH", `{"code":200}`, true},
		{"fetch_url", "method", "delete", `{"code":200}`, true},
		{"fetch_url", "method", "GET", `{"code":200}`, false},
		{"Bash", "command", "terraform destroy -auto-approve", "Destroy complete!", true},
		{"Bash", "command", "make deploy", "sent", true},
		{"Bash", "command", "npm run deploy:hall", "sent", true},
		{"Bash", "command", "python manage.py migrate lamps", "Applying lamps.0007... OK", true},
		{"Bash", "command", "bin/rails db:migrate", "7 migrated", true},
		{"Bash", "command", "./scripts/rollback.sh hall", "back", true},
		{"Bash", "command", "ls deploy", "hall", false},
		{"Bash", "command", "make deploy --dry-run", "would", false},
		{"Bash", "command", "pytest deploy", "7 passed", false},
	} {
		d := digestOf(Options{}, user("See to the lamps of the hall, please."), calls("", "1", tt.tool, tt.key, tt.value, "note", "now"), result("1", tt.result))
		if got := d.history.calls[0].acts; got != tt.acts {
			t.Errorf("%s %s → %s: %t", tt.tool, tt.value, tt.result, got)
		}
	}
	d := digestOf(Options{}, user("See to the lamps of the hall, please."))
	for i := range 30 {
		id := fmt.Sprint(i)
		d.Add(calls("", id, "lamp_service", "room", "hall number "+id+" of all the halls of the house", "note", "now"))
		d.Add(result(id, `{"confirmed":true,"lamp":"L-7`+id+`"}`))
	}
	text := d.Text(300)
	left := 30 - strings.Count(text, "- lamp_service: ")
	if want := fmt.Sprintf(omittedLine, left, fmt.Sprintf(" (lamp_service %d)", left)); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}
