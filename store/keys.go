package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"time"

	"github.com/jackc/pgx/v5"
)

// The scopes of keys. Each includes those before it.
const (
	ScopeRead    = "read"
	ScopeAppend  = "append"
	ScopeOperate = "operate"
	ScopeAdmin   = "admin"
)

// The forms in which /v1/responses/compact answers.
const (
	OutputMessages = "messages"
	OutputItem     = "item"
)

// APIKey is a key of the HTTP API, without the secret.
type APIKey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	Prefix     string     `json:"prefix"`
	Hash       []byte     `json:"-"`
	Scope      string     `json:"scope"`
	Tenant     *string    `json:"tenant"` // nil: all
	Note       string     `json:"note"`
	CreatedBy  string     `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
	RevokedBy  string     `json:"revoked_by,omitempty"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty"` // to the minute
	Output     string     `json:"output"`                 // OutputMessages or OutputItem
}

// NewKey describes a key to create. An empty Tenant is all of them, an empty Output OutputMessages.
type NewKey struct {
	Name, Scope, Tenant, Note, Output string
	ExpiresAt                         time.Time // zero: never
}

const (
	// keyMark begins all keys, so that scanners of secrets find them.
	keyMark   = "cpk_"
	keyBytes  = 32
	keyPrefix = len(keyMark) + 6
)

// newSecret returns a new key, what of it may be shown, and its hash.
func newSecret() (key, prefix string, hash []byte) {
	raw := make([]byte, keyBytes)
	_, _ = rand.Read(raw) // never fails
	key = keyMark + base64.RawURLEncoding.EncodeToString(raw)
	return key, key[:keyPrefix], hashKey(key)
}

// hashKey returns the stored form of a key. Keys are random, so that no salt is needed.
func hashKey(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// CreateKey creates a key of the API and returns it with its secret, which is not stored. ErrInUse: the
// name is taken.
func (s Admin) CreateKey(ctx context.Context, k NewKey, by string) (created APIKey, secret string, err error) {
	secret, prefix, hash := newSecret()
	var expires *time.Time
	if !k.ExpiresAt.IsZero() {
		expires = &k.ExpiresAt
	}
	const query = `SELECT * FROM compactor.create_key($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	created, err = queryRow(ctx, s.Store, "create key", pgx.RowToStructByPos[APIKey], query,
		k.Name, prefix, hash, k.Scope, k.Tenant, expires, k.Note, by, k.Output)
	return created, secret, err
}

// Keys returns the keys of a tenant, or all for an empty one, in the order of their creation; revoked
// and expired ones if ended is set.
func (s Admin) Keys(ctx context.Context, tenant string, ended bool) ([]APIKey, error) {
	const query = `SELECT * FROM compactor.api_keys WHERE $1 IN ('', tenant) AND (coalesce(tenant, '') = (SELECT compactor.bound_tenant())) IS NOT FALSE
		AND ($2 OR revoked_at IS NULL AND (expires_at > now()) IS NOT FALSE) ORDER BY id`
	return queryRows(ctx, s.Store, "keys", pgx.RowToStructByPos[APIKey], query, tenant, ended)
}

// RevokeKey revokes a key of a tenant, or of any for an empty one, by its id or name. Servers that have
// seen it accept it for a few seconds more.
func (s Admin) RevokeKey(ctx context.Context, tenant, key, by string) (int64, error) {
	return queryRow(ctx, s.Store, "revoke key", pgx.RowTo[int64], `SELECT compactor.revoke_key($1, $2, $3)`, tenant, key, by)
}

// RotateKey replaces a key by another one of the same name, scope and tenant, and returns that. The
// old one is accepted for grace still.
func (s Admin) RotateKey(ctx context.Context, tenant, key string, grace time.Duration, by string) (k APIKey, secret string, err error) {
	secret, prefix, hash := newSecret()
	k, err = queryRow(ctx, s.Store, "rotate key", pgx.RowToStructByPos[APIKey], `SELECT * FROM compactor.rotate_key($1, $2, $3, $4, $5, $6)`,
		tenant, key, prefix, hash, grace, by)
	return k, secret, err
}

// UseKey returns the key that a secret is, if it is in force, and notes its use. ErrNotFound: it is
// none, or revoked, or expired.
func (s Admin) UseKey(ctx context.Context, secret string) (APIKey, error) {
	hash := hashKey(secret)
	k, err := queryRow(ctx, s.Store, "key", pgx.RowToStructByPos[APIKey], `SELECT * FROM compactor.use_key($1)`, hash)
	if err == nil && subtle.ConstantTimeCompare(hash, k.Hash) != 1 {
		return APIKey{}, ErrNotFound
	}
	return k, err
}

// HasKeys reports whether there is any key, be it revoked or expired.
func (s Admin) HasKeys(ctx context.Context) (bool, error) {
	const query = `SELECT EXISTS (SELECT FROM compactor.api_keys)`
	return queryRow(ctx, s.Store, "keys", pgx.RowTo[bool], query)
}

// ItemCipher returns the cipher of the items of a tenant that clients keep. It is the same in all processes of the installation.
func (s Worker) ItemCipher(ctx context.Context, tenant string) (cipher.AEAD, error) {
	secret, err := queryRow(ctx, s.Store, "secret of items", pgx.RowTo[[]byte], `SELECT compactor.item_secret()`)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "compaction item of tenant "+tenant, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
