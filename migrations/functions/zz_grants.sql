-- Who may do what, in one place; the last of the files. Every function of the schema has a line here
-- with the roles that call it; operators call those of applications and readers too, and workers all
-- of them. Such a function runs with the owner's rights, so that EXECUTE is all that an application
-- needs. The others ({}) are called by functions alone.
--
-- `compactor migrate up` creates the roles, if it may, and sets what rights_amiss returns.

-- What differs from that: the rights of each of the roles and of PUBLIC on an object, with the statements that set
-- them. Rights of other roles are not compared: the installation gives them. p_new: also of roles that have none
-- yet, such as those that another database of the server has created.
CREATE OR REPLACE FUNCTION @schema@.rights_amiss(p_new boolean) RETURNS TABLE (object text, stored text, want text, statement text)
LANGUAGE sql STABLE SET jit = off AS $$
    WITH roles AS (
        SELECT kind, r.oid, quote_ident(rolname) AS name FROM unnest('{application,reader,operator,worker}'::text[]) kind JOIN pg_roles r ON rolname = '@schema@_' || kind
        WHERE p_new OR has_schema_privilege(r.oid, '@schema@', 'USAGE')
        UNION ALL SELECT 'public', 0, 'PUBLIC'
    ), callers AS (
        SELECT l.name, l.roles::text[] || CASE WHEN l.roles NOT IN ('{}', '{worker}') THEN '{operator,worker}' ELSE '{}' END::text[] AS roles
        FROM (VALUES
            ('add_segment', '{operator}'),
            ('ancestors', '{}'),
            ('append', '{application}'),
            ('append_at', '{}'),
            ('append_instead', '{application}'),
            ('append_many', '{}'),
            ('append_on', '{application}'),
            ('append_one', '{}'),
            ('archivable', '{}'),
            ('archive_candidates', '{worker}'),
            ('archive_oldest', '{worker}'),
            ('archive_page', '{operator}'),
            ('archive_preview', '{reader}'),
            ('archived_as', '{}'),
            ('archived_words', '{application,reader}'),
            ('ask_stateless', '{worker}'),
            ('ask_summary', '{worker}'),
            ('attached_view', '{application,reader}'),
            ('audit_derived', '{}'),
            ('audit_links', '{}'),
            ('audit_log', '{reader}'),
            ('audit_rows', '{}'),
            ('audit_runs', '{}'),
            ('audit_session', '{reader}'),
            ('awaiting_repair', '{worker,reader}'),
            ('awaits_policies', '{worker,reader}'),
            ('begin_sweep', '{}'),
            ('beyond_limit', '{worker}'),
            ('binding', '{}'),
            ('body_digest', '{}'),
            ('bound_tenant', '{application,reader}'),
            ('bound_times', '{worker}'),
            ('bring_back', '{}'),
            ('bulk_compact_fails', '{}'),
            ('bulk_compact_page', '{worker}'),
            ('bulk_tenant', '{}'),
            ('bulk_undo_next', '{operator}'),
            ('calls_of', '{application,reader}'),
            ('cancel_bulk', '{operator}'),
            ('cancel_sweep', '{}'),
            ('change_policies', '{operator}'),
            ('change_view', '{}'),
            ('change_views', '{}'),
            ('check_times', '{worker}'),
            ('claim_run', '{worker}'),
            ('claim_startable_runs', '{worker}'),
            ('confirm_erasure', '{operator}'),
            ('cools', '{reader}'),
            ('copies_of', '{}'),
            ('correct_times', '{worker}'),
            ('count_elsewhere', '{worker}'),
            ('count_started_runs', '{worker}'),
            ('create_key', '{operator}'),
            ('decides', '{worker}'),
            ('deleted_messages', '{reader}'),
            ('disk_use', '{reader}'),
            ('effective_labels', '{}'),
            ('empty_bodies', '{operator}'),
            ('encode_parts', '{application,reader}'),
            ('encode_steps', '{application,reader}'),
            ('end_erasure', '{operator}'),
            ('end_run', '{worker}'),
            ('end_runs', '{worker}'),
            ('erase', '{operator}'),
            ('erase_next', '{operator}'),
            ('erase_rest', '{}'),
            ('erase_seqs', '{}'),
            ('erase_stateless', '{}'),
            ('erased_body', '{}'),
            ('estimated_tokens', '{}'),
            ('estimates', '{}'),
            ('exclude', '{application}'),
            ('fence_tables', '{}'),
            ('fences_amiss', '{reader}'),
            ('fire_tick', '{operator}'),
            ('first_change', '{}'),
            ('first_to_undo', '{operator}'),
            ('fit_usage', '{}'),
            ('fix_session', '{operator}'),
            ('follow_policies', '{}'),
            ('follow_policy', '{}'),
            ('foreign_format', '{}'),
            ('foreign_message', '{}'),
            ('forged_words', '{reader}'),
            ('fork', '{application}'),
            ('free_reasoning', '{}'),
            ('full_at_of', '{}'),
            ('group_boundary', '{}'),
            ('groups_of', '{}'),
            ('held_back', '{reader}'),
            ('holding_sweeps', '{worker}'),
            ('ids_of_calls', '{}'),
            ('in_force', '{}'),
            ('invalid_options', '{}'),
            ('is_answered', '{}'),
            ('is_due', '{}'),
            ('is_erased', '{}'),
            ('is_merged', '{}'),
            ('item_secret', '{worker}'),
            ('json_depth', '{}'),
            ('keep_body', '{}'),
            ('keep_digest', '{}'),
            ('keep_segment', '{}'),
            ('key_conflict', '{}'),
            ('key_named', '{}'),
            ('labels_of', '{application,reader}'),
            ('leads', '{worker}'),
            ('learn_usage', '{}'),
            ('lease_is_over', '{worker}'),
            ('limit_spending', '{operator}'),
            ('limited_use', '{worker}'),
            ('line_of', '{}'),
            ('lock_archived', '{application}'),
            ('lock_copies', '{operator}'),
            ('lock_session', '{}'),
            ('mark_in_force', '{}'),
            ('matching_runs', '{}'),
            ('merged_message', '{}'),
            ('merged_view', '{}'),
            ('message_digest', '{}'),
            ('message_states', '{application,reader}'),
            ('message_text', '{application,reader}'),
            ('messages_among', '{application,reader}'),
            ('messages_named', '{}'),
            ('messages_page', '{application,reader}'),
            ('model_has_prefix', '{}'),
            ('model_key', '{}'),
            ('model_names', '{}'),
            ('next_look', '{}'),
            ('next_time', '{}'),
            ('note_action', '{}'),
            ('note_change', '{}'),
            ('note_due', '{}'),
            ('note_lookups', '{reader}'),
            ('note_processes', '{worker}'),
            ('open_reasoning', '{}'),
            ('parse_messages', '{}'),
            ('parse_plain', '{}'),
            ('parse_time', '{}'),
            ('pass_archived', '{worker}'),
            ('pass_oldest', '{worker}'),
            ('pause_runs', '{operator}'),
            ('pause_schedule', '{operator}'),
            ('paused', '{worker}'),
            ('pauses_of', '{reader}'),
            ('pin', '{application}'),
            ('placed', '{}'),
            ('policy_effect', '{operator}'),
            ('policy_of', '{}'),
            ('prefix_changed', '{application,reader}'),
            ('preview_bulk_compact', '{operator}'),
            ('preview_bulk_undo', '{operator}'),
            ('purge_archive', '{worker}'),
            ('reasoning_in', '{worker}'),
            ('reasoning_keys', '{}'),
            ('reasoning_only', '{}'),
            ('reasoning_tokens', '{}'),
            ('reasoning_types', '{}'),
            ('recount', '{}'),
            ('refresh_children', '{}'),
            ('refresh_pending', '{}'),
            ('refresh_policies', '{worker}'),
            ('refuse_archived', '{}'),
            ('refuse_bound', '{}'),
            ('refuse_change', '{}'),
            ('refuse_foreign', '{}'),
            ('refuse_in_open_loop', '{}'),
            ('refuse_long', '{}'),
            ('refuse_loss', '{}'),
            ('refuse_others', '{}'),
            ('release_throttled', '{worker}'),
            ('repair_json', '{}'),
            ('repair_view', '{}'),
            ('repeats', '{}'),
            ('replace_segment', '{operator}'),
            ('replace_view', '{application}'),
            ('report_state', '{application}'),
            ('report_usage', '{application}'),
            ('request_compaction', '{application}'),
            ('request_erasure', '{operator}'),
            ('restore_bodies', '{application}'),
            ('resume_bulk_compact', '{operator}'),
            ('resume_runs', '{operator}'),
            ('resume_schedule', '{operator}'),
            ('revoke_key', '{operator}'),
            ('rights_amiss', '{reader}'),
            ('role_code', '{}'),
            ('roleless', '{}'),
            ('rotate_key', '{operator}'),
            ('run_ends', '{}'),
            ('runs_page', '{reader}'),
            ('said_digest', '{}'),
            ('same_message', '{}'),
            ('save_and_wake', '{}'),
            ('save_policies', '{}'),
            ('save_thresholds', '{worker}'),
            ('says_nothing', '{reader}'),
            ('says_otherwise', '{}'),
            ('scope_of', '{}'),
            ('segments_to_erase', '{operator}'),
            ('seqs', '{}'),
            ('seqs_text', '{}'),
            ('set_labels', '{application}'),
            ('set_model', '{application}'),
            ('set_parent', '{application}'),
            ('set_policy', '{application}'),
            ('set_signals', '{}'),
            ('set_sweep_status', '{}'),
            ('shell_word', '{}'),
            ('shown_session', '{reader}'),
            ('signed_reasoning', '{}'),
            ('some_names', '{}'),
            ('spans', '{}'),
            ('spending', '{}'),
            ('spending_limited', '{worker}'),
            ('spending_of', '{reader}'),
            ('spending_summed_to', '{}'),
            ('spent_elsewhere', '{}'),
            ('stale_reasoning', '{}'),
            ('start_bulk', '{operator}'),
            ('start_sweep', '{operator}'),
            ('startable_runs', '{worker}'),
            ('steer_sweep', '{operator}'),
            ('stop_failing_sweep', '{}'),
            ('sum_spending', '{worker}'),
            ('sweep_fails', '{}'),
            ('sweep_page', '{worker}'),
            ('sweep_worked', '{reader}'),
            ('take_back', '{}'),
            ('take_lead', '{worker}'),
            ('tell_parents', '{}'),
            ('tenant_of', '{}'),
            ('thresholds_of', '{}'),
            ('thresholds_of_due', '{reader}'),
            ('too_many_bad', '{}'),
            ('truncate_sessions', '{}'),
            ('undated', '{}'),
            ('undo_run', '{operator}'),
            ('unpin', '{application}'),
            ('unstorable', '{}'),
            ('unusable', '{}'),
            ('use_key', '{operator}'),
            ('use_model', '{}'),
            ('use_policy', '{}'),
            ('view', '{application,reader}'),
            ('view_distinct', '{}'),
            ('view_faults', '{}'),
            ('view_revision', '{application,reader}'),
            ('view_rows', '{worker}'),
            ('view_text', '{application,reader}'),
            ('view_with_revision', '{application,reader}'),
            ('view_words', '{}'),
            ('wait_run', '{application,reader}'),
            ('wake_relay', '{}'),
            ('with_call_ids', '{}'),
            ('with_said_ids', '{}'),
            ('with_thresholds', '{}'),
            ('without_reasoning', '{application,reader}'),
            ('would_be_due', '{}'),
            ('writers_of_sessions', '{}')
        ) l(name, roles)
    ), objects AS (
        SELECT 'SCHEMA' AS class, n.oid, NULL::smallint AS col, quote_ident(nspname) AS name, nspacl AS acl, ARRAY['application', 'reader', 'operator', 'worker'] AS users,
            'USAGE' AS privileges, NULL AS written
        FROM pg_namespace n WHERE n.oid = '@schema@'::regnamespace
        UNION ALL
        SELECT 'ROUTINE', p.oid, NULL, p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), l.roles, 'EXECUTE', NULL
        FROM pg_proc p LEFT JOIN callers l ON l.name = p.proname WHERE p.pronamespace = '@schema@'::regnamespace
        UNION ALL
        SELECT 'TABLE', c.oid, NULL, c.oid::regclass::text, c.relacl, CASE x.name WHEN 'tenant_bindings' THEN '{}' WHEN 'item_secrets' THEN '{}'
                WHEN 'messages' THEN '{application,reader,operator,worker}' ELSE '{reader,operator,worker}' END::text[], 'SELECT',
            CASE WHEN c.relkind IN ('r', 'p') AND x.name <> ALL ('{
                message_log,message_body,archive_segments,archive_cursors,disk_passes,exclusions,forked_from,calibrations,installed_functions,
                compactor_migrations,policy_versions,policy_heads,policy_changes,policy_refresh,spending_limits,spending_minutes,used_elsewhere,
                closed_children,bulk_undo_runs,tenant_bindings,api_keys,cache_usage,item_secrets,operator_actions}') THEN 'DELETE, INSERT, ' END   -- these are written by functions and migrations
        FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        CROSS JOIN LATERAL (SELECT btrim(relname) AS name FROM pg_class n WHERE n.oid = coalesce(i.inhparent, c.oid)) x
        WHERE c.relnamespace = '@schema@'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        UNION ALL
        SELECT 'TABLE', c.oid, a.attnum, c.oid::regclass::text, a.attacl, NULL, NULL, NULL
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = '@schema@'::regnamespace AND a.attacl IS NOT NULL AND NOT a.attisdropped
        UNION ALL
        SELECT 'SEQUENCE', c.oid, NULL, c.oid::regclass::text, c.relacl, NULL, NULL, NULL
        FROM pg_class c WHERE c.relnamespace = '@schema@'::regnamespace AND c.relkind = 'S'
    ), compared AS (
        SELECT o.class, r.name AS role, o.class || ' ' || o.name AS target,
            (SELECT ' (' || quote_ident(attname) || ')' FROM pg_attribute WHERE attrelid = o.oid AND attnum = o.col) AS col,
            coalesce((SELECT string_agg(privilege_type, ', ' ORDER BY privilege_type) FROM aclexplode(o.acl) WHERE grantee = r.oid), 'none') AS stored,
            CASE WHEN r.kind <> ALL (o.users) OR o.users IS NULL THEN 'none'
                WHEN r.kind = 'worker' AND o.written IS NOT NULL THEN o.written || o.privileges || ', UPDATE' ELSE o.privileges END AS want
        FROM objects o CROSS JOIN roles r)
    SELECT format('%s on %s%s', role, lower(class) || substr(target, length(class) + 1), col), stored, want,
        format('REVOKE ALL%s ON %s FROM %s', col, target, role) || CASE WHEN want <> 'none' THEN format('; GRANT %s ON %s TO %s', want, target, role) ELSE '' END
    FROM compared WHERE stored <> want
    UNION ALL
    SELECT p.oid::regprocedure::text, 'that of its caller, or with another search_path', 'that of the owner',
        format('ALTER ROUTINE %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', p.oid::regprocedure)
    FROM pg_proc p JOIN callers l ON l.name = p.proname
    WHERE p.pronamespace = '@schema@'::regnamespace AND l.roles <> '{}'
        AND NOT (p.prosecdef AND coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false))
    UNION ALL   -- revoked by the role that granted it
    SELECT 'memberships of ' || m.name, g.name, 'none', NULL
    FROM pg_auth_members a JOIN roles m ON m.oid = a.member
    JOIN (SELECT oid, name FROM roles UNION SELECT o.oid, o.rolname::text FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner WHERE n.oid = '@schema@'::regnamespace
        UNION SELECT oid, rolname FROM pg_roles WHERE rolsuper) g ON g.oid = a.roleid
    ORDER BY 1, 2
$$;

DO $$
DECLARE
    v_statement text;
BEGIN
    FOR v_statement IN SELECT statement FROM @schema@.rights_amiss(true) WHERE statement IS NOT NULL LOOP
        EXECUTE v_statement;
    END LOOP;
END $$;
