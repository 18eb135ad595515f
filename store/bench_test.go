package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

func BenchmarkAppendOne(b *testing.B) {
	s := open(b)
	k := Key{Session: "s"}
	add(b, s, k, talk("x", 200)...)
	b.ResetTimer()
	for i := range b.N {
		m := user(fmt.Sprintf("m%d", i), "a message of some length, as people write them to an assistant, with a question at its end?")
		if _, _, err := s.Append(context.Background(), k, "", []NewMessage{m}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

func BenchmarkAppendMany(b *testing.B) {
	for _, n := range []int{20, 2000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := open(b)
			msgs := talk("x", n)
			b.ResetTimer()
			for i := range b.N {
				if _, _, err := s.Append(context.Background(), Key{Session: fmt.Sprint(i)}, "", msgs); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// BenchmarkView reads a view of 102 messages out of a log of 20,000.
func BenchmarkView(b *testing.B) {
	s := open(b)
	k := Key{Session: "s"}
	add(b, s, k, talk("x", 20000)...)
	apply(b, s, k, exclude(span(3, 19900)))
	exec(b, s, `VACUUM ANALYZE compactor.message_log, compactor.message_body`)
	b.ResetTimer()
	for range b.N {
		if _, _, err := s.View(context.Background(), k); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScatteredView compares a view of 10,000 ranges with one of a range as long.
func BenchmarkScatteredView(b *testing.B) {
	s := open(b)
	scattered, whole := Key{Session: "scattered"}, Key{Session: "whole"}
	add(b, s, scattered, talk("x", 20_000)...)
	apply(b, s, scattered, exclude(span(1, 20_000).Minus(everySecond(20_000))))
	add(b, s, whole, talk("x", 10_000)...)
	exec(b, s, `VACUUM ANALYZE`)
	var took [2]time.Duration
	for range b.N {
		for j, k := range []Key{scattered, whole} {
			begin := time.Now()
			if view, _, err := s.View(context.Background(), k); err != nil || len(view) != 10_000 {
				b.Fatal(len(view), err)
			}
			took[j] += time.Since(begin)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "x-whole")
}

// BenchmarkApply is the store's part of one compaction: request, claim, apply.
func BenchmarkApply(b *testing.B) {
	s := open(b)
	msgs := talk("x", 200)
	for i := range b.N {
		add(b, s, Key{Session: fmt.Sprint(i)}, msgs...)
	}
	exec(b, s, `VACUUM ANALYZE compactor.message_log, compactor.message_body`)
	plan := chat.Plan{Exclude: []chat.Exclusion{{Reason: "truncated", Seqs: span(1, 150)}}}
	b.ResetTimer()
	for i := range b.N {
		c := start(b, s, Key{Session: fmt.Sprint(i)})
		ch := Change{
			Plan: plan, SnapshotSeq: c.Session.LastSeq, Revision: c.Session.Revision, Delta: Delta{DeltaMessages: -150},
			Ledger: Ledger{Kind: "compact", Outcome: "applied"}, PostRunState: PostRunState{DueTokens: 1 << 40},
		}
		for _, m := range c.View[:150] {
			ch.DeltaTokens -= int64(m.Tokens)
			ch.DeltaEstimated -= int64(m.Tokens)
		}
		if _, err := s.Worker.Apply(context.Background(), c.Run, c.Fence, ch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "compactions/s")
}

// BenchmarkMessagesGrowth reads all messages of a session whose view has a range for every
// second one: what is looked up for each message must not cost what the view holds.
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

// BenchmarkScatteredAppend compares an append to a session whose view has 10,000 ranges
// with one to a fresh session.
func BenchmarkScatteredAppend(b *testing.B) {
	s := open(b)
	scattered, fresh := Key{Session: "scattered"}, Key{Session: "fresh"}
	add(b, s, scattered, talk("x", 20_000)...)
	apply(b, s, scattered, exclude(everySecond(20_000)))
	add(b, s, fresh, talk("x", 1)...)
	exec(b, s, `VACUUM ANALYZE`)
	var took [2]time.Duration
	for i := range b.N {
		for j, k := range []Key{scattered, fresh} {
			begin := time.Now()
			add(b, s, k, user(fmt.Sprintf("m%d", i), "a message"))
			took[j] += time.Since(begin)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "x-fresh")
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
			plan.Additions = append(plan.Additions, standIn(chat.Meta{Seq: x.Lo, Position: x.Lo}, "short").Additions...)
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
