package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

// until waits until an expression of JavaScript is true in a page, or in the one that it leads to.
func until(expression string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		for ctx.Err() == nil {
			if so, err := chromedp.Evaluate[bool](expression)(ctx, t); err == nil && so { // an error: it is loading
				return none, nil
			}
			if _, err := chromedp.Sleep(50*time.Millisecond)(ctx, t); err != nil {
				return none, err
			}
		}
		return none, fmt.Errorf("until %s: %w", expression, ctx.Err())
	}
}

// text is the expression for what an element shows.
func text(selector string) string {
	return fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? '')`, selector)
}

// TestFiguresStayFresh checks that figures change without a click, not below what is in use, and say how old they are when the
// server is away.
func TestFiguresStayFresh(t *testing.T) {
	f := newFleet(t, small)
	f.fill(2, "acme")
	f.settled()
	ctx := f.browser(1440, 900, "light")
	const saved = `document.querySelector('.figs').innerText`
	f.do(ctx, "open", f.page("/ui/"), chromedp.WaitVisible(".figs"))
	before := run(ctx, f, "figures", chromedp.Evaluate[string](saved))
	f.fill(6, "other")
	f.do(ctx, "see the figures change", until(fmt.Sprintf(`%s !== %q`, saved, before)))
	f.settled()
	f.do(ctx, "hold what has the focus", f.page("/ui/"), chromedp.WaitVisible("tbody a"), chromedp.Focus("tbody a"))
	f.fill(12, "more")
	f.do(ctx, "be told of changes", until(`!document.querySelector('.again').hidden`))
	f.do(ctx, "ask for them", chromedp.Click(".again"),
		until(`document.querySelector('.again').hidden && document.body.innerText.includes('more')`))

	const away = `{ const now = Date.now; window.fetch = async () => new Response('', {status: 503}); Date.now = () => now() + 90000 }`
	f.do(ctx, "say how old they are", chromedp.Evaluate[chromedp.Void](away), until(`/^Figures are \d+ s old/.test(`+text(".live")+`)`))
}

// TestTwoClicksAreOne checks that a double click does not start a second sweep.
func TestTwoClicksAreOne(t *testing.T) {
	f := newFleet(t, small, func(c *config.Config) { c.Policy.Debounce, c.Policy.MaxDelay = time.Hour, time.Hour })
	f.long("acme", "one")
	ctx := f.browser(1440, 900, "light")
	f.do(ctx, "start", f.page(at("sweeps")), chromedp.Click(`#start button[name="all:bool"]`), chromedp.WaitVisible(".result form button"),
		chromedp.Evaluate[chromedp.Void](`{ const b = document.querySelector('.result form button'); b.click(); setTimeout(() => b.click(), 150) }`),
		until(text("#start + .result")+`.includes('has started')`), chromedp.Sleep(time.Second))
	if rows, err := f.st.Operator.Sweeps(t.Context(), 0, 10); err != nil || len(rows) != 1 {
		t.Errorf("%d sweeps, %v", len(rows), err)
	}
}
