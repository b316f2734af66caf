//! The words that every room speaks: names, digests, generations, secrets, fence tokens.
//!
//! The lowest room of the house: it imports no other one. A value of these types is correct once it
//! exists; the constructors are the only place where their rules are stated.

mod address;
mod command;
mod digest;
mod gateway;
mod generation;
mod host;
mod kubernetes;
mod metric;
mod name;
mod nearest;
mod path;
mod place;
mod secret;
mod seed;
mod settings;
mod signal;
mod token;
mod transport;
mod url;

pub use address::is_special;
pub use command::{Command, CommandError};
pub use digest::{Digest, DigestError};
pub use gateway::{EndpointTls, GATEWAY_PORT, GatewayEndpoint};
pub use generation::{Era, Generation};
pub use host::{HostError, PeerHost};
pub use kubernetes::{ApiGeneration, ApiVersion, ApiVersionError, FieldNames, ObjectName};
pub use metric::{
    LONGEST_NAME, LabelName, MetricName, MetricNameError, ProviderName, is_label_byte,
    is_metric_byte,
};
pub use name::{MeshName, NameError, NodeName, Replica, SecretName, ServiceName, Tag};
pub use nearest::nearest;
pub use path::{AbsolutePath, MachinePath, PathError, ReleasePath};
pub use place::{GridId, PlaceError, Region, Zone};
pub use secret::{Salt, Secret};
pub use seed::{SWIM_PORT, Seed, SeedError};
pub use settings::{Milliseconds, READINGS_LIVE_MS, Settings, SettingsError};
pub use signal::{Capacity, CapacityError, MOST_MAPS, Signal, Strategy};
pub use token::{StoreId, Token};
pub use transport::{METRICS_PORT, MOST_PINS, PeerTrust, SIGNALS_PORT, SignalMode, TransportError};
pub use url::{ScrapeUrl, UrlError};

/// Draws chance: the system's source in the binary, a seeded one in tests (DESIGN.md, section 8).
pub trait Chance {
    /// Fills `bytes` with random ones.
    fn fill(&mut self, bytes: &mut [u8]);
}
