package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

func TestCallsThatActAreToldFromThoseThatLook(t *testing.T) {
	t.Parallel()
	for call, want := range map[[2]string]bool{
		{"book_reservation"}:                            true,
		{"RentalCars_1.ReserveCar"}:                     true,
		{"mcp__tracker__update-issue"}:                  true,
		{"SearchOnewayFlight"}:                          false,
		{"get_order_details"}:                           false,
		{"find_booking"}:                                false,
		{"bash", "git status && git commit -m 'x'"}:     true,
		{"bash", "cd /src; rm -rf build"}:               true,
		{"bash", "git log --oneline | head"}:            false,
		{"bash", "go test ./..."}:                       false,
		{"bash", "cd /src && git branch -v"}:            false,
		{"bash", "git branch"}:                          false,
		{"bash", "git branch lamps"}:                    true,
		{"bash", "git branch -D lamps"}:                 true,
		{"bash", "git stash show -p"}:                   false,
		{"bash", "echo 'git push' > notes"}:             false,
		{"exec_command", "kubectl apply -f deploy.yml"}: true,
	} {
		if got := actsByVerb(call[0], call[1]); got != want {
			t.Errorf("%q: %v, want %v", call, got, want)
		}
	}
}

// What the options say of a tool comes before the verbs in its name.
func TestConfiguredToolsComeBeforeTheBuiltInVerbs(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{user("Please move the circuit of room 12 to the other fuse.")}
	for i, tool := range []string{"zap_circuit", "deploy_status", "order_report", "Panel.zap_circuit", "shell_for_circuits"} {
		id := fmt.Sprint(i)
		ms = append(ms, calls("", id, tool, "fuse", "F"+id), result(id, "ok"))
	}
	acting := func(o Options) (out []string) {
		for _, c := range digestOf(o, ms...).history.calls {
			if c.acts {
				out = append(out, c.tool)
			}
		}
		return out
	}
	for name, tt := range map[string]struct {
		o    Options
		want []string
	}{
		"built in":           {Options{}, []string{"order_report"}},
		"a name":             {Options{Acts: []string{"zap_circuit"}}, []string{"zap_circuit", "order_report", "Panel.zap_circuit"}},
		"a pattern":          {Options{Acts: []string{"zap_*"}, Looks: []string{"order_*"}}, []string{"zap_circuit", "Panel.zap_circuit"}},
		"the longest":        {Options{Acts: []string{"*"}, Looks: []string{"Panel.*", "*_status"}}, []string{"zap_circuit", "order_report", "shell_for_circuits"}},
		"an invalid pattern": {Options{Acts: []string{"["}}, []string{"order_report"}},
	} {
		if got := acting(tt.o); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %s", name, cmp.Diff(tt.want, got))
		}
	}
	first := func(o Options) string {
		for n := range 200 { // the smallest text with a ledger
			if done := sectionsOf(digestOf(o, ms...).Text(n))[sectionCompleted]; len(done) > 0 {
				return done[0]
			}
		}
		return ""
	}
	if got := first(Options{Acts: []string{"zap_circuit"}, Looks: []string{"order_report", "Panel.zap_circuit"}}); got != "- zap_circuit: fuse F0" {
		t.Errorf("the first of the ledger is %q", got)
	}
}

// A search of which all that was said is told by what was booked has no line of its own.
func TestWhatWasTakenOfASearchIsToldOnce(t *testing.T) {
	t.Parallel()
	listing := `[{"seat":"Balcony Left 4","price":"31"},{"seat":"Parterre Right 2","price":"58"}]`
	for said, want := range map[string]int{"Take Parterre Right 2.": 1, "Is Parterre Right 2 really 58? Then take it.": 2} {
		d := digestOf(
			Options{}, user("Two seats for Friday, please."), calls("", "1", "find_seats", "day", "Friday"), result("1", listing), user(said),
			calls("", "2", "book_seats", "seat", "Parterre Right 2"), result("2", `{"seat":"Parterre Right 2","code":"K7Q2ZX"}`), assistant("Done."), user("And now the train home, please."),
		)
		if got := sectionsOf(d.Text(600))[sectionCompleted]; len(got) != want {
			t.Errorf("%q: %q", said, got)
		}
	}
}

// A booking whose result has another value, which the next call asks for, was only offered.
func TestAnOfferThatWasTakenIsNoBooking(t *testing.T) {
	t.Parallel()
	for second, want := range map[string]string{"19:00": "book_table (not made: another value was offered, and taken next)", "20:30": "book_table (not confirmed: time 19:00 was offered, the user agreed)"} {
		d := digestOf(
			Options{}, user("A table for two tonight, please."),
			calls("", "1", "book_table", "place", "Brixx", "time", "18:45"), result("1", `{"place":"Brixx","time":"19:00","code":"K7Q2ZX"}`),
			assistant("It would be at seven, would that do?"), user("Yes, that will do, thanks."),
			calls("", "2", "book_table", "place", "Brixx", "time", second), result("2", `{"place":"Brixx","time":"`+second+`","code":"M4R8PW"}`),
			assistant("Done."),
		)
		got := sectionsOf(d.Text(600))[sectionCompleted]
		if len(got) != 2 || !strings.HasPrefix(got[0], "- "+want) || !strings.Contains(got[1], "M4R8PW") {
			t.Errorf("%s: %q", second, got)
		}
	}
}

// The configuration can tell which results say that nothing was done, or that it was.
func TestResultsCanBeNamed(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{
		user("Please book the seats for the concert on Friday."),
		calls("", "1", "book_seats", "row", "C4"), result("1", "Status of the order: SOLD OUT (row C4)\nfee 0"),
		calls("", "2", "book_seats", "row", "D5"), result("2", "booked D5, errors: none"),
		calls("", "3", "book_seats", "row", "E6"), result("3", "error: no such row"),
	}
	o := Options{Failed: []string{"sold out"}, Succeeded: []string{"errors: none"}}
	var got []string
	for _, c := range digestOf(o, ms...).history.calls {
		got = append(got, fmt.Sprint(c.failed, " ", c.outcome))
	}
	if diff := cmp.Diff([]string{"true Status of the order: SOLD OUT (row C4)", "false booked D5, errors: none", "true error: no such row"}, got); diff != "" {
		t.Error(diff)
	}
}

// What was booked stays with its values; of what a search listed, only what was talked about.
func TestWhatWasDoneIsToldWithItsValues(t *testing.T) {
	t.Parallel()
	var hotels []string
	for i := range 12 {
		hotels = append(hotels, fmt.Sprintf(`{"hotel_name":"Hotel Number%c","phone":"555-010%02d","stars":"4"}`, 'A'+i, i))
	}
	d := digestOf(
		Options{}, user("A hotel in Delhi, please."),
		calls("", "1", "Hotels.SearchHotel", "city", "Delhi"), result("1", "["+strings.Join(hotels, ",")+"]"),
		assistant("Hotel NumberC has 4 stars. How about it?"), user("What else is there?"),
		assistant("There is Hotel NumberF, with 4 stars."), user("Its phone?"),
		assistant("The phone is 555-01005."), user("Book it for two nights."),
		calls("", "2", "Hotels.ReserveHotel", "hotel_name", "Hotel NumberF", "nights", "2"), result("2", `{"hotel_name":"Hotel NumberF","nights":"2","code":"K7Q2ZX"}`),
		assistant("It is booked."), user("Thank you!"),
	)
	want := []string{
		"- SearchHotel: city Delhi → hotel name Hotel NumberF, phone 555-01005",
		"- ReserveHotel: hotel name Hotel NumberF, nights 2 → code K7Q2ZX",
	}
	if got := sectionsOf(d.Text(400))[sectionCompleted]; !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
}

// An old listing is not kept for what was never chosen.
func TestListingsAreHeldInBounds(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	for i := range 40 {
		d.Add(calls("", "1", "search_rooms", "page", fmt.Sprint(i)))
		d.Add(result("1", fmt.Sprintf(`[{"room":"Blue %d","price":"10%d"},{"room":"Green %d","price":"20%d"}]`, i, i, i, i)))
		d.Add(assistant(fmt.Sprintf("There is the room Green %d.", i)))
	}
	held := 0
	for _, c := range d.history.calls {
		held += len(c.options)
	}
	if held > 2*maxListings {
		t.Errorf("%d options are held", held)
	}
	if text := d.Text(2000); !strings.Contains(text, "→ room Green 7\n") || strings.Contains(text, "Blue") {
		t.Errorf("%s", text)
	}
}

// What was done is told by day.
func TestWhatWasDoneIsToldByDay(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	at := time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)
	for i := range 2 {
		for _, m := range []*chat.Message{
			user("Please pay the bill of this month."), calls("", "1", "pay_bill", "number", fmt.Sprintf("B-70%d", i)), result("1", `{"receipt":"R`+fmt.Sprint(i)+`44"}`), assistant("It is paid."),
		} {
			m.CreatedAt = at
			d.Add(m)
		}
		want := []string{"- 2026-02-03:", "  - pay_bill: number B-700 → receipt R044"}
		if i == 1 {
			want = append(want, "- 2026-03-05:", "  - pay_bill: number B-701 → receipt R144")
		}
		if got := sectionsOf(d.Text(400))[sectionCompleted]; !cmp.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("%s", cmp.Diff(want, got))
		}
		at = at.AddDate(0, 0, 30)
	}
}

// A later success of the same command closes a failure, whatever its flags.
func TestAFailureIsClosedByALaterSuccess(t *testing.T) {
	t.Parallel()
	d := digestOf(
		Options{}, user("Make the tests pass, please."),
		calls("", "1", "bash", "command", "go test ./store -run TestX"), result("1", "--- FAIL: TestX\nFAIL\tstore\t0.1s\nexit status 1"),
		calls("", "2", "bash", "command", "go vet ./..."), result("2", "error: undefined: frob"),
		calls("", "3", "bash", "command", "go test ./store"), result("3", "ok  \tstore\t0.2s"),
		assistant("The tests pass."),
	)
	got := sectionsOf(d.Text(400))[sectionBlocked]
	if len(got) != 1 || !strings.Contains(got[0], "go vet") {
		t.Errorf("blocked: %q", got)
	}
}

// Requests that do not all fit are shortened to one length, and none is left out.
func TestAllRequestsAreKept(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	for i := range 12 {
		d.Add(user(fmt.Sprintf("Request number %d: %s", i, strings.Repeat("and then some more of it ", 8))))
		d.Add(assistant("Done."))
	}
	text := d.Text(1200)
	for i := range 12 {
		if want := fmt.Sprintf("> Request number %d: and then", i); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if p := parsePrevious(d.Text(3000)); len(p.sections[sectionRequests]) != 11 || strings.HasSuffix(p.sections[sectionRequests][0], prose.Ellipsis) {
		t.Errorf("what fits is shortened: %q", p.sections[sectionRequests])
	}
}

// The names of fields, formats and struct tags say nothing.
func TestTheFormOfDataIsNoReference(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("What does the service answer about the parcel?"), calls("", "1", "curl", "url", "parcels"),
		result("1", `{"parcel_state":"customs_hold","carrier_name":"Nordpost"}`+"\nfmt.Errorf(\"parse parcel %q: %w\", s)\ntype T struct { A string `json:\"a_field\"` }"),
		assistant("It is in `customs_hold` at `Nordpost`."),
		user("  1257→{\"port_name\": 1}\n  1258→x\n  1259→y"),
		calls("", "2", "Bash", "command", `ssh parcels.example "zcat parcels.gz | psql parcels"; sed -i 's/hold_limit = 6/hold_limit = 8/' conf/limits.toml`),
		result("2", "-rw-r--r-- 1 root root 9104417 Mar  7 07:07 parcels.gz\n    \"\"\"Return the parcel of a hold.\"\"\"\n    raise ValueError(\"no parcel\")"),
		assistant("The instance i-0c7d1e99ab34f6021 has ticket OPS-70417 about réservations X7KFD2."),
	)
	refs := d.References(400)
	for _, not := range []string{"parcel_state", "carrier_name", "%q", "a_field", "1257", "psql parcels", "s/hold", "9104417", "parcel of a hold", "no parcel", "servations:"} {
		if strings.Contains(refs, not) {
			t.Errorf("%q is in %s", not, refs)
		}
	}
	for _, want := range []string{"customs_hold", "Nordpost", "i-0c7d1e99ab34f6021", "OPS-70417", "conf/limits.toml"} {
		if !strings.Contains(refs, want) {
			t.Errorf("no %q in %s", want, refs)
		}
	}
}

// Work is under way only in calls at the end without a result, and stuck only at a failure of
// late that was no look at something. What the user refused was not done.
func TestStatesAreThoseOfTheEnd(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{
		user("Fix the build."),
		calls("", "a", "bash", "command", "make early"), result("a", "error: early"),
	}
	for i := range recentCalls {
		id := fmt.Sprint("r", i)
		ms = append(ms, calls("", id, "bash", "command", "step "+id), result(id, "ok"))
	}
	ms = append(ms,
		calls("", "b", "edit", "path", "cancelled.go"),
		calls("", "c", "bash", "command", "ls nowhere"), result("c", "error: no such file"),
		calls("", "d", "bash", "command", "git push"), result("d", "The user doesn't want to proceed with this tool use. The tool use was rejected."),
		calls("", "e", "bash", "command", "make late"), result("e", "error: late"),
		calls("", "f", "bash", "command", "make done"), result("f", "ok"),
		calls("", "g", "bash", "command", "make waits"),
	)
	got := sectionsOf(digestOf(Options{}, ms...).Text(4000))
	if diff := cmp.Diff([]string{"- bash: make waits (no result)"}, got[sectionInProgress]); diff != "" {
		t.Errorf("in progress (-want +got):\n%s", diff)
	}
	if blocked := strings.Join(got[sectionBlocked], "\n"); !strings.Contains(blocked, "make late") || strings.Contains(blocked, "early") || strings.Contains(blocked, "nowhere") {
		t.Errorf("blocked:\n%s", blocked)
	}
	done := strings.Join(got[sectionCompleted], "\n")
	if !strings.Contains(done, "git push → refused by the user") || !strings.Contains(done, "make done") || strings.Contains(done, "cancelled") {
		t.Errorf("done:\n%s", done)
	}
}

// What the assistant says of a call that just ended counts: that it did not work, or that the
// failure was to be expected.
func TestTheAssistantJudgesItsLastCall(t *testing.T) {
	t.Parallel()
	text := digestOf(
		Options{},
		user("Book the electrician for cabinet 4, please."),
		calls("", "1", "BookElectrician", "hour", "17:00"), result("1", `{"hour": "17:30", "name": "Ida Nygaard"}`),
		assistant("Sorry, she is not free at that hour. What about 17:30?"), user("Then at 18:00."),
		calls("", "2", "BookElectrician", "hour", "18:00"), result("2", `{"hour": "18:00", "name": "Ida Nygaard"}`),
		calls("She comes at 18:00.", "3", "bash", "command", "./plan.sh cabinet"), result("3", "Exit code 1\nerror: no plan of cabinet 4"),
		assistant("It fails as it should, since the plan is not written yet."),
	).Text(400)
	done, blocked := sectionsOf(text)[sectionCompleted], sectionsOf(text)[sectionBlocked]
	if len(done) < 2 || !strings.Contains(done[0], "(did not work, said the assistant): hour 17:00") || !strings.Contains(done[1], "18:00") || strings.Contains(done[1], "did not work") {
		t.Errorf("done: %q", done)
	}
	if len(blocked) > 0 {
		t.Errorf("blocked: %q", blocked)
	}
}

// A check that found faults has failed, also if it ended with 0, and is told with their places.
// What was announced is told by its result.
func TestAFindingOfACheckIsAFailure(t *testing.T) {
	t.Parallel()
	p := parsePrevious(digestOf(
		Options{},
		user("Please make the linter happy."),
		calls("Let me run the linter on all of it.", "1", "bash", "command", "make lint | tail -3"), result("1", "plan.go:12: name too short\n2 issues:\n* revive: 2"),
	).Text(400))
	if got := p.sections[sectionBlocked]; len(got) != 1 || !strings.Contains(got[0], "2 issues: plan.go:12: name too short") {
		t.Errorf("blocked: %q", got)
	}
	if got := strings.Join(p.sections[sectionState], ""); strings.Contains(got, "Let me") {
		t.Errorf("state: %q", got)
	}
}

// A reply is shown with its question only if it is one.
func TestOnlyRepliesAreShownWithTheirQuestions(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]bool{
		"yes, both": true, "2": true, "the left row": true, "да": true, "😭": false, "what is a row?": false, "post it on the board": false,
	} {
		if got := answers("Which row, left or right?", reply); got != want {
			t.Errorf("%q: %t", reply, got)
		}
	}
}

// Of the runs of one check the newest counts, and what it found may be over after an edit.
func TestAFailureBeforeAnEditIsToldAsSuch(t *testing.T) {
	t.Parallel()
	p := parsePrevious(digestOf(
		Options{},
		user("Please make the tests of the panel pass."),
		calls("", "1", "bash", "command", "cd panel && go test ./..."), result("1", "FAIL panel/fuse 0.1s"),
		calls("", "2", "edit", "path", "panel/fuse.go", "new_string", "x"), result("2", "ok"),
		calls("", "3", "bash", "command", "go test ./fuse"), result("3", "FAIL panel/fuse 0.2s"),
		calls("", "4", "edit", "path", "panel/fuse.go", "new_string", "y"), result("4", "ok"),
		assistant("I'll skip the test of the lamp."),
	).Text(400))
	if got := p.sections[sectionBlocked]; len(got) > 0 {
		t.Errorf("blocked: %q", got)
	}
	if got := strings.Join(p.sections[sectionState], ""); !strings.Contains(got, "I'll skip") || !strings.Contains(got, failedBeforeMark+"bash: go test ./fuse → FAIL panel/fuse 0.2s") || strings.Contains(got, "0.1s") {
		t.Errorf("state: %q", got)
	}
}

// A list of tasks that is old says so, since some of them may be done.
func TestAnOldListOfTasksSaysSo(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Please wire the rooms."), calls("", "1", "plan", "title", "wire room 12", "status", "pending"), result("1", "ok"))
	if got := sectionsOf(d.Text(300))[sectionRemaining]; len(got) != 1 || strings.Contains(got[0], "as listed") {
		t.Errorf("%q", got)
	}
	for range freshTodos {
		d.Add(assistant("The next one."))
	}
	if got := sectionsOf(d.Text(300))[sectionRemaining]; len(got) != 1 || !strings.Contains(got[0], "as listed 21 messages before the end") {
		t.Errorf("%q", got)
	}
}

// Where nothing was changed, it is told what was looked at; what was edited comes before the
// commands that fill the ledger.
func TestLooksAndEditsAreTold(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Review the change, please."), calls("", "1", "Bash", "command", "gh pr diff 158"), result("1", "+a line"), assistant("It is fine."))
	want := []string{"- Bash: gh pr diff 158"}
	if got := sectionsOf(d.Text(400))[sectionCompleted]; !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	d = digestOf(Options{}, user("Migrate the sessions."))
	for i := range 60 {
		id := fmt.Sprint(i)
		d.Add(calls("", id, "Bash", "command", "git commit -m 'the change of the module number "+id+" of all that there are'"))
		d.Add(result(id, "[main 1f3e5a"+fmt.Sprintf("%02x", i)+"] the change"))
	}
	d.Add(calls("", "w", "Write", "file_path", "/src/migrate.sh", "content", "x"))
	d.Add(result("w", "ok"))
	d.Add(assistant("Written."))
	if text := d.Text(300); !strings.Contains(text, "file /src/migrate.sh: changed 1") {
		t.Errorf("the edit is missing:\n%s", text)
	}
}

// A commit that was taken back is no result, what was edited after the last one is not in it, and
// a reset says where the branch is.
func TestCommitsThatWereTakenBack(t *testing.T) {
	t.Parallel()
	commit := func(id, hash string) []*chat.Message {
		return []*chat.Message{calls("", id, "Bash", "command", "git commit -m 'fuse "+id+"'"), result(id, "[main "+hash+"] fuse "+id+"\n 1 file changed")}
	}
	edit := func(id, file string) []*chat.Message {
		return []*chat.Message{calls("", id, "Edit", "file_path", file, "old_string", "a", "new_string", "b"), result(id, "ok")}
	}
	d := digestOf(Options{}, user("Fix the fuses of cabinet 4."))
	for _, ms := range [][]*chat.Message{
		edit("1", "/src/fuse.go"), commit("2", "1f3e5a7"), commit("3", "2f3e5a7"), commit("4", "3f3e5a7"),
		{calls("", "5", "Bash", "command", "git reset --soft HEAD~2 && git log --oneline -1"), result("5", "HEAD is now at 1f3e5a7 fuse 2\n0f3e5a7 older")},
		edit("6", "/src/lamp.go"), edit("7", "/src/door.go"),
		{calls("", "8", "Edit", "file_path", "/src/roof.go", "old_string", "a", "new_string", "b"), result("8", "error: no such text")},
		{assistant("The lamp is next.")},
	} {
		for _, m := range ms {
			d.Add(m)
		}
	}
	p := sectionsOf(d.Text(600))
	want := []string{
		"- Bash: git commit -m 'fuse 2' → [main 1f3e5a7] fuse 2",
		"- Bash: git commit -m 'fuse 3' → reset later: [main 2f3e5a7] fuse 3",
		"- Bash: git commit -m 'fuse 4' → reset later: [main 3f3e5a7] fuse 4",
		"- Bash: git reset --soft HEAD~2 && git log --oneline -1 → HEAD is now at 1f3e5a7 fuse 2",
	}
	if diff := cmp.Diff(want, p[sectionCompleted]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "- Edited for this task: door.go, lamp.go, fuse.go"; !slices.Contains(p[sectionState], want) {
		t.Errorf("the state is %q", p[sectionState])
	}
	if want := "- Edited since the last commit: door.go, lamp.go"; !slices.Contains(p[sectionState], want) {
		t.Errorf("the state is %q", p[sectionState])
	}
}

// Keys that end alike are told whole, and what the assistant regrets besides is no failure.
func TestRecordsAreNotMistaken(t *testing.T) {
	t.Parallel()
	d := digestOf(
		Options{}, user("Rent me a car, please."),
		calls("", "1", "ReserveCar", "pickup_date", "2019-03-01", "dropoff_date", "2019-03-08"), result("1", `{"price":"168"}`),
		assistant("It is booked. There is no roof rack, unfortunately."),
	)
	const want = "ReserveCar: dropoff date 2019-03-08, pickup date 2019-03-01 → price 168"
	for _, briefly := range []bool{false, true} {
		if got := d.history.calls[0].format(100, briefly); got != "- "+want+"\n" {
			t.Errorf("%q", got)
		}
	}
}

// A result that says that the thing was done is no failure, whatever else it regrets.
func TestRegretsOfCompletedActions(t *testing.T) {
	t.Parallel()
	for said, failed := range map[string]bool{
		"No, I'm sorry, it's a non smoking hotel. The reservation has completed.": false,
		"Unfortunately it has no lift. You are now scheduled for Monday.":         false,
		"I'm sorry, the reservation could not be completed.":                      true,
		"Sorry, your booking was not successful for that time.":                   true,
	} {
		d := digestOf(Options{}, user("A room in the lamp hotel, please."), calls("", "1", "ReserveHotel", "hotel", "The Lamp", "nights", "2"), result("1", `{"hotel": "The Lamp"}`), assistant(said), user("And now a car."))
		got := sectionsOf(d.Text(400))[sectionCompleted]
		if len(got) != 1 || strings.Contains(got[0], "did not work") != failed {
			t.Errorf("%q: %q", said, got)
		}
	}
}

// What only tells that a shell waits, or a part of a long listing, is no result.
func TestResultsThatSayNothing(t *testing.T) {
	t.Parallel()
	long := "[[" + strings.Repeat(`{"lamp": "12", "room": "4"}, `, 60) + "{}]]"
	for _, tt := range []struct{ tool, key, value, result, want string }{
		{"bash", "command", "python lamp.py", "344\n(Open file: /src/lamp.py)\n(Current directory: /src)\nroot$ ", "- Last: bash: python lamp.py → 344"},
		{"bash", "command", "make lamps", "bash-$ ", "- Last: bash: make lamps"},
		{"search_lamps", "house", "north", long, "- Last: search_lamps: house north"},
		{"Grep", "path", "src", "a.go\nb.go", "- Last: Grep: fuse in src"},
	} {
		ms := []*chat.Message{user("Find the lamps."), calls("", "1", tt.tool, tt.key, tt.value), result("1", tt.result)}
		if tt.tool == "Grep" {
			ms[1] = calls("", "1", tt.tool, "pattern", "fuse", tt.key, tt.value+"/lamps")
			tt.want += "/lamps"
		}
		if got := sectionsOf(digestOf(Options{}, ms...).Text(400))[sectionState]; !slices.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
