package retention_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
)

// A constraint of the user counts in six languages, also if a word of it is missing on the line that
// keeps it. Other sentences are none.
func TestConstraintsInSixLanguages(t *testing.T) {
	t.Parallel()
	for language, s := range map[string]struct{ constraint, nearly, other string }{
		"English":  {"Never write to the production database directly.", "(user: never write to the production database)", "The upload of the file took a minute yesterday."},
		"German":   {"Schreibe niemals direkt in die echte Datenbank.", "niemals direkt in die echte Datenbank schreiben, Schreibe", "Der Upload der Datei dauerte gestern eine Minute."},
		"Spanish":  {"Nunca escribas directamente en la base de producción.", "nunca escribas en la base de producción.", "La subida del archivo tardó ayer un minuto."},
		"Russian":  {"Никогда не пиши напрямую в рабочую базу данных.", "никогда не пиши в рабочую базу данных.", "Загрузка файла вчера заняла одну минуту."},
		"Chinese":  {"不要直接写入生产环境的数据库。", "约束：不要直接写入生产环境的数据", "昨天上传文件用了一分钟。"},
		"Japanese": {"本番のデータベースには絶対に直接書き込まない。", "制約：本番のデータベースには絶対に直接書き込まず", "昨日のアップロードは一分かかりました。"},
	} {
		ask := s.constraint + " " + s.other + " ticket.md"
		c := retention.NewCaseOf([]chat.Message{say(chat.RoleUser, ask)}, []chat.Message{say(chat.RoleAssistant, "ticket.md")})
		for kept, want := range map[string]int{s.constraint: 1, "- " + s.nearly: 1, s.other: 0} {
			if got := c.Detail([]chat.Message{say(chat.RoleUser, kept)}).Counts[retention.Constraints]; got != (retention.Count{Kept: want, Of: 1}) {
				t.Errorf("%s, %q: %+v", language, kept, got)
			}
		}
	}
}

// Words that few messages and few sessions have are looked for where they are used again: runs of
// letters, and three adjacent characters of scripts without blanks.
func TestRareWordsThatAreUsedAgain(t *testing.T) {
	t.Parallel()
	pre := []chat.Message{
		say(chat.RoleSystem, "the zebra is known"), say(chat.RoleUser, "Ask the harbour about the Überfahrt; ox"), say(chat.RoleTool, "granite, 鈴木様の予約"),
		say(chat.RoleAssistant, "common"), say(chat.RoleTool, "common"), say(chat.RoleTool, "common everywhere"),
	}
	post := []chat.Message{
		say(chat.RoleTool, "granite ask"), say(chat.RoleUser, "HARBOUR, zebra, common, unseen, ox, everywhere"), say(chat.RoleAssistant, "überfahrt 予約は鈴木様 harbours.md"),
	}
	c := retention.NewCaseOf(pre, post, retention.Fact{Answer: "granite", Message: 2})
	if got, want := fmt.Sprint(c.Words()), "[everywhere harbour überfahrt 鈴木様]"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	corpus := retention.NewCorpus()
	for range 3 {
		corpus.Add([]chat.Message{say(chat.RoleUser, "everywhere")})
	}
	corpus.Add(append(pre, post...))
	_, words := c.IDs()
	for kept, want := range map[string]int{"": 0, "harbourmaster, 鈴木": 0, "Harbour everywhere": 1, "überfahrt: 鈴木様, the harbour": 3} {
		d := c.Detail([]chat.Message{say(chat.RoleUser, kept)})
		if got := corpus.Rare(words, d.HeldWords); got != (retention.Count{Kept: want, Of: 3}) {
			t.Errorf("%q: %+v", kept, got)
		}
	}
	long := strings.Repeat("語", 2) + "kanji文字列"
	if d := c.Detail([]chat.Message{say(chat.RoleUser, long)}); len(d.HeldWords) != 1 || d.HeldWords[0] != 0 {
		t.Errorf("%v", d.HeldWords)
	}
}
