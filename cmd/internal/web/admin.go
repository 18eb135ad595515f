package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/store"
)

var adminPages = []page{
	{"policies", "policies", "policies", "Policies", listPolicies},
	{"policy", "policy", "policies", "Policy", showPolicy},
	{"limits", "limits", "limits", "Pauses and limits", showLimits},
	{"admin", "admin", "admin", "Admin", showAdmin},
}

// part is a part of a page that a key may not be allowed to see: then Refused says so.
type part[T any] struct {
	Refused string
	Got     T
}

// load reads a part. Other errors than those of rights are the page's.
func (p *part[T]) load(q *request, operation string, query ...string) error {
	err := q.get(&p.Got, operation, query...)
	if x, ok := errors.AsType[*api.Problem](err); ok && x.Status == http.StatusForbidden {
		p.Refused = x.Detail
		return nil
	}
	return err
}

type adminPage struct {
	Keys    part[listed[store.APIKey]]
	Audit   part[listed[store.Action]]
	Place   part[api.Installation]
	Expires []choice
}

// choice is an entry of a list of values.
type choice struct{ Value, Text string }

func showAdmin(q *request) (any, error) {
	p := &adminPage{Expires: []choice{{"", "when it is revoked"}}}
	for _, c := range []struct {
		days int
		text string
	}{{7, "in a week"}, {30, "in 30 days"}, {90, "in 90 days"}, {365, "in a year"}} {
		at := q.Now.AddDate(0, 0, c.days).UTC().Format(time.RFC3339)
		p.Expires = append(p.Expires, choice{Value: at, Text: c.text})
	}
	ended := ""
	if q.param("ended") != "" {
		ended = "true"
	}
	return p, errors.Join(p.Keys.load(q, "/v1/keys", "all", ended),
		p.Audit.load(q, "/v1/audit", "limit", "50", "after", q.param("after")), p.Place.load(q, "/v1/installation"))
}

// Faults returns how many settings and migrations are not as they are wanted.
func (p *adminPage) Faults() (n int) {
	for _, s := range p.Place.Got.Settings {
		if !s.OK {
			n++
		}
	}
	return n + len(p.Place.Got.Pending)
}
