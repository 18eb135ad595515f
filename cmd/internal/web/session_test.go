package web_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/backlog"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// longSession makes a session of the tenant engineering that was compacted several times, with an undo among them, and
// returns the run that was undone.
func (f *fleet) longSession() (undone store.RunID) {
	f.Helper()
	k := store.Key{Tenant: "engineering", Session: "long"}
	n := 0
	for s := range backlog.Generate(backlog.Options{Seed: 7, Sessions: 6, End: time.Now()}) {
		for i := range s.Messages {
			n++
			s.Messages[i].ID = fmt.Sprintf("long-%d", n)
			for j := range s.Messages[i].ToolCalls {
				s.Messages[i].ToolCalls[j].ID += k.Session + fmt.Sprint(len(s.ID), s.ID)
			}
			if s.Messages[i].ToolCallID != "" {
				s.Messages[i].ToolCallID += k.Session + fmt.Sprint(len(s.ID), s.ID)
			}
		}
		f.append(k.Tenant, k.Session, s.Messages)
		f.settled()
		runs, err := f.st.Operator.Runs(f.Context(), store.RunFilter{Key: k, Status: store.StatusApplied, Limit: 10})
		if err != nil {
			f.Fatal(err)
		}
		if len(runs) == 2 && undone == 0 {
			undone = runs[0].ID
			if _, err := f.st.Undo(f.Context(), k, undone, false, "ann"); err != nil {
				f.Fatal(err)
			}
		}
	}
	text := "## Goal\n\n- Refund the hotel of Hana Castellanos. [m3 user, m5 assistant]\n- Keep the answer short.\n\n" +
		"## Next\n\n- Ask for the receipt. [m9 tool]"
	_, err := f.st.Request(f.Context(), k, store.TriggerOperator, "ann", store.Options{
		AllowGrowth: true, Summary: &store.WrittenSummary{Text: text, Author: "ann"},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.settled()
	hostile := chat.TextContent("<script>alert(1)</script> \x1b[31m red \u202egnp.exe ![x](http://evil.example/x.png)")
	f.append(k.Tenant, k.Session, []chat.Message{{ID: "hostile", Role: chat.RoleUser, Content: hostile}})
	return undone
}

// TestSessionPageWithoutABrowser checks that each page has a sentence for what is missing, and that no text is taken for markup
// or shown where it is hidden.
func TestSessionPageWithoutABrowser(t *testing.T) {
	f := newFleet(t, small)
	undone := f.longSession()
	c := f.client("")
	long := func(query ...string) string {
		return at("session", append([]string{"tenant", "engineering", "id", "long"}, query...)...)
	}
	c.get(long(), "Moment 6 of 6", "undid run", "!<script>alert", "&lt;script&gt;alert(1)", `\x1b[31m`, `\u202egnp`, "!\u202e", "!<img",
		`!href="http://evil`, "Tail starts here", `data-session="long"`, "Compact now…", "data-step-back", "!data-step-next",
		`href="/ui/policy?policy=default"`)
	c.get(long("run", fmt.Sprint(undone)), "Moment 2 of 6", "data-step-next", "data-step-back", "!Moment 6 of 6")
	c.get(long("message", "3", "part", "inspector"), "Bring back…", "Out of the view since", `id="insp"`, `!id="fig"`)
	c.get(long("show", "said", "after", "60", "part", "rows"), `class="rows"`, `!id="fig"`)
	line := regexp.MustCompile(`href="([^"#]*)#insp"[^>]* data-rests="3 5"`).FindStringSubmatch(c.get(long()))
	if line == nil {
		t.Fatal("no line has its sources")
	}
	c.get(long(), `data-rests="3 5"`, `data-seq="3"`, "2 sources", "no source")
	c.get("/ui/session"+html.UnescapeString(line[1]), "Line of the summary", "Rests on 2 messages", "Refund the hotel")
	c.get(long("message", "5"), "Lives on in 1 line of")
	c.get(long("q", "no such words"), "Nothing in this session has")
	c.get(long("q", "evil.example"), "in the view")

	k := store.Key{Tenant: "engineering", Session: "small"}
	f.append(k.Tenant, k.Session, []chat.Message{{ID: "s1", Role: chat.RoleUser, Content: chat.TextContent("my words")}})
	small := at("session", "tenant", k.Tenant, "id", k.Session)
	c.get(small, "my words", "none has changed the view", "no run has changed the view", "Moment 1 of 1")
	if _, err := f.st.Admin.Erase(t.Context(), k, nil, "asked for", "ann", false); err != nil {
		t.Fatal(err)
	}
	c.get(small, "!my words", "erased")
	if _, _, err := f.st.Append(t.Context(), store.Key{Tenant: "engineering", Session: "empty"}, "gpt-4o", nil); err == nil {
		c.get(at("session", "tenant", k.Tenant, "id", "empty"), "Nothing was said")
	}
}

func TestSessionPageHidesTexts(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.API.HideTexts = true })
	f.append("acme", "s", []chat.Message{{ID: "s1", Role: chat.RoleUser, Content: chat.TextContent("my words")}})
	c := f.client("")
	for _, query := range [][]string{{}, {"message", "1"}, {"q", "my"}, {"message", "1", "part", "inspector"}} {
		page := at("session", append([]string{"tenant", "acme", "id", "s"}, query...)...)
		c.get(page, "!my words", "Texts are hidden")
		c.get(page+"&texts=1", "my words")
	}
}

// TestSessionPageInspects opens a message in the inspector without a new page, from where it is brought back and pinned from there.
func TestSessionPageInspects(t *testing.T) {
	f := newFleet(t, small)
	f.longSession()
	ctx := f.browser(1440, 900, "light")
	text := func(what string) string { return run(ctx, f, what, chromedp.Text("#insp")) }
	f.do(ctx, "open", f.page(at("session", "tenant", "engineering", "id", "long", "show", "out")), chromedp.WaitReady("#list .msg"),
		chromedp.Click(`[data-seq="3"] .who a`), chromedp.WaitVisible("#insp .src-card"))
	if got := text("inspect"); !strings.Contains(got, "Out of the view since run") {
		t.Error(got)
	}
	f.do(ctx, "bring back", chromedp.Click("#insp details.act summary"), chromedp.Click("#insp details.act .b.p"),
		chromedp.WaitVisible("#insp .note"))
	if got := text("bring back"); !strings.Contains(got, "comes back with the next run, and is pinned") {
		t.Error(got)
	}
	f.settled()
	rows := run(ctx, f, "rows", chromedp.Evaluate[int](`document.querySelectorAll("#list .msg").length`))
	f.do(ctx, "more", chromedp.ScrollIntoView("#list .morel a"))
	storetest.Await(f, "more rows", func() bool {
		return run(ctx, f, "rows", chromedp.Evaluate[int](`document.querySelectorAll("#list .msg").length`)) > rows
	})
	f.do(ctx, "step", chromedp.KeyEvent(kb.ArrowLeft), chromedp.WaitVisible("[data-step-next]"))
}
