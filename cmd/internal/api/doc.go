// Package api is the HTTP API: sessions for applications, and the work of operators, on one
// address. It decides authentication, limits, shapes and errors; every endpoint is one or two
// calls of the store, of the strategies or of the worker's planner.
//
// Each request has a key with a scope and a tenant, and a store that is bound to that tenant, so
// that row-level security stands behind the code. Errors are problems of RFC 9457 with a stable
// code. The document of the API is testdata/openapi.json; tests validate all answers against it.
package api
