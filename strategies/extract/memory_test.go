package extract

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// generated calls do with about size bytes of messages that name ever new things.
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

// BenchmarkMemory reports how much of the heap a digest holds, and how many times as much
// as one of a tenth of the messages.
func BenchmarkMemory(b *testing.B) {
	for name, tt := range map[string]struct{ size, each int }{
		"30 MB in messages of 20 kB": {30 << 20, 20 << 10},
		"one message of 30 MB":       {30 << 20, 30 << 20},
	} {
		b.Run(name, func(b *testing.B) {
			live := func(size int) float64 {
				before := liveHeap()
				d := New(Options{})
				generated(size, min(size, tt.each), d.Add)
				n := float64(liveHeap()) - float64(before)
				runtime.KeepAlive(d)
				return n
			}
			var tenth, all float64
			for b.Loop() {
				tenth, all = live(tt.size/10), live(tt.size)
			}
			b.ReportMetric(all/1e6, "live-MB")
			b.ReportMetric(all/max(tenth, 1), "x-tenth")
		})
	}
}

// held returns the number of bytes reachable from v, without the spare memory of maps.
// Shared memory counts more than once.
func held(v reflect.Value) int {
	n := 0
	switch v.Kind() { //nolint:exhaustive // other kinds hold no memory of their own
	case reflect.String:
		n = v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + held(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			n += held(v.Index(i))
		}
	case reflect.Map:
		for k, x := range v.Seq2() {
			n += int(k.Type().Size()+x.Type().Size()) + held(k) + held(x)
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			n += held(f)
		}
	}
	return n
}

// The size of a digest does not grow once its bounds are reached.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		add   func(d *Digest, size int)
		limit int
	}{
		"messages of 2 kB": {func(d *Digest, size int) { generated(size, 2<<10, d.Add) }, 1 << 20},
		"one message":      {func(d *Digest, size int) { generated(size, size, d.Add) }, 1 << 20},
		"lists of values":  {addLists, 3 << 20},
	} {
		of := func(size int) int {
			d := New(Options{})
			d.ids = reference.NewTable(500, "")
			tt.add(d, size)
			if text := d.Text(12_000); !strings.Contains(text, "without a model") {
				t.Errorf("%s: no summary", name)
			}
			return held(reflect.ValueOf(d))
		}
		small, large := of(1<<20), of(8<<20)
		t.Logf("%s: %d bytes are held of 1 MB, %d of 8 MB", name, small, large)
		if large > 2*small || large > tt.limit {
			t.Errorf("%s: %d bytes are held of 1 MB, %d of 8 MB", name, small, large)
		}
	}
}

// addLists adds about size bytes of calls that return lists.
func addLists(d *Digest, size int) {
	for n := 0; size > 0; n++ {
		var rows []string
		for k := range 60 {
			rows = append(rows, fmt.Sprintf(`{"id":"F%d-%d","price":"%d euros","place":"Hall %d"}`, n, k, n*k, k))
		}
		list := "[" + strings.Join(rows, ",") + "]"
		d.Add(calls("", fmt.Sprint(n), "search", "place", "hall", "page", fmt.Sprint(n)))
		d.Add(result(fmt.Sprint(n), list))
		size -= len(list)
	}
}

// A small part of a big message must not keep all of it.
func TestNoMessageIsKept(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	var texts []weak.Pointer[byte]
	add := func(m *chat.Message) {
		d.Add(m)
		for _, s := range []string{m.Content.Text, arguments(m)} {
			if s != "" {
				texts = append(texts, weak.Make(unsafe.StringData(s)))
			}
		}
	}
	const pairs = 40
	for n := range pairs {
		pad := strings.Repeat(fmt.Sprintf("some words %d, ", n), 5_000)
		id := fmt.Sprint(n)
		add(user(fmt.Sprintf("Never change a/b%d.go, will you? ", n) + pad))
		add(calls("It is so because of `it`. Shall I? "+pad, id, "edit", "file_path", fmt.Sprintf("c/d%d.go", n), "content", pad))
		add(result(id, "error: e/f"+id+".go\n"+pad+"\nFAIL done"))
	}
	// d keeps what it keeps in each cycle. Stacks of tests beside this one, which are read word by word
	// where they were interrupted, may keep a text for one.
	kept := texts
	for range 5 {
		runtime.GC()
		kept = slices.DeleteFunc(slices.Clone(kept), func(p weak.Pointer[byte]) bool { return p.Value() == nil })
	}
	if len(kept) > 0 || len(texts) != 4*pairs {
		t.Errorf("%d of %d texts are kept", len(kept), len(texts))
	}
	runtime.KeepAlive(d)
}

func arguments(m *chat.Message) string {
	if len(m.ToolCalls) == 0 {
		return ""
	}
	return m.ToolCalls[0].Arguments
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

// hostile are units of texts on which work that looks for the end of each element is quadratic.
var hostile = []string{"<", "<a", "<a>", "</", "</a>", "<system-reminder>x</system-reminder>", "<task>x</task>", "<stdout>x</stdout><exit_code>1</exit_code>", "<command-name>/a</command-name>", "(A: b)\n$\n", "```\n", "{", "git commit -m a && "}

// hostileConversation returns messages of each role with one text.
func hostileConversation(s string) []*chat.Message {
	return []*chat.Message{
		user("x " + s + " </x>"), assistant(s), user("<stdout>" + s), calls(s, "1", "bash", "command", s), result("1", "<exit_code>0</exit_code>"+s),
		calls("", "2", "edit", "path", "a.go", "old_string", s, "new_string", s+"y"), result("2", s),
	}
}

// TestHostileTexts adds 128 kB of each hostile text, and 1 MB in the long form; BenchmarkAddGrowth measures the time.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	size := 1 << 17
	if sessiontest.Long() {
		size = 1 << 20
	}
	for _, unit := range hostile {
		s := strings.Repeat(unit, size/len(unit))
		wantWellFormed(t, digestOf(Options{}, hostileConversation(s)...).Text(2000), 2000, nil)
	}
}

func BenchmarkAddGrowth(b *testing.B) {
	for _, unit := range hostile {
		b.Run(strconv.Quote(unit), func(b *testing.B) {
			growth.Report(b, 1<<15, 8, func(n int) func() {
				ms := hostileConversation(strings.Repeat(unit, n/len(unit)))
				return func() { digestOf(Options{}, ms...) }
			})
		})
	}
}
