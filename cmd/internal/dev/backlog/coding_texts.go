package backlog

// codingTexts are the templates of coding-agent sessions, but for the code.
const codingTexts = `
== system_coding
You are a coding agent working in a checked-out repository. You have these tools: read_file, list_files, grep, edit_file, run_tests, shell.

Work in small steps. Read before you edit. After every change run the tests of the package that you changed, and read what they say before you go on. Never edit generated files. Do not commit; the user reviews the diff.

Repository: github.com/hollow-oak/~service~
Default branch: main, head ~commit~
Conventions:
- errors are wrapped with what was attempted, lower case, no punctuation at the end
- no package-level state, dependencies are passed in
- tests are table driven and run in parallel; a bug gets a failing test first
- comments say why, not what
When you are done, say in a few lines what you changed, how you checked it, and what you left alone.
== task
~Test~ fails about one time in ~small~ in CI, with "~errno~". It never fails on my machine. Please find out why and fix it properly, no retries in the test.
>>
Fixed. ~Verb~~Noun~ released its lock before the ~noun~ was stored, so that a second caller could see a ~adjective~ one; the lock is now held until it is written. I added Test~Verb~~Noun~~Adjective~, which fails without the change and passes ~n2~0 times in a row with it. All tests of ~service~ pass. I left the retry in ~file~ alone, though it is no longer needed.
--
The ~service~ service uses more and more memory over a day. I suspect the ~noun~ cache. Have a look at how entries are expired, and add a bound.
>>
Done. The ~noun~s are now bounded to ~n3~0 entries, the least recently used goes first, and the number of evictions is exported as ~service~_~noun~_evictions_total. Memory stays flat in a run of ~n4~ requests. Not done: the same pattern is in ~file~, tell me if you want it there as well.
--
Add a "--dry-run" flag to the ~noun~ ~verb~ command: it should print what it would do, in the same order, and change nothing. Same exit codes.
>>
I have added the flag. With --dry-run the command prints one line for each ~noun~ it would ~verb~ and exits with 0, or with 2 when a ~noun~ is ~adjective~. The tests compare its output with the log of a real run, so the two cannot drift apart.
--
Trying to ~verb~ a ~adjective~ ~noun~ returns 500 instead of 404. Logs say "~errno~". Request id was ~hex12~.
>>
Fixed: a ~adjective~ ~noun~ is now answered with 404. The store wrapped the error with %v, so that errors.Is could not see ErrNotFound; it is %w now. I added a case to the table of Test~Verb~~Noun~, and checked the other ~n1~ places where ~file~ wraps errors; they are right.
--
Please move the ~noun~ handling out of ~file~ into its own package. Nothing outside should have to know about ~adjective~ ~noun~s any more. Keep the public names.
>>
~file~ now has its own package. ~Verb~~Noun~ and ~verb~~Noun~ moved without changes, ~n1~ callers were adapted, and the import check is part of the tests. ~n3~ lines added, ~n3~ removed.
--
We are seeing duplicates in the ~noun~ table since ~date~. I think two workers can ~verb~ the same ~noun~. Can you check the locking, and write a test that shows it?
>>
Fixed. ~Verb~~Noun~ released its lock before the ~noun~ was stored, so that a second caller could see a ~adjective~ one; the lock is now held until it is written. I added Test~Verb~~Noun~~Adjective~, which fails without the change and passes ~n2~0 times in a row with it. All tests of ~service~ pass. I left the retry in ~file~ alone, though it is no longer needed.
--
Speed up ~verb~_~noun~: it takes ~n1~.~n1~ seconds for ~n4~ rows, nearly all of it in parsing as far as I can see.
>>
~verb~_~noun~ now takes 0.~n2~ seconds for ~n4~ rows. Nearly everything was spent in splitting each line twice; it is split once, and the buffer is used again. The benchmark is in the tests of ~file~. Memory went down from ~n2~ to ~n1~ MB on the way.
--
Now the same for ~noun~s, please. And update the docs where they mention ~adjective~ ~noun~s.
>>
Done for the ~noun~s too. The part that both need is now one function in ~file~, and docs/~noun~s.md says when a ~adjective~ ~noun~ is tried again. All tests of ~service~ pass.
--
The linter complains about ~file~ line ~n3~. Also, why is there a sleep in the ~noun~ test? Get rid of it.
>>
Both are gone: the unused result in line ~n3~ was an error that nobody looked at (it is returned now), and the test waits for the ~noun~ instead of sleeping. It takes ~ms~ ms instead of ~n1~ seconds.
--
Looks good. One thing: rename ~verb~~Noun~ to ~verb~~Noun~s, it handles several.
>>
Renamed, with its ~n1~ callers and the docs. The old name is gone, as nothing outside of ~service~ used it.
--
Can you explain what happens when the ~noun~ ~verb~ is interrupted half way? Don't change anything yet.
>>
Nothing is changed yet. In short: when it is interrupted, the ~noun~ stays ~adjective~ until the next ~verb~ runs, at most ~small~ minutes later. Nothing is lost, but a reader in between sees the old ~noun~. If that matters, the ~noun~ has to be written in the same transaction.
== thought
The failing assertion is about the ~adjective~ ~noun~, but the ~noun~ itself is written in another goroutine. So either the wait is wrong or the write is late. I should look at who calls ~verb~~Noun~ first, and only then at the lock.
--
~Verb~~Noun~ takes the lock, changes the ~noun~, and releases it before the ~noun~ is stored. Between the two a second caller sees a ~adjective~ ~noun~. That would explain the duplicates, and also why it only shows under load. I want a test that holds the first caller in between.
--
Two options. I can keep the ~noun~ in memory and bound it, which is simple, or store it and ~verb~ it lazily, which survives a restart. The user asked for a bound, so the first; I will mention the second.
--
The stack trace points at line ~n3~, which is in the error path: the response is nil when the request failed. The test never takes that path as its fake always answers. I will make the fake fail once.
--
Before I edit: is ~file~ generated? There is no header, and the last commits touched it by hand. Fine.
== say
Let me look at how we ~verb~ the ~noun~.
--
I'll run the tests of that package to see the failure first.
--
The cause is probably in how the ~adjective~ ~noun~ is handled. Checking the callers.
--
Now the change itself.
--
That test passes. Checking that nothing else depended on the old behaviour.
== log
2026-01-1~day~T~clock~:~min~.~n3~Z ~level~ ~service~ request done method=~method~ path=/v1/~noun~s/~n5~ status=~status~ duration_ms=~ms~ request_id=~hex12~
--
2026-01-1~day~T~clock~:~min~.~n3~Z ~level~ ~service~ ~verb~ ~noun~ attempt=~n1~ ~noun~_id=~n6~ queue=~service~ worker=~hex4~
--
2026-01-1~day~T~clock~:~min~.~n3~Z WARN ~service~ slow query duration_ms=~n4~ rows=~n3~ statement="select * from ~noun~s where ~noun~_id = $1 order by created_at"
--
2026-01-1~day~T~clock~:~min~.~n3~Z ERROR ~service~ ~verb~ ~noun~ error="~verb~ ~noun~ ~n6~: ~errno~" ~noun~_id=~n6~
== hit_go
internal/~noun~/~verb~.go:~n3~:	if err := s.~verb~~Noun~(ctx, ~noun~ID); err != nil {
--
internal/~service~/~noun~.go:~n2~:func (s *Store) ~verb~~Noun~(ctx context.Context, id string) error {
--
docs/~noun~s.md:~n2~:A ~adjective~ ~noun~ is tried again after ~small~ minutes.
== hit_python
~service~/~noun~s/~verb~.py:~n3~:    def ~verb~_~noun~(self, ~noun~_id: str) -> ~Noun~:
--
~service~/tests/test_~noun~.py:~n2~:    assert ~verb~_~noun~(~noun~).status == "~adjective~"
--
docs/~noun~s.md:~n2~:A ~adjective~ ~noun~ is tried again after ~small~ minutes.
== source_go
internal/~service~/~noun~.go
--
internal/~noun~/~verb~.go
--
internal/~noun~/~verb~_test.go
== source_python
~service~/~noun~s/~verb~.py
--
~service~/tests/test_~noun~.py
--
~service~/~noun~s/store.py
== other
docs/~noun~s.md
--
deploy/~service~.yaml
--
testdata/~noun~-~n2~.json
== insert_go
	if err := ctx.Err(); err != nil {
		return err
	}
--
	defer s.metrics.~noun~s.Add(1)
--
	// The ~noun~ is written before the lock is released, see #~n3~.
--
	if len(s.~noun~s) >= max~Noun~s {
		s.evictOldest()
	}
== insert_python
        if deadline <= 0:
            raise TimeoutError("~verb~ ~noun~")
--
        # The ~noun~ is written before the lock is released, see #~n3~.
--
            self._evictions.inc()
== gotest
=== RUN   Test~Verb~~Noun~
=== PAUSE Test~Verb~~Noun~
=== CONT  Test~Verb~~Noun~
--- PASS: Test~Verb~~Noun~ (0.~n2~s)
--
=== RUN   Test~Verb~~Noun~/~adjective~_~noun~
--- PASS: Test~Verb~~Noun~/~adjective~_~noun~ (0.0~n1~s)
--
    ~noun~_test.go:~n3~: ~verb~ ~noun~ ~n4~: got ~n2~, want ~n3~
--- FAIL: Test~Verb~~Noun~ (0.~n2~s)
--
ok  	github.com/hollow-oak/~service~/internal/~noun~	~n1~.~n3~s	coverage: ~n2~.~n1~% of statements
--
FAIL	github.com/hollow-oak/~service~/internal/~noun~	~n1~.~n3~s
== pytest
~service~/tests/test_~noun~.py::test_~verb~_~noun~ PASSED                         [ ~n2~%]
--
~service~/tests/test_~noun~.py::test_~adjective~_~noun~_~verb~ PASSED        [ ~n2~%]
--
~service~/tests/test_~noun~.py::test_~verb~_~adjective~_~noun~ FAILED             [ ~n2~%]
--
E       AssertionError: assert ~n3~ == ~n3~
E        +  where ~n3~ = len(~noun~s)
== panic_go
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x~hex2~ pc=0x~hex6~]

goroutine ~n2~ [running]:
github.com/hollow-oak/~service~/internal/~noun~.(*Store).~verb~~Noun~(0xc000~hex6~, {0x~hex6~, 0xc000~hex6~}, {0xc000~hex6~, 0x~hex2~})
	/src/internal/~noun~/~verb~.go:~n3~ +0x~hex3~
github.com/hollow-oak/~service~/internal/~service~.(*Worker).run(0xc000~hex6~)
	/src/internal/~service~/worker.go:~n3~ +0x~hex3~
created by github.com/hollow-oak/~service~/internal/~service~.(*Worker).Start in goroutine 1
	/src/internal/~service~/worker.go:~n2~ +0x~hex2~
exit status 2
--
error: ~file~: no such file or directory
--
command timed out after ~n2~0 seconds; last output:
waiting for ~service~ on port ~n4~ ...
== panic_python
Traceback (most recent call last):
  File "/src/~service~/~noun~s/~verb~.py", line ~n3~, in ~verb~_~noun~
    ~noun~ = self.store.~verb~(~noun~_id, deadline=5.0)
  File "/src/~service~/store.py", line ~n3~, in ~verb~
    return self._decode(row["~noun~"])
  File "/src/~service~/store.py", line ~n2~, in _decode
    raise
~pyerr~
--
error: ~file~: no such file or directory
--
command timed out after ~n2~0 seconds; last output:
waiting for ~service~ on port ~n4~ ...
== shellcommand
git diff --stat
--
git log --oneline -~small~ -- ~file~
--
journalctl -u ~service~ --since -~small~m | tail -~n2~
--
curl -s localhost:~n4~/v1/~noun~s/~n5~
--
go vet ./internal/~noun~/...
`
