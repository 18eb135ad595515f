-- The last position at or before p_behind that is inside no group of a call, its results and its reasoning. Reasoning is
-- given a wide berth: which call it belongs to can change when another one is repaired. Without statistics, the planner would sort
-- the whole log for each neighbour.
CREATE OR REPLACE FUNCTION @schema@.group_boundary(p_sid bigint, p_behind bigint) RETURNS bigint LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    v record;
BEGIN
    LOOP
        SELECT b.seq, n.role_code = 't' OR n.flags & 256 > 0 OR @schema@.reasoning_only(b.role_code, b.calls, b.flags)
            OR b.calls > 0 AND @schema@.reasoning_only(n.role_code, n.calls, n.flags) AS inside INTO v
        FROM (SELECT * FROM @schema@.message_log m WHERE m.sid = p_sid AND m.seq <= p_behind AND m.kind = 'm' AND m.position = m.seq
              ORDER BY m.seq DESC LIMIT 1) b
        CROSS JOIN LATERAL (SELECT * FROM @schema@.message_log m WHERE m.sid = p_sid AND m.seq > b.seq AND m.kind = 'm' AND m.position = m.seq
              ORDER BY m.seq LIMIT 1) n;
        IF NOT FOUND OR NOT v.inside THEN
            RETURN p_behind;
        END IF;
        p_behind := v.seq - 1;
    END LOOP;
END $$;

-- The flags are those of chat.Flags: 1 text, 2 reasoning, 4 media.
CREATE OR REPLACE FUNCTION @schema@.reasoning_only(p_role_code "char", p_calls smallint, p_flags smallint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_role_code = 'a' AND p_calls = 0 AND p_flags & 7 = 2
$$;

-- What the application changes in its view itself, as a run: messages leave for a reason, and others come back. What it has deleted
-- is not pinned any more. s is the session before the messages that are a part of the change were appended. Returns the run.
CREATE OR REPLACE FUNCTION @schema@.change_view(s @schema@.sessions, p_gone int8multirange, p_back int8multirange, p_reason text, p_requested_by text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s2      @schema@.sessions;
    v_live  int8multirange := s.live - p_gone + p_back;
    v_run   bigint;
    v_count record;
    v_from  bigint;
    v_taken int8multirange := '{}';
BEGIN
    PERFORM @schema@.refuse_archived(s, p_back);
    SELECT * INTO s2 FROM @schema@.sessions WHERE sid = s.sid;
    -- What the list only adds at its end changes nothing.
    v_from := least(@schema@.first_change(s.sid, s.live, v_live, s.last_seq),
        (SELECT min(m.position) FROM @schema@.message_log m WHERE m.sid = s.sid AND m.seq > s.last_seq AND m.position <> m.seq));
    IF @schema@.free_reasoning(s) THEN
        s.reasoning_since := NULL;
    ELSIF v_from IS NOT NULL THEN
        IF s.reasoning_since IS NULL AND s.revision > 0 THEN   -- which of it is stale is not known
            v_from := 1;
            s.reasoning_since := s2.last_seq;
        END IF;
        s.reasoning_since := coalesce(s.reasoning_since, 0);
        PERFORM @schema@.refuse_in_open_loop(s, v_from);
        v_taken := @schema@.stale_reasoning(s.sid, v_live, v_from) - s.reasoning_out;
    END IF;
    INSERT INTO @schema@.runs (sid, trigger, kind, requested_by, status, outcome, started_at, ended_at, in_force, revision, base_run,
        snapshot_seq, snapshot_revision, applied_seq, live_before, live_after, included, appended, messages_before, tokens_before,
        reasoning_before, reasoning_taken, said_until)
    VALUES (s.sid, 'application', 'replace', coalesce(p_requested_by, ''), 'applied', 'replaced', now(), clock_timestamp(), true, s.revision + 1, s.head_run,
        s.last_seq, s.revision, s.last_seq, s.live, v_live, p_back, '{}', s.live_messages, s.live_tokens,
        s.reasoning_out, v_taken, s2.last_seq)
    RETURNING id INTO v_run;
    IF NOT isempty(p_gone) THEN
        INSERT INTO @schema@.exclusions (run, sid, reason, seqs) VALUES (v_run, s.sid, p_reason, p_gone);
    END IF;
    s2.live := v_live;
    SELECT count(*) AS messages, coalesce(sum(token_count), 0) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
    INTO v_count FROM @schema@.view_rows(s.sid, s2.live, s.reasoning_out + v_taken);
    s2.live_messages := v_count.messages;
    s2.live_tokens := v_count.tokens;
    s2.live_estimated_tokens := v_count.estimated;
    s2.reported_prompt_tokens := NULL;
    s2.suspect_seq := s2.last_seq;   -- no run has checked this view yet
    s2.loop_seq := NULL;
    s2.awaits_answer := false;
    s2.checked_seq := NULL;
    IF s2.state = 'quarantined' THEN
        s2.state := 'active';
    END IF;
    s2.due := @schema@.is_due(s2);
    UPDATE @schema@.sessions SET live = s2.live, pinned = CASE p_reason WHEN 'deleted_by_application' THEN pinned - p_gone ELSE pinned END, reasoning_out = s.reasoning_out + v_taken, reasoning_since = s.reasoning_since,
        revision = s.revision + 1, head_run = v_run, view_changed_at = now(),
        next_check_at = least(next_check_at, now() + make_interval(secs => due_since_run)),
        tail_start_seq = (SELECT lower(x) FROM unnest(s2.live) x WHERE upper_inf(x)),
        live_messages = s2.live_messages, live_tokens = s2.live_tokens, live_estimated_tokens = s2.live_estimated_tokens,
        reported_prompt_tokens = NULL, suspect_seq = s2.suspect_seq, loop_seq = NULL, due = s2.due, decision_fingerprint = NULL,
        awaits_answer = false, low_gain_runs = 0, checked_seq = NULL, state = s2.state, quarantine_reason = NULL,
        -- A message that was put before a call ends the waiting for its results in the log, but not for a run that reads the
        -- places: the next append looks at the view.
        open_pending = true
    WHERE sid = s.sid RETURNING * INTO s2;
    UPDATE @schema@.runs SET messages_after = v_count.messages, tokens_after = v_count.tokens WHERE id = v_run;
    s2 := @schema@.repair_view(s2);
    IF s2.due THEN
        INSERT INTO @schema@.outbox AS o (sid, tenant) VALUES (s.sid, s.tenant) ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    END IF;
    PERFORM pg_notify('@schema@', v_run::text);   -- see wait_run
    RETURN v_run;
END $$;

-- The messages of a view that stay or go with some of them, as chat.Groups has it.
CREATE OR REPLACE FUNCTION @schema@.groups_of(p_sid bigint, p_view int8multirange, p_seqs int8multirange) RETURNS int8multirange LANGUAGE plpgsql STABLE AS $$
DECLARE
    r        record;
    v_tail   "char" := '';   -- what the last group may still take: c results and reasoning, t results, r is reasoning for a call
    v_group  int8multirange := '{}';
    v_found  int8multirange := '{}';
    v_joins  boolean;
BEGIN
    FOR r IN SELECT v.seq, v.role_code, v.calls, v.flags & 256 > 0 AS parallel, @schema@.reasoning_only(v.role_code, v.calls, v.flags) AS thought FROM @schema@.view_rows(p_sid, p_view, '{}') v
        ORDER BY v.position, (v.kind <> 's'), (v.kind = 'm' AND v.position <> v.seq), v.seq
    LOOP
        v_joins := CASE WHEN r.role_code = 't' THEN v_tail IN ('c', 't') WHEN r.thought THEN v_tail IN ('c', 'r') ELSE (v_tail = 'r' OR v_tail = 'c' AND r.parallel) AND r.role_code = 'a' AND r.calls > 0 END;
        IF NOT v_joins THEN
            v_found := v_found + CASE WHEN v_group && p_seqs THEN v_group ELSE '{}' END;
            v_group := '{}';
        END IF;
        v_group := v_group + int8multirange(int8range(r.seq, r.seq + 1));
        v_tail := CASE WHEN r.role_code = 't' THEN 't' WHEN r.thought THEN CASE WHEN v_joins THEN v_tail ELSE 'r' END
            WHEN r.role_code = 'a' AND r.calls > 0 THEN 'c' ELSE '' END;
    END LOOP;
    RETURN v_found + CASE WHEN v_group && p_seqs THEN v_group ELSE '{}' END;
END $$;

-- The messages that the application has deleted (see exclude) and that are still out of the view.
CREATE OR REPLACE FUNCTION @schema@.deleted_messages(p_sid bigint) RETURNS int8multirange LANGUAGE plpgsql STABLE AS $$
DECLARE
    r     record;
    v_out int8multirange := '{}';
BEGIN
    PERFORM @schema@.refuse_foreign(p_sid);
    IF NOT EXISTS (SELECT FROM @schema@.exclusions e WHERE e.sid = p_sid AND e.reason = 'deleted_by_application') THEN
        RETURN v_out;
    END IF;
    FOR r IN SELECT t.included, (SELECT range_agg(x) FROM @schema@.exclusions e CROSS JOIN LATERAL unnest(e.seqs) x
            WHERE e.sid = p_sid AND e.run = t.id AND e.reason = 'deleted_by_application') AS gone
        FROM @schema@.runs t WHERE t.sid = p_sid AND t.status = 'applied' AND t.in_force ORDER BY t.revision
    LOOP
        v_out := v_out - coalesce(r.included, '{}') + coalesce(r.gone, '{}');
    END LOOP;
    RETURN v_out;
END $$;

-- Takes messages that the application has deleted out of the view, by their ids, each with the call, results and reasoning that
-- stay or go with it. The log keeps them; no run brings them back. An append or replace_view that names the id again does, and so does an
-- undo of the run that is returned: null if all were deleted already.
CREATE OR REPLACE FUNCTION @schema@.exclude(p_tenant text, p_session text, p_ids text[], p_requested_by text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    s         @schema@.sessions := @schema@.lock_session(p_tenant, p_session, NULL, false);
    v_unknown text;
    v_seqs    int8multirange;
    v_gone    int8multirange;
BEGIN
    SELECT string_agg(i, ', ') FILTER (WHERE l.seq IS NULL), range_agg(int8range(l.seq, l.seq + 1)) FILTER (WHERE l.seq IS NOT NULL) INTO v_unknown, v_seqs
    FROM unnest(p_ids) i LEFT JOIN @schema@.message_log l ON l.sid = s.sid AND l.id = i;
    IF v_unknown IS NOT NULL OR v_seqs IS NULL THEN
        RAISE EXCEPTION 'session % has no message %', s.id, coalesce(left(v_unknown, 1000), 'without an id') USING ERRCODE = 'no_data_found';
    END IF;
    v_seqs := v_seqs - @schema@.deleted_messages(s.sid);
    IF isempty(v_seqs) THEN
        RETURN NULL;
    END IF;
    -- Replacements go with what they are shown for.
    v_gone := v_seqs + @schema@.groups_of(s.sid, s.live, v_seqs + coalesce((SELECT range_agg(int8range(l.seq, l.seq + 1))
        FROM unnest(s.live) x CROSS JOIN LATERAL (SELECT m.seq, m.kind, m.summary_of FROM @schema@.message_log m
            WHERE m.sid = s.sid AND m.seq >= lower(x) AND m.seq < coalesce(upper(x), 9223372036854775807) OFFSET 0) l
        WHERE l.kind NOT IN ('m', 's') AND l.summary_of && v_seqs), '{}'));
    RETURN @schema@.change_view(s, v_gone, '{}', 'deleted_by_application', p_requested_by);
END $$;

-- Brings back into the view what the application has deleted and appends again, with what stays or goes with it. What a
-- replacement took out stays out: a repeated append is no wish to have it back. While an open tool loop with signed reasoning
-- holds the view, nothing comes back: the append that names it after the end of the loop does that.
CREATE OR REPLACE FUNCTION @schema@.bring_back(s @schema@.sessions, p_seqs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_seqs int8multirange := coalesce((SELECT range_agg(int8range(q, q + 1)) FROM unnest(p_seqs) q), '{}') - s.live - s.erased;
    v_out  int8multirange;
BEGIN
    IF isempty(v_seqs) THEN RETURN; END IF;
    v_out := @schema@.deleted_messages(s.sid) - s.erased;
    IF v_seqs && v_out THEN
        PERFORM @schema@.change_view(s, '{}', v_out * (@schema@.groups_of(s.sid, s.live + v_out, v_seqs * v_out)), NULL, '');
    END IF;
EXCEPTION WHEN object_in_use THEN NULL;
END $$;

-- Where the new messages of a list for replace_view stand in the view, and which of the flags 8 and 256 they have there: null, and
-- -1, for the end of the log. A new message goes directly before the next known one, so that each of several edited ones has a
-- place of its own. Nothing goes before the system prompt, wherever the list has it, and nothing into a tool group, as no
-- provider would take that, but results, and calls that continue the batch or that the next result answers. A result at the end
-- of the list for which no call of the log waits is one of the group before it.
--
-- Placed messages are paired in the order of the list by the rules of chat.Pairer; reasoning that was moved belongs to no call.
CREATE OR REPLACE FUNCTION @schema@.placed(s @schema@.sessions, p_messages json, p_seen bigint, OUT positions bigint[], OUT flags smallint[])
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    m          record;
    v_highest  bigint := 0;   -- the place of a known message so far; what has a lower one stands elsewhere
    v_open     text[] := '{}';
    v_answered boolean := false;
    i          int;
BEGIN
    positions := array_fill(NULL::bigint, ARRAY[json_array_length(p_messages)]);
    flags := array_fill(0::smallint, ARRAY[json_array_length(p_messages)]);
    FOR m IN
        WITH listed AS MATERIALIZED (
            SELECT e.ord::int AS ord, e.m->>'role' AS role, e.m->>'tool_call_id' AS answers, l.seq IS NULL AS new, l.position,
                l.seq IS NOT NULL AND l.position = l.seq AND @schema@.reasoning_only(l.role_code, l.calls, l.flags) AS thinks,
                CASE WHEN e.m->>'role' = 'assistant' AND json_typeof(e.m->'tool_calls') = 'array'
                    THEN ARRAY(SELECT coalesce(c->>'id', '') FROM json_array_elements(e.m->'tool_calls') c) ELSE '{}' END AS calls
            FROM json_array_elements(p_messages) WITH ORDINALITY e(m, ord)
            LEFT JOIN @schema@.message_log l ON l.sid = s.sid AND l.id = e.m->>'id'
        ), around AS (
            SELECT *, max(position) OVER up AS behind, min(position) OVER down AS next, count(position) OVER up AS place,
                calls <> '{}' AND (max(ord) FILTER (WHERE calls <> '{}') OVER before > coalesce(max(ord) FILTER (WHERE calls = '{}' AND NOT thinks) OVER before, 0)
                    OR lead(answers) OVER up = ANY (calls)) OR role = 'tool' AS joins
            FROM listed WINDOW up AS (ORDER BY ord), down AS (ORDER BY ord DESC), before AS (ORDER BY ord ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ), led AS (
            SELECT *, bool_or(new AND joins IS NOT TRUE) OVER (PARTITION BY place ORDER BY ord) AS led,
                count(*) FILTER (WHERE new) OVER (PARTITION BY place ORDER BY ord DESC) AS left
            FROM around)
        SELECT l.*, CASE WHEN x.at IS NOT NULL THEN greatest(CASE WHEN l.led THEN @schema@.group_boundary(s.sid, x.at) ELSE x.at END, y.lead) END AS at
        FROM led l
        CROSS JOIN (SELECT coalesce((SELECT f.seq - 1 FROM @schema@.message_log f
            WHERE f.sid = s.sid AND f.kind = 'm' AND f.role_code <> 's' ORDER BY f.seq LIMIT 1), s.last_seq) AS lead) y
        LEFT JOIN LATERAL (SELECT greatest(l.behind, 0, coalesce(l.next, least(s.last_seq, p_seen) + 1) - l.left) AS at) x ON l.new
            AND (l.next IS NOT NULL OR l.behind IS NOT NULL AND l.role = 'tool' AND NOT l.led AND NOT coalesce(l.answers, '') = ANY (s.open_calls))
        ORDER BY l.ord
    LOOP
        positions[m.ord] := m.at;
        flags[m.ord] := CASE WHEN m.at IS NULL THEN -1 ELSE 0 END;
        IF m.position < v_highest THEN
            CONTINUE;
        END IF;
        v_highest := coalesce(m.position, v_highest);
        IF m.role = 'tool' THEN
            v_answered := true;
            i := array_position(v_open, m.answers);
            IF i IS NOT NULL THEN
                flags[m.ord] := flags[m.ord] | 8;
                v_open := v_open[:i - 1] || v_open[i + 1:];
            END IF;
        ELSIF m.calls <> '{}' AND v_open <> '{}' AND NOT v_answered AND NOT m.calls && v_open AND '' <> ALL (v_open || m.calls) THEN
            flags[m.ord] := flags[m.ord] | 256;
            v_open := v_open || m.calls;
        ELSIF NOT m.thinks OR v_answered THEN
            v_open := m.calls;
            v_answered := false;
        END IF;
    END LOOP;
END $$;

-- A history that was compacted elsewhere: known ids stay or come back, those absent are excluded (reason
-- replaced, or deleted_by_application where the list is empty, which clears the view), new ones are appended, in the place where they stand in the list. p_revision is the
-- revision the caller read; another one is an error. p_seen is the last seq the caller read: what was
-- appended behind it stays in the view; without it the caller is taken to have seen everything.
-- Returns the run. view_with_revision has what it takes in one call.
CREATE OR REPLACE FUNCTION @schema@.replace_view(p_tenant text, p_session text, p_revision bigint, p_messages json, p_requested_by text DEFAULT '',
    p_seen bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s       @schema@.sessions;
    v_pos   bigint[];
    v_flags smallint[];
    v_seqs  bigint[];
    v_keep  int8multirange;
    v_gone  int8multirange;
BEGIN
    IF json_typeof(p_messages) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'replace: messages must be a JSON array, of which an empty one clears the view' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF @schema@.unstorable(p_messages) THEN
        p_messages := @schema@.repair_json(p_messages::text)::json;
    END IF;
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    IF s.revision IS DISTINCT FROM p_revision THEN
        RAISE EXCEPTION 'session % is at revision %, not %: read the view again', s.id, s.revision, p_revision
            USING ERRCODE = 'serialization_failure';
    END IF;
    IF json_array_length(p_messages) > 0 THEN
        SELECT p.positions, p.flags INTO v_pos, v_flags FROM @schema@.placed(s, p_messages, coalesce(p_seen, s.last_seq)) p;
    END IF;
    -- Known ones are appended again too: nothing happens, unless their content is another.
    IF v_pos IS NOT NULL THEN
        v_seqs := @schema@.append_at(p_tenant, p_session, p_messages, NULL, NULL, v_pos, v_flags);
    END IF;
    v_keep := coalesce((SELECT range_agg(int8range(q, q + 1)) FROM unnest(v_seqs) q WHERE q <= s.last_seq), '{}');
    IF s.parallel THEN   -- what view gave out as one message stays whole
        v_keep := v_keep + coalesce((SELECT range_agg(int8range(q, q + 1)) FROM @schema@.merged_view(p_tenant, p_session) v
            JOIN json_array_elements(p_messages) m ON m->>'id' = v.id AND cardinality(v.seqs) > 1
                AND @schema@.same_message(v.message::text, (m::jsonb - '{id,created_at,token_count,token_counter,source_id}'::text[])::text)
            CROSS JOIN LATERAL unnest(v.seqs) q), '{}');
    END IF;
    v_gone := (s.live * int8multirange(int8range(1, least(s.last_seq, coalesce(p_seen, s.last_seq)) + 1))) - v_keep;
    -- A result that is kept without its call, directly after other calls, would pass for theirs. A call that was put there may be an edited one.
    WITH v AS MATERIALIZED (
        SELECT r.*, lag(r.role_code = 't' OR r.calls > 0) OVER w AS after_calls,
            count(*) FILTER (WHERE r.role_code <> 't' AND r.flags & 256 = 0 AND NOT @schema@.reasoning_only(r.role_code, r.calls, r.flags)) OVER w AS batch
        FROM @schema@.view_rows(s.sid, s.live - v_gone + v_keep, '{}') r
        WINDOW w AS (ORDER BY r.position, (r.kind <> 's'), (r.kind = 'm' AND r.position <> r.seq), r.seq)
    ), put AS MATERIALIZED (
        SELECT v.batch, l.call_ids FROM v CROSS JOIN LATERAL (SELECT c.call_ids FROM @schema@.message_log c WHERE c.sid = s.sid AND c.seq = v.seq OFFSET 0) l
        WHERE v.calls > 0 AND v.kind = 'm' AND v.position <> v.seq)
    SELECT v_gone + coalesce(range_agg(int8range(v.seq, v.seq + 1)), '{}') INTO v_gone
    FROM v CROSS JOIN LATERAL (SELECT t.tool_call_id AS id FROM @schema@.message_log t WHERE t.sid = s.sid AND t.seq = v.seq OFFSET 0) t
    WHERE v.role_code = 't' AND v.flags & 8 > 0 AND v.kind = 'm' AND v.after_calls AND NOT (s.live - v_gone + v_keep) @> (
            SELECT c.seq FROM @schema@.message_log c WHERE c.sid = s.sid AND c.seq <= v.position AND c.kind = 'm' AND c.calls > 0 AND t.id = ANY (c.call_ids)
            ORDER BY c.seq DESC LIMIT 1)
        AND NOT EXISTS (SELECT FROM put p WHERE p.batch = v.batch AND t.id = ANY (p.call_ids));
    RETURN @schema@.change_view(s, v_gone, v_keep - s.live - v_gone, CASE WHEN v_pos IS NULL THEN 'deleted_by_application' ELSE 'replaced' END, p_requested_by);
END $$;

-- For literals and parameters without a type, and for jsonb: see append.
CREATE OR REPLACE FUNCTION @schema@.replace_view(p_tenant text, p_session text, p_revision bigint, p_messages text, p_requested_by text DEFAULT '',
    p_seen bigint DEFAULT NULL)
RETURNS bigint LANGUAGE sql AS $$ SELECT @schema@.replace_view(p_tenant, p_session, p_revision, p_messages::json, p_requested_by, p_seen) $$;

CREATE OR REPLACE FUNCTION @schema@.replace_view(p_tenant text, p_session text, p_revision bigint, p_messages jsonb, p_requested_by text DEFAULT '',
    p_seen bigint DEFAULT NULL)
RETURNS bigint LANGUAGE sql AS $$ SELECT @schema@.replace_view(p_tenant, p_session, p_revision, p_messages::json, p_requested_by, p_seen) $$;

-- Takes messages out of the view as exclude does, and appends others at its end: what a host has taken back, such as the last
-- message, and what it has in its place, which may be nothing. p_revision and p_seen are those of the view that the caller read;
-- of another one nothing is changed. With a key a repetition changes nothing, as of append, whatever was done since.
CREATE OR REPLACE FUNCTION @schema@.append_instead(p_tenant text, p_session text, p_ids text[], p_revision bigint, p_seen bigint, p_messages json,
    p_model text DEFAULT NULL, p_key text DEFAULT NULL, p_requested_by text DEFAULT '')
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    s @schema@.sessions := @schema@.lock_session(p_tenant, p_session, NULL, false);
BEGIN
    IF NOT EXISTS (SELECT FROM @schema@.message_log l WHERE l.sid = s.sid AND l.id = nullif(p_key, '') || '#1') THEN
        IF (s.revision, s.last_seq) IS DISTINCT FROM (p_revision, p_seen) THEN
            RAISE EXCEPTION 'session % is at revision % and message %, not % and %: read the view again', s.id, s.revision, s.last_seq, p_revision, p_seen
                USING ERRCODE = 'serialization_failure';
        END IF;
        PERFORM @schema@.exclude(p_tenant, p_session, p_ids, p_requested_by);
    END IF;
    RETURN @schema@.append_at(p_tenant, p_session, p_messages, p_model, p_key, NULL);
END $$;
