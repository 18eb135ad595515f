package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/summary"
)

// policies registers the operations on policies.
func (a *api) policies() {
	const get, post = http.MethodGet, http.MethodPost
	register(a, operation{
		scope: reads, method: get, path: "/v1/policies", id: "list-policies",
		summary: "List the policies in force, with their sessions, and how far the sessions follow",
	}, listPolicies)
	register(a, operation{
		scope: reads, method: get, path: "/v1/policies/{policy}", id: "get-policy",
		summary: "A version of a policy, with all settings",
	}, getPolicy)
	register(a, operation{
		scope: reads, method: get, path: "/v1/policies/{policy}/history", id: "get-policy-history",
		summary: "All versions of a policy, and which were in force",
	}, policyHistory)
	register(a, operation{
		scope: admins, method: post, path: "/v1/policies", id: "apply-policy", summary: "Put a policy file in force, or show what that changes",
		more: func(op *huma.Operation) {
			op.SkipValidateBody = true // which may be YAML
			op.RequestBody = &huma.RequestBody{
				Required: true, Description: "A policy file, as YAML or JSON.",
				Content: map[string]*huma.MediaType{"application/yaml": {}, "application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}},
			}
		},
	}, applyPolicy)
	register(a, operation{
		scope: admins, method: post, path: "/v1/policies/{policy}/rollback", id: "rollback-policy",
		summary: "Put an earlier version of a policy in force again, or show what that changes",
	}, rollbackPolicy)
	register(a, operation{
		scope: admins, method: post, path: "/v1/policies/{policy}/disable", id: "disable-policy",
		summary: "Take a policy out of force, or show what that changes",
	}, disablePolicy)
	register(a, operation{
		scope: operates, method: http.MethodPut, path: "/v1/policies/{policy}/sessions/{session}", id: "assign-policy",
		summary: "Give a session a policy, whatever matches it",
	}, assignPolicy)
}

// PolicyPath is the parameter of paths below a policy.
type PolicyPath struct {
	Policy string `path:"policy" doc:"The name of the policy."`
}

type policyList struct {
	Items    []policies.Row        `json:"items"`
	Progress *store.PolicyProgress `json:"progress,omitempty" doc:"How far the sessions of all tenants follow the last change; not for a key of one tenant."`
}

func listPolicies(ctx context.Context, c *caller, _ *struct{}) (*body[policyList], error) {
	rows, err := policies.List(ctx, c.store, c.tenant)
	if err != nil {
		return nil, err
	}
	if c.tenant != "" {
		return answer(policyList{Items: rows}, nil)
	}
	progress, err := c.store.PolicyProgress(ctx)
	return answer(policyList{rows, &progress}, err)
}

type getPolicyIn struct {
	PolicyPath
	Version int `query:"version" minimum:"0" doc:"0, the default, for the version in force."`
}

func getPolicy(ctx context.Context, c *caller, in *getPolicyIn) (*body[store.PolicyVersion], error) {
	return answer(policies.Ref{Name: in.Policy, Version: in.Version}.Load(ctx, c.store))
}

func policyHistory(ctx context.Context, c *caller, in *PolicyPath) (*body[policies.History], error) {
	return answer(policies.HistoryOf(ctx, c.store, in.Policy))
}

// change previews steps, and makes them unless it is a dry run.
func (c *caller) change(ctx context.Context, dryRun bool, steps []policies.Step, err error) (*body[policies.Changes], error) {
	if err != nil {
		return nil, err
	}
	changes, err := policies.Preview(ctx, c.all(), steps)
	if err == nil && !dryRun && len(steps) > 0 {
		err = changes.Apply(ctx, c.all(), steps, c.by())
	}
	return answer(changes, err)
}

type applyPolicyIn struct {
	Preview
	RawBody []byte
}

func applyPolicy(ctx context.Context, c *caller, in *applyPolicyIn) (*body[policies.Changes], error) {
	o := c.server.o
	registry := o.Registry.With(summary.New(summary.Options{}))
	files, err := policies.Read(ctx, c.all(), o.Config, registry, policies.Source{Path: "body", Raw: in.RawBody})
	if err != nil {
		return nil, faulty(err)
	}
	steps, _, err := policies.Applying(ctx, c.all(), o.Config, files)
	return c.change(ctx, in.only(), steps, err)
}

// faulty returns the problem of a policy file with faults.
func faulty(err error) error {
	p := invalid("body", "%s", err)
	for _, fault := range flat(err) {
		f := Fault{Field: "body", Detail: fault.Error()}
		if s, ok := errors.AsType[*config.SettingError](fault); ok {
			f = Fault{Field: "body." + s.Key, Detail: s.Error()}
		}
		p.Errors = append(p.Errors, f)
	}
	if len(p.Errors) > 0 {
		p.Field, p.Detail = p.Errors[0].Field, p.Errors[0].Detail
	}
	if len(p.Errors) < 2 {
		p.Errors = nil
	}
	return p
}

// flat returns the errors that errors.Join has joined.
func flat(err error) (out []error) {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // one that wraps errors is not joined
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		out = append(out, flat(e)...)
	}
	return out
}

type rollbackPolicyIn struct {
	PolicyPath
	Preview
	Body *struct {
		To int `json:"to,omitempty" minimum:"1" doc:"The version; by default the one that was in force before."`
	}
}

func rollbackPolicy(ctx context.Context, c *caller, in *rollbackPolicyIn) (*body[policies.Changes], error) {
	steps, _, err := policies.RollingBack(ctx, c.store, c.server.o.Config, in.Policy, given(in.Body).To)
	return c.change(ctx, in.only(), steps, err)
}

type disablePolicyIn struct {
	PolicyPath
	Preview
}

func disablePolicy(ctx context.Context, c *caller, in *disablePolicyIn) (*body[policies.Changes], error) {
	steps, err := policies.Disabling(ctx, c.store, c.server.o.Config, in.Policy)
	return c.change(ctx, in.only(), steps, err)
}

type assignPolicyIn struct {
	PolicyPath
	SessionPath
}

func assignPolicy(ctx context.Context, c *caller, in *assignPolicyIn) (*body[store.SessionRow], error) {
	st, k := c.of(in.Session)
	if err := st.SetPolicy(ctx, k, in.Policy); err != nil {
		return nil, fmt.Errorf("assign policy: %w", err)
	}
	return answer(st.Session(ctx, k))
}
