package web

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/store"
)

type policiesPage struct {
	Items    []policies.Row
	Progress *store.PolicyProgress
}

func listPolicies(q *request) (any, error) {
	p := &policiesPage{}
	return p, q.get(p, "/v1/policies", "counts", q.counts())
}

// counts says whether the page counts sessions, which it does in a second request, as that reads all of them.
func (q *request) counts() string { return strconv.FormatBool(q.param("counts") == "true") }

// policyPage is a version of a policy, and the others.
type policyPage struct {
	store.PolicyVersion
	// Settings and Changes have key, from and to, as in the results of forms.
	Settings, Changes []map[string]string
	Before            int
	File              string

	History policies.History
	// Row is the version in force with its sessions, nil for none.
	Row *policies.Row
}

// Title returns the name of the page.
func (p *policyPage) Title() string { return "Policy " + policies.Title(p.PolicyVersion) }

func showPolicy(q *request) (any, error) {
	p := &policyPage{}
	name := cmp.Or(q.param("policy"), "default")
	err := q.get(&p.History, api.Path("policies", name, "history"))
	if x, ok := errors.AsType[*api.Problem](err); ok && x.Status == http.StatusNotFound {
		err = nil // that of the configuration has none
	}
	if err != nil {
		return nil, err
	}
	version := q.param("version")
	all := policiesPage{}
	if err := q.get(&all, "/v1/policies", "counts", q.counts()); err != nil {
		return nil, err
	}
	for i, r := range all.Items {
		if r.Name == name {
			p.Row = &all.Items[i]
		}
	}
	if version == "" && p.Row == nil && len(p.History.Versions) > 0 { // disabled: the last one
		version = strconv.Itoa(p.History.Versions[0].Version)
	}
	return p, q.get(p, api.Path("policies", name), "version", version)
}

// Switched returns when and by whom a version came into force the last time; nil for never.
func (p *policyPage) Switched(version int) *store.PolicySwitch {
	for i := range p.History.Changes {
		if p.History.Changes[i].Version == version {
			return &p.History.Changes[i]
		}
	}
	return nil
}
