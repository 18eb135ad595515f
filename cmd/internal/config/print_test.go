package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"postgres://u:pw@h:5432/db":                   "postgres://u:xxxxx@h:5432/db",
		"postgres://u@h:5432/db":                      "postgres://u@h:5432/db",
		"postgres://h/db":                             "postgres://h/db",
		"postgres://u:p@ss/w?r#d@h/db":                "postgres://u:xxxxx@h/db",
		"postgres://u:12?34@h/db":                     "postgres://u:xxxxx@h/db",
		"postgres://u:my pw@h/db":                     "postgres://u:xxxxx@h/db",
		"redis://:pw@h:6379/0":                        "redis://:xxxxx@h:6379/0",
		"postgres://h/db?user=u&password=pw&a=b":      "postgres://h/db?user=u&password=xxxxx&a=b",
		"postgres://h/db?sslpassword=pw":              "postgres://h/db?sslpassword=xxxxx",
		"host=h user=u password=p&w dbname=d":         "host=h user=u password=xxxxx dbname=d",
		`host=h password='it\'s mine' user=u`:         "host=h password=xxxxx user=u",
		"PASSWORD = pw host=h":                        "PASSWORD = xxxxx host=h",
		"password='never closed host=h":               "password=xxxxx",
		`password=a\ b host=h`:                        "password=xxxxx host=h",
		"cannot connect to postgres://u:pw@h/db: eof": "cannot connect to postgres://u:xxxxx@h/db: eof",
		"": "",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Database.URL = "postgres://u:hush@h/db"
	c.Redis.URL = "hush"
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v %+v %#v %s %q\n", c, c, c, c.Database.URL, c.Redis.URL)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "url", c.Database.URL, "config", c)
	if err := json.NewEncoder(&b).Encode(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Print(term.Output{W: &b}); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&b).Encode(c.Entries()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "hush") {
		t.Errorf("a password shows:\n%s", b.String())
	}
	if got := c.Database.URL.Reveal(); got != "postgres://u:hush@h/db" {
		t.Errorf("Reveal gives %q", got)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	c, err := Load(LoadOptions{Dir: t.TempDir(), Environ: []string{
		"DATABASE_URL=postgres://u:pw@h/db", `COMPACTOR_LLM_MODELS=[{name: m, base_url: "http://h/v1", window_tokens: 8000}]`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.Print(term.Output{W: &b}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"database.url                       env DATABASE_URL          postgres://u:xxxxx@h/db\n",
		"worker.job_timeout                 default                   45m\n",
		`env COMPACTOR_LLM_MODELS  [{"name":"m","base_url":"http://h/v1","window_tokens":8000}]`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
