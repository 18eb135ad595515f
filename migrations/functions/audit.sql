-- What follows from the log and the ledger about a session, in the columns that keep it: the row as it should be.
CREATE OR REPLACE FUNCTION @schema@.recount(s @schema@.sessions) RETURNS @schema@.sessions LANGUAGE plpgsql STABLE AS $$
DECLARE
    r @schema@.runs;
    w @schema@.sessions;
    v record;
BEGIN
    SELECT * INTO r FROM @schema@.runs t WHERE t.sid = s.sid AND t.status = 'applied' ORDER BY t.revision DESC LIMIT 1;
    s.live := coalesce(r.live_after, '{[1,)}');
    s.revision := coalesce(r.revision, 0);
    s.head_run := r.id;
    s.reasoning_out := coalesce(CASE WHEN r.kind = 'undo' THEN (SELECT u.reasoning_before FROM @schema@.runs u WHERE u.id = r.undoes)
        ELSE r.reasoning_before END, '{}') + coalesce(r.reasoning_taken, '{}');
    s.tail_start_seq := (SELECT lower(x) FROM unnest(s.live) x WHERE upper_inf(x));
    SELECT count(*) AS messages, count(*) FILTER (WHERE role_code = 'u') AS turns, coalesce(sum(token_count), 0) AS tokens, coalesce(max(seq), 0) AS last
    INTO v FROM @schema@.message_log m WHERE m.sid = s.sid AND m.kind = 'm';
    s.messages := v.messages;
    s.turns := v.turns;
    s.total_tokens := v.tokens;
    s.last_source_seq := v.last;
    s.last_seq := greatest(s.last_seq, (SELECT max(seq) FROM @schema@.message_log m WHERE m.sid = s.sid));
    SELECT count(*) AS messages, coalesce(sum(token_count), 0) AS tokens, coalesce(sum(token_count) FILTER (WHERE flags & 16 > 0), 0) AS estimated
    INTO v FROM @schema@.view_rows(s.sid, s.live, s.reasoning_out);
    s.live_messages := v.messages;
    s.live_tokens := v.tokens;
    s.live_estimated_tokens := v.estimated;
    -- What holds a session back, and what is pinned, is of messages that are there; and no policy rests longer after a run.
    s.pinned := s.pinned * int8multirange(int8range(1, s.last_source_seq + 1));
    IF s.hold_seq > s.last_source_seq THEN
        s.hold_seq := coalesce((SELECT max(m.seq) FROM @schema@.message_log m WHERE m.sid = s.sid AND m.kind = 'm' AND m.seq <=
            (SELECT max(t.applied_seq) FROM @schema@.runs t WHERE t.sid = s.sid AND t.status = 'applied' AND t.kind = 'undo')), 0);
    END IF;
    IF s.cooldown_until > now() + interval '30 days' THEN
        s.cooldown_until := NULL;
    END IF;
    -- What is due in vain is so until its next run; and what is so only by what the reports of others have taught
    -- since, by its next write. No tenant has an empty name, so nothing was taught of that one.
    w := s;
    w.tenant := '';
    s.due := s.due OR @schema@.is_due(s) AND @schema@.is_due(w);
    RETURN s;
END $$;

-- Whether the log of a session is whole, and each message as it was stored.
CREATE OR REPLACE FUNCTION @schema@.audit_rows(s @schema@.sessions) RETURNS SETOF @schema@.finding LANGUAGE plpgsql STABLE AS $$
DECLARE
    m        @schema@.message_log;
    v        @schema@.message_log;
    v_tokens bigint;
    v_ok     boolean;
BEGIN
    RETURN QUERY SELECT 'message', before + 1, 'missing', NULL::text,
        CASE seq - before WHEN 2 THEN 'a message' ELSE format('messages up to %s', seq - 1) END, false
    FROM (SELECT l.seq, lag(l.seq, 1, 0::bigint) OVER (ORDER BY l.seq) AS before
        FROM (SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid UNION ALL SELECT s.last_seq + 1) l) x
    WHERE seq > before + 1;
    RETURN QUERY SELECT 'message', l.seq, 'body', x.stored, encode(l.body_digest, 'hex'), false
    FROM @schema@.message_log l LEFT JOIN @schema@.message_body b ON b.sid = l.sid AND b.seq = l.seq
    CROSS JOIN LATERAL (SELECT coalesce(encode(@schema@.body_digest(b.body), 'hex'), 'missing') AS stored) x
    WHERE l.sid = s.sid AND NOT s.archived @> l.seq AND (b.body IS NULL OR x.stored <> encode(l.body_digest, 'hex'));
    RETURN QUERY SELECT 'segment', a.id, 'checksum', encode(sha256(a.data), 'hex'), encode(a.checksum, 'hex'), false
    FROM @schema@.archive_segments a WHERE a.sid = s.sid AND sha256(a.data) <> a.checksum;
    RETURN QUERY SELECT 'segment', a.id, 'purged_after', a.purged_after::text, 'an age that the segment had when it was purged: no purge took its words', false
    FROM @schema@.archive_segments a WHERE a.sid = s.sid AND a.purged_at IS NOT NULL AND (a.created_at + a.purged_after <= a.purged_at) IS NOT TRUE;
    RETURN QUERY SELECT 'session', NULL::bigint, 'archived', s.archived::text, x.seqs::text, false
    FROM (SELECT coalesce((SELECT range_agg(g) FROM @schema@.archive_segments a, unnest(a.seqs) g WHERE a.sid = s.sid), '{}') - (s.erased - s.archived) AS seqs) x
    WHERE x.seqs <> s.archived;
    RETURN QUERY SELECT 'message', l.seq, 'erased', 'set, and the words are there', 'words that say so', false
    FROM @schema@.message_log l JOIN @schema@.message_body b ON b.sid = l.sid AND b.seq = l.seq
    WHERE l.sid = s.sid AND s.erased @> l.seq AND b.body <> @schema@.erased_body(l, b.body);
    FOR m IN SELECT l.* FROM @schema@.message_log l
        WHERE l.sid = s.sid AND l.digest <> @schema@.message_digest(l)
    LOOP
        -- What other rows say as well can be brought back, if the digest confirms it.
        v := m;
        SELECT m.cumulative_tokens - coalesce(max(l.cumulative_tokens), 0) INTO v_tokens
        FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq < m.seq AND l.kind = 'm';
        IF m.kind = 'm' AND v_tokens BETWEEN 0 AND 2147483647 THEN
            v.token_count := v_tokens;
        END IF;
        v.summary_of := coalesce((SELECT e.seqs FROM @schema@.exclusions e WHERE e.sid = s.sid AND e.run = m.run AND e.summary_seq = m.seq LIMIT 1), m.summary_of);
        v_ok := m.digest = @schema@.message_digest(v);
        RETURN QUERY SELECT 'message', m.seq, x.field, x.stored, x.want, v_ok
        FROM (VALUES ('token_count', m.token_count::text, v.token_count::text), ('summary_of', m.summary_of::text, v.summary_of::text),
            ('digest', encode(@schema@.message_digest(m), 'hex'), encode(m.digest, 'hex'))) x(field, stored, want)
        WHERE CASE WHEN v_ok THEN x.field <> 'digest' AND x.stored IS DISTINCT FROM x.want ELSE x.field = 'digest' END;
    END LOOP;
END $$;

-- What append derives from the messages of a session. Pairing is that of append_many, for the whole log but for what has
-- another place in the view: see placed.
CREATE OR REPLACE FUNCTION @schema@.audit_derived(s @schema@.sessions) RETURNS SETOF @schema@.finding LANGUAGE sql STABLE AS $$
    WITH l AS (
        SELECT m.seq, m.position, m.kind, m.role, m.role_code, m.calls, m.flags, m.call_ids, coalesce(m.tool_call_id, '') AS tool_call_id, m.cumulative_tokens,
            coalesce(sum(m.token_count) FILTER (WHERE m.kind = 'm') OVER (ORDER BY m.seq), 0) AS sum_tokens,
            @schema@.reasoning_only(@schema@.role_code(m.role), m.calls, m.flags) AS reasoning_only
        FROM @schema@.message_log m WHERE m.sid = s.sid
    ), segmented AS (   -- 256 is part of what is stored, see chat.Parallel
        SELECT f.*, count(*) FILTER (WHERE role <> 'tool' AND flags & 256 = 0 AND (NOT reasoning_only OR behind_result)) OVER (ORDER BY seq) AS seg
        FROM (SELECT l.*, coalesce(lag(role = 'tool') OVER (ORDER BY seq), false) AS behind_result FROM l WHERE kind = 'm' AND position = seq) f
    ), anchored AS (
        SELECT g.*, c.calls AS seg_calls,
            CASE WHEN role = 'tool' THEN row_number() OVER (PARTITION BY g.seg, role = 'tool', tool_call_id ORDER BY seq) END AS nth
        FROM segmented g LEFT JOIN (SELECT a.seg, array_agg(c) AS calls FROM segmented a CROSS JOIN LATERAL unnest(a.call_ids) c WHERE a.role = 'assistant' GROUP BY 1) c ON c.seg = g.seg
    ), staged AS (
        SELECT seq, seg, seg_calls, role, tool_call_id, flags, coalesce(nth <= cardinality(array_positions(seg_calls, tool_call_id)), false) AS paired
        FROM anchored
    ), last_seg AS (SELECT * FROM staged WHERE seg = (SELECT max(seg) FROM staged)
    ), open AS (
        SELECT coalesce(bool_or(role = 'tool'), false) AS answered,
            ARRAY(SELECT c FROM (SELECT c, row_number() OVER (PARTITION BY c) AS nth FROM unnest((SELECT seg_calls FROM last_seg LIMIT 1)) c) x
                LEFT JOIN (SELECT y.tool_call_id, count(*) AS taken FROM last_seg y WHERE y.paired GROUP BY 1) r ON r.tool_call_id = x.c
                WHERE nth > coalesce(taken, 0) ORDER BY c) AS calls
        FROM last_seg)
    SELECT 'message', l.seq, x.field, x.stored, x.want, true
    FROM l CROSS JOIN LATERAL (VALUES ('role_code', l.role_code::text, @schema@.role_code(l.role)::text),
        ('calls', l.calls::text, least(coalesce(cardinality(l.call_ids), 0), 32767)::text),
        ('cumulative_tokens', l.cumulative_tokens::text, l.sum_tokens::text)) x(field, stored, want)
    WHERE x.stored <> x.want
    UNION ALL
    SELECT 'message', seq, 'flags', flags::text, (flags # 8)::text, true FROM staged WHERE paired <> (flags & 8 > 0)
    UNION ALL
    SELECT 'session', NULL, 'open_calls', s.open_calls::text, calls::text, true FROM open
    WHERE calls <> ARRAY(SELECT c FROM unnest(s.open_calls) c ORDER BY c)
    UNION ALL
    SELECT 'session', NULL, 'open_answered', s.open_answered::text, answered::text, true FROM open WHERE answered <> s.open_answered
$$;

-- Whether the runs of a session are one line of views, each what its run made of the one before.
CREATE OR REPLACE FUNCTION @schema@.audit_runs(s @schema@.sessions) RETURNS SETOF @schema@.finding LANGUAGE sql STABLE AS $$
    WITH r AS (
        SELECT t.*, lag(t.id) OVER w AS prev, coalesce(lag(t.revision) OVER w, 0) AS prev_revision,
            coalesce(lag(t.live_after) OVER w, '{[1,)}') AS prev_live,
            coalesce((SELECT range_agg(x) FROM @schema@.exclusions e, unnest(e.seqs) x WHERE e.sid = s.sid AND e.run = t.id), '{}') AS excluded
        FROM @schema@.runs t WHERE t.sid = s.sid AND t.status = 'applied' WINDOW w AS (ORDER BY t.revision, t.id)
    ), findings AS (
        SELECT r.id, x.field, x.stored, x.want, x.derived
        FROM r LEFT JOIN r u ON u.id = r.undoes
        CROSS JOIN LATERAL (VALUES
            ('revision', r.revision::text, (r.prev_revision + 1)::text, false),
            ('base_run', r.base_run::text, r.prev::text, r.revision = r.prev_revision + 1),
            ('restores', r.restores::text, CASE WHEN r.kind = 'undo' THEN u.prev END::text, u.revision = u.prev_revision + 1),
            ('live_before', r.live_before::text, r.prev_live::text, false),
            ('live_after', r.live_after::text, CASE
                WHEN r.kind = 'undo' THEN u.live_before - coalesce((SELECT range_agg(x) FROM r t, unnest(t.appended) x
                    WHERE t.revision >= u.revision AND t.revision < r.revision), '{}') - r.excluded
                WHEN r.included IS NOT NULL THEN r.live_before - r.excluded + r.included
                WHEN r.live_before - r.live_after <@ r.excluded THEN r.live_after
                ELSE r.live_before - r.excluded END::text, false)) x(field, stored, want, derived)
        WHERE x.stored IS DISTINCT FROM x.want)
    SELECT 'run', id, field, stored, want, coalesce(derived, false) FROM findings
    UNION ALL
    SELECT 'run', t.id, 'in_force', t.in_force::text, (NOT t.in_force)::text, true FROM @schema@.runs t
    WHERE t.sid = s.sid AND t.in_force <> (t.id IN (SELECT @schema@.line_of((SELECT id FROM r ORDER BY revision DESC LIMIT 1))))
        AND NOT EXISTS (SELECT FROM findings WHERE field IN ('base_run', 'restores', 'revision'))
$$;

-- Whether what is not in the view of a session is explained, and what has to be there is.
CREATE OR REPLACE FUNCTION @schema@.audit_links(s @schema@.sessions) RETURNS SETOF @schema@.finding LANGUAGE sql STABLE AS $$
    WITH e AS MATERIALIZED (
        SELECT e.run, e.seqs, e.summary_seq, r.id IS NOT NULL AS own FROM @schema@.exclusions e LEFT JOIN @schema@.runs r ON r.id = e.run AND r.sid = s.sid
        WHERE e.sid = s.sid
    ), m AS MATERIALIZED (SELECT l.seq, l.run, l.summary_of FROM @schema@.message_log l WHERE l.sid = s.sid AND l.kind <> 'm'
    ), bad AS MATERIALIZED (   -- a link of which the two ends do not agree
        SELECT e.run, e.seqs, e.summary_seq, m.seq, m.summary_of,
            CASE WHEN e.run IS NOT NULL THEN (SELECT o.seq FROM m o WHERE o.run = e.run AND o.summary_of = e.seqs LIMIT 1) END AS other
        FROM (SELECT * FROM e WHERE own AND summary_seq IS NOT NULL) e FULL JOIN m ON m.seq = e.summary_seq AND m.run = e.run
        WHERE m.summary_of IS DISTINCT FROM e.seqs)
    SELECT 'exclusion', run, 'run', run::text, NULL, false FROM e WHERE NOT own
    UNION ALL
    SELECT 'exclusion', run, 'summary_seq', summary_seq::text, other::text, false FROM bad WHERE run IS NOT NULL AND (seq IS NULL OR other IS NOT NULL)
    UNION ALL
    SELECT 'message', seq, 'summary_of', summary_of::text, seqs::text, false FROM bad WHERE run IS NOT NULL AND seq IS NOT NULL AND other IS NULL
    UNION ALL
    SELECT 'message', seq, 'exclusion', NULL, summary_of::text, false FROM bad
    WHERE run IS NULL AND NOT EXISTS (SELECT FROM bad o WHERE o.other = bad.seq)
    UNION ALL   -- I3
    SELECT 'message', m.seq, 'exclusion', NULL, 'a run in force that excluded it', false
    FROM (SELECT int8multirange(int8range(1, s.last_seq + 1)) - s.live - coalesce((SELECT range_agg(x) FROM @schema@.exclusions e
            JOIN @schema@.runs r ON r.id = e.run, unnest(e.seqs) x WHERE e.sid = s.sid AND r.sid = s.sid AND r.in_force), '{}') AS seqs) u
    CROSS JOIN LATERAL unnest(u.seqs) x
    JOIN @schema@.message_log m ON m.sid = s.sid AND m.seq >= lower(x) AND m.seq < upper(x) AND m.kind = 'm'
    UNION ALL   -- I4; a history that the application has compacted is what it wants, and a run looks at a suspect view
    SELECT 'message', m.seq, 'view', 'excluded', 'included, as the last message of the user', false
    FROM (SELECT l.seq FROM @schema@.message_log l WHERE l.sid = s.sid AND l.kind = 'm' AND l.role = 'user' ORDER BY l.seq DESC LIMIT 1) m
    WHERE NOT s.live @> m.seq AND s.suspect_seq IS NULL
        AND NOT EXISTS (SELECT FROM @schema@.runs r WHERE r.sid = s.sid AND r.kind = 'replace' AND r.in_force)
    UNION ALL
    SELECT 'message', lower(x), 'view', 'excluded', 'included, as it is pinned', false FROM unnest(s.pinned - s.live - s.unholdable) x
    WHERE s.suspect_seq IS NULL AND NOT s.due
$$;

-- Everything that is wrong with a session, by its log and its ledger.
CREATE OR REPLACE FUNCTION @schema@.audit_session(p_tenant text, p_session text) RETURNS SETOF @schema@.finding LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    v_tenant  text := @schema@.tenant_of(p_tenant);
    s         @schema@.sessions;
    w         @schema@.sessions;
    v_runs    @schema@.finding[];
    v_rows    @schema@.finding[];
    v_derived @schema@.finding[];
    v_view    boolean;   -- what the view should be is known
    v_whole   boolean;   -- so is what was said
BEGIN
    SELECT * INTO s FROM @schema@.sessions t WHERE t.tenant = v_tenant AND t.id = p_session;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'session % of tenant % does not exist', p_session, v_tenant USING ERRCODE = 'no_data_found';
    END IF;
    IF s.parent IS NOT NULL THEN
        RETURN QUERY SELECT 'session', NULL::bigint, 'parent', p.id, x.want, false
        FROM @schema@.sessions p CROSS JOIN LATERAL (SELECT CASE WHEN p.tenant <> s.tenant THEN 'one of tenant ' || s.tenant
            WHEN s.sid IN (SELECT @schema@.ancestors(p.sid)) THEN 'one that is not below it' END AS want) x
        WHERE p.sid = s.parent AND x.want IS NOT NULL;
    END IF;
    w := @schema@.recount(s);
    v_runs := ARRAY(SELECT f FROM @schema@.audit_runs(s) f ORDER BY f.at, f.field);
    v_rows := ARRAY(SELECT f FROM @schema@.audit_rows(s) f ORDER BY f.kind, f.at, f.field);
    RETURN QUERY SELECT f.* FROM unnest(v_runs || v_rows) f;
    -- From here on, only what does not follow from what was found before.
    RETURN QUERY SELECT f.* FROM @schema@.audit_links(w) f
        WHERE (f.kind, f.at, f.field) NOT IN (SELECT r.kind, r.at, r.field FROM unnest(v_rows) r)
            AND (f.want IS DISTINCT FROM 'a run in force that excluded it' OR NOT EXISTS (SELECT FROM unnest(v_runs) r WHERE r.derived))
        ORDER BY f.kind, f.at, f.field;
    IF EXISTS (SELECT FROM unnest(v_rows) f WHERE f.derived OR f.field = 'missing') THEN RETURN; END IF;
    v_derived := ARRAY(SELECT f FROM @schema@.audit_derived(s) f ORDER BY f.kind, f.at, f.field);
    v_whole := cardinality(v_rows) = 0;
    -- Of what names the present view all but one are right, and the run that made it says how.
    v_view := (s.live <> w.live)::int + (s.revision <> w.revision)::int + (s.head_run IS DISTINCT FROM w.head_run)::int
            + (s.reasoning_out <> w.reasoning_out)::int <= 1
        AND NOT EXISTS (SELECT FROM unnest(v_runs) f WHERE f.at = w.head_run AND f.field IN ('live_before', 'live_after'));
    RETURN QUERY SELECT f.kind, f.at, f.field, f.stored, f.want, v_whole FROM unnest(v_derived) f;
    IF EXISTS (SELECT FROM unnest(v_derived) f WHERE f.kind = 'message') THEN RETURN; END IF;
    RETURN QUERY SELECT 'session', NULL::bigint, k, x.stored->>k, x.want->>k, v_whole AND v_view
    FROM (SELECT to_jsonb(s) AS stored, to_jsonb(w) AS want) x,
        unnest('{live,reasoning_out,revision,head_run,tail_start_seq,last_seq,last_source_seq,messages,turns,total_tokens,live_messages,live_tokens,live_estimated_tokens,pinned,hold_seq,cooldown_until,due}'::text[]) k
    WHERE x.stored->k <> x.want->k;
END $$;

-- Sets what audit_session has found and what follows from log and ledger, and returns that. It changes nothing that was
-- said, no exclusion, and no view of the past.
CREATE OR REPLACE FUNCTION @schema@.fix_session(p_tenant text, p_session text) RETURNS SETOF @schema@.finding LANGUAGE plpgsql AS $$
DECLARE
    s     @schema@.sessions;
    f     @schema@.finding;
    v_run bigint;
    v_fixed boolean := false;
BEGIN
    s := @schema@.lock_session(p_tenant, p_session, NULL, false);
    SELECT id INTO v_run FROM @schema@.runs WHERE sid = s.sid AND status = 'running' AND NOT @schema@.lease_is_over(lease_until);
    IF FOUND THEN
        RAISE EXCEPTION 'session %: run % is at work', s.id, v_run USING ERRCODE = 'object_in_use', HINT = 'Repeat it when the run has ended.';
    END IF;
    PERFORM set_config('compactor.fix', 'on', true);
    FOR i IN 1..5 LOOP   -- what is derived from what was fixed is found in the next round
        FOR f IN SELECT * FROM @schema@.audit_session(p_tenant, p_session) x WHERE x.derived LOOP
            EXECUTE format('UPDATE @schema@.%s SET %I = CAST($1 AS %s) WHERE sid = $2 AND %s = $3',
                    CASE f.kind WHEN 'session' THEN 'sessions' WHEN 'message' THEN 'message_log' WHEN 'run' THEN 'runs' END, f.field,
                    (SELECT format_type(a.atttypid, NULL) FROM pg_attribute a WHERE a.attname = f.field AND a.attrelid =
                        CASE f.kind WHEN 'session' THEN '@schema@.sessions' WHEN 'message' THEN '@schema@.message_log' WHEN 'run' THEN '@schema@.runs' END::regclass),
                    CASE f.kind WHEN 'session' THEN 'sid' WHEN 'message' THEN 'seq' WHEN 'run' THEN 'id' END)
                USING f.want, s.sid, coalesce(f.at, s.sid);
            v_fixed := true;
            RETURN NEXT f;
        END LOOP;
        EXIT WHEN NOT FOUND;
    END LOOP;
    IF v_fixed THEN
        PERFORM @schema@.note_change('session.fix', s);
    END IF;
    PERFORM set_config('compactor.fix', '', true);
END $$;
