-- A clock of the database that was set back, or that of a replica that took over and is behind, must hold nothing back for
-- longer than what stored a time could. Two rules see to it. A time is not believed where it is further ahead than
-- what stores it could have set it: leads, lease_is_over, cools, full_at_of, and bound_times for those that are found by an index. And the
-- leader, which notes the time with each renewal of its lease, notices that the clock is behind that, and correct_times moves
-- every stored time that is yet to come by as much. A test has a decision for each timestamp of the schema.

-- Takes or renews the lease of a role, and reports whether the caller leads now. A lease that is over in more than p_ttl, or was
-- renewed at a time that is yet to come, is over.
CREATE OR REPLACE FUNCTION @schema@.take_lead(p_role text, p_holder text, p_ttl interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    l      @schema@.leader;
    v_now  timestamptz;
    v_back interval;
BEGIN
    SELECT * INTO l FROM @schema@.leader WHERE role = p_role FOR NO KEY UPDATE;
    v_now := clock_timestamp();   -- now() is from before the lock
    IF NOT FOUND THEN
        INSERT INTO @schema@.leader (role, holder, expires_at, renewed_at) VALUES (p_role, p_holder, v_now + p_ttl, v_now) ON CONFLICT DO NOTHING;
        RETURN FOUND;
    END IF;
    v_back := CASE WHEN l.renewed_at > v_now + interval '1 second' THEN l.renewed_at - v_now ELSE '0' END;
    IF l.holder <> p_holder AND v_back = '0' AND l.expires_at >= v_now AND l.expires_at <= v_now + p_ttl + interval '1 second' THEN
        RETURN false;
    END IF;
    UPDATE @schema@.leader SET holder = p_holder, expires_at = v_now + p_ttl, renewed_at = v_now, fence = fence + (holder <> p_holder)::int,
        queue_away_since = CASE WHEN holder = p_holder THEN queue_away_since END, workers_away_since = CASE WHEN holder = p_holder THEN workers_away_since END,
        clock_back = clock_back + v_back, clock_sid = CASE WHEN v_back = '0' THEN clock_sid ELSE 0 END
    WHERE role = p_role;
    RETURN true;
END $$;

-- Whether a leader leads now. A lease that is over in more than the longest takes was taken by a clock that was set back since.
CREATE OR REPLACE FUNCTION @schema@.leads(l @schema@.leader) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(l.expires_at > now() AND l.expires_at <= now() + interval '61 minutes' AND (l.renewed_at > now() + interval '1 minute') IS NOT true, false)
$$;

-- Whether the lease of a run is over; the longest takes an hour.
CREATE OR REPLACE FUNCTION @schema@.lease_is_over(p_until timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(p_until < now() OR p_until > now() + interval '61 minutes', true)
$$;

-- Whether a cooldown of a model that was set at a time lasts; the longest takes a day.
CREATE OR REPLACE FUNCTION @schema@.cools(p_set_at timestamptz, p_until timestamptz, p_now timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT p_until > p_now AND p_until <= p_now + interval '25 hours' AND p_set_at <= p_now + interval '1 minute'
$$;

-- From when on the runs of a second may start at once. Those that have started here take at most a second or, of slower limits,
-- the time of one. Each other database may count for half a minute (see count_elsewhere) and for ten times that, as it starts some
-- before it knows of the others.
CREATE OR REPLACE FUNCTION @schema@.full_at_of(l @schema@.spending_limits) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT least(l.full_at, now() + make_interval(secs => greatest(1, 1 / l.runs_per_second)
        + (30 + 10 * greatest(1, 1 / l.runs_per_second)) * (SELECT count(*) FROM @schema@.used_elsewhere e WHERE e.tenant = l.tenant)))
$$;

-- Corrects the stored times after the clock was set back (see take_lead): first those that belong to no session, then with each call
-- those of up to p_limit sessions. It returns by how much it was, 0 if there is nothing (more) to correct. Not those that nothing
-- believes for long (lease_is_over, full_at_of); a living worker has extended its lease by the new clock. It waits for a
-- writer only while it holds nothing: for the first session of a page. A page ends at another one that is locked. A run that is
-- locked is being set by the new clock.
CREATE OR REPLACE FUNCTION @schema@.correct_times(p_limit int) RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    l      @schema@.leader;
    v_now  timestamptz := clock_timestamp();
    v_page bigint[];
    v_sids bigint[];
    v_next bigint := 1;
BEGIN
    SELECT * INTO l FROM @schema@.leader WHERE role = 'scheduler' AND clock_back > '0';
    IF NOT FOUND THEN
        RETURN '0';
    END IF;
    IF l.clock_sid = 0 THEN
        UPDATE @schema@.sweeps SET window_end = window_end - CASE WHEN window_end > v_now THEN l.clock_back ELSE '0' END,
            changed_at = changed_at - CASE WHEN changed_at > v_now THEN l.clock_back ELSE '0' END,
            ended_at = ended_at - CASE WHEN ended_at > v_now THEN l.clock_back ELSE '0' END
        WHERE id IN (SELECT id FROM @schema@.sweeps WHERE greatest(window_end, changed_at, ended_at) > v_now ORDER BY id FOR NO KEY UPDATE);
        UPDATE @schema@.used_elsewhere SET read_at = read_at - l.clock_back WHERE read_at > v_now;
        UPDATE @schema@.model_cooldowns SET until = until - l.clock_back, set_at = set_at - l.clock_back WHERE set_at > v_now;
        UPDATE @schema@.policy_refresh SET reached_at = reached_at - l.clock_back WHERE reached_at > v_now;
        -- Minutes that are lived again are summed again, also those since the step, which may be noticed late.
        DELETE FROM @schema@.spending_minutes WHERE minute > v_now - interval '10 minutes';
    ELSE
        v_page := ARRAY(SELECT sid FROM @schema@.sessions WHERE sid >= l.clock_sid ORDER BY sid LIMIT p_limit);
        v_sids := ARRAY(SELECT s.sid FROM @schema@.sessions s WHERE s.sid = ANY (v_page)
            AND (greatest(cooldown_until, next_check_at, due_since, restored_at, view_changed_at, last_message_at, created_at) > v_now
                OR EXISTS (SELECT FROM @schema@.outbox o WHERE o.sid = s.sid) OR EXISTS (SELECT FROM @schema@.throttled h WHERE h.sid = s.sid)
                OR EXISTS (SELECT FROM @schema@.runs r WHERE r.sid = s.sid AND r.status IN ('queued', 'running'))) ORDER BY 1);
        PERFORM FROM @schema@.sessions WHERE sid = v_sids[1] FOR NO KEY UPDATE;
        v_next := (SELECT min(x) FROM unnest(v_sids) x WHERE x NOT IN (SELECT sid FROM @schema@.sessions WHERE sid = ANY (v_sids) FOR NO KEY UPDATE SKIP LOCKED));
        v_sids := ARRAY(SELECT x FROM unnest(v_sids) x WHERE (x >= v_next) IS NOT true);
        v_next := coalesce(v_next, v_page[p_limit] + 1);
        v_now := clock_timestamp();   -- behind what the writers that it waited for have set
        UPDATE @schema@.sessions SET cooldown_until = cooldown_until - CASE WHEN cooldown_until > v_now THEN l.clock_back ELSE '0' END,
            next_check_at = next_check_at - CASE WHEN next_check_at > v_now THEN l.clock_back ELSE '0' END,
            due_since = due_since - CASE WHEN due_since > v_now THEN l.clock_back ELSE '0' END,
            restored_at = restored_at - CASE WHEN restored_at > v_now THEN l.clock_back ELSE '0' END,
            view_changed_at = view_changed_at - CASE WHEN view_changed_at > v_now THEN l.clock_back ELSE '0' END,
            last_message_at = last_message_at - CASE WHEN last_message_at > v_now THEN l.clock_back ELSE '0' END,
            created_at = created_at - CASE WHEN created_at > v_now THEN l.clock_back ELSE '0' END
        WHERE sid = ANY (v_sids) AND greatest(cooldown_until, next_check_at, due_since, restored_at, view_changed_at, last_message_at, created_at) > v_now;
        UPDATE @schema@.runs SET deliver_at = deliver_at - CASE WHEN deliver_at > v_now THEN l.clock_back ELSE '0' END,
            waiting_since = waiting_since - CASE WHEN waiting_since > v_now THEN l.clock_back ELSE '0' END
        WHERE id IN (SELECT id FROM @schema@.runs WHERE sid = ANY (v_sids) AND status IN ('queued', 'running')
            AND (deliver_at > v_now AND deliver_at < 'infinity' OR waiting_since > v_now) FOR NO KEY UPDATE SKIP LOCKED);
        UPDATE @schema@.outbox SET first_at = first_at - CASE WHEN first_at > v_now THEN l.clock_back ELSE '0' END,
            last_at = last_at - CASE WHEN last_at > v_now THEN l.clock_back ELSE '0' END
        WHERE sid IN (SELECT sid FROM @schema@.outbox WHERE sid = ANY (v_sids) AND greatest(first_at, last_at) > v_now FOR NO KEY UPDATE SKIP LOCKED);
        UPDATE @schema@.throttled SET since = since - l.clock_back
        WHERE (sid, run) IN (SELECT sid, run FROM @schema@.throttled WHERE sid = ANY (v_sids) AND since > v_now FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    -- The lease is renewed meanwhile, perhaps by a clock that was set back again.
    UPDATE @schema@.leader SET clock_back = CASE WHEN v_next IS NULL THEN '0' ELSE clock_back END, clock_sid = coalesce(v_next, 0),
        queue_away_since = queue_away_since - CASE WHEN l.clock_sid = 0 AND queue_away_since > v_now THEN l.clock_back ELSE '0' END,
        workers_away_since = workers_away_since - CASE WHEN l.clock_sid = 0 AND workers_away_since > v_now THEN l.clock_back ELSE '0' END
    WHERE role = 'scheduler' AND clock_back = l.clock_back AND clock_sid = l.clock_sid;
    RETURN l.clock_back;
END $$;

-- Ends what is put off for longer than anything puts it off: deliveries by more than p_most, the outbox by more than a pause does,
-- and due sessions by more than the longest cooldown of a policy. Returns their number.
CREATE OR REPLACE FUNCTION @schema@.bound_times(p_most interval) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_n   bigint;
    v_all bigint;
BEGIN
    UPDATE @schema@.runs SET deliver_at = now(), waiting_since = least(waiting_since, now())
    WHERE id IN (SELECT id FROM @schema@.runs WHERE status = 'queued' AND trigger = ANY ('{operator,event,nightly,bulk,application}')
        AND deliver_at > now() + p_most AND deliver_at < 'infinity' FOR NO KEY UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_all = ROW_COUNT;
    UPDATE @schema@.outbox SET first_at = least(first_at, now()), last_at = now()
    WHERE sid IN (SELECT sid FROM @schema@.outbox WHERE last_at > now() + interval '11 minutes' FOR NO KEY UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_all := v_all + v_n;
    UPDATE @schema@.sessions SET cooldown_until = now()   -- over, as that of one that is to be tried again
    WHERE sid IN (SELECT sid FROM @schema@.sessions WHERE due AND cooldown_until > now() + interval '31 days' FOR NO KEY UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_all + v_n;
END $$;

-- Notes what the leader knows of Redis and of the workers. A state that stays as it is costs no write.
CREATE OR REPLACE FUNCTION @schema@.note_processes(p_holder text, p_queue_away boolean, p_workers_away boolean) RETURNS void LANGUAGE sql AS $$
    UPDATE @schema@.leader SET queue_away_since = CASE WHEN p_queue_away THEN coalesce(queue_away_since, now()) END,
        workers_away_since = CASE WHEN p_workers_away THEN coalesce(workers_away_since, now()) END
    WHERE role = 'scheduler' AND holder = p_holder
        AND (p_queue_away, p_workers_away) IS DISTINCT FROM (queue_away_since IS NOT NULL, workers_away_since IS NOT NULL)
$$;
