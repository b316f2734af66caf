//! A provider of the operator's own: a template, a load and a check. (Being built.)

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kind::{
    Account, Binding, Endpoint, Entry, GrantList, KindError, Owner, ProviderKind, Script, Templates,
};
use crate::words::Command;

/// The settings of a custom provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// Makes the provider admit exactly the list, which it reads from standard input.
    pub load: Command,
}

/// What a consumer wants of a custom provider: any keys, for the template.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct CustomWants(pub BTreeMap<String, String>);

impl ProviderKind for Custom {
    fn default_port(&self) -> Option<u16> {
        None
    }
    fn list(
        &self,
        _: Owner<'_>,
        accounts: &[Account<'_>],
        _: Templates<'_>,
    ) -> Result<GrantList, KindError> {
        let names: Vec<String> = accounts.iter().map(Account::username).collect();
        Ok(GrantList {
            extension: "txt".to_owned(),
            content: crate::words::Secret::new(names.join("\n")),
        })
    }
    fn load(&self, _: Owner<'_>) -> Script {
        Script(self.load.to_shell())
    }
    fn check(&self, _: Owner<'_>) -> Script {
        Script(String::new())
    }
    fn binding(&self, _: &Endpoint, account: &Account<'_>) -> Result<Binding, KindError> {
        Ok(Binding {
            entries: vec![Entry::plain("username", account.username())],
            env: vec![],
        })
    }
}
