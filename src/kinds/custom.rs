//! A provider of the operator's own: a template for the list, a command that loads it, and one that
//! checks it. Both commands read the list from standard input, as every kind's do.

mod names;
mod template;
mod wants;

pub use names::{BindingType, EntryName, Extension, NameError, Variable, WantName};
pub use template::Inline;
pub use wants::{CustomWants, WantValue};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Wants;
use super::kind::{
    Account, Binding, Endpoint, Entry, GrantList, KindError, Owner, ProviderKind, Script,
    Templates, Value,
};
use crate::words::{Command, Digest, ReleasePath};

/// The kind's name in the declaration.
const NAME: &str = "custom";

/// The settings of a custom provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The template of the grant list, a file beside the declaration. It sees `mesh`, `provider`, `mark` and
    /// `accounts`, in order; of each account `username`, `consumer`, `generation`, `password`, `sha256`
    /// (of the password, in hexadecimal), `salt` (in hexadecimal), `salted_sha256` (of salt and
    /// password) and `wants`. An account stands there twice while its consumer still uses what it
    /// wanted before.
    pub template: ReleasePath,
    /// The list is the file `grants.EXTENSION`; absent: `txt`.
    #[serde(default)]
    pub extension: Extension,
    /// Makes the provider admit exactly the list, which it reads from standard input: adds, changes and
    /// revokes. Runs on the provider's machine.
    pub load: Command,
    /// Exits 0 only if the provider admits exactly the list, which it reads from standard input. Changes
    /// nothing.
    pub check: Command,
    /// The `type` of the binding; absent: `custom`.
    #[serde(default, rename = "type")]
    pub binding_type: BindingType,
    /// A template of the binding's `uri`; absent: it has none. It sees `mesh`, `provider`, `consumer`,
    /// `generation`, `host`, `port`, `authority` (host and port as a URI has them), `username`,
    /// `password` and `wants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Inline>,
    /// Further entries of the binding, each a template as `uri` is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<EntryName, Inline>,
    /// Variables of the consumer's environment file, each a template as `uri` is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<Variable, Inline>,
}

fn wants<'a>(account: &Account<'a>) -> Result<&'a CustomWants, KindError> {
    match account.wants {
        Wants::Custom(wants) => Ok(wants),
        _ => Err(KindError::Wants {
            consumer: account.consumer.clone(),
            kind: NAME,
        }),
    }
}

fn wants_value(wants: &CustomWants) -> minijinja::Value {
    wants
        .0
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_template()))
        .collect()
}

/// What the template of a list sees of an account.
fn account_value(account: &Account<'_>) -> Result<minijinja::Value, KindError> {
    let password = account.secret.expose();
    let salted = Sha256::new()
        .chain_update(account.salt.0)
        .chain_update(password.as_bytes())
        .finalize();
    let salt: String = account.salt.0.iter().map(|b| format!("{b:02x}")).collect();
    Ok(minijinja::context! {
        username => account.username(),
        consumer => account.consumer.as_str(),
        generation => account.generation.number,
        password => password,
        sha256 => Digest::of(password.as_bytes()).to_string(),
        salt => salt,
        salted_sha256 => Digest::from_bytes(salted.into()).to_string(),
        wants => wants_value(wants(account)?),
    })
}

impl ProviderKind for Custom {
    fn default_port(&self) -> Option<u16> {
        None
    }

    fn sources(&self) -> Vec<&ReleasePath> {
        vec![&self.template]
    }

    fn list(
        &self,
        owner: Owner<'_>,
        accounts: &[Account<'_>],
        templates: Templates<'_>,
    ) -> Result<GrantList, KindError> {
        let mut sorted: Vec<&Account<'_>> = accounts.iter().collect();
        sorted.sort_by_key(|a| (a.consumer, a.generation, a.wants));
        sorted.dedup_by_key(|a| (a.consumer, a.generation, a.wants));
        let source = templates(self.template.as_str())?;
        let accounts = sorted
            .into_iter()
            .map(account_value)
            .collect::<Result<Vec<_>, _>>()?;
        let list = minijinja::context! {
            mesh => owner.mesh.as_str(),
            provider => owner.provider.as_str(),
            mark => owner.mark(),
            accounts => accounts,
        };
        Ok(GrantList {
            extension: self.extension.as_str().to_owned(),
            content: template::render(self.template.as_str(), &source, list)?,
        })
    }

    fn load(&self, _: Owner<'_>) -> Script {
        Script(format!("{}\n", self.load.to_shell()))
    }

    fn check(&self, _: Owner<'_>) -> Script {
        Script(format!("{}\n", self.check.to_shell()))
    }

    fn binding(&self, endpoint: &Endpoint, account: &Account<'_>) -> Result<Binding, KindError> {
        let username = account.username();
        let values = minijinja::context! {
            mesh => account.owner.mesh.as_str(),
            provider => account.owner.provider.as_str(),
            consumer => account.consumer.as_str(),
            generation => account.generation.number,
            host => endpoint.host.as_str(),
            port => endpoint.port,
            authority => endpoint.authority(),
            username => username.as_str(),
            password => account.secret.expose(),
            wants => wants_value(wants(account)?),
        };
        // Whether what a template says holds the password cannot be known, so all of it is secret.
        let entry = |name: &str, setting: String, inline: &Inline| {
            Ok(Entry {
                name: name.to_owned(),
                value: Value::Secret(inline.render(&setting, values.clone())?),
            })
        };
        let provider = account.owner.provider;
        let mut entries = vec![
            Entry::plain("type", self.binding_type.as_str()),
            Entry::plain("provider", NAME),
            Entry::plain("host", endpoint.host.as_str()),
            Entry::plain("port", endpoint.port.to_string()),
            Entry::plain("username", username.as_str()),
            Entry::secret("password", account.secret.expose()),
        ];
        if let Some(uri) = &self.uri {
            entries.push(entry("uri", format!("uri of {provider}"), uri)?);
        }
        for (name, inline) in &self.entries {
            let name = name.as_str();
            entries.push(entry(
                name,
                format!("entries.{name} of {provider}"),
                inline,
            )?);
        }
        let env = self
            .env
            .iter()
            .map(|(name, inline)| {
                let name = name.as_str();
                entry(name, format!("env.{name} of {provider}"), inline)
            })
            .collect::<Result<_, KindError>>()?;
        Ok(Binding { entries, env })
    }
}
