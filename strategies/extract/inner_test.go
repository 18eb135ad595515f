package extract

import (
	"strings"
	"testing"
)

// A look at a record tells when it was made and the objects within it, payments first, also behind another look; an action
// only what was paid.
func TestObjectsWithinAResult(t *testing.T) {
	t.Parallel()
	const (
		customer = `{"name":{"first_name":"Ute","last_name":"Holz"},"address":{"street":"Mill Lane 2","floor":"3","city":"Graz","zip":"8010"},"email":"ute@example.com","born":"1971-03-04","cards":{"voucher_7714":{"source":"voucher","amount":90,"id":"voucher_7714"},"bank_card_9925":{"source":"bank_card","brand":"maestro","last_four":"3848","id":"bank_card_9925"}},"payment_methods":{"credit_5521":{"source":"credit","amount":300,"id":"credit_5521"}},"level":"silver","orders":["R7TQ","K2WN"]}`
		order    = `{"order_id":"R7TQ","customer":"ute_71","status":"packed","lines":[{"article":"Lamp","pieces":2,"price":45},{"article":"Clock with a long name","pieces":1,"price":120}],"payments":[{"payment_id":"credit_5521","amount":210}],"created_at":"2031-03-01T08:00:00"}`
		changed  = `{"order_id":"R7TQ","customer":"ute_71","status":"changed","lines":[{"article":"Lamp","pieces":1,"price":45}],"payments":[{"payment_id":"credit_5521","amount":210},{"payment_id":"credit_5521","amount":-45}]}`
		linked   = `{"number":12,"title":"Flicker","state":"open","html_url":"https://lamps.example/12","user":{"login":"ute","id":5},"labels":[{"id":7,"name":"bug"}]}`
	)
	for name, tt := range map[string]struct {
		tool, result, want string
	}{
		"a customer": {"get_customer", customer, "→ payment methods: credit_5521 amount 300; born 1971-03-04, level silver, orders R7TQ K2WN, cards: voucher_7714 amount 90; bank_card_9925 maestro, last four 3848, name: Ute, Holz; email ute@example.com\n"},
		"an order":   {"get_order", order, "→ payments: credit_5521, amount 210; order id R7TQ, customer ute_71, status packed, created at 2031-03-01T08:00:00, lines: article Lamp, pieces 2, price 45; Clock with a long name, pieces 1, price 120\n"},
		"an action":  {"change_order", changed, "→ payments: credit_5521, amount 210; credit_5521, amount -45; order id R7TQ, customer ute_71, status changed\n"},
		"an issue":   {"get_issue", linked, "→ number 12, title Flicker, state open, html url https://lamps.example/12, labels: id 7, name bug\n"},
	} {
		d := digestOf(Options{}, user("Please look at all of it."), calls("", "1", tt.tool, "of", "all"), result("1", tt.result))
		if line := d.history.calls[0].line(300); line != "- "+tt.tool+": of all "+tt.want {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// Of a list without room for all, the first objects are told and the others counted; a cut leaves no key without a value.
func TestManyObjectsWithinAResult(t *testing.T) {
	t.Parallel()
	var lines []string
	for range 60 {
		lines = append(lines, `{"article":"Clock with a long name","last_four":"3848"}`)
	}
	d := digestOf(Options{}, user("Look at R7TQ."), calls("", "1", "get_order", "order", "R7TQ"), result("1", `{"status":"packed","hall":"north","van":"red","lines":[`+strings.Join(lines, ",")+`]}`))
	c := d.history.calls[0]
	wantIn(t, c.line(300), "lines: Clock with a long name, last four 3848; Clock", "; and 48 more\n")
	for n := 90; n < 160; n++ {
		if got := c.cut(c.line(300), n); strings.HasSuffix(got, "four …") || strings.HasSuffix(got, "last …") || strings.HasSuffix(got, "; …") {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// What an answer lists of a record is cut at its end only, whatever its entries are worth.
func TestListsOfARecord(t *testing.T) {
	t.Parallel()
	entries := []string{"Seats: two", "From Linz to Wels by train R4410 on 2031-03-06", "From Wels to Graz by bus", "Lunch: yes", "From Graz to Selzthal by train R4461 on 2031-03-09"}
	d := digestOf(Options{}, user("I want to see my trip, which I booked a month ago."), calls("", "1", "get_trip", "trip", "T-7"), result("1", `{"trip":"T-7","paid":"210","by":"ute_71"}`),
		assistant("These are the parts of your trip:\n- "+strings.Join(entries, "\n- ")+"\n\nIf you have any other questions about it, just let me know!"), user("Does it rain there on the day on which I arrive?"), assistant("It does not rain on the 6th. If you need more, please let me know!"), user("And on the other one?"))
	marked := false
	for budget := 60; budget < 400; budget += 10 {
		text, over := d.Text(budget), false
		for _, x := range entries {
			told := strings.Contains(text, "- "+x+"\n") || strings.Contains(text, "- "+x+" …\n")
			if told && over {
				t.Errorf("%q and not all before it in\n%s", x, text)
			} else {
				over = !told
			}
			marked = marked || strings.Contains(text, "- "+x+" …\n") && strings.Count(text, " …\n") == 1
		}
		wantNotIn(t, text, "other questions", "need more")
	}
	if !marked {
		t.Error("no list tells that there is more of it")
	}
}
