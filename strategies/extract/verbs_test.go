package extract

import (
	"fmt"
	"strings"
	"testing"
)

// What changes something is told as done, by its name, its method, its command or what its result says.
func TestWhatActsIsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, key, value, result string
		acts                     bool
	}{
		{"find_and_close_door", "door", "D-7", `{"door":"D-7"}`, true},
		{"cancel_visit_query", "visit", "V-7", "fine", true},
		{"mcp__list-server__checkout", "cart", "C-7", `{"total":"7"}`, true},
		{"lamp_service", "room", "hall", `{"status":"confirmed","lamp":"L-7"}`, true},
		{"lamp_service", "room", "hall", `{"paid":true,"lamp":"L-7"}`, true},
		{"dim", "room", "hall", `{"ok":true}`, true},
		{"lamp_service", "room", "hall", `{"status":"ok","lamp":"L-7"}`, false},
		{"get_lamp", "room", "hall", `{"status":"paid","lamp":"L-7"}`, false},
		{"refund_status", "order", "O-7", `{"status":"paid"}`, false},
		{"call_service", "method", "PATCH", `{"code":200}`, true},
		{"fetch_url", "method", "delete", `{"code":200}`, true},
		{"fetch_url", "method", "GET", `{"code":200}`, false},
		{"Bash", "command", "terraform destroy -auto-approve", "Destroy complete!", true},
		{"Bash", "command", "make deploy", "sent", true},
		{"Bash", "command", "npm run deploy:hall", "sent", true},
		{"Bash", "command", "python manage.py migrate lamps", "Applying lamps.0007... OK", true},
		{"Bash", "command", "bin/rails db:migrate", "7 migrated", true},
		{"Bash", "command", "./scripts/rollback.sh hall", "back", true},
		{"Bash", "command", "ls deploy", "hall", false},
		{"Bash", "command", "make deploy --dry-run", "would", false},
		{"Bash", "command", "pytest deploy", "7 passed", false},
		{"pauseDelivery", "delivery", "D-7", `{"until":"May"}`, true},
		{"mcp__desk__escalate_ticket", "ticket", "T-7", `{"to":"tier 2"}`, true},
		{"list_renewals", "year", "2027", `{"renewals":["N-7"]}`, false},
		{"Bash", "command", "kubectl --context hall -n lamps rollout undo deploy/dimmer", "rolled back", true},
		{"Bash", "command", "kubectl --context hall -n lamps rollout status deploy/dimmer", "done", false},
		{"Bash", "command", "kubectl get deploy dimmer", "1/1", false},
		{"Bash", "command", "helm -n lamps upgrade dimmer charts/dimmer", "upgraded", true},
		{"Bash", "command", "helm -n lamps history dimmer", "7", false},
		{"Bash", "command", "git -C /srv/lamps push origin main", "main -> main", true},
		{"Bash", "command", "git -c user.name=Ada commit -m 'Dim the hall'", "1 file changed", true},
		{"Bash", "command", "terraform -chdir=lamps apply -auto-approve", "Apply complete!", true},
		{"Bash", "command", "terraform -chdir=lamps plan", "7 to add", false},
		{"Bash", "command", "gh -R hall/lamps run cancel 7204", "cancelled", true},
		{"Bash", "command", "gh issue list --label lamps", "#7", false},
		{"Bash", "command", "aws ec2 stop-instances --instance-ids i-0c7", "stopping", true},
		{"Bash", "command", "aws --profile hall s3 cp plan.pdf s3://lamps/", "upload: plan.pdf", true},
		{"Bash", "command", "aws route53 list-hosted-zones", "Z7", false},
		{"Bash", "command", "az vm delete -n lamp7 --yes", "", true},
		{"Bash", "command", "gcloud compute instances list", "lamp7", false},
		{"Bash", "command", "vault kv put kv/lamps code=7", "written", true},
		{"Bash", "command", "vault kv get kv/lamps", "code 7", false},
		{"Bash", "command", "sudo systemctl restart lampd", "", true},
		{"Bash", "command", "systemctl is-active lampd", "active", false},
		{"Bash", "command", "ssh -p 2222 hall@lamps.example 'cd /srv && sudo systemctl reload lampd'", "", true},
		{"Bash", "command", "ssh lamps.example 'tail -7 /var/log/lampd.log'", "dimmed", false},
		{"Bash", "command", "kubectl -n lamps exec dimmer-7 -- rm /tmp/lock", "", true},
		{"Bash", "command", "docker exec hall-db psql -c 'select count(*) from lamps'", "7", false},
		{"Bash", "command", "docker exec hall-db psql -c 'update lamps set dim = 7'", "UPDATE 7", true},
		{"Bash", "command", "gunzip -c lamps.sql.gz | mysql hall", "", true},
		{"Bash", "command", "echo 'select 7' | mysql hall", "7", false},
		{"Bash", "command", "mysqldump hall | gzip > lamps.sql.gz", "", false},
		{"Bash", "command", "redis-cli -n 7 HSET lamps hall 70", "(integer) 1", true},
		{"Bash", "command", "redis-cli HGETALL lamps", "hall", false},
		{"Bash", "command", "certbot certonly -d lamps.example --dry-run", "The dry run was successful.", false},
		{"run_sql", "statement", "CREATE OR REPLACE TABLE hall.lamps AS SELECT 7", "{}", true},
		{"run_sql", "statement", "create temp table lamps as select 7", "{}", true},
		{"run_sql", "statement", "COPY INTO @hall/lamps.csv FROM lamps", "{}", true},
		{"run_sql", "statement", "WITH old AS (SELECT id FROM lamps) INSERT INTO attic SELECT id FROM old", "{}", true},
		{"run_sql", "statement", "WITH old AS (SELECT id FROM lamps) SELECT count(*) FROM old", "{}", false},
		{"run_sql", "statement", "BEGIN; UPDATE lamps SET dim = 7; COMMIT", "{}", true},
		{"run_sql", "statement", "-- lamps of the attic\nDELETE FROM lamps WHERE room = 'attic'", "{}", true},
		{"run_sql", "statement", "CALL dim_all(7)", "{}", true},
		{"run_sql", "statement", "TRUNCATE lamps;", "{}", true},
		{"run_sql", "statement", "SHOW TABLES IN hall", "{}", false},
		{"ask_clerk", "question", "Call the hall about the update they set up?", "fine", false},
		{"graphql", "query", "mutation Dim($i:DimInput!){dimLamp(input:$i){lamp{id}}}", `{"data":{"dimLamp":{"lamp":{"id":"L-7"}}}}`, true},
		{"graphql", "query", "query Lamp($id:ID!){lamp(id:$id){status}}", `{"data":{"lamp":{"status":"confirmed"}}}`, false},
	} {
		d := digestOf(Options{}, user("See to the lamps of the hall, please."), calls("", "1", tt.tool, tt.key, tt.value, "note", "now"), result("1", tt.result))
		if got := d.history.calls[0].acts; got != tt.acts {
			t.Errorf("%s %s → %s: %t", tt.tool, tt.value, tt.result, got)
		}
	}
	d := digestOf(Options{}, user("See to the lamps of the hall, please."))
	for i := range 30 {
		id := fmt.Sprint(i)
		d.Add(calls("", id, "lamp_service", "room", "hall number "+id+" of all the halls of the house", "note", "now"))
		d.Add(result(id, `{"confirmed":true,"lamp":"L-7`+id+`"}`))
	}
	for i := range 9 {
		id := fmt.Sprintf("look%d", i)
		d.Add(calls("", id, "list_lamps", "room", id, "note", "now"))
		d.Add(result(id, `[{"lamp":"L-8`+id+`","room":"hall"}]`))
	}
	for budget := 100; budget < 900; budget += 5 {
		if text := d.Text(budget); strings.Contains(text, omittedMark) && strings.Contains(text, "- list_lamps") {
			t.Fatalf("what only looked stands in the room of what was done:\n%s", text)
		}
	}
	text := d.Text(300)
	left := 30 - strings.Count(text, "- lamp_service: ")
	if want := fmt.Sprintf(omittedLine, left, fmt.Sprintf(" (lamp_service %d)", left)); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// A document of GraphQL is told by the field that it changes or asks for.
func TestGraphQLIsToldByItsField(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		"mutation Dim($i:DimInput!){dimLamp(input:$i){lamp{id}}}":                                "- graphql: mutation dimLamp, room hall → ",
		"mutation Dim($i: DimInput!) {\n  dimmed: dimLamp(input: $i) {\n    lamp { id }\n  }\n}": "- graphql: mutation dimLamp, room hall → ",
		"query Lamp($id:ID!){lamp(id:$id){level}}":                                               "- graphql: query lamp, room hall → ",
	} {
		d := digestOf(Options{}, user("See to the lamps of the hall, please."), calls("", "1", "graphql", "query", document, "room", "hall"), result("1", `{"data":{"lamp":{"id":"L-7","level":7}}}`), user("And now those of the attic."))
		if text := d.Text(3000); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
