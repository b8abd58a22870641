//! Environment variables that decide what code a program runs, and which variables may take a value.

/// The variables that make a program load, run or trust something else, by their whole names.
const STEERING: &[&str] = &[
    "ANT_OPTS",
    "BASH_ENV",
    "BROWSER",
    "BUNDLE_GEMFILE",
    "CARGO_HOME",
    "CLASSPATH",
    "COMPILER_PATH",
    "CPATH",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "ED",
    "EDITOR",
    "ELECTRON_RUN_AS_NODE",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "FCEDIT",
    "FPATH",
    "GCC_EXEC_PREFIX",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "GNUPGHOME",
    "GOFLAGS",
    "GRADLE_OPTS",
    "HGEDITOR",
    "HGRCPATH",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JRUBY_OPTS",
    "KUBECONFIG",
    "LESSCLOSE",
    "LESSOPEN",
    "LIBPATH",
    "LIBRARY_PATH",
    "LOCALDOMAIN",
    "LOCPATH",
    "MAKEFLAGS",
    "MALLOC_TRACE",
    "MANPAGER",
    "MAVEN_OPTS",
    "NETRC",
    "NIX_LDFLAGS",
    "NLSPATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PATHEXT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PKG_CONFIG_PATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PSMODULEPATH",
    "REQUESTS_CA_BUNDLE",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "R_PROFILE",
    "R_PROFILE_USER",
    "SBT_OPTS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SVN_SSH",
    "TCLLIBPATH",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TMPDIR",
    "TZDIR",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
    "WINDIR",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
    // The mark of a call.
    "LOOPCTL_CALL",
];

/// The same kind of variables by prefix.
const FAMILIES: &[&str] = &[
    "BASH_FUNC_",
    "COMPLUS_",
    "CORECLR_",
    "COR_",
    "DOTNET_",
    "DYLD_",
    "GIT_",
    "LD_",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NPM_CONFIG_",
    "PERL",
    "PIP_",
    "PYTHON",
];

/// Whether a variable makes a program load or run something else. Case does not matter.
pub fn steers(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    STEERING.contains(&upper.as_str()) || family(name).is_some()
}

/// The beginning of a name that makes it one of them, whatever follows: `GIT_`.
pub fn family(name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    FAMILIES.iter().copied().find(|family| upper.starts_with(family))
}

/// Why a variable may not have its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It decides what code runs. No permission changes that.
    Steers,
    /// The project does not allow it.
    NotAllowed,
}

/// Whether a variable of a `command` action is refused. `filled` says that its value contains text of a model
/// or of the run's input; a literal value or a secret is the author's. `allowed` are the names of the project's
/// `allow.env`, compared exactly, as programs do.
pub fn refusal(name: &str, filled: bool, allowed: &[String]) -> Option<Refusal> {
    if !filled {
        return None;
    }
    if steers(name) {
        return Some(Refusal::Steers);
    }
    let permitted = allowed.iter().any(|allowed| allowed == name);
    (!permitted).then_some(Refusal::NotAllowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_or_run_something_else_are_known_in_any_case() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "ld_library_path",
            "DYLD_INSERT_LIBRARIES",
            "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "GIT_CONFIG_PARAMETERS",
            "GIT_EXTERNAL_DIFF",
            "GIT_PAGER",
            "LUA_INIT",
            "LUA_INIT_5_4",
            "PERL5DB",
            "PERL5OPT",
            "PYTHONWARNINGS",
            "PYTHONPATH",
            "OPENSSL_CONF",
            "PROMPT_COMMAND",
            "SSH_ASKPASS",
            "PAGER",
            "EDITOR",
            "CLASSPATH",
            "DOTNET_STARTUP_HOOKS",
            "COR_PROFILER",
            "CORECLR_PROFILER_PATH",
            "BASH_FUNC_ls%%",
            "Rustc_Wrapper",
            "GLIBC_TUNABLES",
        ] {
            assert!(steers(name), "{name}");
        }
        for name in
            ["TICKET", "LANG", "TZ", "JAVA_HOME_PAGE", "MY_PATH", "XLD_PRELOAD", "GITHUB_REF", "PERCENT", "USER"]
        {
            assert!(!steers(name), "{name}");
        }
    }

    #[test]
    fn a_value_fills_what_the_project_allows_and_nothing_that_steers() {
        let allowed = ["TICKET".to_owned(), "PATH".to_owned()];
        let refused = |name, filled| refusal(name, filled, &allowed);
        assert_eq!(refused("TICKET", true), None);
        assert_eq!(refused("ticket", true), Some(Refusal::NotAllowed));
        assert_eq!(refused("OTHER", true), Some(Refusal::NotAllowed));
        assert_eq!(refused("OTHER", false), None);
        assert_eq!(refused("PATH", true), Some(Refusal::Steers));
        assert_eq!(refused("PATH", false), None);
    }
}
