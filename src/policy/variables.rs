//! Which variables of the environment decide what code a program runs.

const STEERING: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SHELLOPTS",
];

/// Whether a variable makes a program load or run something else. The dynamic linker's variables are
/// known by their prefix; case does not matter.
pub fn steers(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    STEERING.contains(&upper.as_str()) || upper.starts_with("LD_") || upper.starts_with("DYLD_")
}
