//! Who runs grid, as claimed: for the journal, the lock and the machines' own logs. It proves nothing.

/// The user: `$USER`, `$LOGNAME`, or the number.
#[must_use]
pub fn user() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|user| !user.is_empty())
        .unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()))
}

/// The job of a CI runner, as its own variables name it; `None`: it is no CI runner that says so.
#[must_use]
pub fn ci_job() -> Option<String> {
    ci_job_from(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn ci_job_from(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let github = || {
        let server = variable("GITHUB_SERVER_URL")?;
        let repository = variable("GITHUB_REPOSITORY")?;
        let run = variable("GITHUB_RUN_ID")?;
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    };
    let named = || {
        ["CI_JOB_URL", "BUILDKITE_BUILD_URL", "BUILD_URL"]
            .into_iter()
            .find_map(variable)
    };
    let some = || {
        variable("CI")
            .filter(|value| value != "false")
            .map(|_| "CI".to_owned())
    };
    github().or_else(named).or_else(some)
}

#[cfg(test)]
mod tests {
    use super::ci_job_from;

    #[test]
    fn a_ci_runner_names_its_job() {
        let job = |set: &[(&str, &str)]| {
            ci_job_from(&|name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(job(&[]), None);
        assert_eq!(job(&[("CI", "true")]).as_deref(), Some("CI"));
        assert_eq!(
            job(&[("CI", "true"), ("CI_JOB_URL", "https://ci/1")]).as_deref(),
            Some("https://ci/1")
        );
        let github = [
            ("CI", "true"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "a/b"),
            ("GITHUB_RUN_ID", "7"),
        ];
        assert_eq!(
            job(&github).as_deref(),
            Some("https://github.com/a/b/actions/runs/7")
        );
    }
}
