package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
)

// keys registers the operations on keys.
func (a *api) keys() {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	register(a, operation{
		scope: admins, method: get, path: "/v1/keys", id: "list-keys",
		summary: "List keys, without the keys themselves",
	}, listKeys)
	register(a, operation{
		scope: admins, method: post, path: "/v1/keys", id: "create-key",
		summary: "Make a key, which is shown once", more: func(op *huma.Operation) { op.DefaultStatus = http.StatusCreated },
	}, createKey)
	register(a, operation{
		scope: admins, method: del, path: "/v1/keys/{key}", id: "revoke-key",
		summary: "Revoke a key; servers accept it for some seconds more",
	}, revokeKey)
	register(a, operation{
		scope: admins, method: post, path: "/v1/keys/{key}/rotate", id: "rotate-key",
		summary: "Replace a key by a new one with the same rights",
	}, rotateKey)
}

type listKeysIn struct {
	All bool `query:"all" doc:"Also those that are revoked or expired."`
}

func listKeys(ctx context.Context, c *caller, in *listKeysIn) (*body[list[store.APIKey]], error) {
	return items(c.store.Admin.Keys(ctx, c.tenant, in.All))
}

type createKeyIn struct {
	Body struct {
		All       bool       `json:"all,omitempty" doc:"For all tenants."`
		Name      string     `json:"name" doc:"What its requests are recorded with."`
		Scope     string     `json:"scope" enum:"read,append,operate,admin" doc:"What it may do; each includes those before it."`
		ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"Without it, it is valid until it is revoked."`
		Note      string     `json:"note,omitempty" doc:"What it is for."`
		Output    string     `json:"output,omitempty" enum:"messages,item" doc:"What /v1/responses/compact answers: messages, or an item for this server alone."`
	}
}

// newKey is a key with its secret.
type newKey struct {
	Key string `json:"key" doc:"The key, which is not shown again."`
	store.APIKey
}

func createKey(ctx context.Context, c *caller, in *createKeyIn) (*body[newKey], error) {
	if err := c.whom(in.Body.All); err != nil {
		return nil, err
	}
	k := store.NewKey{Name: in.Body.Name, Scope: in.Body.Scope, Tenant: c.tenant, Note: in.Body.Note, Output: in.Body.Output}
	if in.Body.ExpiresAt != nil {
		k.ExpiresAt = *in.Body.ExpiresAt
	}
	created, secret, err := c.store.Admin.CreateKey(ctx, k, c.by())
	return answer(newKey{secret, created}, err)
}

// KeyPath is the parameter of paths below a key.
type KeyPath struct {
	Key string `path:"key" doc:"Its name, or its number."`
}

type revokedKey struct {
	Revoked int64 `json:"revoked"`
}

func revokeKey(ctx context.Context, c *caller, in *KeyPath) (*body[revokedKey], error) {
	id, err := c.store.Admin.RevokeKey(ctx, c.tenant, in.Key, c.by())
	return answer(revokedKey{id}, err)
}

type rotateKeyIn struct {
	KeyPath
	Body *struct {
		GraceSeconds float64 `json:"grace_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"How long the old key is accepted still."`
	}
}

func rotateKey(ctx context.Context, c *caller, in *rotateKeyIn) (*body[newKey], error) {
	k, secret, err := c.store.Admin.RotateKey(ctx, c.tenant, in.Key, seconds(given(in.Body).GraceSeconds), c.by())
	return answer(newKey{secret, k}, err)
}
