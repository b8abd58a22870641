//! Programs that print secrets: started as the programs of `command` actions are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Prepared, fixed_variables, folder, locate, process};
use crate::drive::future::BoxFuture;
use crate::drive::secret::SecretPrograms;
use crate::journal::failpoint;
use loopctl_engine::event::ToolFault;

/// How long a program may take.
const TIME: Duration = Duration::from_secs(30);

/// The programs that a project allows, in its folder.
pub struct AllowedPrograms {
    allowed: Vec<String>,
    root: PathBuf,
}

impl AllowedPrograms {
    /// Those of a project's `allow.commands`.
    pub fn new(allowed: &[String], root: &Path) -> Self {
        Self { allowed: allowed.to_vec(), root: root.to_owned() }
    }

    async fn output(&self, command: &[String]) -> Result<Vec<u8>, ToolFault> {
        let [program, args @ ..] = command else { return Err(ToolFault::new("no program is named", "")) };
        let program = locate(program, &self.allowed, &self.root)?;
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(ToolFault::new("an argument has a zero byte", ""));
        }
        let cwd = folder(&self.root, None)?;
        let prepared = Prepared { program, args: args.to_vec(), env: fixed_variables(), stdin: None, cwd };
        process::printed(&prepared).await
    }
}

impl SecretPrograms for AllowedPrograms {
    fn printed<'a>(&'a self, command: &'a [String]) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let time = failpoint::time("secret_program").unwrap_or(TIME);
            let printed = tokio::time::timeout(time, self.output(command)).await;
            match printed {
                Ok(Ok(printed)) => Ok(printed),
                Ok(Err(ToolFault { class, detail, .. })) if detail.trim().is_empty() => Err(class),
                Ok(Err(ToolFault { class, detail, .. })) => Err(format!("{class}: {}", detail.trim())),
                Err(_) => Err(format!("it took longer than {} s", time.as_secs_f64())),
            }
        })
    }
}
