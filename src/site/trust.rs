//! Who a certificate is: the one place where that is decided, for callers and for the sites that are dialled.
//!
//! - `Local` is this site's own current leaf, by SHA-256 of its DER, under both trusts.
//! - Under `pin` a leaf is the peer among whose pins its SHA-256 is. A peer without pins is refused both ways.
//! - Under `spiffe` it is the declared site that its one SPIFFE name says, if one of the mesh's authorities issued it
//!   directly. The own name on another leaf than the own is refused.
//! - Whoever is not in its dates is nobody, under both trusts; but for `Local`, whom a renewal that is late is not to cut
//!   off from its own site.
//!
//! Whoever holds a certificate has shown in the handshake that it holds the key; this file does not see that.

use std::collections::{BTreeMap, HashMap};

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};

use super::leaf::{Leaf, LeafError, Spiffe};
use crate::signals::site::{Peer, Pins};
use crate::words::{Digest, NodeName, PeerTrust};

/// Whom a caller's certificate names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// This site itself: its gateways.
    Local,
    /// Another site of the mesh.
    Peer(NodeName),
}

/// Why a certificate is nobody's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// Not a certificate.
    #[error(transparent)]
    Unreadable(#[from] LeafError),
    /// Not yet, or no longer.
    #[error("its certificate does not hold at this time")]
    Dates,
    /// No peer has this pin.
    #[error("no peer is pinned to its certificate")]
    Unpinned,
    /// No authority of the mesh issued it.
    #[error("no authority of the mesh issued its certificate for this use")]
    Unissued,
    /// It does not have exactly one SPIFFE name of a site.
    #[error("its certificate does not have exactly one SPIFFE name, of a site of grid.internal")]
    Nameless,
    /// It says it is a site that this one does not know.
    #[error("its certificate names {0}, which is no declared site")]
    Undeclared(NodeName),
    /// It says it is this site, and is not.
    #[error("its certificate names this site and is not this site's own")]
    Impostor,
    /// It is somebody else than was dialled.
    #[error("it is {0}, and not the site that was dialled")]
    SomebodyElse(NodeName),
}

/// What a certificate is to be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Client,
    Server,
}

/// Whom this site knows, at one moment. Replaced as a whole when a file changes.
#[derive(Debug)]
pub struct Known {
    /// Who it is itself; none: somebody who is no site, and only dials.
    site: Option<NodeName>,
    own: Digest,
    trust: PeerTrust,
    peers: BTreeMap<NodeName, Pins>,
    by_pin: HashMap<Digest, NodeName>,
    authorities: Vec<TrustAnchor<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Known {
    /// Whom `site` knows, whose own leaf is `own`.
    #[must_use]
    pub fn new(
        site: NodeName,
        own: Digest,
        trust: PeerTrust,
        peers: &[Peer],
        authorities: Vec<TrustAnchor<'static>>,
    ) -> Self {
        let others = || peers.iter().filter(|peer| peer.name != site);
        let by_pin = others()
            .flat_map(|peer| peer.pins.iter().map(|pin| (*pin, peer.name.clone())))
            .collect();
        let peers = others()
            .map(|peer| (peer.name.clone(), peer.pins.clone()))
            .collect();
        Self {
            site: Some(site),
            own,
            trust,
            peers,
            by_pin,
            authorities,
            algorithms: rustls::crypto::ring::default_provider().signature_verification_algorithms,
        }
    }

    /// Whom somebody knows who asks `site` alone, be it with the site's own certificate: by these pins, or by these
    /// authorities.
    #[must_use]
    pub fn one(
        site: NodeName,
        own: Digest,
        trust: PeerTrust,
        pins: Pins,
        authorities: Vec<TrustAnchor<'static>>,
    ) -> Self {
        Self {
            site: None,
            by_pin: pins.iter().map(|pin| (*pin, site.clone())).collect(),
            peers: BTreeMap::from([(site, pins)]),
            own,
            trust,
            authorities,
            algorithms: rustls::crypto::ring::default_provider().signature_verification_algorithms,
        }
    }

    /// Who a caller with this certificate is.
    ///
    /// # Errors
    /// When it is nobody.
    pub fn caller(&self, der: &[u8], now: UnixTime) -> Result<Caller, Stranger> {
        if Digest::of(der) == self.own {
            return Ok(Caller::Local);
        }
        self.peer(der, now, Usage::Client).map(Caller::Peer)
    }

    /// Whether the certificate is that of `dialled`.
    ///
    /// # Errors
    /// When it is nobody's, or another site's.
    pub fn is_site(&self, der: &[u8], now: UnixTime, dialled: &NodeName) -> Result<(), Stranger> {
        let name = self.peer(der, now, Usage::Server)?;
        if name == *dialled {
            Ok(())
        } else {
            Err(Stranger::SomebodyElse(name))
        }
    }

    pub(super) fn peer(
        &self,
        der: &[u8],
        now: UnixTime,
        usage: Usage,
    ) -> Result<NodeName, Stranger> {
        let leaf = Leaf::read(der)?;
        if !leaf.holds(now) {
            return Err(Stranger::Dates);
        }
        match self.trust {
            PeerTrust::Pin => self
                .by_pin
                .get(&leaf.digest)
                .cloned()
                .ok_or(Stranger::Unpinned),
            PeerTrust::Spiffe => {
                self.issued(der, now, usage)?;
                let Spiffe::Site(name) = leaf.spiffe else {
                    return Err(Stranger::Nameless);
                };
                if self.site.as_ref() == Some(&name) {
                    return Err(Stranger::Impostor);
                }
                if !self.peers.contains_key(&name) {
                    return Err(Stranger::Undeclared(name));
                }
                Ok(name)
            }
        }
    }

    /// Whether an authority issued it, directly: no certificate in between is taken.
    ///
    /// # Errors
    /// When none did.
    fn issued(&self, der: &[u8], now: UnixTime, usage: Usage) -> Result<(), Stranger> {
        let der = CertificateDer::from(der);
        let leaf = webpki::EndEntityCert::try_from(&der).map_err(|_| LeafError)?;
        let usage = match usage {
            Usage::Client => webpki::KeyUsage::client_auth(),
            Usage::Server => webpki::KeyUsage::server_auth(),
        };
        leaf.verify_for_usage(
            self.algorithms.all,
            &self.authorities,
            &[],
            now,
            usage,
            None,
            None,
        )
        .map(|_| ())
        .map_err(|_| Stranger::Unissued)
    }
}
