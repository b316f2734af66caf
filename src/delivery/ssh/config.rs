//! What `~/.ssh/config` says of a machine, under what the declaration says.
//!
//! `Match` blocks are not read: libssh2 has no part in evaluating them, and a block whose condition is not known must
//! not apply. They are cut out, so that their lines do not pass for those of the `Host` before.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ssh2_config::{HostParams, ParseRule, SshConfig};

use super::super::courier::Target;
use super::super::error::DeliveryError;
use super::super::settings::{CourierSettings, within};

/// The largest file that is read, in bytes.
pub(super) const LARGEST: u64 = 4 * 1024 * 1024;

/// How a machine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// As the declaration names it.
    pub name: String,
    /// A name or an address, without brackets.
    pub host: String,
    pub port: u16,
    pub user: String,
    /// Key files to offer, in order.
    pub identities: Vec<PathBuf>,
    /// Whether the declaration or the configuration names these files, so that each ought to be there.
    pub identities_named: bool,
    /// Nothing of the agent's but these.
    pub identities_only: bool,
    /// Where host keys stand, in order.
    pub known_hosts: Vec<PathBuf>,
    pub connect_timeout: Option<Duration>,
    /// How often a machine that says nothing is asked whether it lives.
    pub alive: Option<Duration>,
    /// After how many such questions without an answer it is taken as gone.
    pub alive_count: Option<u32>,
    /// The child that leads there.
    pub proxy: Option<Proxy>,
}

/// A child that leads to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proxy {
    /// ProxyCommand, as written.
    Command(String),
    /// ProxyJump: by way of these hosts, in order.
    Jump(Vec<String>),
}

impl Route {
    /// As a known_hosts file names the machine.
    pub(super) fn known_as(&self) -> String {
        let host = self.host.to_lowercase();
        if self.port == 22 {
            host
        } else {
            format!("[{host}]:{}", self.port)
        }
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The operator's `~/.ssh/config`, read once; `None`: there is none.
pub(super) fn read(home: Option<&Path>) -> Result<Option<SshConfig>, DeliveryError> {
    let (Some(home), Some(text)) = (home, text(home)?) else {
        return Ok(None);
    };
    let text = with_raw_commands(&without_match(&text));
    let rules = ParseRule::ALLOW_UNKNOWN_FIELDS | ParseRule::ALLOW_UNSUPPORTED_FIELDS;
    SshConfig::default()
        .home_dir(home)
        .parse(&mut BufReader::new(text.as_bytes()), rules)
        .map(Some)
        .map_err(|error| DeliveryError::Config {
            file: home.join(".ssh/config").display().to_string(),
            why: error.to_string(),
        })
}

/// The text of `~/.ssh/config`; `None`: there is none.
pub(super) fn text(home: Option<&Path>) -> Result<Option<String>, DeliveryError> {
    let Some(home) = home else {
        return Ok(None);
    };
    let path = home.join(".ssh/config");
    let wrong = |why: String| DeliveryError::Config {
        file: path.display().to_string(),
        why,
    };
    match bounded(&path) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| wrong("it is not UTF-8 text".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Reads a file of ssh's. A part of one is never taken for the whole: what it forbids may stand in the rest.
pub(super) fn bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = LARGEST.saturating_add(1);
    std::fs::File::open(path)?
        .take(most)
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|found| found <= LARGEST) {
        return Ok(bytes);
    }
    Err(std::io::Error::new(
        std::io::ErrorKind::FileTooLarge,
        format!("it is larger than {LARGEST} bytes"),
    ))
}

/// What marks a ProxyCommand that was taken aside.
const RAW: &str = "grid-raw:";

/// Takes each ProxyCommand aside as one word, since the parser takes its quotes away.
fn with_raw_commands(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let (word, rest) = trimmed
            .split_once(|c: char| c.is_whitespace() || c == '=')
            .unwrap_or((trimmed, ""));
        let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '=');
        if word.eq_ignore_ascii_case("proxycommand") && !rest.trim().eq_ignore_ascii_case("none") {
            kept.push_str(&format!(
                " ProxyCommand {RAW}{}",
                STANDARD_NO_PAD.encode(rest.trim())
            ));
        } else {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

fn without_match(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        let word = line
            .trim_start()
            .split(|c: char| c.is_whitespace() || c == '=')
            .next()
            .unwrap_or_default();
        if word.eq_ignore_ascii_case("match") {
            inside = true;
        } else if word.eq_ignore_ascii_case("host") {
            inside = false;
        }
        if !inside {
            kept.push_str(line);
        }
        kept.push('\n'); // lines keep their numbers
    }
    kept
}

/// How `target` is reached.
///
/// # Errors
/// When the configuration asks for what this courier cannot do: what it says is never left out silently, else a
/// command could land on another machine.
pub(super) fn route(
    target: &Target,
    config: Option<&SshConfig>,
    settings: &CourierSettings,
) -> Result<Route, DeliveryError> {
    let node = &target.node;
    let params = config.map(|config| config.query(node.host()));
    let params = params.as_ref();
    let proxy = proxy(params).map_err(|why| DeliveryError::Config {
        file: "~/.ssh/config".to_owned(),
        why: format!("{}: {why}", node.name),
    })?;
    let home = settings.home.as_deref();
    let mut identities: Vec<PathBuf> = settings.identity_of(node).into_iter().collect();
    let configured = params
        .and_then(|params| params.identity_file.clone())
        .unwrap_or_default();
    if let Some(home) = home {
        let configured = configured
            .iter()
            .map(|path| within(Some(home), home, &path.to_string_lossy()));
        identities.extend(configured);
    }
    let identities_named = !identities.is_empty();
    if let (Some(home), false) = (home, identities_named) {
        let usual = ["id_ed25519", "id_ecdsa", "id_rsa"];
        identities.extend(usual.map(|name| home.join(".ssh").join(name)));
    }
    let known_hosts = match (field(params, "userknownhostsfile"), home) {
        (Some(files), home) => files
            .split(' ')
            .filter(|file| !file.is_empty() && *file != "none")
            .map(|file| within(home, home.unwrap_or(Path::new("/")), file))
            .collect(),
        (None, Some(home)) => vec![
            home.join(".ssh/known_hosts"),
            home.join(".ssh/known_hosts2"),
        ],
        (None, None) => vec![],
    };
    let own = settings.declaration_dir.join("known_hosts").into();
    let ours = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    Ok(Route {
        name: node.host().to_owned(),
        proxy,
        alive: params.and_then(|params| params.server_alive_interval),
        alive_count: field(params, "serveralivecountmax").and_then(|count| count.parse().ok()),
        host: params
            .and_then(|params| params.host_name.as_deref())
            .map_or_else(
                || node.host().to_owned(),
                |name| name.replace("%h", node.host()),
            ),
        port: node
            .port
            .or_else(|| params.and_then(|params| params.port))
            .unwrap_or(22),
        user: node
            .user
            .clone()
            .or_else(|| params.and_then(|params| params.user.clone()))
            .or(ours.ok())
            .unwrap_or_else(|| "root".to_owned()),
        identities,
        identities_named,
        identities_only: field(params, "identitiesonly").is_some_and(|value| value == "yes"),
        known_hosts: [own]
            .into_iter()
            .chain(known_hosts)
            .chain([PathBuf::from("/etc/ssh/ssh_known_hosts")])
            .collect(),
        connect_timeout: params.and_then(|params| params.connect_timeout),
    })
}

/// Which child leads there. Of ProxyJump and ProxyCommand ssh takes the one that stands first, which the parser does
/// not tell.
fn proxy(params: Option<&HostParams>) -> Result<Option<Proxy>, String> {
    let jumps: Option<Vec<String>> = params.and_then(|params| params.proxy_jump.clone());
    let command = field(params, "proxycommand");
    let none = |text: &str| text.eq_ignore_ascii_case("none");
    match (jumps, command) {
        (Some(_), Some(_)) => Err(
            "both ProxyJump and ProxyCommand stand there, and which one holds depends on their order; \
             courier = \"openssh\" reaches it as `ssh` does"
                .to_owned(),
        ),
        (Some(jumps), None) if jumps.iter().any(|jump| none(jump)) => Ok(None),
        (Some(jumps), None) => Ok(Some(Proxy::Jump(jumps))),
        (None, Some(command)) if none(&command) => Ok(None),
        (None, Some(command)) => match command.strip_prefix(RAW) {
            None => Ok(Some(Proxy::Command(command))),
            Some(raw) => STANDARD_NO_PAD
                .decode(raw)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .map(|command| Some(Proxy::Command(command)))
                .ok_or_else(|| "its ProxyCommand cannot be read".to_owned()),
        },
        (None, None) => Ok(None),
    }
}

/// A field that the parser knows by name only.
fn field(params: Option<&HostParams>, name: &str) -> Option<String> {
    let params = params?;
    params
        .unsupported_fields
        .iter()
        .chain(&params.ignored_fields)
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, values)| values.join(" "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use camino::Utf8PathBuf;

    use super::*;
    use crate::mesh::{CourierKind, Node};
    use crate::words::{AbsolutePath, MeshName, NodeName};

    fn target(address: Option<&str>) -> Target {
        Target {
            mesh: MeshName::new("prod").unwrap(),
            node: Arc::new(Node {
                name: NodeName::new("atlas").unwrap(),
                address: address.map(str::to_owned),
                port: None,
                user: None,
                identity: Some("keys/deploy".into()),
                root: AbsolutePath::new("/var/lib/grid/prod").unwrap(),
                become_root: None,
                courier: CourierKind::Ssh,
                tags: BTreeSet::new(),
                hold: None,
                pins: BTreeSet::new(),
                site: None,
                location: Default::default(),
                gateway: None,
            }),
        }
    }

    fn routed(config: &str, address: Option<&str>) -> Result<Route, DeliveryError> {
        let home = tempfile::tempdir().unwrap();
        let shown = home.path().to_str().unwrap().to_owned();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(home.path().join(".ssh/config"), config).unwrap();
        let config = read(Some(home.path())).unwrap();
        let mut settings = CourierSettings::new(Utf8PathBuf::from("/mesh"));
        settings.home = Some(home.path().into());
        let mut route = route(&target(address), config.as_ref(), &settings)?;
        for path in route.identities.iter_mut().chain(&mut route.known_hosts) {
            let text = path.to_str().unwrap().replace(&shown, "/home/maria");
            *path = text.into();
        }
        Ok(route)
    }

    #[test]
    fn the_config_says_what_the_declaration_leaves_open() {
        let route = routed(
            "Host atlas\n HostName 10.0.0.1\n User deploy\n Port 2222\n IdentityFile ~/.ssh/prod\n IdentitiesOnly yes\n\
             UserKnownHostsFile ~/.ssh/prod_hosts /etc/hosts.known\n ConnectTimeout 3\n ProxyJump none\n",
            None,
        )
        .unwrap();
        assert_eq!(route.known_as(), "[10.0.0.1]:2222");
        assert_eq!((route.user.as_str(), route.port), ("deploy", 2222));
        assert_eq!(
            route.identities,
            [
                Path::new("/mesh/keys/deploy"),
                Path::new("/home/maria/.ssh/prod")
            ]
        );
        assert!(route.identities_only);
        assert_eq!(
            route.known_hosts,
            [
                Path::new("/mesh/known_hosts"),
                Path::new("/home/maria/.ssh/prod_hosts"),
                Path::new("/etc/hosts.known"),
                Path::new("/etc/ssh/ssh_known_hosts"),
            ]
        );
        assert_eq!(route.connect_timeout, Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_match_block_does_not_pass_for_the_host_before_it() {
        let route = routed(
            "Host atlas\n User deploy\nMatch user root\n Port 99\nHost *\n Port 23\n",
            None,
        )
        .unwrap();
        assert_eq!((route.user.as_str(), route.port), ("deploy", 23));
    }

    #[test]
    fn a_machine_behind_a_jump_host_or_a_command_is_never_reached_directly() {
        let proxy = |config: &str| routed(config, None).map(|route| route.proxy);
        assert_eq!(
            proxy("Host atlas\n ProxyJump maria@a:2222,b\n"),
            Ok(Some(Proxy::Jump(vec!["maria@a:2222".into(), "b".into()])))
        );
        assert_eq!(
            proxy("Host atlas\n ProxyCommand=nc -X 'a  b' \"%h\" %p\n"),
            Ok(Some(Proxy::Command("nc -X 'a  b' \"%h\" %p".into())))
        );
        assert_eq!(
            proxy("Host atlas\n ProxyJump none\nHost *\n ProxyJump a\n"),
            Ok(None)
        );
        assert_eq!(proxy("Host atlas\n ProxyCommand none\n"), Ok(None));
        let both = proxy("Host atlas\n ProxyJump a\nHost *\n ProxyCommand b\n").unwrap_err();
        assert!(both.to_string().contains("openssh"), "{both}");
    }

    #[test]
    fn an_ipv6_address_has_brackets_only_where_a_port_follows() {
        let route = routed("", Some("2001:DB8::1")).unwrap();
        assert_eq!(route.known_as(), "2001:db8::1");
        assert_eq!(route.shown(), "[2001:DB8::1]:22");
    }
}
