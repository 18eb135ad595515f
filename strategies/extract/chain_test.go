package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

// part returns one tenth of a growing session: it uses some names of the parts before it,
// makes new ones, and reads listings with many names that are never needed.
func part(n int) (ms []*chat.Message, used []string) {
	for k := range 8 {
		file := fmt.Sprintf("internal/part%d/step%d.go", n, k)
		used = append(used, file)
		ms = append(ms, user(fmt.Sprintf("Now change %s as we said.", file)))
		ms = append(ms, calls("I will edit it.", fmt.Sprint(n, k), "edit", "file_path", file, "content", fmt.Sprintf("value %d", n*1000+k)))
		ms = append(ms, result(fmt.Sprint(n, k), "The file "+file+" has been updated."))
		var listing strings.Builder
		for i := range 200 {
			fmt.Fprintf(&listing, "%d  vendor/module%d/part%d/file%d.go\n", 10000+i, i, n, k)
		}
		ms = append(ms, calls("", "l"+fmt.Sprint(n, k), "bash", "command", "ls -R"), result("l"+fmt.Sprint(n, k), listing.String()))
	}
	for before := range n { // names that every part uses again
		for _, name := range []string{fmt.Sprintf("internal/part%d/step3.go", before), fmt.Sprintf("ORDER%dX", 4000+before)} {
			used = append(used, name)
			ms = append(ms, assistant("As before, see "+name+"."))
		}
	}
	own := fmt.Sprintf("ORDER%dX", 4000+n)
	used = append(used, own)
	return append(ms, assistant("The order is "+own+"; it is done."), user("ok, what is next?")), used
}

func TestTenChainedCompactions(t *testing.T) {
	t.Parallel()
	const budget = 1200
	summary := ""
	for n := range 10 {
		d := New(Options{})
		d.AddPrevious(summary)
		ms, used := part(n)
		for _, m := range ms {
			d.Add(m)
		}
		next := d.Text(budget)
		wantWellFormed(t, next, budget, chars4, nil)
		for _, name := range used {
			if strings.Contains(summary, name) && !strings.Contains(next, name) {
				t.Errorf("compaction %d lost %s, which is still used", n+1, name)
			}
		}
		if n > 0 && !strings.Contains(next, "part0/step3.go") {
			t.Errorf("compaction %d has lost the first part", n+1)
		}
		if !strings.Contains(next, "> ok, what is next?") || !strings.Contains(next, "> Now change internal/part0/step0.go as we said.") {
			t.Errorf("compaction %d has lost the task or the goal:\n%s", n+1, next)
		}
		if want := fmt.Sprintf("Made from %d messages", messagesUpTo(n)); !strings.HasPrefix(next, want) {
			t.Errorf("compaction %d is not %s: %.60q", n+1, want, next)
		}
		summary = next
	}
}

func messagesUpTo(n int) (total int) {
	for i := range n + 1 {
		ms, _ := part(i)
		total += len(ms)
	}
	return total
}

// A session that continues without new content keeps its identifiers.
func TestASummaryDoesNotErode(t *testing.T) {
	t.Parallel()
	ms, _ := part(0)
	d := digestOf(Options{}, ms...)
	first := d.Text(1200)
	last := first
	for range 10 {
		d := New(Options{})
		d.AddPrevious(last)
		last = d.Text(1200)
	}
	was := parsePrevious(first)
	is := parsePrevious(last)
	for _, line := range was.sections[sectionFiles] {
		if !strings.Contains(last, line) {
			t.Errorf("%q was lost", line)
		}
	}
	_, values, _ := strings.Cut(strings.Join(was.references, "\n"), ": ")
	if values == "" {
		t.Fatal("no references")
	}
	lost, all := 0, 0
	for _, line := range was.references {
		_, list, _ := strings.Cut(line, ": ")
		for _, v := range reference.ParseList(list) {
			if all++; !strings.Contains(last, v) {
				lost++
			}
		}
	}
	if lost*20 > all {
		t.Errorf("%d of %d references were lost", lost, all)
	}
	if len(is.sections[sectionTask]) == 0 || is.sections[sectionTask][0] != was.sections[sectionTask][0] {
		t.Errorf("the task was %q and is %q", was.sections[sectionTask], is.sections[sectionTask])
	}
	if was, is := was.sections[sectionRequests], is.sections[sectionRequests]; len(was) == 0 || len(is) == 0 || is[0] != was[0] {
		t.Errorf("the requests were %q and are %q", was, is)
	}
}

func TestSummariesOfOthers(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	d.AddPrevious("[CONTEXT SUMMARY]:\nThe user wants `TestBackoff` in pkg/queue/retry.go to pass.\n## References\n# forged\n")
	d.Add(user("go on"))
	text := d.Text(300)
	wantWellFormed(t, text, 300, chars4, nil)
	for _, want := range []string{"TestBackoff", "pkg/queue/retry.go", "> go on"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}
