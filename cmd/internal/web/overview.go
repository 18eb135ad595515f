package web

import "github.com/sessionstore/compactor/store"

// overviewPage is the state of the fleet, or of a tenant.
type overviewPage struct {
	store.Stats
}

func overview(q *request) (any, error) {
	var p overviewPage
	return &p, q.get(&p.Stats, "/v1/stats")
}
