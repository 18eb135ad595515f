package web

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
)

// signIn is the content of the cookie of a browser that is signed in, which is encrypted.
type signIn struct {
	// Key is the secret of the key; "" on a server without keys.
	Key string `json:"k"`
	// Token comes with each change, so that no other site can ask for one.
	Token string `json:"t"`
	// At is when the cookie was made, in seconds of Unix.
	At int64 `json:"a"`
}

const (
	cookieName = "compactor"
	// renewAfter is the age at which a cookie is made anew, if it may be ten times as old.
	renewAfter = time.Minute
	// maxSignIn bounds the body of a sign-in, which anybody may send.
	maxSignIn = 16 << 10
)

// admit returns the request of a browser that is signed in, or of any on a server without keys.
func (s *site) admit(w http.ResponseWriter, r *http.Request) (*request, error) {
	q := &request{Options: s.Options, w: w, r: r, Now: time.Now(), Tenant: r.URL.Query().Get("tenant")}
	q.sign = s.signedIn(r)
	var err error
	if q.Caller, err = s.server.Caller(r, q.sign.Key); err != nil {
		return nil, err
	}
	if own := q.Key().Tenant; own != nil && q.Tenant == "" {
		q.Tenant = *own
	}
	if q.sign.Token == "" {
		q.sign.Token = rand.Text()
	}
	q.may()
	// Pages that ask for fresh figures by themselves do not keep anybody signed in.
	polled := r.URL.Path == api.PagesPath+"live" || strings.HasPrefix(r.Header.Get("HX-Target"), "main")
	if !polled && q.Now.Unix()-q.sign.At >= int64(min(renewAfter, s.SignOut/10).Seconds()) {
		err = s.remember(q.w, r, q.sign)
	}
	return q, err
}

// signedIn returns the content of the cookie of a request, nothing if it is not from here or too old.
func (s *site) signedIn(r *http.Request) (in signIn) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return signIn{}
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return signIn{}
	}
	cipher, err := s.server.Cipher(r.Context())
	if err != nil {
		return signIn{}
	}
	raw, err := cipher.Open(nil, nil, sealed, []byte(cookieName))
	if err != nil || json.Unmarshal(raw, &in) != nil || time.Since(time.Unix(in.At, 0)) > s.SignOut {
		return signIn{}
	}
	return in
}

// remember gives a browser its cookie.
func (s *site) remember(w http.ResponseWriter, r *http.Request, in signIn) error {
	in.At = time.Now().Unix()
	cipher, err := s.server.Cipher(r.Context())
	if err != nil {
		return err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sealed := cipher.Seal(nil, nil, raw, []byte(cookieName)) //nolint:gosec // the cipher draws a nonce for each
	s.setCookie(w, base64.RawURLEncoding.EncodeToString(sealed), 0)
	return nil
}

func (s *site) setCookie(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure as the server is
		Name: cookieName, Value: value, Path: api.PagesPath, MaxAge: maxAge, HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode,
	})
}

func (s *site) showSignIn(w http.ResponseWriter, r *http.Request) {
	s.write(
		&request{Options: s.Options, w: w, r: r, Now: time.Now()},
		http.StatusOK,
		"sign-in",
		view{Title: "Sign in", request: &request{r: r}},
	)
}

// signIn answers the form of a sign-in.
func (s *site) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	in := signIn{Key: strings.TrimSpace(r.PostFormValue("key")), Token: rand.Text()}
	_, err := s.server.Caller(r, in.Key)
	if err == nil {
		err = s.remember(w, r, in)
	}
	q := &request{Options: s.Options, w: w, r: r, Now: time.Now()}
	if err != nil {
		p, ok := err.(*api.Problem) //nolint:errorlint // as Caller returns it
		if !ok {
			p = &api.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "The database cannot be reached."}
		}
		s.write(q, p.Status, "sign-in", view{q, "Sign in", "", p})
		return
	}
	http.Redirect(w, r, localPath(r.FormValue("next")), http.StatusSeeOther) //nolint:gosec // it is of this site
}

// localPath returns an address of the dashboard, its first page for any other.
func localPath(next string) string {
	if clean := strings.ReplaceAll(next, "\\", "/"); strings.HasPrefix(clean, api.PagesPath) && !strings.Contains(clean, "//") {
		return next
	}
	return api.PagesPath
}

func (s *site) signOut(w http.ResponseWriter, r *http.Request) {
	if !s.sameToken(r, s.signedIn(r)) {
		http.Error(w, "the form is not from this page", http.StatusForbidden)
		return
	}
	s.setCookie(w, "", -1)
	http.Redirect(w, r, api.PagesPath+"sign-in", http.StatusSeeOther)
}

// sameToken reports whether a form has the token of the browser that it comes from.
func (s *site) sameToken(r *http.Request, in signIn) bool {
	if in.Token == "" {
		return false
	}
	given := cmp.Or(r.PostFormValue("_token"), r.Header.Get("X-Token"))
	return subtle.ConstantTimeCompare([]byte(given), []byte(in.Token)) == 1
}
