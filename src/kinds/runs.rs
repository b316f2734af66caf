//! How a provider's commands are run: as which user, and through what (`as` and `via` of `provides`).
//!
//! The text that a kind gives becomes the argument of a `sh -c` at the end of the way, since neither that user nor a
//! container can read the release. It holds no secret: the list stays on standard input.

use super::Script;
use crate::words::Command;

/// The name of a user: POSIX portable, so that it can stand in a line of shell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserName(String);

impl UserName {
    /// Parses a name of at most 32 of `[A-Za-z0-9_.-]`, not beginning with a dash; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let portable = (1..=32).contains(&text.len())
            && !text.starts_with('-')
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        portable.then(|| Self(text.to_owned()))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How the load and the check of a provider are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// As this user of the machine, by `setpriv` or `su` where the machine side is root and by `sudo -n` where it is not;
    /// absent: as whoever the machine side runs as.
    pub user: Option<UserName>,
    /// Behind these words, which run what follows them with its standard input, as
    /// `["podman", "exec", "-i", "broker"]` does; absent: directly. That user runs them, where there is one.
    pub via: Option<Command>,
}

/// Becomes `$u` and runs `$t`; the last resort first where it is the only one. As the user's own login would, it has
/// that home.
const BECOME: &str = r#"i=$(id -u "$u" 2>/dev/null) || { echo "this machine has no user $u"; exit 1; }
[ "$(id -u)" != "$i" ] || exec sh -c "$t" grid "$GRID_RELEASE"
[ "$(id -u)" = 0 ] || exec sudo -n -u "$u" sh -c "$t" grid "$GRID_RELEASE"
eval "HOME=~$u"
USER=$u LOGNAME=$u
export HOME USER LOGNAME
case $(setpriv --help 2>&1) in
*--reuid*) exec setpriv --reuid "$i" --regid "$(id -g "$u")" --init-groups sh -c "$t" grid "$GRID_RELEASE" ;;
esac
exec su -s /bin/sh -c "$t" "$u" grid "$GRID_RELEASE"
"#;

impl Runs {
    /// The script as it is run there; the same bytes where nothing is asked for.
    #[must_use]
    pub fn of(&self, script: Script) -> Script {
        let Script(mut text) = script;
        if let Some(via) = &self.via {
            text = format!(
                "exec {} sh -c {} grid \"$GRID_RELEASE\"\n",
                via.to_shell(),
                argument(&text)
            );
        }
        if let Some(user) = &self.user {
            text = format!("u={}\nt={}\n{BECOME}", user.as_str(), argument(&text));
        }
        Script(text)
    }
}

/// A script as one word, which is told the service's folder anew: neither `sudo` nor a container hands it on.
fn argument(script: &str) -> String {
    let text = format!("GRID_RELEASE=$1\nexport GRID_RELEASE\n{script}");
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_unchanged_where_nothing_is_asked_for() {
        let script = Script("it's $this\n".into());
        assert_eq!(Runs::default().of(script.clone()), script);
    }

    #[test]
    fn a_user_and_a_way_are_wrapped_around_a_script() {
        let words = |words: &[&str]| Command::new(words.iter().map(|&w| w.into()).collect());
        let runs = Runs {
            user: UserName::parse("app"),
            via: words(&["podman", "exec", "-i", "it's"]).ok(),
        };
        let Script(text) = runs.of(Script("load 'x'\n".into()));
        insta::assert_snapshot!(text.strip_suffix(BECOME).unwrap(), @r#"
        u=app
        t='GRID_RELEASE=$1
        export GRID_RELEASE
        exec '\''podman'\'' '\''exec'\'' '\''-i'\'' '\''it'\''\'\'''\''s'\'' sh -c '\''GRID_RELEASE=$1
        export GRID_RELEASE
        load '\''\'\'''\''x'\''\'\'''\''
        '\'' grid "$GRID_RELEASE"
        '
        "#);
    }

    #[test]
    fn no_name_of_a_user_can_be_more_than_a_name() {
        for name in ["postgres", "_x", "a.b-c9"] {
            assert!(UserName::parse(name).is_some(), "{name}");
        }
        for name in [
            "",
            "-x",
            "a b",
            "a;b",
            "$(x)",
            "a:b",
            "a\nb",
            &"x".repeat(33),
        ] {
            assert!(UserName::parse(name).is_none(), "{name}");
        }
    }
}
