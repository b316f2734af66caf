//! RabbitMQ: a vhost and a user for each consumer.
//!
//! The grant list is a definitions document of the broker's own (`definitions.rs`). One text of shell
//! (`admit.sh`) makes the broker admit exactly it, or reads back that it does; it states how, and what
//! it refuses. Users and vhosts of ours carry the owner's mark as a tag.

mod definitions;
mod names;
mod remedy;
mod wants;

pub use names::{Permission, Vhost, WantError};
pub use remedy::remedy;
pub use wants::RabbitmqWants;

use serde::{Deserialize, Serialize};

use super::Wants;
use super::kind::{
    Account, Binding, Endpoint, Entry, GrantList, KindError, Owner, ProviderKind, Script, Templates,
};
use super::percent::encode;
use crate::words::{Command, Secret};

/// The kind's name: in the declaration, and as the `type` of its bindings.
const NAME: &str = "rabbitmq";
/// AMQP 0-9-1 without TLS (IANA).
const PORT: u16 = 5672;

/// The settings of a RabbitMQ provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rabbitmq {
    /// How `rabbitmqctl` runs on the provider's machine; absent: `["rabbitmqctl"]`. For a container, say
    /// `["docker", "exec", "-i", "NAME", "rabbitmqctl"]`; for another node, add `"-n", "NODE"`. It must
    /// pass standard input on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rabbitmqctl: Option<Command>,
}

impl Rabbitmq {
    fn script(&self, owner: Owner<'_>, mode: &str) -> Script {
        let rabbitmqctl = self
            .rabbitmqctl
            .as_ref()
            .map_or_else(|| "rabbitmqctl".to_owned(), Command::to_shell);
        Script(format!(
            "mode={mode}\nmark={}\nctl() {{ LC_ALL=C.UTF-8 {rabbitmqctl} \"$@\"; }}\n{}",
            owner.mark(),
            include_str!("rabbitmq/admit.sh")
        ))
    }
}

fn wants<'a>(account: &Account<'a>) -> Result<&'a RabbitmqWants, KindError> {
    match account.wants {
        Wants::Rabbitmq(wants) => Ok(wants),
        _ => Err(KindError::Wants {
            consumer: account.consumer.clone(),
            kind: NAME,
        }),
    }
}

impl ProviderKind for Rabbitmq {
    fn default_port(&self) -> Option<u16> {
        Some(PORT)
    }

    fn list(
        &self,
        owner: Owner<'_>,
        accounts: &[Account<'_>],
        _: Templates<'_>,
    ) -> Result<GrantList, KindError> {
        let accounts = accounts
            .iter()
            .map(|account| Ok((account, wants(account)?)))
            .collect::<Result<Vec<_>, KindError>>()?;
        Ok(GrantList {
            extension: "json".to_owned(),
            content: Secret::new(definitions::document(owner, &accounts)?),
        })
    }

    fn load(&self, owner: Owner<'_>) -> Script {
        self.script(owner, "load")
    }

    fn check(&self, owner: Owner<'_>) -> Script {
        self.script(owner, "check")
    }

    fn binding(&self, endpoint: &Endpoint, account: &Account<'_>) -> Result<Binding, KindError> {
        let vhost = wants(account)?.vhost(account.consumer);
        let username = account.username();
        let password = account.secret.expose();
        let uri = format!(
            "amqp://{}:{}@{}/{}",
            encode(&username),
            encode(password),
            endpoint.authority(),
            encode(vhost)
        );
        Ok(Binding {
            entries: vec![
                Entry::plain("type", NAME),
                Entry::plain("provider", NAME),
                Entry::plain("host", endpoint.host.as_str()),
                Entry::plain("port", endpoint.port.to_string()),
                Entry::plain("username", username),
                Entry::secret("password", password),
                Entry::plain("virtual-host", vhost),
                Entry::secret("uri", uri.as_str()),
            ],
            env: vec![Entry::secret("AMQP_URL", uri)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Era, Generation, MeshName, Salt, ServiceName};

    #[test]
    fn a_binding_is_what_amqp_clients_read() {
        let mesh = MeshName::new("prod").unwrap();
        let provider = ServiceName::new("broker").unwrap();
        let consumer = ServiceName::new("billing").unwrap();
        let bound = |wants: &str, host: &str, password: &str| {
            let wants = Wants::Rabbitmq(toml::from_str(wants).unwrap());
            let account = Account {
                owner: Owner {
                    mesh: &mesh,
                    provider: &provider,
                },
                consumer: &consumer,
                generation: Generation {
                    number: 7,
                    era: Era(1),
                },
                secret: &Secret::new(password.to_owned()),
                salt: Salt([0; 16]),
                wants: &wants,
            };
            let endpoint = Endpoint {
                host: host.to_owned(),
                port: 5672,
            };
            let binding = Rabbitmq::default().binding(&endpoint, &account).unwrap();
            let lines: Vec<String> = binding
                .entries
                .iter()
                .chain(&binding.env)
                .map(|entry| format!("{}={}", entry.name, entry.value.expose()))
                .collect();
            lines.join("\n")
        };
        insta::assert_snapshot!(bound("", "10.0.0.1", "aB-_9"), @"
type=rabbitmq
provider=rabbitmq
host=10.0.0.1
port=5672
username=prod.billing.7
password=aB-_9
virtual-host=billing
uri=amqp://prod.billing.7:aB-_9@10.0.0.1:5672/billing
AMQP_URL=amqp://prod.billing.7:aB-_9@10.0.0.1:5672/billing
");
        insta::assert_snapshot!(
            bound("vhost = \"/\"\nexisting = true", "2001:db8::1", "it's a:b/c@d"),
            @"
type=rabbitmq
provider=rabbitmq
host=2001:db8::1
port=5672
username=prod.billing.7
password=it's a:b/c@d
virtual-host=/
uri=amqp://prod.billing.7:it%27s%20a%3Ab%2Fc%40d@[2001:db8::1]:5672/%2F
AMQP_URL=amqp://prod.billing.7:it%27s%20a%3Ab%2Fc%40d@[2001:db8::1]:5672/%2F
"
        );
    }

    #[test]
    fn a_script_runs_the_declared_rabbitmqctl_and_knows_its_mark() {
        let mesh = MeshName::new("prod").unwrap();
        let provider = ServiceName::new("broker").unwrap();
        let owner = Owner {
            mesh: &mesh,
            provider: &provider,
        };
        let settings: Rabbitmq =
            toml::from_str("rabbitmqctl = ['sudo', '-n', 'rabbitmqctl']").unwrap();
        let head = |Script(text): Script| {
            let head: Vec<&str> = text.lines().take(3).collect();
            head.join("\n")
        };
        insta::assert_snapshot!(head(settings.load(owner)), @r#"
mode=load
mark=grid.prod.broker
ctl() { LC_ALL=C.UTF-8 'sudo' '-n' 'rabbitmqctl' "$@"; }
"#);
        insta::assert_snapshot!(head(Rabbitmq::default().check(owner)), @r#"
mode=check
mark=grid.prod.broker
ctl() { LC_ALL=C.UTF-8 rabbitmqctl "$@"; }
"#);
    }
}
