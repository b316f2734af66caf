//! Where a site's gateway is reached, and how.

use super::{ObjectName, Seed};

/// A gateway's port where its address names none.
pub const GATEWAY_PORT: u16 = 443;

/// How a gateway's endpoint is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointTls {
    /// Mutual TLS; the server shows a certificate for this name.
    Mutual {
        /// The name: no address.
        server_name: ObjectName,
    },
    /// Without TLS.
    Plaintext,
}

/// Where a site's gateway is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayEndpoint {
    /// Its host and port.
    pub address: Seed,
    /// How it is spoken to, if that is said.
    pub tls: Option<EndpointTls>,
}
