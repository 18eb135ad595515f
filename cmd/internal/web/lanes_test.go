package web

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// talk returns a timeline of messages with these kinds and sizes.
func talk(kinds string, size func(int) chat.Tokens) *timeline {
	t, said := store.Timeline{}, chat.Tokens(0)
	for i := range kinds {
		said += size(i)
		m := &t.Messages
		m.Seqs, m.Positions = append(m.Seqs, chat.Seq(i+1)), append(m.Positions, chat.Seq(i+1))
		m.Tokens, m.Said, m.Kinds = append(m.Tokens, size(i)), append(m.Said, said), kinds
	}
	return &timeline{t}
}

func TestBlocksMeetAndNeverCrossAnEdge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		letters := make([]byte, 1+r.IntN(6000))
		for i := range letters {
			letters[i] = "uacts"[r.IntN(5)]
		}
		sizes := make([]chat.Tokens, len(letters))
		for i := range sizes {
			sizes[i] = chat.Tokens(math.Exp(r.Float64() * 8))
		}
		l := talk(string(letters), func(i int) chat.Tokens { return sizes[i] })
		var out chat.Ranges
		for lo := chat.Seq(1 + r.IntN(50)); int(lo) < len(letters); lo += chat.Seq(100 + r.IntN(500)) {
			out = out.Union(chat.Ranges{{Lo: lo, Hi: lo + chat.Seq(1+r.IntN(90))}})
		}
		state := func(q chat.Seq) int {
			if out.Has(q) {
				return outOfView
			}
			return inView
		}
		blocks, x, next := l.blocks(state), 0.0, 0
		if len(blocks) > mostBlocks {
			t.Fatalf("%d blocks", len(blocks))
		}
		for _, b := range blocks {
			if math.Abs(b.X-x) > 1e-6 || b.W < 0 || int(b.First) != next+1 {
				t.Fatalf("a block at %v of width %v from message %d; the one before ended at %v, message %d", b.X, b.W, b.First, x, next)
			}
			var tokens chat.Tokens
			for i := next; i < next+b.Messages; i++ {
				if tokens += sizes[i]; state(chat.Seq(i+1)) != b.state() && len(l.merge(state, false)) <= mostBlocks {
					t.Fatalf("message %d is across an edge", i+1)
				}
			}
			if tokens != b.Tokens {
				t.Fatalf("%d tokens, want %d", b.Tokens, tokens)
			}
			x, next = b.X+b.W, next+b.Messages
		}
		if math.Abs(x-100) > 1e-6 || next != len(letters) {
			t.Fatalf("the blocks end at %v, message %d of %d", x, next, len(letters))
		}
	}
}

func TestEdgesBelowAPixelAreDrawnByTheirMost(t *testing.T) {
	kinds := make([]byte, 5000)
	for i := range kinds {
		kinds[i] = "ct"[i%2]
	}
	l := talk(string(kinds), func(i int) chat.Tokens { return chat.Tokens(10 + 90*(i%2)) })
	blocks := l.blocks(func(q chat.Seq) int { return []int{outOfView, inView}[q%2] }) // all results are out
	for _, b := range blocks {
		if b.state() != outOfView || kindsName(b.kind()) != "result" {
			t.Fatalf("a block is %d, %s", b.state(), kindsName(b.kind()))
		}
	}
	if len(blocks) > mostBlocks || len(blocks) < mostBlocks/2 {
		t.Errorf("%d blocks", len(blocks))
	}
}

func kindsName(k int) string { return kinds[k].class }

func TestAUserAloneKeepsTwoPixels(t *testing.T) {
	l := talk("tut", func(i int) chat.Tokens { return []chat.Tokens{5000, 1, 9000}[i] })
	blocks := l.blocks(func(chat.Seq) int { return inView })
	if len(blocks) != 3 || math.Abs(blocks[1].W-2*pixel) > 1e-9 || math.Abs(blocks[1].X+blocks[1].W-blocks[2].X) > 1e-9 ||
		blocks[0].W != 100*5000.0/14001 {
		t.Errorf("%+v", blocks)
	}
}

func TestTheTailBeginsWithWhatWasSaid(t *testing.T) {
	l := talk("suauaMua", func(int) chat.Tokens { return 10 })
	for _, x := range []struct {
		view        string
		until, want chat.Seq
	}{
		{"{[1,9)}", 8, 0}, {"{[1,2),[4,9)}", 8, 4}, {"{[1,2),[4,6),[7,9)}", 8, 4}, // the summary was replaced
		{"{[1,2),[6,7)}", 6, 0}, {"{[1,2),[6,9)}", 8, 7}, {"{[1,2),[4,9)}", 6, 4},
	} {
		if got := l.tail(ranges(x.view), x.until); got != x.want {
			t.Errorf("%s until %d: %d, want %d", x.view, x.until, got, x.want)
		}
	}
}

func TestAnUndoOfAnUndoTakesOut(t *testing.T) {
	p := &sessionPage{Log: talk("uauaM", func(int) chat.Tokens { return 10 })}
	out, written := ranges("{[1,4)}"), ranges("{[5,6)}")
	undo := p.drawRun(&moment{TimelineRun: store.TimelineRun{Undoes: 1}, out: written, back: out})
	redo := p.drawRun(&moment{TimelineRun: store.TimelineRun{Undoes: 2}, out: out, back: written})
	if undo.Text != "brought back 3 messages" || redo.Text != "3 messages, 30 out" {
		t.Errorf("%q, %q", undo.Text, redo.Text)
	}
}
