-- Who may do what, in one place; the last of the files. Every function of the schema has a line here
-- with the roles that call it; operators call those of applications and readers too, and workers all
-- of them. Such a function runs with the owner's rights, so that EXECUTE is all that an application
-- needs. The others ({}) are called by functions alone.
--
-- `compactor migrate up` creates the roles, if it may, and executes this file when one of them is new.
DO $$
DECLARE
    f record;
    r record;
BEGIN
    REVOKE ALL ON ALL ROUTINES IN SCHEMA @schema@ FROM PUBLIC;
    FOR r IN
        SELECT kind, quote_ident(rolname) AS name
        FROM unnest('{application,reader,operator,worker}'::text[]) kind JOIN pg_roles ON rolname = '@schema@_' || kind
    LOOP
        EXECUTE 'REVOKE ALL ON ALL ROUTINES IN SCHEMA @schema@ FROM ' || r.name;
        EXECUTE 'REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM ' || r.name;
        EXECUTE 'GRANT USAGE ON SCHEMA @schema@ TO ' || r.name;
        EXECUTE 'GRANT SELECT ON @schema@.messages TO ' || r.name;
        IF r.kind <> 'application' THEN
            EXECUTE 'GRANT SELECT ON ALL TABLES IN SCHEMA @schema@ TO ' || r.name;
        END IF;
        IF r.kind = 'worker' THEN
            EXECUTE 'GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA @schema@ TO ' || r.name;
            -- Written by functions and migrations.
            EXECUTE 'REVOKE INSERT, UPDATE, DELETE ON @schema@.messages, @schema@.message_log, @schema@.message_body, @schema@.archive_segments, @schema@.archive_cursors, @schema@.disk_passes, @schema@.exclusions, @schema@.forked_from, @schema@.calibrations, @schema@.installed_functions, '
                '@schema@.schema_version, @schema@.policy_versions, @schema@.policy_heads, @schema@.policy_changes, @schema@.policy_refresh, @schema@.spending_limits, @schema@.spending_minutes, @schema@.used_elsewhere, @schema@.closed_children, @schema@.bulk_undo_runs'
                || (SELECT coalesce(string_agg(', ' || inhrelid::regclass, ''), '') FROM pg_inherits
                    WHERE inhparent IN ('@schema@.message_log'::regclass, '@schema@.message_body'::regclass)) || ' FROM ' || r.name;
        END IF;
        EXECUTE 'REVOKE ALL ON @schema@.tenant_bindings FROM ' || r.name;
    END LOOP;

    FOR f IN
        SELECT p.oid::regprocedure AS signature,
            l.roles::text[] || CASE l.roles WHEN '{worker}' THEN '{}' ELSE '{operator,worker}' END::text[] AS roles
        FROM pg_proc p JOIN (VALUES
            ('add_segment', '{operator}'),
            ('ancestors', '{}'),
            ('append', '{application}'),
            ('append_at', '{}'),
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
            ('ask_summary', '{worker}'),
            ('audit_derived', '{}'),
            ('audit_links', '{}'),
            ('audit_rows', '{}'),
            ('audit_runs', '{}'),
            ('audit_session', '{reader}'),
            ('begin_sweep', '{}'),
            ('binding', '{}'),
            ('body_digest', '{}'),
            ('bound_tenant', '{application,reader}'),
            ('bulk_compact_fails', '{}'),
            ('bulk_compact_page', '{worker}'),
            ('bulk_tenant', '{}'),
            ('bulk_undo_next', '{operator}'),
            ('cancel_bulk', '{operator}'),
            ('cancel_sweep', '{}'),
            ('change_policies', '{operator}'),
            ('change_views', '{}'),
            ('check_times', '{worker}'),
            ('claim_run', '{worker}'),
            ('claim_startable_runs', '{worker}'),
            ('confirm_erasure', '{operator}'),
            ('copies_of', '{}'),
            ('count_elsewhere', '{worker}'),
            ('count_started_runs', '{worker}'),
            ('disk_use', '{reader}'),
            ('effective_labels', '{}'),
            ('empty_bodies', '{operator}'),
            ('end_erasure', '{operator}'),
            ('end_run', '{worker}'),
            ('end_runs', '{worker}'),
            ('erase', '{operator}'),
            ('erase_next', '{operator}'),
            ('erase_rest', '{}'),
            ('erase_seqs', '{}'),
            ('erased_body', '{}'),
            ('estimated_tokens', '{}'),
            ('estimates', '{}'),
            ('fence_tables', '{}'),
            ('fire_tick', '{operator}'),
            ('first_change', '{}'),
            ('fit_usage', '{}'),
            ('fix_session', '{operator}'),
            ('follow_policies', '{}'),
            ('follow_policy', '{}'),
            ('foreign_format', '{}'),
            ('foreign_message', '{}'),
            ('forged_words', '{reader}'),
            ('fork', '{application}'),
            ('free_reasoning', '{}'),
            ('group_boundary', '{}'),
            ('in_force', '{}'),
            ('invalid_options', '{}'),
            ('is_answered', '{}'),
            ('is_body_of', '{}'),
            ('is_due', '{}'),
            ('is_erased', '{}'),
            ('json_depth', '{}'),
            ('keep_body', '{}'),
            ('keep_digest', '{}'),
            ('keep_segment', '{}'),
            ('key_conflict', '{}'),
            ('labels_of', '{application,reader}'),
            ('learn_usage', '{}'),
            ('limit_spending', '{operator}'),
            ('limited_use', '{worker}'),
            ('line_of', '{}'),
            ('lock_archived', '{application}'),
            ('lock_copies', '{operator}'),
            ('lock_session', '{}'),
            ('mark_in_force', '{}'),
            ('matching_runs', '{}'),
            ('message_digest', '{}'),
            ('model_has_prefix', '{}'),
            ('model_key', '{}'),
            ('model_names', '{}'),
            ('next_look', '{}'),
            ('next_time', '{}'),
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
            ('policy_effect', '{operator}'),
            ('policy_of', '{}'),
            ('preview_bulk_compact', '{operator}'),
            ('preview_bulk_undo', '{operator}'),
            ('purge_archive', '{worker}'),
            ('reasoning_in', '{worker}'),
            ('reasoning_only', '{}'),
            ('reasoning_tokens', '{application,reader}'),
            ('reasoning_keys', '{}'),
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
            ('refuse_loss', '{}'),
            ('release_throttled', '{worker}'),
            ('repair_json', '{}'),
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
            ('role_code', '{}'),
            ('roleless', '{}'),
            ('run_ends', '{}'),
            ('same_message', '{}'),
            ('said_digest', '{}'),
            ('save_and_wake', '{}'),
            ('save_policies', '{}'),
            ('save_thresholds', '{worker}'),
            ('scope_of', '{}'),
            ('segments_to_erase', '{operator}'),
            ('set_labels', '{application}'),
            ('set_model', '{application}'),
            ('set_parent', '{application}'),
            ('set_policy', '{application}'),
            ('set_signals', '{}'),
            ('set_sweep_status', '{}'),
            ('shown_session', '{reader}'),
            ('signed_reasoning', '{}'),
            ('spans', '{}'),
            ('spending', '{}'),
            ('spending_limited', '{}'),
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
            ('use_policy', '{}'),
            ('view', '{application,reader}'),
            ('view_revision', '{application,reader}'),
            ('view_rows', '{worker}'),
            ('view_with_revision', '{application,reader}'),
            ('wait_run', '{application,reader}'),
            ('wake_relay', '{}'),
            ('with_thresholds', '{}'),
            ('without_reasoning', '{application,reader}'),
            ('writers_of_sessions', '{}')
        ) l(name, roles) ON l.name = p.proname
        WHERE p.pronamespace = '@schema@'::regnamespace AND l.roles <> '{}'
    LOOP
        EXECUTE format('ALTER ROUTINE %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', f.signature);
        FOR r IN SELECT quote_ident(rolname) AS name FROM unnest(f.roles) kind JOIN pg_roles ON rolname = '@schema@_' || kind LOOP
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO %s', f.signature, r.name);
        END LOOP;
    END LOOP;
END $$;
