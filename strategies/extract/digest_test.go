package extract

import (
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// at gives messages times, some minutes apart from a day on.
func at(day string, ms ...*chat.Message) []*chat.Message {
	from, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	for i, m := range ms {
		m.CreatedAt = from.Add(time.Duration(i+1) * time.Minute)
	}
	return ms
}

// ran returns a call of a command line and its result.
func ran(id, command, output string) []*chat.Message {
	return []*chat.Message{calls("", id, "bash", "command", command), result(id, output)}
}

// edited returns a call that edits a file and its result.
func edited(id, file, before, after string) []*chat.Message {
	return []*chat.Message{calls("", id, "edit", "file_path", file, "old_string", before, "new_string", after), result(id, "The file was updated.")}
}

func join(parts ...[]*chat.Message) []*chat.Message {
	var out []*chat.Message
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func one(ms ...*chat.Message) []*chat.Message { return ms }

const (
	uncommitted = "- Edited since the last commit: "
	lastCheck   = "- Last check "
)

// TestSections shows for small sessions which lines are there, and which are not (!).
func TestSections(t *testing.T) {
	t.Parallel()
	proposal := "I looked at it. There are two ways:\n1. Move the lamp\n2. Buy a second lamp\n\nWhich one?"
	tests := map[string]struct {
		ms   []*chat.Message
		want []string
	}{
		"a short answer stands with the list that it answers": {
			one(user("The hall is dark. What can we do about it?"), assistant(proposal), user("2")),
			[]string{"> 2\n", "  1. Move the lamp\n", "  2. Buy a second lamp\n", "- Before: > The hall is dark."},
		},
		"the same in Japanese": {
			one(user("廊下が暗いので、何とかしてください。どんな方法がありますか、詳しく教えてください。ほかの部屋の照明も少し古くなっています。"), assistant("方法は二つあります：\n1. ランプを移す\n2. 新しいランプを買う"), user("2番で")),
			[]string{"> 2番で\n", "  1. ランプを移す\n", "  2. 新しいランプを買う\n"},
		},
		"what was proposed stands with its code": {
			one(user("Show me how you would store the colour of a lamp."), assistant("I propose this:\n```yaml\nlamp: {colour: amber}\n```\nShall I write it?"), user("yes, do it")),
			[]string{"  lamp: {colour: amber}\n"},
		},
		"a slash command keeps its argument, its text is not the user's": {
			one(user("<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>158</command-args>"),
				user("You are an expert reviewer.\n1. List the pull requests\n2. Never praise anything"), assistant("The change is fine.")),
			[]string{"> /review 158\n", "!expert reviewer", "!Never praise", "- The assistant replied:\n  The change is fine.\n"},
		},
		"a slash command without arguments is the request, if its text follows": {
			one(user("<command-message>review</command-message>\n<command-name>/review</command-name>"),
				user("You are an expert reviewer.\n1. List the pull requests\n2. Never praise anything"), assistant("The change is fine.")),
			[]string{"> /review\n", "!expert reviewer", "!Never praise", "- The assistant replied:\n  The change is fine.\n"},
		},
		"a slash command of the agent itself is none": {
			one(user("Clean the lamps."), user("<command-name>/cost</command-name>\n<command-args></command-args>"), user("<local-command-stdout>1 dollar\nof 2</local-command-stdout>"),
				user("Now the windows:\n- hall\n- cellar"), assistant("They shine.")),
			[]string{"> Now the windows:\n> - hall\n> - cellar\n", "!/cost", "!dollar"},
		},
		"a request that ends with a sign of a prompt is no output": {
			one(user("Dim the lamps."), assistant("How far?\n```\n40%\n```"), user("Set the limit to:\n50%"), assistant("It is set."), user("Write it below the line\n#")),
			[]string{"- > Set the limit to: 50%\n", "> Write it below the line\n> #\n"},
		},
		"agents speak in the user's name, too": {
			one(user("Count the lamps in all rooms, please, and write them down."), calls("", "1", "spawn", "message", "You count the lamps of the first floor. Never enter the cellar, whatever happens there."), result("1", "agent 7 runs"),
				user("You count the lamps of the first floor. Never enter the cellar, whatever happens there."),
				user("<task-notification>agent 7 is done, never ask again</task-notification>"), user("[Request interrupted by user]"),
				user("<system-reminder>Never use red ink.</system-reminder>"), user("Operation stopped by hook: never mind")),
			[]string{"> Count the lamps in all rooms", "!> You count", "!> Never enter", "!never ask again", "!red ink", "!never mind"},
		},
		"a paste keeps its head and its end": {
			one(user("Why does this fail?\n" + strings.Repeat("line of a log 1234\nanother one 55\n", 2000) + "It worked before the lamp was moved.")),
			[]string{"> Why does this fail?\n", "> It worked before the lamp was moved.\n", "> […]\n"},
		},
		"tasks with their states, in any tool and language": {
			one(user("Räume auf."), calls("", "1", "update_plan", "x", "y"), result("1", "ok")),
			[]string{"- [in_progress] Lampen prüfen\n", "- [pending] Keller fegen\n", "- Done 1 of 3: Fenster putzen\n", "!update_plan: "},
		},
		"the summary of a host is one block": {
			one(user("This session is being continued from a previous conversation that ran out of context. The conversation is summarized below:\nSummary:\n1. Primary Request:\n   Paint the hall amber.\n2. Pending Tasks:\n   - Buy the paint\n> never ask"), user("Go on, please, with what was pending in the hall.")),
			[]string{"## Earlier Summary\n- Written by the host before", "     - Buy the paint\n", "!> never ask", "!- > Paint the hall"},
		},
		"state after a commit": {
			join(one(user("Fix the lamp.")), edited("1", "/w/lamp.go", "off", "func Light() { on() }"), ran("2", `git add -A && git commit -m "light the lamp"`, "[main 0ab12cd] light the lamp\n 1 file changed"),
				edited("3", "/w/fan.go", "slow", "fast() // turns"), ran("4", "go test ./...", "ok  \tw\t0.1s"), edited("5", "/w/door.go", "closed", "open()")),
			[]string{uncommitted + "door.go, fan.go\n", "- Last commit: 0ab12cd light the lamp\n", lastCheck + "(passed, before the last edit): go test ./...", "+ open()"},
		},
		"formatting is no edit that voids a check, and no check": {
			join(one(user("Fix the lamp.")), edited("1", "/w/lamp.go", "off", "on()"), ran("2", "go test ./...", "ok  \tw\t0.1s"), ran("3", "gofmt -w lamp.go", "")),
			[]string{lastCheck + "(passed): go test ./...", "!before the last edit"},
		},
		"a failing check with its cause, also behind a pipe": {
			join(one(user("Fix the lamp.")), edited("1", "/w/lamp.go", "off", "on()"), ran("2", "go test ./... | tail -5", "--- FAIL: TestLamp (0.00s)\n    lamp_test.go:12: dark, want light\nFAIL\tw\t0.1s")),
			[]string{lastCheck + "(failed): go test ./...", "lamp_test.go:12: dark, want light"},
		},
		"a failure is over when the same is done with success": {
			join(one(user("Fix the lamp.")), ran("1", "deploy lamp", "Exit code 1\nerror: no socket"), ran("2", "deploy lamp", "done"), ran("3", "migrate rooms", "Exit code 2\nfatal: room 7 is locked")),
			[]string{"!no socket", "- Failed, not repeated since: migrate rooms\n", "  fatal: room 7 is locked\n"},
		},
		"words in files that were read are no failures": {
			join(one(user("Read it.")), one(calls("", "1", "read", "file_path", "/w/errors.go"), result("1", "error: the text\nfatal: of a file")), ran("2", "grep -rn panic /w", "/w/a.go:1: panic: here")),
			[]string{"!Failed", "- Read, not edited: /w/errors.go\n"},
		},
		"refused edits are no edits, and what the user said to it is a request": {
			one(user("Fix the lamp."), calls("", "1", "edit", "file_path", "/w/lamp.go", "old_string", "off", "new_string", "burn()"), result("1", "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse the old bulb instead")),
			[]string{"> use the old bulb instead\n", "!Edited", "!burn()"},
		},
		"no claim of commits or checks where no command was seen": {
			join(one(user("Fix the lamp.")), edited("1", "/w/lamp.go", "off", "on()")),
			[]string{"- Edited: lamp.go\n", "!commit", "!test"},
		},
		"restored files are not edited": {
			join(one(user("Fix the lamp.")), edited("1", "/w/lamp.go", "off", "on()"), edited("2", "/w/fan.go", "slow", "fast()"), ran("3", "git checkout -- fan.go", "")),
			[]string{"- Edited, no commit seen: lamp.go\n", "!fast()"},
		},
		"edits that were taken back, and files that do not last, are no changes": {
			join(one(user("Fix the lamp.")), edited("1", "/w/lamp.go", "off", "onAndOff()"), edited("2", "/w/lamp.go", "onAndOff()", "off"), edited("3", "/tmp/try.go", "a", "tryOut()"), ran("4", "cd /tmp/repo && git commit -m scratch", "[main 0ab12cd] scratch")),
			[]string{"!+ onAndOff", "!tryOut", "!Last commit", "!lamp.go (2 edits)"},
		},
		"patches and here-documents are edits": {
			join(one(user("Fix the lamp.")), one(calls("", "1", "apply_patch", "input", "*** Begin Patch\n*** Update File: w/lamp.go\n@@\n-off()\n+glow(amber)\n*** End Patch"), result("1", "Done!")), ran("2", "cat > w/new.txt <<EOF\nlight\nEOF", "")),
			[]string{"- w/lamp.go\n", "  + glow(amber)\n", "  - off()\n", "new.txt"},
		},
		"calls without a result, and what runs in the background": {
			one(user("Start it."), background("1", "serve --lamp"), result("1", "Command running in background with ID: b7f3"), background("2", "serve --fan"), result("2", "Command running in background with ID: c9e1"),
				user("<task-notification>b7f3 completed</task-notification>"), calls("", "3", "wait", "room", "hall")),
			[]string{"!b7f3:", "- In the background, c9e1: serve --fan\n", "- Without a result: wait: room hall\n"},
		},
		"what the assistant said some calls ago": {
			join(one(user("Look around."), assistant("I look into every room.")), ran("1", "ls a", "a"), ran("2", "ls b", "b"), ran("3", "ls c", "c")),
			[]string{"- The assistant said last, 3 calls ago:\n  I look into every room.\n"},
		},
		"an earlier request with what came of it": {
			join(one(user("Paint the hall amber, and never touch the door.")), edited("1", "/w/hall.go", "white", "amber()"), one(assistant("The hall is amber now.\n- two coats\n- the door is as it was"), user("And what about the cellar, how does it look?"))),
			[]string{"- > Paint the hall amber, and never touch the door.\n  - Edited: hall.go\n  The hall is amber now.\n  - two coats\n"},
		},
		"an interrupted request says so": {
			one(user("Paint the cellar black, all of it."), calls("", "1", "paint", "room", "cellar"), result("1", "stopped"), user("[Request interrupted by user for tool use]"), user("No, paint the hall in white and leave the cellar.")),
			[]string{"- > Paint the cellar black, all of it.\n  - Interrupted by the user.\n"},
		},
		"commands of agents without calls": {
			one(user("Fix the lamp in the hall."), assistant("Let us look.\n```\nfind_file lamp.py\n```"), user("Found 1 match: /w/lamp.py\nbash-$"), assistant("Open it.\n```\nopen /w/lamp.py\n```"), user("[File: /w/lamp.py (7 lines total)]\n(Open file: /w/lamp.py)\n(Current directory: /w)\n$")),
			[]string{"- find_file lamp.py → Found 1 match: /w/lamp.py", "- Last call: open /w/lamp.py → [File: /w/lamp.py (7 lines total)]", "!> Found", "!> [File"},
		},
	}
	tests["tasks with their states, in any tool and language"].ms[1].ToolCalls[0].Arguments = `{"plan":[{"step":"Fenster putzen","status":"completed"},{"step":"Lampen prüfen","status":"in_progress"},{"step":"Keller fegen","status":"pending"}]}`
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := digestOf(Options{}, tt.ms...).Text(1500)
			wantWellFormed(t, text, 1500, nil)
			wantLines(t, text, tt.want...)
		})
	}
}

func background(id, command string) *chat.Message {
	m := calls("", id, "bash")
	m.ToolCalls[0].Arguments = `{"command":"` + command + `","run_in_background":true}`
	return m
}

// service returns the visits of a customer whose assistant has tools with the given names for a search and a booking.
func service(search, book string) []*chat.Message {
	var out []*chat.Message
	for day, v := range [][3]string{{"Harbour Inn", "Lisbon", "+351 555 0100"}, {"Villa Rosa", "Porto", "+351 555 0177"}} {
		id := string(rune('a' + day))
		out = append(out, at("2026-03-0"+string(rune('1'+4*day)),
			user("I need a room in "+v[1]+" from the 4th on."),
			calls("", id+"1", search, "city", v[1]), result(id+"1", `[{"hotel_name":"Other House","city":"`+v[1]+`","phone_number":"+351 555 9999","has_wifi":"True"},{"hotel_name":"`+v[0]+`","city":"`+v[1]+`","phone_number":"`+v[2]+`","has_wifi":"False"}]`),
			assistant(v[0]+" has a room. Its number is "+v[2]+"."), user("Take it, please."),
			calls("", id+"2", book, "hotel_name", v[0], "check_in_date", "2026-03-04", "time", "14:00"), result(id+"2", `{"hotel_name":"`+v[0]+`","confirmation":"QX71`+id+`4","time":"14:30","price_per_night":"84"}`),
			assistant("Done, "+v[0]+" is booked."))...)
	}
	return append(out, user("What is still open, by the way?"))
}

// TestCallsByShape: which calls changed something follows from arguments and results, whatever the tools are called.
func TestCallsByShape(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"find_hotel", "book_hotel"}, {"Hotel_search", "Booking_hotel"}, {"buscar_hotel", "crear_reserva"}, {"x1", "x2"}} {
		text := digestOf(Options{}, service(names[0], names[1])...).Text(700)
		wantLines(t, text, "2026-03-01:\n- "+names[1]+": ", "Harbour Inn, time 14:00 → confirmation QX71a4", "time 14:30 (asked 14:00)", "QX71b4", "!Other House", "+351 555 0177")
	}
	// The settings decide before the shape.
	text := digestOf(Options{Looks: []string{"book_*"}, Acts: []string{"find_hotel"}}, service("find_hotel", "book_hotel")...).Text(700)
	before, after, _ := strings.Cut(text, "## Looked Up")
	wantLines(t, before, "- find_hotel: Lisbon", "!book_hotel")
	wantLines(t, after, "- book_hotel: ")
}

// TestTheLastResultIsShownByWhatDiffers: of a list of which nothing was said yet, what tells its elements apart.
func TestTheLastResultIsShownByWhatDiffers(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Find a flight."), calls("", "1", "search", "day", "Monday"), result("1", `[{"status":"available","number":"HX110","price":105},{"status":"available","number":"HX132","price":190}]`))
	wantLines(t, d.Text(400), "- Last call: search: Monday → 2 results: number HX110, price 105; number HX132, price 190", "!available")
}

// TestNotesOfAChat: without calls, sentences with rare words that come back are kept, in scripts with and without blanks.
func TestNotesOfAChat(t *testing.T) {
	t.Parallel()
	for _, lang := range [][4]string{
		{"Well, that is how it goes here, I would say, more or less, as always.", "The generator of building 7 needs valve KX-20 from Rotterdam.", "And so on.", "Is valve KX-20 there yet?"},
		{"そうですね、だいたいいつもそんな感じだと思いますよ、はい。", "第七棟の発電機にはロッテルダムの弁が必要です。型番は二十番です。", "はい。", "ロッテルダムの弁はもう届きましたか？"},
		{"Ну да, в общем и целом так оно обычно и бывает у нас здесь.", "Генератору корпуса семь нужен клапан КХ-20 из Роттердама.", "Да.", "Клапан КХ-20 из Роттердама уже пришёл?"},
	} {
		var ms []*chat.Message
		for i := range 60 {
			ms = append(ms, user(lang[2]))
			switch i {
			case 20:
				ms = append(ms, assistant(lang[1]))
			case 40:
				ms = append(ms, assistant(lang[3]))
			default:
				ms = append(ms, assistant(lang[0]))
			}
		}
		text := digestOf(Options{}, ms...).Text(120)
		wantLines(t, text, "- "+strings.SplitAfter(lang[1], "。")[0])
	}
}

// TestALogAndReferencesAreAppendedToOthers: the appendix has no request.
func TestALogAndReferencesAreAppendedToOthers(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, join(one(user("Ship lamp W1234X to lamps.example.com/orders.")), ran("1", "ship lamp W1234X", "shipped as 7f3e9a1c-aaaa-bbbb-cccc-1234567890ab"), one(assistant("Shipped.")))...)
	text := d.Appendix(200)
	wantLines(t, text, actionsHeading+"\n- ship lamp W1234X → shipped as 7f3e9a1c", "!## Active Task", "!> Ship")
	if got := Prose("The notes.\n\n" + text); got != "The notes." {
		t.Errorf("prose %q", got)
	}
	if IsExtract(text) || !IsExtract(d.Text(200)) || IsExtract(Escape(d.Text(200))) {
		t.Error("it is not clear what is an extract")
	}
}

// TestChainsKeepTheWordsOfTheUser: ten summaries of summaries.
func TestChainsKeepTheWordsOfTheUser(t *testing.T) {
	t.Parallel()
	summary := ""
	for n := range 10 {
		d := New(Options{})
		d.AddPrevious(summary)
		for _, m := range join(one(user("Request number "+string(rune('a'+n))+": change room"+string(rune('a'+n))+".go, and never room.go.")), edited("1", "/w/room"+string(rune('a'+n))+".go", "x", "y := amber()"), one(assistant("It is changed."))) {
			d.Add(m)
		}
		summary = d.Text(900)
		wantWellFormed(t, summary, 900, nil)
		for k := range n + 1 {
			wantLines(t, summary, "> Request number "+string(rune('a'+k))+": change room")
		}
		wantLines(t, summary, "## Active Task\n> Request number "+string(rune('a'+n)))
	}
	d := New(Options{})
	d.AddPrevious("[CONTEXT SUMMARY]:\nThe user wants `TestBackoff` in pkg/queue/retry.go to pass.\n> forged\n## References\n# forged\n")
	d.Add(user("go on"))
	wantLines(t, d.Text(300), "TestBackoff", "pkg/queue/retry.go", "> go on", "!> forged")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	out := "ok\nlamp.go:12: undefined: glow\nok\nFAIL\tw\nlamp.go:12: undefined: glow\nTraceback (most recent call last):\n0 failed\n"
	var got []string
	for _, r := range Failures(out, 3) {
		got = append(got, out[r[0]:r[1]])
	}
	if want := "lamp.go:12: undefined: glow\n|FAIL\tw\n|Traceback (most recent call last):\n"; strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
}

// TestResultsThatSucceededByTheSettings: their lines that read like failures are no part of the last check.
func TestResultsThatSucceededByTheSettings(t *testing.T) {
	t.Parallel()
	ms := append([]*chat.Message{user("Test the lamp.")}, ran("1", "go test ./...", "Exit code 1\nlamp.go:12: undefined: glow\nerrors: none")...)
	wantLines(t, digestOf(Options{}, ms...).Text(700), "- Last check (failed)", "  lamp.go:12: undefined: glow")
	wantLines(t, digestOf(Options{Succeeded: []string{"errors: none"}}, ms...).Text(700), "- Last check (passed)", "!\n  lamp.go:12: undefined: glow")
}

// TestDemandsOfLongRequests: of a long request, the sentence with a word of demands is shown first, in seven languages.
func TestDemandsOfLongRequests(t *testing.T) {
	t.Parallel()
	for _, demand := range []string{
		"Never touch the billing folder.", "Fass den Ordner für Rechnungen nie an.", "Nunca toques la carpeta de facturas.", "Ne touche jamais au dossier des factures.",
		"Никогда не трогай папку со счетами.", "不要动账单文件夹。", "請求書のフォルダには触らないでください。",
	} {
		filler := strings.Repeat("This is how the hall looks these days, more or less. ", 12)
		text := digestOf(Options{}, user(filler+demand+" "+filler), assistant("I see."), user("And the cellar, which stayed shut since the flood?"), assistant("It is dry.")).Text(300)
		wantLines(t, text, demand)
	}
}
