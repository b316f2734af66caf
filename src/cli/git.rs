//! Where a declaration stands in git: the branch and the commit, if it is in a repository and git answers in time.

use std::process::Command;
use std::time::Duration;

use camino::Utf8Path;

use super::child;
use crate::store::GitCommit;

/// How long git may take: it only adorns the output.
const DEADLINE: Duration = Duration::from_secs(2);
/// The most that it may list.
const MOST: u64 = 1024 * 1024;

/// A place in a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitPlace {
    /// The branch; absent: none is checked out.
    pub branch: Option<String>,
    /// The commit, and whether files of the declaration's folder differ from it.
    pub commit: GitCommit,
}

impl std::fmt::Display for GitPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(branch) = &self.branch {
            write!(f, "{branch}@")?;
        }
        let short: String = self.commit.hash.chars().take(7).collect();
        f.write_str(&short)?;
        if self.commit.dirty {
            f.write_str("+changes")?;
        }
        Ok(())
    }
}

/// Asks git about `folder`; `None` where it has nothing to say.
#[must_use]
pub fn place(folder: &Utf8Path) -> Option<GitPlace> {
    let mut git = Command::new("git");
    git.args(["-c", "core.fsmonitor=false", "-C", folder.as_str()])
        .args([
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=no",
            "--",
            ".",
        ])
        .env("GIT_OPTIONAL_LOCKS", "0");
    let said = child::output(&mut git, DEADLINE, MOST, drop).ok()?;
    parse(std::str::from_utf8(&said).ok()?)
}

fn parse(said: &str) -> Option<GitPlace> {
    let head = |key| said.lines().find_map(|line| line.strip_prefix(key));
    let hash = head("# branch.oid ")?;
    if !(40..=64).contains(&hash.len()) || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None; // "(initial)": nothing was committed yet
    }
    let branch = head("# branch.head ").filter(|branch| *branch != "(detached)");
    Some(GitPlace {
        branch: branch.map(str::to_owned),
        commit: GitCommit {
            hash: hash.to_owned(),
            dirty: said.lines().any(|line| !line.starts_with('#')),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "41ab2c7f00000000000000000000000000000000";

    #[test]
    fn a_branch_a_commit_and_changes_are_told() {
        let told = |said: &str| parse(said).map(|place| place.to_string());
        let clean = format!("# branch.oid {OID}\n# branch.head main\n");
        assert_eq!(told(&clean).as_deref(), Some("main@41ab2c7"));
        let dirty = format!("{clean}1 .M N... 100644 100644 100644 a a mesh.toml\n");
        assert_eq!(told(&dirty).as_deref(), Some("main@41ab2c7+changes"));
        let detached = format!("# branch.oid {OID}\n# branch.head (detached)\n");
        assert_eq!(told(&detached).as_deref(), Some("41ab2c7"));
        assert_eq!(told("# branch.oid (initial)\n# branch.head main\n"), None);
    }
}
