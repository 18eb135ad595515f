package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func setParent(t fataler, s *Store, tenant string, links ...string) {
	t.Helper()
	for _, link := range links {
		child, parent, _ := strings.Cut(link, "<")
		if err := s.SetParent(context.Background(), Key{Tenant: tenant, Session: child}, parent); err != nil {
			t.Fatalf("%s: %v", link, err)
		}
	}
}

func label(t fataler, s *Store, session string, labels map[string]string) {
	t.Helper()
	if err := s.SetLabels(context.Background(), Key{Session: session}, labels); err != nil {
		t.Fatalf("labels of %s: %v", session, err)
	}
}

func TestLabelsOfAParentCountForItsChildren(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	put(t, s, named("team-a", 2, "team=a"))
	put(t, s, named("team-b", 3, "team=b"))
	put(t, s, named("a-search", 4, "team=a agent=search"))
	refresh(t, s, 9)
	label(t, s, "root", map[string]string{"team": "a"})
	label(t, s, "own", map[string]string{"team": "b"})
	label(t, s, "search", map[string]string{"agent": "search"})
	want := func(when string, rows ...string) {
		t.Helper()
		equal(t, rows, policies(t, s), "%s", when)
	}
	want("without parents", "own team-b 3", "root team-a 2", "search default 1")

	// A session that does not exist is created, with its policy.
	setParent(t, s, "", "own<root", "search<root", "deep<search")
	want("with parents", "deep a-search 4", "own team-b 3", "root team-a 2", "search a-search 4")
	if diff := cmp.Diff(map[string]string{"team": "a", "agent": "search"}, must(s.Operator.Explain(t.Context(), Key{Session: "deep"}))(t).Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	add(t, s, Key{Session: "deep"}, talk("m", 1)...)
	var sample []string
	for _, x := range must(s.Operator.Sample(t.Context(), DefaultTenant, map[string]string{"team": "a"}, 9))(t) {
		sample = append(sample, x.Session)
	}
	if !slices.Equal(sample, []string{"deep"}) {
		t.Errorf("sample %v, want the one with messages", sample)
	}

	// Nothing is refreshed for a session without children.
	label(t, s, "deep", map[string]string{"x": "y"})
	if p := must(s.PolicyProgress(t.Context()))(t); p.Pending {
		t.Errorf("%+v", p)
	}
	label(t, s, "root", map[string]string{"team": "b"})
	want("before the refresh", "deep a-search 4", "own team-b 3", "root team-b 3", "search a-search 4")
	effects := must(s.Operator.PreviewPolicies(t.Context(), []PolicyChange{{Name: "new", Match: map[string]string{"team": "b"}, Spec: []byte(`{}`), Hash: "h", FleetHash: "h", Thresholds: []Threshold{{DueTokens: 9}}}}))(t)
	equal(t, []PolicyEffect{{"a-search", "new", 2, 0, 0}, {"team-b", "new", 2, 0, 0}}, effects, "effects")
	refresh(t, s, 1)
	want("after it", "deep team-b 3", "own team-b 3", "root team-b 3", "search team-b 3")
	label(t, s, "own", map[string]string{})
	setParent(t, s, "", "search<")
	refresh(t, s, 9)
	want("without the parent", "deep default 1", "own team-b 3", "root team-b 3", "search default 1")
	wantConsistent(t, s)
}

func TestParentsAreALineWithoutCirclesWithinATenant(t *testing.T) {
	s := fresh(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		add(t, s, Key{Session: id}, talk("m", 1)...)
	}
	add(t, s, Key{Tenant: "other", Session: "x"}, talk("m", 1)...)
	setParent(t, s, "", "a<b", "b<c", "a<b")
	for link, kind := range map[string]error{
		"a<a": ErrInvalid, "c<a": ErrInvalid, "b<a": ErrInvalid, "a<x": ErrNotFound, "a<missing": ErrNotFound,
	} {
		child, parent, _ := strings.Cut(link, "<")
		if err := s.SetParent(t.Context(), Key{Session: child}, parent); !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), parent) {
			t.Errorf("%s: %v, want %v", link, err, kind)
		}
	}
	row := session(t, s, Key{Session: "b"})
	if row.Parent != "c" || row.Children != 1 {
		t.Errorf("%+v", row)
	}
	setParent(t, s, "", "d<c")
	var names []string
	for _, r := range sessions(t, s, SessionFilter{ChildrenOf: "c", Limit: 9}) {
		names = append(names, r.Session)
	}
	if !slices.Equal(names, []string{"b", "d"}) {
		t.Errorf("children of c: %v", names)
	}

	// A hundred sessions are a line; one more is too many, wherever it comes.
	setParent(t, s, "", "line0<")
	for i := range 99 {
		setParent(t, s, "", fmt.Sprintf("line%d<line%d", i+1, i))
	}
	for _, link := range []string{"d<line99", "line0<d"} {
		child, parent, _ := strings.Cut(link, "<")
		if err := s.SetParent(t.Context(), Key{Session: child}, parent); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "at most 100") {
			t.Errorf("%s: %v", link, err)
		}
	}
	wantConsistent(t, s)
}

// Two links that close a circle together are not made at the same time.
func TestNoCircleComesOfLinksThatAreMadeAtOnce(t *testing.T) {
	s := fresh(t)
	setParent(t, s, "", "a<", "b<", "c<", "d<", "b<a", "d<c")
	for range 20 {
		done := make(chan error)
		for _, link := range []string{"a<d", "c<b"} {
			go func() {
				child, parent, _ := strings.Cut(link, "<")
				done <- s.SetParent(t.Context(), Key{Session: child}, parent)
			}()
		}
		made := 0
		for range 2 {
			switch err := <-done; {
			case err == nil:
				made++
			case !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrBusy):
				t.Fatal(err)
			}
		}
		if made > 1 {
			t.Fatal("both links were made")
		}
		setParent(t, s, "", "a<", "c<")
	}
	wantConsistent(t, s)
}

// A child that is made while its parent gets other labels follows these.
func TestAChildThatIsMadeMeanwhileFollowsItsParent(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	put(t, s, named("team-a", 2, "team=a"))
	refresh(t, s, 9)
	label(t, s, "root", map[string]string{})
	tx := begin(t, s, `SELECT compactor.set_labels('default', 'root', '{"team": "a"}')`)
	done := make(chan error)
	go func() { done <- s.SetParent(t.Context(), Key{Session: "child"}, "root") }()
	waiting(t, s)
	noError(t, tx.Commit(t.Context()))
	noError(t, <-done)
	equal(t, []string{"child team-a 2", "root team-a 2"}, policies(t, s), "policies")
}
