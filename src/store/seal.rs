//! Sealing, in two layers: records under a data key, the data key under age for people (DESIGN.md, section 6).
//!
//! A sealed record is a byte 1, a random nonce of 24 bytes, and XChaCha20-Poly1305 over the record, with the
//! record's full name as associated data: a record cannot be put in another one's place.
//! Threat: who steals a store reads the names of records, how large they are and how often they change; times and
//! recipients stand in the open in `meta`. Who can write a stolen store can put back an older version of a record,
//! which the fence finds out; it cannot make one up.

use age::x25519;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::{Identity, IdentityError, StoreError};
use crate::mesh::Recipient;
use crate::words::Chance;

/// The form of a sealed record.
const FORM: u8 = 1;
const NONCE: usize = 24;
const KEY: usize = 32;

/// A sealed record that does not open: other bytes, another name, or another key than it was sealed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Torn;

/// The data key, and what it does.
pub(super) struct Sealer {
    key: Zeroizing<[u8; KEY]>,
    cipher: XChaCha20Poly1305,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer([redacted])")
    }
}

impl Sealer {
    fn of(key: Zeroizing<[u8; KEY]>) -> Self {
        let cipher = XChaCha20Poly1305::new((&*key).into());
        Self { key, cipher }
    }

    /// Draws a new data key.
    pub fn draw(chance: &mut dyn Chance) -> Self {
        let mut key = Zeroizing::new([0; KEY]);
        chance.fill(key.as_mut());
        Self::of(key)
    }

    /// Seals a record under its name.
    pub fn seal(&self, name: &str, plain: &[u8], chance: &mut dyn Chance) -> Vec<u8> {
        let mut nonce = [0; NONCE];
        chance.fill(&mut nonce);
        let payload = Payload {
            msg: plain,
            aad: name.as_bytes(),
        };
        // Only a text of 256 GiB and more cannot be sealed. It would not open, and so be found out.
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), payload)
            .unwrap_or_default();
        let mut row = Vec::with_capacity(1 + NONCE + sealed.len());
        row.push(FORM);
        row.extend_from_slice(&nonce);
        row.extend_from_slice(&sealed);
        row
    }

    /// Opens what was sealed under that name.
    pub fn open(&self, name: &str, row: &[u8]) -> Result<Zeroizing<Vec<u8>>, Torn> {
        let (form, row) = row.split_first().ok_or(Torn)?;
        let (nonce, sealed) = row.split_first_chunk::<NONCE>().ok_or(Torn)?;
        if *form != FORM {
            return Err(Torn);
        }
        let payload = Payload {
            msg: sealed,
            aad: name.as_bytes(),
        };
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), payload);
        plain.map(Zeroizing::new).map_err(|_| Torn)
    }

    /// The data key for `recipients`, under age.
    pub fn wrap(&self, recipients: &[Recipient]) -> Result<Vec<u8>, StoreError> {
        let keys: Vec<x25519::Recipient> = recipients
            .iter()
            .map(|recipient| {
                let key = recipient.key.trim().parse();
                key.map_err(|_| StoreError::Recipient {
                    name: recipient.name.clone(),
                })
            })
            .collect::<Result<_, _>>()?;
        let failed = |why: String| StoreError::Wrap { why };
        let to = keys.iter().map(|key| key as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(to).map_err(|e| failed(e.to_string()))?;
        let mut wrapped = Vec::new();
        let write = |wrapped: &mut Vec<u8>| -> std::io::Result<()> {
            let mut writer = encryptor.wrap_output(wrapped)?;
            std::io::Write::write_all(&mut writer, self.key.as_ref())?;
            writer.finish().map(drop)
        };
        write(&mut wrapped).map_err(|e| failed(e.to_string()))?;
        Ok(wrapped)
    }

    /// The data key that was wrapped for this identity among others.
    pub fn unwrap(wrapped: &[u8], identity: &Identity) -> Result<Self, IdentityError> {
        let plain = identity.open(wrapped, 64)?;
        let key = plain
            .as_slice()
            .try_into()
            .map_err(|_| IdentityError::NotAnAgeFile {
                why: "it holds no data key".to_owned(),
            })?;
        Ok(Self::of(Zeroizing::new(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SystemChance;

    #[test]
    fn a_record_opens_under_its_own_name_and_key_only() {
        let (ours, theirs) = (
            Sealer::draw(&mut SystemChance),
            Sealer::draw(&mut SystemChance),
        );
        let row = ours.seal("machine/atlas", b"hunter2", &mut SystemChance);
        assert_eq!(
            ours.open("machine/atlas", &row).unwrap().as_slice(),
            b"hunter2"
        );
        assert_eq!(ours.open("machine/borealis", &row), Err(Torn));
        assert_eq!(theirs.open("machine/atlas", &row), Err(Torn));
        for at in 0..row.len() {
            let mut flipped = row.clone();
            flipped[at] ^= 1;
            assert_eq!(ours.open("machine/atlas", &flipped), Err(Torn), "byte {at}");
            assert_eq!(
                ours.open("machine/atlas", &row[..at]),
                Err(Torn),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn the_data_key_opens_for_each_recipient_and_nobody_else() {
        let (maria, otto, eve) = (
            Identity::generate(),
            Identity::generate(),
            Identity::generate(),
        );
        let recipient = |name: &str, key: String| Recipient {
            name: name.to_owned(),
            key,
        };
        let sealer = Sealer::draw(&mut SystemChance);
        let wrapped = sealer
            .wrap(&[
                recipient("maria", maria.public()),
                recipient("otto", otto.public()),
            ])
            .unwrap();
        for who in [&maria, &otto] {
            assert_eq!(Sealer::unwrap(&wrapped, who).unwrap().key, sealer.key);
        }
        assert!(matches!(
            Sealer::unwrap(&wrapped, &eve),
            Err(IdentityError::NotForUs { .. })
        ));
        let wrong = sealer.wrap(&[recipient("eve", "age1nonsense".to_owned())]);
        insta::assert_snapshot!(wrong.unwrap_err(), @"the key of recipient eve is not an age public key (age1…)");
    }
}
