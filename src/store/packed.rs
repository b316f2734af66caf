//! Long records, packed: a manifest repeats itself in every line, and LZ4 makes a tenth of it. What is smaller on disk is
//! also opened sooner, and leaves memory to the machines themselves.
//!
//! A packed record is a mark, then an LZ4 block with its size before it. JSON never begins with the mark, so a record
//! that is not packed is read as it is. Everything here was sealed, so no stranger wrote it; the bound is for
//! damage that sealing let through.

use std::borrow::Cow;

/// What no JSON begins with.
const MARK: u8 = 1;
/// The most that a record may become, in bytes.
const MOST: usize = 64 * 1024 * 1024;

/// Packs a record's JSON.
pub(super) fn pack(json: &[u8]) -> Vec<u8> {
    let mut packed = vec![MARK];
    packed.extend(lz4_flex::block::compress_prepend_size(json));
    packed
}

/// A record's JSON, packed or not; an error says why it cannot be unpacked.
pub(super) fn unpack(record: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(block) = record.strip_prefix(&[MARK]) else {
        return Ok(Cow::Borrowed(record));
    };
    let size = block
        .first_chunk::<4>()
        .map(|size| u32::from_le_bytes(*size));
    match size.map(usize::try_from) {
        Some(Ok(size)) if size <= MOST => {}
        _ => return Err(format!("it is packed, and not of at most {MOST} bytes")),
    }
    lz4_flex::block::decompress_size_prepended(block)
        .map(Cow::Owned)
        .map_err(|why| format!("it cannot be unpacked: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_json_is_left_as_it_is() {
        let json = format!("{{\"files\":[{}]}}", "\"services/app/a\",".repeat(500));
        let packed = pack(json.as_bytes());
        assert!(packed.len() * 10 < json.len(), "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), json.as_bytes());
        assert_eq!(unpack(b"{}").unwrap(), b"{}".as_slice());
    }

    #[test]
    fn what_is_torn_or_too_large_is_refused() {
        let packed = pack("{\"format\":1}".repeat(100).as_bytes());
        for torn in [&packed[..3], &packed[..packed.len() - 1]] {
            assert!(unpack(torn).is_err());
        }
        let mut large = packed;
        large[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        let why = unpack(&large).unwrap_err();
        assert_eq!(why, "it is packed, and not of at most 67108864 bytes");
    }
}
