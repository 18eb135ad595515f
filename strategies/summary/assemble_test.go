package summary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/redact"
)

func TestInsertRequest(t *testing.T) {
	t.Parallel()
	answer := "## Active task\nWhat the model remembers. [m3 user]\n\n## State\nred"
	request := "Fix it.\r\n## Goal\nnot a heading"
	verbatim := verbatimNote + " [m9 user]\n\n> Fix it.\n> ## Goal\n> not a heading\n\n## State\nred"
	if diff := cmp.Diff("## Active task\nWhat the model remembers. [m3 user]\n\n"+verbatim, insertRequest(answer, request, "[m9 user]")); diff != "" {
		t.Errorf("a short request: (-want +got):\n%s", diff)
	}
	long := strings.Repeat("And look at it again. ", 10)
	if got := insertRequest(answer, long, ""); strings.Contains(got, "remembers") || !strings.HasPrefix(got, "## Active task\n"+verbatimNote+"\n\n> And look") {
		t.Errorf("a long request: %s", got)
	}
	if plain := insertRequest("All is well.", "is it?", ""); plain != "## Active task\n"+verbatimNote+"\n\n> is it?\n\n## Notes\nAll is well." {
		t.Errorf("%q", plain)
	}
	if same := insertRequest("## Active task\nas it was", "", ""); same != "## Active task\nas it was" {
		t.Errorf("without a request: %q", same)
	}
	secret := made("gh"+"p_", 30)
	masked, _ := redact.Redact(strings.Repeat("ä", 12000) + secret + strings.Repeat("ö", 12000))
	cut := insertRequest("x", masked, "")
	if strings.Contains(cut, secret) || !strings.Contains(cut, "characters left out") || strings.Count(cut, "ä") != 2666 || strings.Count(cut, "ö") != 1334 {
		t.Errorf("%q", cut)
	}
}

// A model may copy the request from the notes before.
func TestARequestIsInsertedOnce(t *testing.T) {
	t.Parallel()
	bits := rapid.SliceOfN(rapid.SampledFrom([]string{"## Active task\n", "## Goal\n", "## Pinned\n", "**Active task**\n", "text", "\n", "\n\n", "é", "\r"}), 0, 10)
	rapid.Check(t, func(t *rapid.T) {
		request := strings.Join(bits.Draw(t, "request"), "")
		once := insertRequest(strings.Join(bits.Draw(t, "answer"), ""), request, "[m1 user]")
		if twice := insertRequest(once, request, "[m1 user]"); twice != once {
			t.Fatalf("%q and then\n%q", once, twice)
		}
	})
}

func TestCodeInAQuotationEndsWithIt(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"> ```\n> go build\n## State\nred":                "```\ngo build\n```\n## State\nred",
		"> ```\n> go build\n> ```\n> said so\n":           "```\ngo build\n```\nsaid so\n",
		"```\n> kept in code\n```\n> and said\n> ~~~\nan": "```\n> kept in code\n```\nand said\n~~~\n~~~\nan",
		"```\nopen": "```\nopen\n```",
	} {
		if diff := cmp.Diff(want, withoutBlockQuotes(answer)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", answer, diff)
		}
	}
}
