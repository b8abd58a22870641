//! The series of the process, by the names that all programs have.

use std::fmt::Write as _;

/// The seconds of a clock tick are this part: what `/proc` counts in, on each system that Linux runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// The series of this process, in the text format; empty where the system does not say.
pub fn text() -> String {
    let Some(seen) = ProcessFacts::read() else { return String::new() };
    let mut text = String::new();
    let mut put = |name: &str, kind: &str, help: &str, value: f64| {
        let suffix = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{suffix} {value}");
    };
    put("process_cpu_seconds", "counter", "Time that the process has used of the processors", seen.cpu_seconds);
    put("process_resident_memory_bytes", "gauge", "Memory that the process has", seen.resident_bytes);
    put("process_virtual_memory_bytes", "gauge", "Addresses that the process has", seen.virtual_bytes);
    put("process_threads", "gauge", "Threads of the process", seen.threads);
    put("process_open_fds", "gauge", "Open file descriptors", seen.open_files);
    put("process_max_fds", "gauge", "The most file descriptors that the process may open", seen.most_files);
    put("process_start_time_seconds", "gauge", "When the process started, in seconds since 1970", seen.started_at);
    text
}

#[derive(Debug, Default, PartialEq)]
struct ProcessFacts {
    cpu_seconds: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    threads: f64,
    open_files: f64,
    most_files: f64,
    started_at: f64,
}

impl ProcessFacts {
    #[cfg(not(target_os = "linux"))]
    fn read() -> Option<Self> {
        None
    }

    #[cfg(target_os = "linux")]
    fn read() -> Option<Self> {
        let file = |name: &str| std::fs::read_to_string(format!("/proc/{name}")).ok();
        let open_files = std::fs::read_dir("/proc/self/fd").ok()?.count();
        Self::of(&file("self/stat")?, &file("self/status")?, &file("self/limits")?, &file("stat")?, open_files)
    }

    /// What the files of the system say.
    #[cfg(any(test, target_os = "linux"))]
    fn of(stat: &str, status: &str, limits: &str, machine: &str, open_files: usize) -> Option<Self> {
        // The name of the program may hold blanks and parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
        };
        let most = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let booted_at = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
        Some(Self {
            cpu_seconds: (number(11)? + number(12)?) / TICKS_PER_SECOND,
            resident_bytes: kilobytes("VmRSS")?,
            virtual_bytes: kilobytes("VmSize")?,
            threads: number(17)?,
            open_files: f64::from(u32::try_from(open_files).unwrap_or(u32::MAX)),
            most_files: most.split_whitespace().next()?.parse().unwrap_or(f64::INFINITY),
            started_at: booted_at + number(19)? / TICKS_PER_SECOND,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read_whatever_the_program_is_called() {
        let stat = "17 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 150 0 0 20 0 9 0 5000 1 1";
        let status = "Name:\ta) b\nVmSize:\t  2048 kB\nVmRSS:\t 1024 kB\n";
        let limits =
            "Limit  Soft  Hard  Units\nMax open files            1024                 524288               files\n";
        let facts = ProcessFacts::of(stat, status, limits, "cpu 1\nbtime 1000\n", 7).unwrap();
        let expected = ProcessFacts {
            cpu_seconds: 4.0,
            resident_bytes: 1024.0 * 1024.0,
            virtual_bytes: 2048.0 * 1024.0,
            threads: 9.0,
            open_files: 7.0,
            most_files: 1024.0,
            started_at: 1050.0,
        };
        assert_eq!(facts, expected);
        assert_eq!(ProcessFacts::of("", status, limits, "btime 1\n", 7), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_all_of_them() {
        let text = text();
        for name in
            ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"]
        {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
}
