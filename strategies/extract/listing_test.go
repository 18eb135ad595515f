package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// A search that was repeated for another day is told by what it found then, also if that is one thing only.
func TestTheOnlyThingFound(t *testing.T) {
	t.Parallel()
	search := func(id, day, found string) []*chat.Message {
		return []*chat.Message{calls("", id, "find_trains", "from", "Graz", "day", day), result(id, found)}
	}
	trip := []*chat.Message{user("Find a train from Graz on the 6th.")}
	trip = append(trip, search("1", "2031-03-06", `[{"line":"Southern Arrow","leaves":"07:10","fare":"71"},{"line":"Valley Star","leaves":"09:10","fare":"66"},{"line":"Lake Bell","leaves":"11:10","fare":"58"}]`)...)
	trip = append(trip, assistant("Southern Arrow leaves at 07:10."), user("Does a Valley Star leave on the 5th?"))
	trip = append(trip, search("2", "2031-03-05", `[{"line":"Valley Star","leaves":"14:20","fare":"49"}]`)...)
	trip = append(trip, assistant("Yes, a Valley Star at 14:20 for 49."), user("Thanks. I also need a cab there."),
		calls("", "3", "GetRide", "to", "Graz Ostbahnhof", "shared", "True"), result("3", `[{"to":"Graz Ostbahnhof","shared":"True","minutes":"24","fare":"13.28"}]`),
		assistant("Your cab is on its way."), user("And what is the weather there on the 5th?"),
		calls("", "4", "GetWeather", "city", "Linz"), result("4", `[{"city":"Linz","temperature":"73","humidity":"41"}]`), assistant("It will be 73 degrees."),
		user("What else do you know about the place?"))
	for _, m := range trip {
		m.CreatedAt = time.Date(2031, 3, 1, 8, 0, 0, 0, time.UTC)
	}
	text := digestOf(Options{}, trip...).Text(900)
	wantIn(t, text, "find_trains: day 2031-03-05, from Graz → line Valley Star, leaves 14:20, fare 49")
	wantIn(t, text, "GetRide: shared True, to Graz Ostbahnhof → minutes 24, fare 13.28")
	wantIn(t, text, "GetWeather → city Linz, temperature 73, humidity 41") // it was found last
	wantNotIn(t, text, "2031-03-06")
}

// What was booked is not told again as what was found; a farewell is nothing that a request replies to.
func TestWhatWasFoundAndBooked(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{
		user("I need a car in Graz."), calls("", "1", "find_cars", "city", "Graz"),
		result("1", `[{"car":"Corolla","price":"71","kind":"small"},{"car":"Altima","price":"90","kind":"large"},{"car":"Camry","price":"80","kind":"large"}]`),
		assistant("The Altima is large and costs 90."), user("That one."), calls("", "2", "reserve_car", "car", "Altima", "kind", "large", "city", "Graz"),
		result("2", `{"car":"Altima","price":"90","pickup":"Ostbahnhof"}`), assistant("It is reserved."), user("Thanks, that is all."), assistant("Bye, have a great day."),
		user("Is there a hotel nearby?"),
	}
	text := digestOf(Options{}, ms...).Text(900)
	wantIn(t, text, "reserve_car: car Altima, city Graz, kind large → ")
	wantNotIn(t, text, "find_cars")
	wantNotIn(t, text, "great day")
}

// What was turned down is not told, also if the search that followed found nothing; of values that are cut no key stands alone.
func TestASearchThatFoundNothing(t *testing.T) {
	t.Parallel()
	search := func(id, kind, found string) []*chat.Message {
		return []*chat.Message{calls("", id, "find_tables", "kind", kind, "city", "Graz"), result(id, found)}
	}
	ms := slices.Concat([]*chat.Message{user("A table for two in Graz, please, with fish.")}, search("1", "fish", `[{"name":"Blue Pike","street":"Quay 4","open":"True"},{"name":"Old Trout","street":"Mill Lane 2","open":"True"}]`),
		[]*chat.Message{assistant("The Old Trout in Mill Lane 2 is open."), user("Can you recommend something else?")}, search("2", "fish", "[]"),
		[]*chat.Message{assistant("There is nothing else."), user("Then soup.")}, search("3", "soup", `[{"name":"Hot Pot","street":"Ring 9","open":"True"},{"name":"Green Bowl","street":"Ring 11","open":"True"}]`),
		[]*chat.Message{assistant("The Hot Pot in Ring 9 is open."), user("Good, that one."), calls("", "4", "book_table", "name", "Hot Pot", "seats", "2"), result("4", `{"name":"Hot Pot","seats":"2","has_stairs":"False"}`), assistant("It is booked."), user("Is it far?")})
	for _, m := range ms {
		m.CreatedAt = time.Date(2031, 3, 1, 8, 0, 0, 0, time.UTC)
	}
	d := digestOf(Options{}, ms...)
	text := d.Text(900)
	wantIn(t, text, "book_table: name Hot Pot, seats 2 → has stairs False")
	wantNotIn(t, text, "kind fish")
	booked := d.history.calls[len(d.history.calls)-1]
	for n, want := range map[int]string{55: "book_table: name Hot Pot, seats 2 → has stairs False", 45: "book_table: name Hot Pot, seats 2 …", 34: "book_table: name Hot Pot, seats 2 …"} {
		if got := booked.cut("book_table: name Hot Pot, seats 2 → has stairs False", n); got != want {
			t.Errorf("%d: %q, not %q", n, got, want)
		}
	}
}

// A text that is written in between changes none of a later one.
func TestATextChangesNoLaterOne(t *testing.T) {
	t.Parallel()
	var want string
	for _, between := range []bool{false, true} {
		d := New(Options{})
		for i := range 6 {
			id := fmt.Sprint(i)
			for _, m := range []*chat.Message{
				user("Which train leaves on day " + id + "?"), calls("", id, "find_trains", "day", id),
				result(id, fmt.Sprintf(`[{"line":"Arrow of day %[1]d","leaves":"07:1%[1]d","fare":"7%[1]d","stops":"3"}]`, i)),
				assistant("The Arrow of day " + id + " leaves at 07:1" + id + "."),
			} {
				if d.Add(m); between {
					d.Text(400)
				}
			}
		}
		if text := d.Text(900); !between {
			want = text
		} else if text != want {
			t.Errorf("%s\n\nwithout texts between:\n%s", text, want)
		}
	}
}

// The log of actions does not depend on whether a text was written before it.
func TestATextChangesNoLog(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Which train leaves?"), calls("", "1", "find_trains"), result("1", `[{"line":"Southern Arrow","leaves":"07:10","fare":"71"},{"line":"Valley Star","leaves":"09:10","fare":"66"}]`),
		assistant("The Valley Star leaves late."), user("I take that one."))
	log := d.Appendix(400)
	wantIn(t, log, "Valley Star")
	if d.Text(400); d.Appendix(400) != log {
		t.Errorf("%s\n\nbehind a text:\n%s", log, d.Appendix(400))
	}
}

// Where not all of a long listing has room, its first options are told with what a choice needs.
func TestALongListing(t *testing.T) {
	t.Parallel()
	var rooms []string
	for i := range 12 {
		rooms = append(rooms, fmt.Sprintf(`{"hotel":"House of the %s Lamp","price":"%d","stars":"%d","pool":"True"}`, strings.Repeat("x", i+1), 100+i, i%3+2))
	}
	d := digestOf(Options{}, user("Which hotels are in Graz?"), calls("", "1", "find_hotels", "city", "Graz"), result("1", "["+strings.Join(rooms, ",")+"]"))
	text := d.history.calls[0].listed(240, "")
	wantIn(t, text, "hotel House of the x Lamp, price 100, stars 2; ")
	wantIn(t, text, "; and 7 more")
	if text := digestOf(Options{}, user("Which films are there?"), calls("", "1", "find_films"), result("1", `[{"film":"The Lamp"},{"film":"The Door"}]`)).Text(400); !strings.Contains(text, "- Last: find_films → film The Lamp; The Door") {
		t.Errorf("%s", text)
	}
	if text = d.history.calls[0].listed(40, ""); strings.Contains(text, "more") || !strings.Contains(text, strings.Repeat("x", 12)) {
		t.Errorf("%s", text)
	}
}

// What all options have in common is told once; of a single result more than what was asked for; numbers are those
// that people write with commas.
func TestWhatOptionsShare(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Which games are there in Graz?"), calls("", "1", "find_games", "city", "Graz"), result("1",
		`[{"game":"Hawks and Lions","hall":"Hall of the Bell","city":"Graz","day":"2031-03-01"},{"game":"Owls and Bears","hall":"Hall of the Bell","city":"Graz","day":"2031-03-04"},{"game":"Wolves and Foxes","hall":"Hall of the Bell","city":"Graz","day":"2031-03-09"}]`)).Text(600)
	wantIn(t, text, "- Last: find_games: city Graz → all: Hall of the Bell; ")
	for answer, want := range map[string]string{
		"You have 3,136.70 in it.": ": savings → balance 3136.70\n", "It is in good order.": " → account savings, balance 3136.70, branch 12\n",
	} {
		text := digestOf(Options{}, user("I want to see my savings account."), calls("", "1", "check_balance", "account", "savings"), result("1", `[{"account":"savings","balance":"3136.70","branch":"12"}]`), assistant(answer),
			user("Book the hall for me."), calls("", "2", "book_hall", "hall", "Bell", "day", "4"), result("2", `{"hall":"Bell","day":"4","price":"20"}`), assistant("It is booked."),
			user("And is there a bus to it?"), assistant("There is none."), user("When does it begin?")).Text(900)
		wantIn(t, text, "- check_balance"+want)
	}
}

// An option is the one that is talked about also where no capitals are used.
func TestAnOptionInSmallLetters(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("can you find me a hotel in linz?"), calls("", "1", "find_hotels", "city", "Linz"), result("1",
		`[{"hotel":"45 Bell Lane","stars":"5","price":"230"},{"hotel":"Owl and Fox Inn","stars":"3","price":"90"},{"hotel":"Old Bridge House","stars":"2","price":"60"}]`),
		assistant("i found 3 places. there is a 5 star hotel called 45 bell lane."), user("that works for me."), assistant("shall i book it?")).Text(400)
	wantIn(t, text, "→ 1 of 3: hotel 45 Bell Lane, stars 5, price 230")
}

// An answer that names several options takes none of them, by their names or by their numbers.
func TestSeveralOptionsAreNamed(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]int{"There is the Owl Inn, and the Owl Inn Annex for 60.": 1, "There are the Old Bridge for 90 and the Owl Inn for 75.": -1, "Take the Old Bridge.": 0} {
		d := digestOf(Options{}, user("Which hotels are in Linz?"), calls("", "1", "find_hotels", "city", "Linz"), result("1", `[{"hotel":"Old Bridge","price":"90"},{"hotel":"Owl Inn Annex","price":"60"},{"hotel":"Owl Inn","price":"75"}]`), assistant(said))
		if got := d.history.calls[0].chosen; got != want {
			t.Errorf("%q: %d", said, got)
		}
	}
	for said, want := range map[string]int{"T7, at 07:05 for 41, or T9, at 09:05 for 43.": -1, "T9, at 09:05 for 43, is not as full as that at 07:05.": 1} {
		d := digestOf(Options{}, user("Which trains leave?"), calls("", "1", "find_trains", "day", "6"), result("1", `[{"nr":"T7","leaves":"07:05","fare":"41"},{"nr":"T9","leaves":"09:05","fare":"43"}]`), assistant(said))
		if got := d.history.calls[0].chosen; got != want {
			t.Errorf("%q: %d", said, got)
		}
	}
}

// A call without a result is told at any budget that has room for it.
func TestACallWithoutAResult(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{user("Find out why the lamp of the hall flickers in the evening, and say which switch it hangs on and since when."), assistant("The wires look fine to me, so it may be the dimmer.")}
	for i := range 30 {
		id := fmt.Sprint(i)
		ms = append(ms, calls("", id, "Bash", "command", "git commit -am 'lamp "+id+"'"), result(id, "[main 1f3e5a7] lamp "+id))
	}
	ms = append(ms, calls("", "last", "Bash", "command", "curl -F file=@lamp.txt house:8080"))
	wantIn(t, digestOf(Options{}, ms...).Text(110), "- Bash: curl -F file=@lamp.txt house:8080 (no result)")
}
