//! The files of cgroups, in an ordinary folder, because a test may not have real ones.

use super::*;

#[test]
fn our_own_folder_is_found_where_cgroup_v2_is_mounted() {
    let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                  41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:3 - cgroup2 cgroup2 rw\n";
    let found = |cgroup: &str, mounts: &str| folder_of(cgroup, mounts).map(|folder| folder.display().to_string());
    assert_eq!(found("4:memory:/x\n0::/\n", hybrid).unwrap().trim_end_matches('/'), "/sys/fs/cgroup/unified");
    assert_eq!(found("0::/a.slice/b\n", hybrid).unwrap(), "/sys/fs/cgroup/unified/a.slice/b");
    let inside = "41 31 0:38 /a.slice /cg ro - cgroup2 none rw\n";
    assert_eq!(found("0::/a.slice/b\n", inside).unwrap(), "/cg/b");
    for (cgroup, mounts) in [
        ("0::/other\n", inside),
        ("0::/../other\n", hybrid),
        ("4:memory:/x\n", hybrid),
        ("0::/\n", "35 31 0:32 / /m rw - cgroup cgroup rw\n"),
        ("0::/\n", "41 31 0:38 / /a\\040b rw - cgroup2 none rw\n"),
        ("", ""),
    ] {
        assert_eq!(found(cgroup, mounts), None, "{cgroup} {mounts}");
    }
}

#[test]
fn limits_are_written_where_there_are_controllers_and_controllers_are_handed_on() {
    let own = tempfile::tempdir().unwrap();
    fs::write(own.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
    fs::write(own.path().join("cgroup.subtree_control"), "memory\n").unwrap();
    hand_on(own.path());
    // The kernel takes the written text as a request; here it replaces the content.
    assert_eq!(fs::read_to_string(own.path().join("cgroup.subtree_control")).unwrap(), "+pidsy\n");
    let group = CallGroup::below(own.path(), &ProcessMark::new()).unwrap().unwrap();
    assert_eq!(fs::read_dir(&group.folder).unwrap().count(), 0, "files that are not there are not made");
    for (file, _) in LIMITS {
        fs::write(group.folder.join(file), "").unwrap();
    }
    limit(&group.folder).unwrap();
    let written = |file: &str| fs::read_to_string(group.folder.join(file)).unwrap();
    assert_eq!((written("memory.max"), written("pids.max")), ((2_u64 << 30).to_string(), "512".to_owned()));
    assert!(!group.took_too_much_memory());
    for (events, killed) in [("oom 3\noom_kill 0\noom_group_kill 2\n", false), ("oom 3\noom_kill 2\n", true)] {
        fs::write(group.folder.join("memory.events"), events).unwrap();
        assert_eq!(group.took_too_much_memory(), killed, "{events}");
    }
    fs::remove_dir_all(&group.folder).unwrap();
}

#[test]
fn what_dead_processes_left_is_removed_and_nothing_else() {
    let own = tempfile::tempdir().unwrap();
    let dead = "loopctl-999999999-x".to_owned();
    let before_us = format!("loopctl-{}-x", std::process::id());
    let alive = format!("loopctl-{}-x", std::os::unix::process::parent_id());
    for name in [&dead, &before_us, &alive] {
        fs::create_dir_all(own.path().join(name).join("inside/further")).unwrap();
    }
    for name in ["loopctl", "loopctl-x-y", "loopctl-999999999", "user.slice", "loopctl-999999998-lived-in"] {
        fs::create_dir(own.path().join(name)).unwrap();
    }
    fs::write(own.path().join("loopctl-999999998-lived-in/cgroup.events"), "populated 1\n").unwrap();
    remove_left(own.path()).unwrap();
    for name in ["loopctl", "loopctl-x-y", "loopctl-999999999", "user.slice", "loopctl-999999998-lived-in", &alive] {
        assert!(own.path().join(name).exists(), "{name}");
    }
    for name in [dead, before_us] {
        assert!(!own.path().join(&name).exists(), "{name}");
    }
}

#[test]
fn a_removal_has_an_end() {
    let own = tempfile::tempdir().unwrap();
    for at in 0..10 {
        fs::create_dir(own.path().join(at.to_string())).unwrap();
    }
    assert!(!remove(own.path(), &mut 4));
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 6);
    assert!(remove(own.path(), &mut 6));
}
