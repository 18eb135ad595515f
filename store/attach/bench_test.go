package attach_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkAttachedGrowth reports what an attached table costs its application: inserts of one row and of 20 rows
// compared with those into a table without triggers, and the read of a session's prompt compared with the read of the
// table.
func BenchmarkAttachedGrowth(b *testing.B) {
	w := benchWorld(b)
	w.exec(chats + `; CREATE INDEX ON messages (chat); CREATE TABLE plain (LIKE messages INCLUDING ALL)`)
	w.attach(generic)
	w.exec(`INSERT INTO messages (chat, sender, body) SELECT 's' || i % 50, CASE i / 50 % 2 WHEN 0 THEN 'human' ELSE 'bot' END, repeat('word ', 80) FROM generate_series(0, 9999) i`)
	began := time.Now()
	w.drain()
	drained := time.Since(began)
	text := strings.Repeat("word ", 80)
	insert := func(table string, rows int) func(int) {
		values := strings.TrimSuffix(strings.Repeat("($1, 'human', $2), ", rows), ", ")
		return func(n int) {
			w.exec(`INSERT INTO `+table+` (chat, sender, body) VALUES `+values, fmt.Sprint("t", n%100), text)
		}
	}
	read := func(table string) func(int) {
		return func(n int) {
			w.rows(`SELECT id, sender, body FROM `+table+` WHERE chat = $1 ORDER BY id`, fmt.Sprint("s", n%50))
		}
	}
	w.exec(`INSERT INTO plain SELECT * FROM messages; ANALYZE`)
	for b.Loop() {
		b.ReportMetric(ratio(300, insert("plain", 1), insert("messages", 1)), "x-insert")
		b.ReportMetric(ratio(100, insert("plain", 20), insert("messages", 20)), "x-insert20")
		b.ReportMetric(ratio(100, read("plain"), read("compactor_messages.messages")), "x-read200")
	}
	b.ReportMetric(float64(drained.Microseconds())/10000, "us/row-drained")
}

// ratio returns the time of b by that of a, in turns, so that both meet the same machine.
func ratio(n int, a, b func(int)) float64 {
	var times [2]time.Duration
	for i := range 4 * n {
		began := time.Now()
		f := []func(int){a, b}[i%2]
		f(i)
		times[i%2] += time.Since(began)
	}
	return float64(times[1]) / float64(times[0])
}
