package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestKeysAreUsedUntilTheyEnd(t *testing.T) {
	s := fresh(t)
	a := s.Admin
	ctx := t.Context()
	_, first, err := a.CreateKey(ctx, NewKey{Name: "agents", Scope: ScopeAppend, Tenant: "acme", Note: "n"}, "me")
	noError(t, err)
	_, all := must2(a.CreateKey(ctx, NewKey{Name: "agents", Scope: ScopeAdmin}, "me"))(t) // another tenant's name
	k := must(a.UseKey(ctx, first))(t)
	if k.Scope != ScopeAppend || *k.Tenant != "acme" || !strings.HasPrefix(first, k.Prefix) || len(k.Prefix) > 12 || k.CreatedBy != "me" {
		t.Errorf("%+v", k)
	}
	if k := must(a.UseKey(ctx, all))(t); k.Tenant != nil {
		t.Errorf("reaches %s", *k.Tenant)
	}
	keys := must(a.Keys(ctx, "acme", true))(t)
	if len(keys) != 1 || keys[0].LastUsedAt == nil {
		t.Errorf("%+v", keys)
	}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.api_keys k WHERE k::text LIKE '%' || $1 || '%'`, first[len(keyMark)+8:]), "keys that are stored")

	rotated, newer, err := a.RotateKey(ctx, "acme", "agents", time.Hour, "me")
	noError(t, err)
	if rotated.Name != "agents" || *rotated.Tenant != "acme" || newer == first {
		t.Errorf("%+v", rotated)
	}
	for _, secret := range []string{first, newer} {
		must(a.UseKey(ctx, secret))(t)
	}
	must(a.RevokeKey(ctx, "", fmt.Sprintf("%s.%d", keys[0].Name, keys[0].ID), "me"))(t) // as rotate_key names it
	must(a.RevokeKey(ctx, "acme", "agents", "me"))(t)
	exec(t, s, `UPDATE compactor.api_keys SET expires_at = now() WHERE tenant IS NULL`)
	_, _, err = a.RotateKey(ctx, "", "agents", 0, "me")
	wantError(t, err, ErrNotFound, "rotation of an expired key")
	for name, secret := range map[string]string{"revoked": first, "rotated": newer, "expired": all, "unknown": "cpk_x", "empty": ""} {
		wantError(t, second(a.UseKey(ctx, secret)), ErrNotFound, "%s", name)
	}
	if exist, err := a.HasKeys(ctx); !exist || err != nil { // an API does not become open when its last key ends
		t.Errorf("keys: %v, %v", exist, err)
	}
	for name, k := range map[string]NewKey{
		"scope": {Name: "x", Scope: "root"}, "name": {Name: "a b", Scope: ScopeRead}, "past": {Name: "x", Scope: ScopeRead, ExpiresAt: time.Unix(1, 0)},
		"digits": {Name: "12", Scope: ScopeRead},
	} {
		if _, _, err := a.CreateKey(ctx, k, ""); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABoundStoreReachesNoOtherTenant(t *testing.T) {
	t.Parallel()
	s, _ := openRoles(t)
	run := twoTenants(t, s)
	ctx := t.Context()
	before := fingerprint(t, s)
	if may, err := s.MayBeOperator(ctx); err != nil || !may {
		t.Fatalf("may be operator: %v, %v", may, err)
	}
	for _, asOperator := range []bool{true, false} {
		b := s.Bound("ours", asOperator)
		theirs := Key{Tenant: "theirs", Session: "secret"}
		for name, try := range map[string]func() error{
			"view":    func() error { _, _, err := b.View(ctx, theirs); return err },
			"session": func() error { _, err := b.Session(ctx, theirs); return err },
			"append":  func() error { _, _, err := b.Append(ctx, theirs, "", []NewMessage{user("", "x")}); return err },
			"undo":    func() error { _, err := b.Undo(ctx, theirs, run, true, "me"); return err },
			"key": func() error {
				_, _, err := b.Admin.CreateKey(ctx, NewKey{Name: "k", Scope: ScopeRead, Tenant: "theirs"}, "")
				return err
			},
		} {
			if err := try(); !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s as operator %v: %v", name, asOperator, err)
			}
		}
	}
	b := s.Bound("ours", true).Operator
	for _, r := range must(b.Runs(ctx, RunFilter{Limit: 100}))(t) {
		if r.Tenant != "ours" {
			t.Errorf("lists run %+v", r)
		}
	}
	sessions, _ := must2(b.Sessions(ctx, SessionFilter{Limit: 100}))(t)
	for _, r := range sessions {
		if r.Tenant != "ours" {
			t.Errorf("lists %+v", r)
		}
	}
	for name, o := range map[string]Operator{"a bound store": b, "all": s.Operator} { // with the one that is in no session
		a := must(o.Activity(ctx, "ours", time.Hour))(t)
		if len(a.Models) != 1 || a.Models[0].Calls != 2 {
			t.Errorf("%s: %+v", name, a.Models)
		}
	}
	if _, err := s.Bound("ours", true).Run(ctx, run); !errors.Is(err, ErrNotFound) {
		t.Errorf("run of others: %v", err)
	}
	equal(t, before, fingerprint(t, s), "the database")
}
