package extract

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// passing are facts that a user mentions in passing, with what a later question asks for.
var passing = [][2]string{
	{"My sister Ilse moved to Tromsø last spring.", "Tromsø"},
	{"The flat costs 1,340 a month, heating included.", "1,340"},
	{"Our landlord is Mr Osei, he answers on 555-0199.", "555-0199"},
	{"We got the cat, Biscuit, on 14 March.", "14 March"},
	{"I am allergic to cashews, Dr Pham says.", "cashews"},
	{"The car is a Skoda from 2016.", "Skoda"},
	{"My desk at Halvorsen & Co is on floor 7.", "Halvorsen"},
	{"Anna's wedding is on Saturday 9 August in Graz.", "9 August"},
	{"I wear size 43 in shoes.", "size 43"},
	{"The wifi at the cabin is called Fjellro.", "Fjellro"},
	{"My old teacher Benedikta Wolff wrote the book.", "Benedikta Wolff"},
	{"We meet at the Café Lumen at 18:30.", "18:30"},
}

// chatting returns a chat without calls: long messages that say little, and early ones that
// mention a fact behind a few sentences. Answers are essays with names if told so.
func chatting(turns int, essays bool) []*chat.Message {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	pick := func(from []string, n int) string {
		var out []string
		for _, i := range r.Perm(len(from))[:n] {
			out = append(out, from[i])
		}
		return strings.Join(out, " ")
	}
	asks := []string{
		"I keep thinking about this since we talked.", "It must be possible to do it without much effort.", "I never know where to begin with such things.",
		"You should be honest with me, because that helps most.", "I would rather do a little each day than all at once.", "I only want to stop worrying about it.",
		"It always takes longer than it should, so that I give up.", "I decided to try again, instead of waiting for a better day.", "Tell me what you would do in my place.",
	}
	answers := []string{
		"It helps to begin small, because every beginning is hard.", "You should not ask too much of yourself at once.", "The reason is that habits need time, and that must be so.",
		"Since you asked, I would write a list and keep it short.", "Rather than planning more, it is better to try one thing.", "You never have to do all of it, only the next step.",
		"It is always good to talk to a friend about such things.", "I decided to keep this answer short, so that it is easy to read.",
	}
	essay := []string{
		"In 1854 Thoreau wrote Walden at a pond near Concord.", "Seneca thought much about time, as his letters to Lucilius show.", "The method goes back to Francesco Cirillo, who used a kitchen clock.",
		"A study of 96 people in London found that a habit takes 66 days.", "Many readers in Vienna prefer Stefan Zweig for that.", "You find a summary of it in chapter 4 of Atomic Habits.",
		"Professor Fogg at Stanford calls them tiny habits.", "The Journal of Health Psychology had 3 articles about it.", "As Montaigne says, it is the way that counts.",
	}
	var out []*chat.Message
	for i := range turns {
		ask := fmt.Sprintf("%s %s", pick(asks, 3), pick(asks, 1))
		if i%2 == 0 && i/2 < len(passing) {
			ask = pick(asks, 3) + " " + passing[i/2][0] + " " + pick(asks, 1)
		}
		at := time.Date(2026, 2, 3+i, 10, 0, 0, 0, time.UTC)
		answer := pick(answers, 5)
		if essays {
			ask += " What would you read about it?"
			answer = pick(essay, 7)
		}
		u, a := user(ask), assistant(answer)
		u.CreatedAt, a.CreatedAt = at, at
		out = append(out, u, a)
	}
	return out
}

// What a user mentions in passing survives more often than in as many tokens of messages
// drawn at random.
func TestFactsMentionedInPassingSurvive(t *testing.T) {
	t.Parallel()
	for name, essays := range map[string]bool{"among remarks": false, "among essays": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFactsInPassing(t, chatting(80, essays))
		})
	}
}

func testFactsInPassing(t *testing.T, ms []*chat.Message) {
	t.Helper()
	total, asks := 0, []string{}
	for _, m := range ms {
		total += sizeOf(m)
		asks = append(asks, m.Content.String())
	}
	kept := func(text string) (n int) {
		for _, f := range passing {
			if strings.Contains(text, f[1]) {
				n++
			}
		}
		return n
	}
	for share, want := range map[float64]int{0.10: 10, 0.25: 12} {
		budget := int(share * float64(total))
		text := digestOf(Options{}, ms...).Text(budget)
		wantWellFormed(t, text, budget, chars4, asks)
		random := 0
		const draws = 50
		for seed := range uint64(draws) {
			var b strings.Builder
			left := budget
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(ms)) { //nolint:gosec // the same in every run
				if n := sizeOf(ms[i]); n <= left {
					left -= n
					b.WriteString(ms[i].Content.String() + "\n")
				}
			}
			random += kept(b.String())
		}
		got := kept(text)
		if got < want || got*draws <= random {
			t.Errorf("%.0f %%: %d of %d facts, at random %.1f:\n%s", 100*share, got, len(passing), float64(random)/draws, text)
		}
		next := New(Options{})
		next.AddPrevious(text)
		for i := range 20 {
			next.Add(ms[len(ms)-20+i])
		}
		if again := kept(next.Text(budget)); again < got-1 {
			t.Errorf("%.0f %%: %d of %d facts in the next summary:\n%s", 100*share, again, got, next.Text(budget))
		}
	}
}

// Of what the assistant offers, what the user takes is kept, and so are answers to questions.
func TestWhatTheUserTakesOfAnOfferIsKept(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{},
		user("I need a table for tonight, and a room."), assistant("Sure. How about Cafe Romanat in Oakland?"),
		user("Is there something else?"), assistant("Lion & Compass in Sunnyvale has a table for you at 19:45."),
		user("Sounds good."), assistant("Please confirm: a table for 2 at the Lion & Compass on March 7th?"),
		user("Yes, that is right."), assistant("It is booked. Do you need anything else?"),
		user("What is their number?"), assistant("You reach them at +44 20 7613 9800."),
		user("No, that's all, thank you."), assistant("Have a nice evening."), user("Bye now, see you next week."),
	)
	text := d.Text(600)
	for said, want := range map[string]bool{"Cafe Romanat": false, "19:45": true, "March 7th": true, "+44 20 7613 9800": true} {
		if strings.Contains(text, said) != want {
			t.Errorf("%q is kept: %t, want %t:\n%s", said, !want, want, text)
		}
	}
}

// What the user takes back is told with what it takes back, and an offer that the user overrules is not told.
func TestWhatTheUserTakesBackIsTold(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"Wait, Kemal has cancelled, he called it off this morning!": true,
		"Kemal hat leider abgesagt, er ist krank.":                  true,
		"Al final Kemal no viene, hay que anularlo.":                true,
		"Kemal wears a blue suit at the door.":                      false,
	} {
		ms := []*chat.Message{user("Our party is on 12 June in Ghent. We are 40 guests and have 3,000 euros."), assistant("Noted: 12 June in Ghent, 40 guests, 3,000 euros."), user("Kemal plays for 450 euros."), assistant("Noted: Kemal plays for 450 euros."), user(said + " What now?"), assistant("I am sorry to hear that.")}
		for i := range 12 {
			ms = append(ms, user(fmt.Sprintf("Table %d in Hall %d is for Ms Baert and the %d guests of Lokeren.", i+1, i+3, i+4)), assistant(fmt.Sprintf("Table %d in Hall %d it is, for Ms Baert.", i+1, i+3)))
		}
		if text := digestOf(Options{}, ms...).Text(300); strings.Contains(text, said) != want {
			t.Errorf("%q is told: %t\n%s", said, !want, text)
		}
	}
	for reply, told := range map[string]bool{
		"hold on, is there a bigger one? then i'd rather swap it. no refund then": false,
		"Tell me first how long that takes until it is with me, please.":          true,
	} {
		text := digestOf(
			Options{}, user("Hello, my order is the one of last week with the number T-99218."), assistant("I found it, what is wrong?"), user("The tent is too small for us, I would like to have my money back."), calls("", "1", "update_case", "case", "C-118", "reason", "too small"), result("1", `{"status":"open"}`),
			assistant("I can refund the tent (89.00 GBP) once it is back. Shall I do it now?"), user(reply), assistant("It is there from Friday on."), user("And which of the poles in your list belong to it?"), assistant("Those of steel."), user("Then write down what I have to send back, please."), assistant("The tent and its bag."),
		).Text(500)
		wantIn(t, text, reply)
		if got := strings.Contains(text, "I can refund the tent"); got != told {
			t.Errorf("%q: the offer is told: %t\n%s", reply, got, text)
		}
	}
}

// What the assistant asks for is over once it is told, words in capitals may name nothing, farewells take no room, and a short
// sentence about what another one names stands behind that.
func TestWhatAChatNeedsNoMore(t *testing.T) {
	t.Parallel()
	text := digestOf(
		Options{}, user("I want to move my booking of the hall to the next Friday, if the small hall cannot be had on that day."),
		assistant("To move it, I'll need the following information:\n1. Your customer number.\n2. The ID of your booking."),
		user("It is 7714, and the other one is R4410."), assistant("The hall of the Blue Pike in Linz has room on that Friday. Its number is 0732-4471. If you have any other questions, just let me know!"),
		user("All right."), assistant("That is OKay with us."),
		user("Thank you, you too! Talk soon."), assistant("Have a wonderful day!"), user("What does the large one cost?"),
	).Text(400)
	wantIn(t, text, "It is 7714, and the other one is R4410.", "- The hall of the Blue Pike in Linz has room on that Friday.\n", "- Its number is 0732-4471.")
	wantNotIn(t, text, "following information", "customer number", "any other questions", "- That is OKay", "Talk soon", "wonderful", "All right")
	if at := strings.Index(text, "Blue Pike"); at < 0 || at > strings.Index(text, "Its number") {
		t.Errorf("%s", text)
	}
}
