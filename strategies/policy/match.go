package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Match says which sessions have a policy: those that have all of its keys. The keys tenant
// and model are those of the session, model by a prefix; others are its labels.
type Match map[string]string

// String returns the keys in order, as "agent=planner model=gpt-5".
func (m Match) String() string {
	parts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, key+"="+m[key])
	}
	return strings.Join(parts, " ")
}

// Subject holds the properties of a session that policies match.
type Subject struct {
	Tenant, Model string
	Labels        map[string]string
	// Override names the policy whatever matches, "" for none.
	Override string
}

// Fits reports whether a session has all keys.
func (m Match) Fits(s Subject) bool {
	for key, want := range m {
		switch label, ok := s.Labels[key]; key {
		case "tenant":
			if s.Tenant != want {
				return false
			}
		case "model":
			if !hasPrefix(s.Model, strings.ToLower(want)) {
				return false
			}
		default:
			if !ok || label != want {
				return false
			}
		}
	}
	return true
}

// hasPrefix reports whether a name of a model begins with a prefix in lower case. The SQL
// function model_has_prefix returns the same.
func hasPrefix(model, prefix string) bool {
	if strings.Contains(prefix, "/") && strings.HasPrefix(strings.ToLower(strings.TrimSpace(model)), prefix) {
		return true
	}
	names := text.ModelNames(model)
	return slices.ContainsFunc(names[:], func(name string) bool { return strings.HasPrefix(name, prefix) })
}

// Candidate is a policy in force that a session may have, and why it does or does not.
type Candidate struct {
	Name   string
	Match  Match
	Chosen bool
	Why    string
}

// Choose returns the name of a session's policy among those in force, and those of which it
// has all keys or that it names, the chosen one first. The SQL function policy_of chooses the
// same.
func Choose(s Subject, inForce map[string]Match) (name string, candidates []Candidate) {
	forTenant := func(m Match) bool { return m["tenant"] == "" || m["tenant"] == s.Tenant }
	for name, m := range inForce {
		if name != s.Override && (len(m) == 0 || !m.Fits(s)) {
			continue
		}
		candidates = append(candidates, Candidate{Name: name, Match: m})
	}
	if _, ok := inForce[s.Override]; s.Override != "" && !ok {
		why := "is not in force"
		if s.Override == DefaultName {
			why = ""
		}
		candidates = append(candidates, Candidate{Name: s.Override, Why: why})
	}
	slices.SortFunc(candidates, func(a, b Candidate) int {
		if a.Name == s.Override || b.Name == s.Override {
			return map[bool]int{true: -1, false: 1}[a.Name == s.Override]
		}
		return cmp.Or(cmp.Compare(len(b.Match), len(a.Match)), cmp.Compare(len(b.Match["model"]), len(a.Match["model"])), cmp.Compare(a.Name, b.Name))
	})
	chosen := -1
	for i := range candidates {
		c := &candidates[i]
		switch {
		case c.Why != "":
		case !forTenant(c.Match):
			c.Why = "is for another tenant"
		case chosen < 0 && c.Name == s.Override:
			chosen, c.Why = i, "it was assigned"
		case chosen < 0:
			chosen, c.Why = i, "it matches "+c.Match.String()
		case candidates[chosen].Name == s.Override:
			c.Why = "another one was assigned"
		case len(c.Match) < len(candidates[chosen].Match):
			c.Why = "matches fewer keys"
		case len(c.Match["model"]) < len(candidates[chosen].Match["model"]):
			c.Why = "names less of the model"
		default:
			c.Why = "comes later by its name"
		}
	}
	if chosen < 0 {
		return DefaultName, append([]Candidate{{Name: DefaultName, Chosen: true, Why: "no other one matches"}}, candidates...)
	}
	candidates[chosen].Chosen = true
	first := candidates[chosen]
	return first.Name, append([]Candidate{first}, slices.Delete(candidates, chosen, chosen+1)...)
}
