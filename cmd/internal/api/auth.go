package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sessionstore/compactor/store"
)

// scopes are in order: each includes those before it.
var scopes = []string{store.ScopeRead, store.ScopeAppend, store.ScopeOperate, store.ScopeAdmin}

// caller is who a request comes from.
type caller struct {
	secret string       // of the key
	key    store.APIKey // zero without keys
	tenant string       // that the request is bound to; "" for all
	store  *store.Store // bound to the tenant
	server *Server
}

// by returns the name that the actions of the caller are recorded with.
func (c *caller) by() string { return "key:" + cmp.Or(c.key.Name, "none") }

// may reports whether the caller has a scope.
func (c *caller) may(scope string) bool {
	return c.key.ID == 0 || slices.Index(scopes, c.key.Scope) >= slices.Index(scopes, scope)
}

// of returns a session of the caller's tenant, or of the default one, and the store for it.
func (c *caller) of(session string) (*store.Store, store.Key) {
	tenant := cmp.Or(c.tenant, c.server.o.Config.Tenant)
	if c.tenant == "" {
		return c.bound(tenant), store.Key{Tenant: tenant, Session: session}
	}
	return c.store, store.Key{Tenant: tenant, Session: session}
}

type callerKey struct{}

// callerOf returns the caller of a request.
func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

// bound returns the store bound to a tenant, or with the same rights to none.
func (s *Server) bound(tenant string) *store.Store { return s.o.Store.Bound(tenant, s.asOperator) }

// bound returns the same for the changes of the caller, which are recorded with its name.
func (c *caller) bound(tenant string) *store.Store { return c.server.bound(tenant).By(c.by()) }

const (
	// keyTTL is how long a key is accepted without asking the database, so also after it was revoked.
	keyTTL = 5 * time.Second
	// maxCached bounds the keys in memory.
	maxCached = 10_000
	// failuresPerSecond bounds the wrong keys of an address that are looked up, after failuresAtOnce.
	failuresPerSecond, failuresAtOnce = 20, 200
)

// keys looks keys up and limits their requests. Safe for concurrent use.
type keys struct {
	store    *store.Store
	perKey   rate.Limit
	failures [1024]*rate.Limiter // by the hash of an address, so that any number of them needs no more memory
	seed     maphash.Seed

	mu      sync.Mutex
	known   map[[sha256.Size]byte]*knownKey
	limits  map[int64]*rate.Limiter
	exist   bool // there is a key, or was one
	askedAt time.Time
}

type knownKey struct {
	key store.APIKey
	at  time.Time
}

func newKeys(st *store.Store, perSecond float64) *keys {
	k := &keys{
		store: st, perKey: rate.Limit(perSecond), seed: maphash.MakeSeed(),
		known: map[[sha256.Size]byte]*knownKey{}, limits: map[int64]*rate.Limiter{},
	}
	for i := range k.failures {
		k.failures[i] = rate.NewLimiter(failuresPerSecond, failuresAtOnce)
	}
	return k
}

// open reports whether requests need no key, as there never was one.
func (k *keys) open(ctx context.Context) (bool, error) {
	k.mu.Lock()
	exist, fresh := k.exist, time.Since(k.askedAt) < keyTTL
	k.mu.Unlock()
	if exist || fresh {
		return !exist, nil
	}
	exist, err := k.store.Admin.HasKeys(ctx)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.exist, k.askedAt = exist, time.Now()
	return !exist, nil
}

// failuresOf returns the limiter of the wrong keys from the address of a connection. Headers that name another one are not believed.
func (k *keys) failuresOf(remote string) *rate.Limiter {
	peer, _ := netip.ParseAddrPort(remote)
	address := peer.Addr().Unmap()
	network, _ := address.Prefix(min(64, address.BitLen())) // who has one address of IPv6 has all of these
	return k.failures[maphash.Comparable(k.seed, network)%uint64(len(k.failures))]
}

// find returns the key that a secret from an address is, a zero one for none as long as there are no keys.
func (k *keys) find(ctx context.Context, secret, remote string) (store.APIKey, error) {
	if secret == "" {
		open, err := k.open(ctx)
		if err == nil && !open {
			err = problem(http.StatusUnauthorized, "no_key", "give a key: Authorization: Bearer cpk_… (`compactor key create` makes one)").
				with("WWW-Authenticate", "Bearer")
		}
		return store.APIKey{}, err
	}
	hash := sha256.Sum256([]byte(secret))
	k.mu.Lock()
	known := k.known[hash]
	k.mu.Unlock()
	if known != nil && time.Since(known.at) < keyTTL && (known.key.ExpiresAt == nil || time.Now().Before(*known.key.ExpiresAt)) {
		return known.key, nil
	}
	failures := k.failuresOf(remote)
	if known == nil && failures.Tokens() < 1 {
		return store.APIKey{}, problem(http.StatusTooManyRequests, "rate_limited", "too many requests with unknown keys from this address").
			with("Retry-After", "1")
	}
	key, err := k.store.Admin.UseKey(ctx, secret)
	if errors.Is(err, store.ErrNotFound) {
		failures.Allow()
		err = problem(http.StatusUnauthorized, "invalid_key", "the key is unknown, revoked or expired").with("WWW-Authenticate", "Bearer")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		delete(k.known, hash)
		return key, err
	}
	if len(k.known) >= maxCached {
		clear(k.known)
	}
	k.known[hash] = &knownKey{key, time.Now()}
	k.exist, k.askedAt = true, time.Now()
	return key, nil
}

// allow takes a request with a key, 0 for none, off its limit, or returns how long to wait.
func (k *keys) allow(id int64) time.Duration {
	k.mu.Lock()
	limit := k.limits[id]
	if limit == nil {
		limit = rate.NewLimiter(k.perKey, max(1, int(k.perKey)))
		k.limits[id] = limit
	}
	k.mu.Unlock()
	r := limit.Reserve()
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
	}
	return wait
}

// authenticate returns the caller of a request.
func (s *Server) authenticate(r *http.Request) (*caller, error) {
	secret := cmp.Or(bearer(r.Header.Get("Authorization")), r.Header.Get("X-Api-Key"))
	key, err := s.admit(r, secret)
	if err != nil {
		return nil, err
	}
	return s.callerFor(r, secret, key)
}

// admit returns the key that a secret is, a zero one for none, if a request with it may be answered now.
func (s *Server) admit(r *http.Request, secret string) (store.APIKey, error) {
	key, err := s.keys.find(r.Context(), secret, r.RemoteAddr)
	if err != nil {
		return key, err
	}
	if key.ID == 0 && (!s.loopback || !isLocal(r.Host)) { // a page whose name leads here
		return key, problem(http.StatusForbidden, "foreign_host", "without keys, the host of a request is 127.0.0.1 or localhost")
	}
	if wait := s.keys.allow(key.ID); wait > 0 {
		return key, problem(http.StatusTooManyRequests, "rate_limited",
			"more than %v requests a second with this key (api.requests_per_second)", s.o.Config.API.RequestsPerSecond).
			with("Retry-After", retryAfter(wait))
	}
	return key, nil
}

// callerFor returns the caller of a request with a key.
func (s *Server) callerFor(r *http.Request, secret string, key store.APIKey) (*caller, error) {
	c := &caller{server: s, secret: secret, key: key}
	if strings.Contains(r.URL.RawQuery, "tenant=") {
		c.tenant = r.URL.Query().Get("tenant")
	}
	if own := c.key.Tenant; own != nil {
		if c.tenant != "" && c.tenant != *own {
			return nil, problem(http.StatusForbidden, "other_tenant", "the key reaches one tenant, which need not be given")
		}
		if !s.asOperator {
			return nil, problem(http.StatusForbidden, "no_row_level_security",
				"keys of one tenant need row-level security: the server's login may not take the role operator. "+
					"`compactor migrate up` creates it; grant it to the login, and start the server again")
		}
		c.tenant = *own
	}
	c.store = c.bound(c.tenant)
	return c, nil
}

// bearer returns the token of an Authorization header.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// isLocal reports whether the host of a request is a name of this machine for itself.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && address.IsLoopback()
}
