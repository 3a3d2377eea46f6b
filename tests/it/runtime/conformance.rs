//! One list of cases that every runtime which makes containers passes: each is a test over `embedded` and a test over
//! `docker`; what needs no container, a test over `fake` besides. What only one of them can show is tested in the files of the cases.

/// The cases of each file, as tests over the runtimes.
macro_rules! cases {
    (contract { $($common:ident,)+ } $($file:ident { $($case:ident,)+ })+) => {
        mod fake {
            cases!(over Some(fake_scaffold()); contract { $($common,)+ });
            use crate::runtime::scaffold::fake_scaffold;
        }

        mod embedded {
            cases!(over scaffold(); contract { $($common,)+ } $($file { $($case,)+ })+);
            use crate::runtime::scaffold::scaffold;
        }

        mod docker {
            cases!(over docker_scaffold(); contract { $($common,)+ } $($file { $($case,)+ })+);
            use crate::runtime::daemon::docker_scaffold;
        }
    };
    (over $scaffold:expr; $($file:ident { $($case:ident,)+ })+) => {
        $($(
            #[test]
            fn $case() {
                if let Some(scaffold) = $scaffold {
                    crate::runtime::$file::$case(&scaffold);
                }
            }
        )+)+
    };
}

cases! {
    contract {
        the_end_and_both_streams_are_told,
        files_of_writable_mounts_are_the_hosts,
        what_ended_a_run_is_told,
        an_end_that_was_asked_for_is_no_result,
        what_cannot_be_run_anywhere_is_refused,
        a_mount_that_is_not_there_is_named,
        runs_at_once_have_an_answer_each,
    }
    basics {
        a_command_runs_and_its_end_is_known,
        layers_stack_and_the_upper_dir_holds_the_changes_alone,
        a_directory_is_changed_in_place_and_keeps_no_mount_points,
        no_layer_at_all_is_a_root_too,
        mounts_are_files_or_folders_read_only_unless_said,
        nothing_is_inherited,
        a_user_is_a_user,
        the_wall_limit_kills_everything,
        a_run_cannot_be_ended_by_signals_to_pid_1,
        a_pid_1_that_does_not_answer_is_killed,
        cancelling_kills,
        a_missing_layer_is_named,
        runs_in_parallel_do_not_meet,
    }
    limits {
        a_memory_hog_is_killed_and_said_to_be,
        memory_in_dev_shm_counts_and_its_size_holds,
        a_fork_bomb_stops_at_the_limit_and_leaves_nothing,
        processor_time_is_shared_out_and_counted,
        many_files_burst_the_disk_limit,
        one_file_bursts_the_disk_limit,
        writable_mounts_count_for_the_disk_limit,
        a_flood_of_output_stops_at_the_disk_limit,
        all_output_is_kept_also_when_opened_by_name,
        open_files_are_limited_and_never_raised,
        a_flood_of_output_stops_at_its_own_limit,
    }
    network {
        a_connect_times_out_as_behind_a_firewall_and_is_counted,
        a_build_steps_connect_fails_at_once,
        names_fail_at_once_and_are_counted,
        a_quiet_run_has_no_attempts,
        the_hosts_network_is_the_hosts,
    }
    conditions {
        folders_list_their_entries_in_either_order,
        a_copy_is_what_the_folder_was,
        a_copy_counts_as_memory,
        a_user_owns_the_copy_and_has_a_name,
        a_read_only_folder_is_that_for_root_too,
        one_processor_is_all_that_is_seen,
        loopback_can_lack_ipv6,
        names_and_limits_are_as_asked,
        all_at_once,
    }
    attacks {
        the_command_has_dockers_powers_and_no_more,
        calls_that_change_the_world_are_refused,
        what_docker_allows_works,
        the_root_has_no_way_out,
        descriptors_of_the_host_are_closed,
        the_launcher_cannot_be_run_from_inside,
        processes_outside_cannot_be_seen_traced_or_killed,
        setuid_and_file_capabilities_give_nothing,
        there_is_no_terminal,
        proc_and_sys_are_read_only_or_empty,
    }
}
