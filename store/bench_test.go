package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// BenchmarkMessagesGrowth reads all messages of a session whose view has a range for every
// second one: the lookup per message must not grow with the view.
func BenchmarkMessagesGrowth(b *testing.B) {
	for name, said := range map[string]func(n int) []NewMessage{
		"plain":  func(n int) []NewMessage { return talk("x", n) },
		"signed": func(n int) []NewMessage { return thoughtful("x", 0, n) }, // which has left the view
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b)
			growth.Report(b, 500, 8, func(n int) func() {
				k := Key{Session: fmt.Sprint(n)}
				add(b, s, k, said(2*n)...)
				applyBehind(b, s, k, exclude(span(1, chat.Seq(2*n)).Minus(everySecond(2*n))), 1, nil)
				exec(b, s, `VACUUM ANALYZE compactor.message_log, compactor.message_body`)
				return func() {
					if all := must(s.All(context.Background(), k))(b); len(all) != 2*n {
						b.Fatalf("%d messages, want %d", len(all), 2*n)
					}
				}
			})
		})
	}
}

// everySecond returns the even seqs up to n.
func everySecond(n int) chat.Ranges {
	var seqs []chat.Seq
	for q := chat.Seq(2); q <= chat.Seq(n); q += 2 {
		seqs = append(seqs, q)
	}
	return chat.RangesOf(seqs...)
}

// BenchmarkAuditGrowth checks a session of which every second message has a replacement.
func BenchmarkAuditGrowth(b *testing.B) {
	s := open(b)
	growth.Report(b, 500, 8, func(n int) func() {
		k := Key{Session: fmt.Sprint(n)}
		add(b, s, k, talk("x", 2*n)...)
		var plan chat.Plan
		for _, x := range everySecond(2 * n) {
			plan.Additions = append(plan.Additions, replacement(chat.Meta{Seq: x.Lo, Position: x.Lo}, "short").Additions...)
		}
		apply(b, s, k, plan)
		exec(b, s, `VACUUM ANALYZE compactor.message_log, compactor.message_body`)
		return func() {
			if a := must(s.Admin.AuditSession(context.Background(), k))(b); len(a.Findings) > 0 {
				b.Fatal(a.Findings)
			}
		}
	})
}

// BenchmarkPinGrowth pins every second message of a session in one call, and unpins them.
func BenchmarkPinGrowth(b *testing.B) {
	s := open(b)
	growth.Report(b, 1250, 8, func(n int) func() {
		k := Key{Session: fmt.Sprint(n)}
		add(b, s, k, talk("x", 2*n)...)
		ids := list[string](b, s, `SELECT m.id FROM compactor.message_log m JOIN compactor.sessions s USING (sid) WHERE s.id = $1 AND m.seq % 2 = 0`, k.Session)
		return func() {
			if err := s.Pin(context.Background(), k, ids...); err != nil {
				b.Fatal(err)
			}
			if err := s.Unpin(context.Background(), k, ids...); err != nil {
				b.Fatal(err)
			}
		}
	})
}
