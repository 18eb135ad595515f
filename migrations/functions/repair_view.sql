-- What of a view no provider takes, as chat.Check has it of calls, results and roles:
--   unanswered     calls without their results that say nothing else, with their reasoning; only messages as a whole
--   foreign_roles  messages with a role that no provider takes, from versions that stored them
--   awaiting       what can stay in another form, which a run of a worker gives it: results without their call, and calls
--                  with a text or with some of their results, with these
-- A batch at the end is open, and stays, while the log waits for its results. Costs what the view holds.
CREATE OR REPLACE FUNCTION @schema@.view_faults(s @schema@.sessions, OUT unanswered int8multirange, OUT foreign_roles int8multirange,
    OUT awaiting int8multirange)
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    m          record;
    v_calls    bigint[] := '{}';     -- the batch that can take results, its reasoning and its results
    v_thoughts bigint[] := '{}';
    v_results  bigint[] := '{}';
    v_need     int := 0;
    v_says     boolean := false;
    v_before   bigint[] := '{}';     -- reasoning that may belong to the next call
    v          record;
    v_none     bigint[];
    v_out      bigint[] := '{}';
    v_foreign  bigint[] := '{}';
    v_wait     bigint[] := '{}';
BEGIN
    FOR m IN
        SELECT r.seq, r.position, r.calls, r.flags, r.role_code, r.kind, @schema@.reasoning_only(r.role_code, r.calls, r.flags) AND r.kind <> 's'
                AND (r.kind <> 'm' OR r.position = r.seq) AS thinks   -- what was moved belongs to no call
        FROM (SELECT x.*, false AS ends FROM @schema@.view_rows(s.sid, s.live, s.reasoning_out) x
            UNION ALL SELECT NULL, NULL, 0, 0::smallint, 0::smallint, NULL, 'm', 0, true) r
        ORDER BY r.ends, r.position, (r.kind <> 's'), (r.kind = 'm' AND r.position <> r.seq), r.seq
    LOOP
        IF m.role_code = 't' THEN
            v_before := '{}';
            IF m.flags & 8 > 0 AND cardinality(v_results) < v_need THEN
                v_results := v_results || m.seq;
            ELSE
                v_wait := v_wait || m.seq;
            END IF;
            CONTINUE;
        ELSIF m.thinks AND v_need > 0 AND cardinality(v_results) = 0 THEN
            v_thoughts := v_thoughts || m.seq;
            CONTINUE;
        ELSIF m.role_code = 'a' AND m.calls > 0 AND m.flags & 256 > 0 AND v_need > 0 AND cardinality(v_results) = 0 THEN
            v_calls := v_calls || m.seq;
            v_need := v_need + m.calls;
            v_says := v_says OR m.flags & 5 > 0;
            CONTINUE;
        END IF;
        -- Null is the end, where calls may wait for results. What replaces a call has its ids.
        IF cardinality(v_results) < v_need AND (m.role_code IS NOT NULL OR NOT EXISTS (SELECT FROM @schema@.message_log l
            WHERE l.sid = s.sid AND l.seq = ANY(v_calls) AND l.call_ids && s.open_calls)) THEN
            IF cardinality(v_results) = 0 AND NOT v_says AND m.kind = 'm' THEN
                v_out := v_out || v_calls || v_thoughts;
            ELSIF cardinality(v_results) = 0 AND m.kind = 'm' THEN
                v_wait := v_wait || v_calls;
            ELSE   -- which calls were answered, as in chat.Answered; what a run wrote into the batch, the next one moves
                SELECT bool_or(c.answered < c.calls AND (c.answered > 0 OR c.says)) AS partly,
                    array_agg(c.seq) FILTER (WHERE c.answered = 0) AS none INTO v
                FROM (SELECT l.seq, cardinality(l.call_ids) AS calls, l.flags & 5 > 0 AS says,
                        (SELECT count(*) FROM @schema@.message_log t WHERE t.sid = s.sid AND t.seq = ANY(v_results) AND t.tool_call_id = ANY(l.call_ids)
                            AND NOT EXISTS (SELECT FROM @schema@.message_log n WHERE n.sid = s.sid AND n.seq = ANY(v_calls)
                                AND array_position(v_calls, n.seq) > array_position(v_calls, l.seq) AND t.tool_call_id = ANY(n.call_ids))) AS answered
                    FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq = ANY(v_calls)) c;
                IF coalesce(v.partly, true) OR m.kind <> 'm' THEN
                    v_wait := v_wait || v_calls || v_thoughts || v_results;
                ELSE
                    v_out := v_out || v.none;
                END IF;
            END IF;
        END IF;
        v_calls := '{}';
        v_thoughts := '{}';
        v_results := '{}';
        v_need := 0;
        v_says := false;
        IF m.thinks THEN
            v_before := v_before || m.seq;
            CONTINUE;
        ELSIF m.role_code = 'a' AND m.calls > 0 THEN
            v_calls := ARRAY[m.seq];
            v_thoughts := v_before;
            v_need := m.calls;
            v_says := m.flags & 5 > 0;
        ELSIF m.role_code = 'o' AND (SELECT l.role <> 'function' FROM @schema@.message_log l WHERE l.sid = s.sid AND l.seq = m.seq) THEN
            v_foreign := v_foreign || m.seq;
        END IF;
        v_before := '{}';
    END LOOP;
    unanswered := @schema@.seqs(v_out);
    foreign_roles := @schema@.seqs(v_foreign);
    awaiting := @schema@.seqs(v_wait);
END $$;

CREATE OR REPLACE FUNCTION @schema@.seqs(p bigint[]) RETURNS int8multirange LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(range_agg(int8range(q, q + 1)), '{}') FROM unnest(p) q
$$;

-- Makes the view of a locked session valid, in the transaction that made it invalid, and returns the session: what breaks a
-- rule leaves the view by an applied run of the kind repair. What can stay in another form (awaiting_repair) is due for a run
-- of a worker. Nothing is held here by an open tool loop: no provider takes the view that its reasoning was written on.
CREATE OR REPLACE FUNCTION @schema@.repair_view(s @schema@.sessions) RETURNS @schema@.sessions LANGUAGE plpgsql AS $$
DECLARE
    f       record;
    v_gone  int8multirange;
    v_from  bigint;
    v_taken int8multirange := '{}';
    v_run   bigint;
    v       record;
BEGIN
    SELECT * INTO f FROM @schema@.view_faults(s);
    v_gone := f.unanswered + f.foreign_roles + f.awaiting;
    IF isempty(v_gone) THEN
        RETURN s;
    END IF;
    IF @schema@.free_reasoning(s) THEN
        s.reasoning_since := NULL;
    ELSE
        SELECT min(r.position) INTO v_from FROM @schema@.view_rows(s.sid, s.live * v_gone, '{}') r;
        IF s.reasoning_since IS NULL AND s.revision > 0 THEN   -- which of it is stale is not known
            v_from := 1;
            s.reasoning_since := s.last_seq;
        END IF;
        s.reasoning_since := coalesce(s.reasoning_since, 0);
        v_taken := @schema@.stale_reasoning(s.sid, s.live - v_gone, v_from) - s.reasoning_out;
    END IF;
    SELECT count(*) + b.messages AS messages, coalesce(sum(r.token_count), 0) + b.tokens AS tokens,
        coalesce(sum(r.token_count) FILTER (WHERE r.flags & 16 > 0), 0) + b.estimated AS estimated INTO v
    FROM @schema@.reasoning_in(s.sid, (s.live - v_gone) * v_taken) b LEFT JOIN @schema@.view_rows(s.sid, s.live * v_gone, s.reasoning_out) r ON true
    GROUP BY b.messages, b.tokens, b.estimated;
    INSERT INTO @schema@.runs (sid, trigger, kind, status, outcome, started_at, ended_at, in_force, revision, base_run, snapshot_seq, snapshot_revision,
        applied_seq, live_before, live_after, included, appended, messages_before, messages_after, tokens_before, tokens_after,
        reasoning_before, reasoning_taken)
    VALUES (s.sid, 'application', 'repair', 'applied', 'repaired', now(), clock_timestamp(), true, s.revision + 1, s.head_run, s.last_seq, s.revision,
        s.last_seq, s.live, s.live - v_gone, '{}', '{}', s.live_messages, s.live_messages - v.messages, s.live_tokens, s.live_tokens - v.tokens,
        s.reasoning_out, v_taken)
    RETURNING id INTO v_run;
    INSERT INTO @schema@.exclusions (run, sid, reason, seqs)
    SELECT v_run, s.sid, x.reason, x.seqs FROM (VALUES ('unanswered_call', f.unanswered), ('foreign_role', f.foreign_roles),
        ('awaiting_repair', f.awaiting)) x(reason, seqs) WHERE NOT isempty(x.seqs);
    UPDATE @schema@.sessions t SET live = t.live - v_gone, revision = t.revision + 1, head_run = v_run,
        tail_start_seq = (SELECT lower(x) FROM unnest(t.live - v_gone) x WHERE upper_inf(x)),
        live_messages = t.live_messages - v.messages, live_tokens = t.live_tokens - v.tokens,
        live_estimated_tokens = t.live_estimated_tokens - v.estimated,
        tokens_since_report = t.tokens_since_report - CASE WHEN t.reported_prompt_tokens IS NULL THEN 0 ELSE v.tokens END,
        reasoning_out = t.reasoning_out + v_taken, reasoning_since = s.reasoning_since,
        suspect_seq = CASE WHEN isempty(f.awaiting) THEN t.suspect_seq ELSE t.last_seq END
    WHERE t.sid = s.sid RETURNING * INTO s;
    IF @schema@.is_due(s) <> s.due THEN
        s.due := NOT s.due;
        UPDATE @schema@.sessions SET due = s.due WHERE sid = s.sid;
    END IF;
    RETURN s;
END $$;

-- What repair_view has left out of the view until a run gives it another form, as far as none has yet. Roles call it, so the
-- tenant is that of the session with this sid, whatever the row says.
CREATE OR REPLACE FUNCTION @schema@.awaiting_repair(s @schema@.sessions) RETURNS int8multirange LANGUAGE sql STABLE AS $$
    SELECT coalesce(range_agg(int8range(o.seq, o.seq + 1)) FILTER (WHERE o.reason = 'awaiting_repair'), '{}')
    FROM (SELECT range_agg(x) AS seqs FROM @schema@.exclusions e, unnest(e.seqs - s.live) x WHERE e.sid = s.sid AND e.reason = 'awaiting_repair'
        AND @schema@.tenant_of(coalesce((SELECT t.tenant FROM @schema@.sessions t WHERE t.sid = s.sid), '-')) IS NOT NULL) w
    CROSS JOIN LATERAL (SELECT DISTINCT ON (q.seq) q.seq, e.reason
        FROM @schema@.exclusions e JOIN @schema@.runs r ON r.id = e.run AND r.in_force
        CROSS JOIN LATERAL unnest(e.seqs * w.seqs) u(x) CROSS JOIN LATERAL generate_series(lower(u.x), upper(u.x) - 1) q(seq)
        WHERE e.sid = s.sid ORDER BY q.seq, r.revision DESC) o
$$;
