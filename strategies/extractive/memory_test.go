package extractive

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// generated calls do with about size octets of messages that name ever new things.
func generated(size, each int, do func(*chat.Message)) {
	r := rand.New(rand.NewPCG(1, 2))
	for done, n := 0, 0; done < size; n++ {
		var b strings.Builder
		for b.Len() < each {
			fmt.Fprintf(&b, "%6d\tfunc handle%d(w *Writer) error { return open(\"dir%d/file%d.go\", `name%d`) } // order W%dX, id: %d\n",
				n, r.IntN(1e6), r.IntN(1e6), r.IntN(1e6), r.IntN(1e6), r.IntN(1e7), r.IntN(1e9))
		}
		id := fmt.Sprint(n)
		for _, m := range []*chat.Message{
			user(fmt.Sprintf("Never mind, what about dir%d/file%d.go?", r.IntN(1e6), n)),
			calls(fmt.Sprintf("I read `name%d` because it is there.", n), id, "read", "file_path", fmt.Sprintf("dir%d/x.go", n)),
			result(id, b.String()),
		} {
			do(m)
			done += len(m.Content.Text)
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Not parallel: it measures the heap.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 130 MB")
	}
	scale := 1
	if raceEnabled { // which makes it ten times slower
		scale = 10
	}
	tests := map[string]struct{ size, each int }{
		"100 MB in messages of 20 kB": {100 << 20 / scale, 20 << 10},
		"one message of 30 MB":        {30 << 20 / scale, 30 << 20},
	}
	for name, tt := range tests {
		before := liveHeap()
		d := New(Options{})
		generated(tt.size, tt.each, d.Add)
		live := int64(liveHeap()) - int64(before)
		text := d.Text(12_000)
		t.Logf("%s: %d MB live, a summary of %d tokens", name, live>>20, chars4(text))
		if live > 50<<20 {
			t.Errorf("%s: %d MB are live", name, live>>20)
		}
		if !strings.Contains(text, "without a model") {
			t.Errorf("%s: no summary", name)
		}
		runtime.KeepAlive(d)
	}
}

// A small part of a big message must not keep all of it.
func TestNoMessageIsKept(t *testing.T) {
	before := liveHeap()
	d := New(Options{})
	for n := range 40 {
		pad := strings.Repeat("some words, ", 1<<20/12) // 1 MB
		id := fmt.Sprint(n)
		d.Add(user(fmt.Sprintf("Never change a/b%d.go, will you? ", n) + pad))
		d.Add(calls("It is so because of `it`. Shall I? "+pad, id, "edit", "file_path", fmt.Sprintf("c/d%d.go", n), "content", pad))
		d.Add(result(id, "error: e/f"+id+".go\n"+pad+"\nFAIL done"))
	}
	if live := int64(liveHeap()) - int64(before); live > 10<<20 {
		t.Errorf("%d MB of 160 MB are live", live>>20)
	}
	runtime.KeepAlive(d)
}

func BenchmarkAdd(b *testing.B) {
	var ms []*chat.Message
	size := 0
	generated(4<<20, 20<<10, func(m *chat.Message) { ms = append(ms, m); size += len(m.Content.Text) })
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		digestOf(Options{}, ms...)
	}
}

func BenchmarkText(b *testing.B) {
	d := New(Options{})
	for n := range 3334 {
		id := fmt.Sprint(n)
		d.Add(user(fmt.Sprintf("Please look at dir%d/file%d.go, it fails.", n%50, n)))
		d.Add(calls(fmt.Sprintf("`run%d` is wrong because it waits.", n), id, "edit", "file_path", fmt.Sprintf("dir%d/file%d.go", n%50, n)))
		d.Add(result(id, fmt.Sprintf("done: W%dX", 1000+n)))
	}
	for _, budget := range []int{500, 2000, 12_000} {
		b.Run(fmt.Sprint(budget), func(b *testing.B) {
			for b.Loop() {
				d.Text(budget)
			}
		})
	}
}
