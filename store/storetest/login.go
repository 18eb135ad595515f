package storetest

import (
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Login creates a login that is a member of a role, or of none for "", until the test ends.
// It returns its name and its DSN for the database of dsn. The test is skipped on a server
// that lets tests create no roles.
func Login(t testing.TB, dsn, role string) (name, own string) {
	t.Helper()
	name = "compactor_test_" + strings.ToLower(rand.Text())
	password := rand.Text()
	execute := func(sql string) error {
		return admin(Context(t), dsn, sql)
	}
	create := "create role " + quote(name) + " login password '" + password + "'"
	if role != "" {
		create += " in role " + quote(role)
	}
	if err := execute(create); err != nil {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
			t.Skip("the server lets tests create no roles")
		}
		t.Fatalf("create a login: %v", err)
	}
	t.Cleanup(func() {
		if err := execute("drop role " + quote(name)); err != nil {
			t.Errorf("drop the login: %v", err)
		}
	})
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.User = url.UserPassword(name, password)
		return name, u.String()
	}
	return name, dsn + " user=" + name + " password=" + password
}
